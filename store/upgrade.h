/* From an older schema to this program's. Source: the account of schemas in docs/operations.md. */
#ifndef KI_STORE_UPGRADE_H
#define KI_STORE_UPGRADE_H

#include "store/store.h"

/* Schema 1 to 2: seals (seal.h) are added to values. The store must be open for writing. Runs are sealed in several transactions, which
 * readers of either schema may see half done; the last transaction seals the rest and moves the schema. An upgrade that was cut off
 * is taken up where it stopped, and until its last transaction programs of the older schema read the store too. */
int upgrade_store(struct store *st, struct err *e);

#endif
