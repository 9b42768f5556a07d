/* The channels a store has seen, in order of first publication; a channel's position is its slot in the index.
 *
 * A `file` channel (committed, cutile, cutedsl) is one upstream file that is rewritten in place: of two runs of one case the
 * later observed supersedes the earlier. In an `entries` channel (gh-pages) every publication is a file of its own. */
#ifndef KI_STORE_CHANNEL_H
#define KI_STORE_CHANNEL_H

#include "store/store.h"

enum { CHANNEL_NAME_MAX = 32, CHANNEL_ROOM = 64 };
struct channel {
	char name[CHANNEL_NAME_MAX];
	uint32_t entries; /* 1 for an entries channel, 0 for a file channel */
};
struct channels {
	struct channel items[CHANNEL_ROOM];
	size_t count;
};
int channels_load(struct txn *t, struct channels *out);
/* Slot of a name, or -1. */
int channels_find(const struct channels *c, struct slice name);
/* Slot of a name, added when new (and written to meta). ERR_DATA when it is too long, or of the other sort than before. */
int channels_add(struct txn *t, struct channels *c, struct slice name, bool entries, uint8_t *slot);

#endif
