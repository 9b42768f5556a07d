/* One publication of upstream: which bytes, of which channel, at which commit or entry (manifests.md section 7), and how they
 * came here. Writes its two JSON forms, the provenance that is kept beside a snapshot and the source line that the next stage
 * reads:
 *
 *   {"channel":C,"commit":SHA,"entry":E,"file":NAME,"path":SNAPSHOT,"provenance":{…},"sha256":DIGEST,"sizeBytes":N}
 *
 * `commit` has 40 hex digits, or at least 12 when a file of that name was replayed; a gh-pages publication has `entry` and, when
 * known, `commit`; a local file may have neither. `path` is absent in a dry run over the network. Both forms are canonical JSON. */
#ifndef KI_INGEST_PUBLICATION_H
#define KI_INGEST_PUBLICATION_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/digest.h"
#include "core/err.h"

/* Texts are the caller's; NULL where they do not apply. */
struct publication {
	const char *channel;
	const char *commit;
	const char *entry;
	const char *path;         /* in the upstream repository */
	const char *file;         /* base name, upstream's or the local file's */
	const char *committed_at; /* commit time as upstream gives it */
	const char *requested_url, *final_url, *etag, *last_modified, *media_type;
	int64_t fetched_ms;
	struct digest sha256;
	int64_t size_bytes;
	bool changed; /* an entry whose bytes differ from those kept before */
};

/* The key of a publication within its channel: the entry, else the commit, else "". */
const char *publication_id(const struct publication *p);
/* The same as it stands in file names: the entry, else 12 digits of the commit, else `local`. */
void publication_tag(const struct publication *p, struct buf *out);
/* Appends the provenance. Texts that are no UTF-8 (headers may hold anything) are left out. */
void publication_put_provenance(const struct publication *p, struct buf *out);
/* Appends the source line, newline included. `provenance` is canonical JSON; `path` may be NULL. ERR_DATA when a path or file name
 * is no UTF-8 and cannot stand in JSON. */
int publication_put_line(const struct publication *p, const char *path, struct slice provenance, struct buf *out, struct err *e);

#endif
