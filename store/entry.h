/* Entries that people add to the record: append-only, each a canonical JSON object {"type", "run", "reason", "at", …}. A later
 * entry may undo an earlier one; none is ever changed. */
#ifndef KI_STORE_ENTRY_H
#define KI_STORE_ENTRY_H

#include <jansson.h>

#include "store/catalog.h"

/* Appends {"type":type,"run":digest,"reason":reason,"at":now}; `reason` may be NULL. One durable transaction. */
int entry_append(struct store *st, const char *type, const struct digest *run, const char *reason, struct err *e);
/* Appends each object of an array as an entry. One durable transaction. */
int entry_append_all(struct store *st, const json_t *entries, struct err *e);
/* All entries in order, as a JSON array; the caller owns it. NULL when one is unreadable. */
json_t *entry_load(struct catalog *c);

#endif
