/* Loading bindings.json: binding rules, and the checks between them and their operations. Part of curate.h's work. */
#ifndef KI_NORMALIZE_RULES_H
#define KI_NORMALIZE_RULES_H

#include "normalize/curate.h"
#include "normalize/document.h"

/* Fills operations and rules of `c`, whose dtypes, models and caveats are loaded already. */
int rules_load(struct curate *c, const struct document *d, struct err *e);

#endif
