/* Proof that nothing is lost or altered: recomputes every digest, resolves every reference, rebuilds every index and compares. */
#ifndef KI_STORE_CHECK_H
#define KI_STORE_CHECK_H

#include <stdio.h>

#include "store/catalog.h"

struct check_totals {
	uint64_t objects, cases, runs, publications, kept, entries, problems; /* kept: files of snapshots/, evidence/ and samples/ */
	bool unpublished; /* a writer was interrupted; its remains go with the next publication */
	bool unsealed;    /* of schema 1, whose labels, publications and entries nothing proves */
};
/* Writes a line for each problem to `out`. Returns -1 only when there is none and something could not be looked at. */
int check_catalog(struct catalog *c, FILE *out, struct check_totals *totals);

#endif
