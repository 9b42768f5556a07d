/* A copy of the store that is a state which existed, taken while writers and readers go on. */
#ifndef KI_STORE_BACKUP_H
#define KI_STORE_BACKUP_H

#include "store/store.h"

/* Makes directory `to` (which must not exist) with data.mdb and all kept files (snapshots/, evidence/, samples/): built beside its name, synced, renamed. */
int backup_store(struct store *st, const char *to, struct err *e);

#endif
