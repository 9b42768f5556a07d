/* Loading bindings.json: operations and binding rules, and the checks between them. Part of curate.h's work, apart because the
 * file is large. */
#ifndef KI_NORMALIZE_RULES_H
#define KI_NORMALIZE_RULES_H

#include "normalize/curate.h"
#include "normalize/document.h"

/* Fills operations and rules of `c`, whose dtypes, models and caveats are loaded already. */
int rules_load(struct curate *c, const struct document *d, struct err *e);
/* True when `a`, standing earlier in the list, takes every row that `b` would take. */
bool rules_cover(const struct rule *a, const struct rule *b);

#endif
