/* Run rows: where they lie, and how a row becomes the run's canonical bytes again. */
#ifndef KI_STORE_RUN_H
#define KI_STORE_RUN_H

#include "normalize/record.h"
#include "store/store.h"

/* Reads row `run`; ERR_CORRUPT when its chunk is missing or short. */
int run_get(struct txn *t, uint32_t run, struct run_row *out);
/* Appends `count` rows as runs first, first+1, …; rows at or beyond `first` are overwritten. */
int run_append(struct txn *t, uint32_t first, const struct run_row *rows, size_t count);

/* The last segment of a run's external id, when the CSV's time had the usual form: `2024-09-03-15-31-39`, 19 bytes. */
enum { RUN_SUFFIX = 19 };
void run_suffix(int64_t observed_ms, char out[RUN_SUFFIX + 1]);

/* Appends the canonical body of a row that is not RUN_WHOLE; `external_id` receives the run's external id. */
void run_body(const struct run_row *row, const struct case_parts *c, struct buf *external_id, struct buf *out);

/* Median, p20, p80 in stored units (ns, bytes); -1 where absent. */
int64_t run_units(const struct run_row *row, enum metric metric, double value);

#endif
