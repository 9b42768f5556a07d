/* A JSON tree as lines for people: `a.b.c` and what stands there. */
#ifndef KI_STORE_LEAF_H
#define KI_STORE_LEAF_H

#include <jansson.h>

#include "core/arena.h"

/* Calls `put` for all leaves of a tree in the order of their names: texts as they are, all else (arrays too) as canonical JSON. */
typedef void leaf_put(void *context, const char *name, struct slice text);
void leaf_each(const char *name, const json_t *value, leaf_put *put, void *context);

#endif
