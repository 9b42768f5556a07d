/* One digest for all tables that decide how rows bind: the same file under other tables is news to the store. */
#ifndef KI_NORMALIZE_TABLES_H
#define KI_NORMALIZE_TABLES_H

#include "core/digest.h"
#include "core/err.h"

/* SHA-256 of the bytes of bindings.json, entries.json, hardware.json and providers.json, one after the other, as `sha256:…`. */
int tables_digest(const char *directory, char out[DIGEST_TEXT + 1], struct err *e);

#endif
