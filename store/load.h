/* Rebuilds a store from a dump of dump.h: every record goes through the one writer, which hashes it again and resolves what it cites.
 * Entries must say what was signed; whose signatures counted was asked when they came in, and is not asked again. */
#ifndef KI_STORE_LOAD_H
#define KI_STORE_LOAD_H

#include "store/store.h"

struct load_totals {
	uint64_t runs, publications, entries;
};
/* Makes the store `directory`, which must not exist, from the lines of `fd`, packed with zstd or not: built beside its name, renamed when
 * it is whole and its dump is, byte for byte, the one that was read. ERR_DATA, with the line where there is one, for a dump that is
 * cut off, altered or none; then nothing is left. `name` is the dump's. */
int load_dump(const char *directory, int fd, const char *name, struct load_totals *totals, struct err *e);

#endif
