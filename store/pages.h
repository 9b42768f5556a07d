/* The shape of data.mdb, proved page by page before anything is read through LMDB, which trusts its file: a damaged pointer would send
 * it astray. Source: the file format of LMDB 0.9 (mdb.c: MDB_page, MDB_node, MDB_meta, MDB_db), which has not changed since 2011.
 *
 * Every page that the newest state reaches must be of its kind, carry its own number, be reached once and lie within the file; nodes
 * must tile their page and be in order; depths and counts must be those of the tree's account; a free page must not be in use. */
#ifndef KI_STORE_PAGES_H
#define KI_STORE_PAGES_H

#include <stdint.h>
#include <stdio.h>

#include "core/err.h"

struct pages_totals {
	uint64_t live, free, problems; /* pages; what was found wrong */
};
/* Looks at the newest state of DIR/data.mdb, also while others write. Writes a line for each problem to `out`. Returns -1 only when
 * looking itself was impossible. `live`, unless NULL, receives one byte a page of the file, 1 for those in use; the caller frees. */
int pages_check(const char *directory, FILE *out, struct pages_totals *totals, uint8_t **live, struct err *e);

#endif
