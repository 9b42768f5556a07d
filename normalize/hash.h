/* A fast hash for tables in memory. Not stable, not for identity: digests name things, this only finds slots. */
#ifndef KI_NORMALIZE_HASH_H
#define KI_NORMALIZE_HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t hash_bytes(const char *data, size_t len);

#endif
