/* Entries that people and reruns add to the record: append-only, each a canonical JSON object with a "type": `flag` and `flag-clear`
 * (flag.h), `link` (link.h), `retract`, `note` and `undo` (correction.h). A later entry may undo an earlier one; none is ever
 * changed. */
#ifndef KI_STORE_ENTRY_H
#define KI_STORE_ENTRY_H

#include <jansson.h>

#include "store/catalog.h"

/* Appends {"type":type,"run":digest,"reason":reason,"at":now}; `reason` may be NULL. One durable transaction. */
int entry_append(struct store *st, const char *type, const struct digest *run, const char *reason, struct err *e);
/* Appends each object of an array as an entry. One durable transaction. */
int entry_append_all(struct store *st, const json_t *entries, struct err *e);
/* All entries in order, as a JSON array that belongs to the catalog. NULL when one is unreadable. */
const json_t *entry_all(struct catalog *c);
/* The last entry about a run whose type begins with `type`; it belongs to the catalog. NULL when there is none. */
const json_t *entry_last(struct catalog *c, const char *type, const char *run);

#endif
