/* Source lines: what ki-ingest hands over, one JSON object a line:
 *   {"channel":C,"commit":SHA,"entry":E,"file":NAME,"path":SNAPSHOT,"provenance":{…},"sha256":DIGEST,"sizeBytes":N}
 * `channel`, `path` and `sha256` are needed; `commit`, `entry`, `file` and `provenance` may be absent; other members are left
 * alone. The other end is ingest/publication.h. */
#ifndef KI_NORMALIZE_SOURCE_H
#define KI_NORMALIZE_SOURCE_H

#include "normalize/convert.h"

enum { SOURCE_LINE_MAX = 1 << 20 };

/* Reads a line into `out`, whose texts live in `a`. `name` and `number` are for messages. ERR_DATA. */
int source_parse(struct slice line, struct arena *a, struct source *out, const char *name, unsigned number, struct err *e);
/* A file named on the command line; missing texts become "". ERR_USAGE for a channel, commit or entry that cannot be one. */
int source_local(const char *path, const char *channel, const char *commit, const char *entry, struct arena *a, struct source *out,
		 struct err *e);

#endif
