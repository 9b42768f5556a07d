/* Checksums of values that no digest proves: the first 8 bytes of the SHA-256 of table name, NUL, key and value, kept at the end of the
 * value. The key is in it, so that a value under another key is found too. Part of the store's schema from version 2 on. */
#ifndef KI_STORE_SEAL_H
#define KI_STORE_SEAL_H

#include <stdbool.h>

#include "core/arena.h"
#include "store/key.h"

enum { SEAL_SIZE = 8 };

bool seal_wanted(enum table table);
void seal_make(enum table table, const MDB_val *key, struct slice value, uint8_t out[SEAL_SIZE]);
/* Whether a value as it lies in the file, seal included, is what was put there. */
bool seal_holds(enum table table, const MDB_val *key, const MDB_val *sealed);

#endif
