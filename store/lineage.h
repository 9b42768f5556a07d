/* Who carried a run, from when on, and what became of it: derived from the ordered log of publications. */
#ifndef KI_STORE_LINEAGE_H
#define KI_STORE_LINEAGE_H

#include <stdio.h>

#include "store/cohort.h"
#include "store/ranges.h"

struct lineage {
	struct catalog *c;
	uint32_t *first;                  /* by run: the publication that first carried it */
	uint32_t *first_in[CHANNEL_ROOM]; /* the same for one file channel, LINEAGE_NEVER elsewhere; NULL for an entries channel */
	struct ranges newest[CHANNEL_ROOM]; /* what the newest publication of a file channel carries */
};
#define LINEAGE_NEVER UINT32_MAX

int lineage_load(struct catalog *c, struct lineage *out);
void lineage_fini(struct lineage *l);

/* True when a file channel once carried the run, its newest publication (by commit time, where known) does not, and nothing
 * superseded it: upstream took the row back without a successor. It stays ranked. */
bool lineage_withdrawn(const struct lineage *l, const struct member *m);

/* `retracted`, `superseded`, `withdrawn` or `current`. */
const char *lineage_state(const struct lineage *l, const struct member *m);
/* The run that `m` superseded, the latest of those whose successor it is; NULL when it superseded none. */
const struct member *lineage_predecessor(const struct cohort *k, const struct member *m);

/* Publications, predecessor, successor and state of one run. */
int lineage_history(struct catalog *c, uint32_t run, bool json, FILE *out);
/* {run, externalId, value}, or null for no member. The caller owns it. */
json_t *lineage_run_json(struct catalog *c, const struct member *m);

#endif
