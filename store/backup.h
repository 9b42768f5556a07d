/* A copy of the store that is a state which existed, taken while writers and readers go on.
 *
 * A backup is a store: data.mdb, compacted, and all kept files (snapshots/, evidence/, samples/), each of which is named by its digest.
 * backup.json says what it held when it was made: {"type":"backup","madeAt":T,"program":V,"holds":{"dump":digest of its dump (dump.h),
 * "dumpLines","runs","publications","entries","schema","keptFiles","keptBytes"}}. To restore one, give it the store's name. */
#ifndef KI_STORE_BACKUP_H
#define KI_STORE_BACKUP_H

#include <stdio.h>

#include "store/check.h"

/* Makes directory `to`, which must not exist: built beside its name, synced, renamed. */
int backup_store(struct store *st, const char *to, struct err *e);

/* Does what a restore would need to go well, and changes nothing: reads the backup as a store, checks it whole, makes its dump and compares
 * that and all counts with what the backup claims. ERR_CORRUPT when they differ; each difference is a line on `out`. */
int backup_rehearse(const char *directory, FILE *out, struct check_totals *totals, struct err *e);

#endif
