/* What the last night did and how the store stands, as text for node_exporter's textfile collector: OpenMetrics that is valid as
 * Prometheus' older format too, for the collector reads that. So all families are gauges, without units of their own lines. Ages are
 * given as times: `time() - x` stays true when no night runs. docs/operations.md lists the families. */
#ifndef KI_CORE_METRICS_H
#define KI_CORE_METRICS_H

#include "core/json.h"
#include "core/process.h"

struct metrics_night {
	int64_t started_ms, duration_ns;
	int exit_code;
	const json_t *report; /* the store's report.json; NULL when there is none */
	const struct command *status, *flags; /* `ki-store status --json`, `ki-store flags --json`: asked for what they know, left out when they fail */
};
/* Appends the whole text, `# EOF` included. Fills `e` when families are left out for a reason that no command has told itself. */
void metrics_text(const struct metrics_night *n, struct buf *out, struct err *e);

#endif
