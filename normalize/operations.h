/* Loading the operations of bindings.json: their tensors, derived axes and the names that rules must bind. */
#ifndef KI_NORMALIZE_OPERATIONS_H
#define KI_NORMALIZE_OPERATIONS_H

#include "normalize/curate.h"
#include "normalize/document.h"

/* Fills the operations of `c`, whose dtypes are loaded already. */
int operations_load(struct curate *c, const struct document *d);
/* A lowercase letter, then lowercase letters, digits and underscores. */
bool operations_axis_name(const char *s);

#endif
