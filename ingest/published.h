/* What the catalog already has, as its owner lists it: one publication a line, `channel<TAB>commit or entry<TAB>sha256:hex`.
 * Read whole at start; such publications are not handed over again. */
#ifndef KI_INGEST_PUBLISHED_H
#define KI_INGEST_PUBLISHED_H

#include <stdbool.h>

#include "core/err.h"
#include "ingest/publication.h"

struct published;

/* Reads `path`, or standard input for "-". ERR_DATA with the line for anything else than such lines. */
struct published *published_load(const char *path, struct err *e);
void published_free(struct published *list); /* NULL is fine */

/* Whether the list has this publication. A commit matches by its first 12 or more digits, whichever side has fewer. */
bool published_has(const struct published *list, const struct publication *p);

#endif
