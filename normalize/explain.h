/* `ki config explain`: what the rules make of rows, for people: which rule binds a row, to which axes and digests, and why the
 * other rules of its kernel do not. */
#ifndef KI_NORMALIZE_EXPLAIN_H
#define KI_NORMALIZE_EXPLAIN_H

#include <stdio.h>

#include "normalize/curate.h"

/* Explains every row of the table read from `fd`, or, when `row` is not NULL, this one row in the standard column order. ERR_DATA
 * for text that is no such table. */
int explain_rows(const struct curate *c, int fd, const char *name, const char *row, FILE *out, struct err *e);
/* One line that counts what the config holds. */
void explain_config(const struct curate *c, FILE *out);

#endif
