/* What a channel remembers between nights: the ETag of its list, and each publication kept, in the order it was kept. Lives in
 * STORE/snapshots/state/<channel>.json; losing it costs requests, nothing else. */
#ifndef KI_INGEST_STATE_H
#define KI_INGEST_STATE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/arena.h"
#include "core/digest.h"
#include "core/err.h"
#include "ingest/snapshot.h"

struct state_item {
	const char *id;           /* commit (40 digits) or entry */
	const char *commit;       /* of an entry: its full commit; NULL when unknown, or when `id` is the commit */
	const char *committed_at; /* or NULL */
	const char *etag;         /* of the file, or NULL */
	bool absent;              /* upstream has no file there; then no digest */
	struct digest sha256;
};

struct state {
	struct arena arena;  /* owns all texts below */
	const char *channel;
	const char *etag;    /* of the list of commits or entries; NULL when it must be read again */
	const char *newest;  /* commit, or NULL */
	struct state_item *items;
	size_t count, room;
	bool dirty;          /* differs from what is on disk */
};

/* Reads the channel's state; none, or one that cannot be read, gives an empty one (with a warning in the second case). */
struct state *state_load(const struct snapshots *s, const char *channel);
/* Writes it when it is dirty. */
int state_save(struct state *st, const struct snapshots *s, struct err *e);
void state_free(struct state *st); /* NULL is fine */

/* NULL when there is none. Valid until the next state_add. */
struct state_item *state_find(struct state *st, const char *id);
/* Appends an item with this id; the rest is zero. */
struct state_item *state_add(struct state *st, const char *id);
/* Replace a text (copied; NULL clears) and mark the state dirty when it differs. */
void state_set(struct state *st, const char **field, const char *text);

#endif
