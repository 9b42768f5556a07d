/* What may be taken from the text of an HTTP header, which anybody may have written. Pure functions: libcurl finds the headers,
 * unfolds and trims them (transfer.c). Sources: RFC 9110 section 5.5 (field values), GitHub REST API (rate limit headers). */
#ifndef KI_INGEST_HEADER_H
#define KI_INGEST_HEADER_H

#include <stdint.h>

enum { HEADER_TEXT_MAX = 512 };

/* A copy of a header worth keeping: not empty, at most HEADER_TEXT_MAX bytes of UTF-8 without control characters. NULL for any other,
 * and for NULL. The caller frees it. */
char *header_text(const char *value);
/* A whole number of at most 15 digits and nothing else; -1 for anything else, and for NULL. */
int64_t header_number(const char *value);

#endif
