/* Where a value stands in a JSON text. jansson gives positions for syntax errors only; config errors need them for any key, so
 * the text is scanned once more for the place that a JSON pointer (RFC 6901) names. Only used when an error is reported. */
#ifndef KI_CORE_LOCATE_H
#define KI_CORE_LOCATE_H

#include <stddef.h>

/* Finds `pointer` (`/bindings/12/axes/vocab`, `` for the document) in `text`, which must be valid JSON. Gives the 1-based line
 * and byte column of the member's name, or of the element in an array. A part that is not there leaves the position of the
 * deepest part that is. Names are compared as they are written: one that is escaped in the text is not found. */
void locate(const char *text, size_t len, const char *pointer, unsigned *line, unsigned *column);

#endif
