/* Publications from local files: single ones, and a tree that mirrors upstream's history. Nothing here is remembered as upstream's
 * word: the next fetch still asks upstream.
 *
 * A tree holds committed/<date>[_cutile|_cutedsl]-<12 digits of the commit>.csv, date as in 2025-05-14T23-53-13Z, and
 * gh-pages/<entry>.csv with gh-pages/commits.txt (order) and perhaps gh-pages/entries.tsv (entry<TAB>full commit). */
#ifndef KI_INGEST_LOCAL_H
#define KI_INGEST_LOCAL_H

#include "ingest/ingest.h"

/* One file as a publication of `channel`; `commit` or `entry` may be NULL. */
int local_file(struct ingest *in, const char *path, const struct source_channel *channel, const char *commit, const char *entry,
	       struct err *e);
/* The whole tree in publication order: committed files by date, then drops in the order of commits.txt. `wanted` tells which channels
 * to take. Files of other names are left out with a warning; entries without a file are counted as missing. */
int local_replay(struct ingest *in, const char *directory, bool (*wanted)(const void *context, const char *channel),
		 const void *context, struct err *e);

#endif
