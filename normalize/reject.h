/* The account of one file: how many rows there were and what became of each. A row is bound (and emitted, unless it is an exact
 * duplicate), or skipped because the tables do not know a name in it (counted by that name), or rejected because it is malformed
 * (counted by reason; the first REJECTS_LISTED with line, column and text). Nothing is dropped without a count:
 * rows = bound + skipped + rejected, and bound = emitted + duplicates.
 *
 * The report as JSON, all members always there:
 *   {"bound":N,"conflictLines":[N…],"conflicts":N,"drift":[TEXT…],"duplicates":N,"memory":N,
 *    "new":{"gpu":{NAME:N…},"provider":{…},"rule":{KERNEL:N…}},"prior":N,
 *    "rejected":{REASON:N…},"rejectedTotal":N,"rejects":[{"column":N,"line":N,"reason":R,"text":T}…],
 *    "rows":N,"runs":{"latency":N,"peak_memory":N},"skipped":{REASON:{NAME:N…}…},"skippedTotal":N,"speed":N}
 * `speed` and `memory` count rows by metric, whatever became of them. `prior` counts emitted speed runs that rules, providers
 * and GPUs of status `prior` suffice for; `new` counts the other emitted speed runs by what they needed first. */
#ifndef KI_NORMALIZE_REJECT_H
#define KI_NORMALIZE_REJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/arena.h"
#include "normalize/record.h"

enum { REJECTS_LISTED = 100 };

enum reason {
	/* skipped, by name */
	SKIP_METRIC,
	SKIP_KERNEL,
	SKIP_CONFIG, /* known kernel, but no rule fits; the name is the kernel's */
	SKIP_PROVIDER,
	SKIP_GPU,
	SKIP_MODE,
	/* rejected, by position */
	REJECT_FIELD_COUNT,
	REJECT_NOT_UTF8,
	REJECT_BAD_CONFIG,
	REJECT_RANGE,
	REJECT_MEDIAN,
	REJECT_TIMESTAMP,
	REJECT_VERSION,
	REASONS,
};
bool reason_skips(enum reason r);
const char *reason_word(enum reason r); /* unknown_gpu, bad_timestamp */

struct reject {
	unsigned line, column;
	enum reason reason;
	char *text;
};

struct tally; /* counts by name */
struct report {
	uint64_t rows, speed, memory, bound, duplicates, conflicts, prior;
	uint64_t runs[2];            /* emitted, by metric */
	uint64_t reasons[REASONS];
	struct tally *skipped[REASONS];
	struct tally *new_rule, *new_provider, *new_gpu;
	struct reject rejects[REJECTS_LISTED];
	unsigned conflict_lines[REJECTS_LISTED];
	struct buf drift;            /* lines of text */
};

/* A report starts zeroed. */
void report_fini(struct report *r);
void report_skip(struct report *r, enum reason reason, struct slice name);
/* `text` is a sentence in valid UTF-8. */
void report_reject(struct report *r, enum reason reason, unsigned line, unsigned column, const char *text);
void report_conflict(struct report *r, unsigned line);
void report_drift(struct report *r, const char *text);
void report_new(struct tally **t, struct slice name);
uint64_t report_rejected(const struct report *r);
uint64_t report_skipped(const struct report *r);

/* Appends the canonical JSON. */
void report_json(const struct report *r, struct buf *out);
/* Prints what a person wants to know on stderr, one line each: every listed reject as `file:line:column: text`, drift, and a
 * count for each reason. Nothing when there is nothing to tell. */
void report_print(const struct report *r, const char *file);

/* A value for a message: quoted, at most 80 bytes, anything that is not printable as \xNN. Appends. */
void report_quote(struct slice value, struct buf *out);

#endif
