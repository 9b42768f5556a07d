/* The list of gh-pages drops, `benchmarks/commits.txt`: one entry a line, in order of publication (manifests.md section 7). */
#ifndef KI_INGEST_INDEX_H
#define KI_INGEST_INDEX_H

#include <stddef.h>

#include "core/arena.h"
#include "core/err.h"

struct entry_index {
	char **entries; /* in the arena, each once */
	size_t count;
};

/* Reads all good lines. A line that is no entry gives ERR_DATA with its number (the first one's), after the good ones were read:
 * they are in `out` all the same. Blank lines and CRLF are fine. */
int index_read(struct arena *a, struct slice text, const char *name, struct entry_index *out, struct err *e);

/* The full commit of an entry from a table `entry<TAB>commit`, or NULL. The commit has 40 digits and starts as the entry does. */
const char *index_commit(struct arena *a, struct slice table, const char *entry);

#endif
