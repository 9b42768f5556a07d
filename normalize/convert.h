/* One source file to records on the wire, or to a list: the loop over rows. Each row is bound and emitted, or counted in the
 * report; a file that cannot be trusted as a whole is refused. Memory does not grow with the file. */
#ifndef KI_NORMALIZE_CONVERT_H
#define KI_NORMALIZE_CONVERT_H

#include "normalize/cases.h"
#include "normalize/reject.h"
#include "normalize/seen.h"

/* Where a file came from. Texts are empty when unknown, never NULL. */
struct source {
	const char *path;
	const char *file;    /* name for the snapshot line: plain text */
	const char *channel; /* committed, cutile, cutedsl, gh-pages */
	const char *commit;  /* of a committed file, or the full commit of an entry */
	const char *entry;   /* of gh-pages */
	struct slice provenance; /* canonical JSON object, or empty */
	bool has_digest;     /* the bytes must have this digest */
	struct digest sha256;
};

enum convert_mode {
	CONVERT_WIRE, /* snapshot, records, report */
	CONVERT_LIST, /* external id, run digest, comparison key, tab-separated, a line a run */
	CONVERT_NOTHING, /* only the report */
};

struct converter {
	const struct curate *curate;
	const char *tables; /* digest of the tables, for the snapshot line */
	struct cases *cases;
	struct seen seen;
	enum convert_mode mode;
	bool metrics[METRICS]; /* which runs a list shows */
	int fd;                /* where output goes */
	struct buf out;        /* not yet written */
	struct buf cited;      /* cases and what they cite, to go out before the next run */
	struct buf body, id, labels; /* of the current run */
	unsigned file_number;
};

void converter_init(struct converter *cv, const struct curate *c, enum convert_mode mode, int fd);
void converter_fini(struct converter *cv);
/* Reads the file twice: once for its digest, once for its rows. Fills `report`, which must be zeroed and is the caller's to fini,
 * also on failure. ERR_DATA for a file that is refused: wrong digest, no such header, missing column (nothing was written), or
 * cut by an open quote (records before it were written, but no report line). ERR_IO and others as they come. */
int convert_file(struct converter *cv, const struct source *s, struct report *report, struct err *e);
/* Writes out what is buffered. */
int converter_flush(struct converter *cv, struct err *e);

#endif
