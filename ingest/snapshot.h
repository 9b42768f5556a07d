/* Snapshots: everything fetched is kept, bytes unchanged under their SHA-256, and beside them where and when they came from.
 *
 *   STORE/snapshots/lock                                   held while a process writes here
 *   STORE/snapshots/<2 hex>/<64 hex>                       the bytes, mode 0444
 *   STORE/snapshots/<2 hex>/<64 hex>.<channel>-<tag>.json  a publication's provenance, mode 0444 (tag: 12 digits of the commit,
 *                                                          the entry, or `local`)
 *   STORE/snapshots/state/<channel>.json                   what ingest/state.h remembers, mode 0644
 *
 * A name never shows half a file: core/file.h writes. A file that stands at a snapshot's name with other bytes is replaced. The
 * first provenance of a publication stays. */
#ifndef KI_INGEST_SNAPSHOT_H
#define KI_INGEST_SNAPSHOT_H

#include <stdbool.h>

#include "core/arena.h"
#include "core/digest.h"
#include "core/err.h"
#include "ingest/content.h"
#include "ingest/publication.h"

struct snapshots;

/* Makes the directories, takes the lock (ERR_TEMP when another process holds it) and removes temporary files that a killed
 * process left. */
struct snapshots *snapshots_open(const char *store, struct err *e);
/* The same for reading only: makes nothing, locks nothing. */
struct snapshots *snapshots_open_readonly(const char *store);
void snapshots_close(struct snapshots *s); /* NULL is fine */

/* Keeps the bytes of `c`, whose digest and size `p` holds, and the publication's provenance, durably. Appends the provenance as
 * it stands on disk. ERR_TEMP when a local file changed while it was read. */
int snapshots_keep(struct snapshots *s, const struct content *c, const struct publication *p, struct buf *provenance, struct err *e);
/* Whether both are there whole; then fills `p->size_bytes` and appends the provenance. */
bool snapshots_have(const struct snapshots *s, struct publication *p, struct buf *provenance);

/* Append paths. */
void snapshots_path(const struct snapshots *s, const struct digest *sha256, struct buf *out);
void snapshots_state_path(const struct snapshots *s, const char *channel, struct buf *out);

#endif
