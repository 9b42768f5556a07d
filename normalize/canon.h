/* `ki-normalize --canonical` and `--digest`: one JSON document a line in, its RFC 8785 text or the SHA-256 of that out. */
#ifndef KI_NORMALIZE_CANON_H
#define KI_NORMALIZE_CANON_H

#include <stdbool.h>
#include <stdio.h>

#include "core/err.h"

/* Copies `in` to `out`, line for line. A document that has no canonical text gives an empty line there, and `refused` is called
 * with the reason; the return value is then -1 in the end, with `e` telling how many (ERR_DATA). */
int canon_lines(FILE *in, const char *name, FILE *out, bool digest, void (*refused)(const struct err *), struct err *e);

#endif
