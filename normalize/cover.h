/* Does an earlier rule leave anything for a later one? */
#ifndef KI_NORMALIZE_COVER_H
#define KI_NORMALIZE_COVER_H

#include "normalize/curate.h"

/* True when `a`, standing earlier in the list, takes every row that `b` would take, so that `b` can never fire. False when that
 * cannot be told from the conditions alone. */
bool rules_cover(const struct rule *a, const struct rule *b);

#endif
