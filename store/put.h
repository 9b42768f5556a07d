/* Takes the wire stream of ki-normalize and publishes each file of it whole, or not at all.
 *
 * The report line of a file decides: gates, then it is published (writer.h). A stream that ends without it, a refused report or a
 * crash leaves nothing that anybody sees. */
#ifndef KI_STORE_PUT_H
#define KI_STORE_PUT_H

#include <stdio.h>

#include "store/store.h"

/* Limits on what a live fetch may publish, from config/gates.json; shares of rows, 1 or more for no limit. */
struct gates {
	double rejected_share_max, skipped_share_max, shrink_share_max;
	bool drift_refused;
};
int gates_load(const char *config_directory, struct gates *out, struct err *e);

struct put_options {
	const struct gates *gates; /* NULL: none */
	bool refuse; /* what crosses a gate is not published; else it is, and the publication says so, as for a replay of a named file */
	bool dry_run;
	FILE *out; /* one canonical JSON line a file: what was published, or would be; NULL for none */
};

struct put_totals {
	unsigned files, published, known, copies, refused;
	uint64_t runs_read, runs_new, objects_new, cases_new, conflicts, rejected;
};

/* Reads the stream from `fd` until its end. ERR_DATA when a line is wrong or a gate refuses (files before it stay published). */
int put_stream(struct store *st, int fd, const struct put_options *options, struct put_totals *totals, struct err *e);

#endif
