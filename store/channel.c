#include "store/channel.h"

#include <string.h>

int channels_load(struct txn *t, struct channels *out)
{
	struct key key;
	MDB_val value;
	*out = (struct channels){0};
	int found = txn_get(t, TABLE_META, key_text(&key, "channels"), &value);
	if (found <= 0)
		return found;
	if (value.mv_size > sizeof out->items || value.mv_size % sizeof *out->items)
		return err_at(t->err, ERR_CORRUPT, t->st->file, 0, 0, "the channel list has %zu bytes", value.mv_size);
	memcpy(out->items, value.mv_data, value.mv_size);
	out->count = value.mv_size / sizeof *out->items;
	return 0;
}

int channels_find(const struct channels *c, struct slice name)
{
	for (size_t i = 0; i < c->count; i++)
		if (slice_eq(name, c->items[i].name))
			return (int)i;
	return -1;
}

int channels_add(struct txn *t, struct channels *c, struct slice name, bool entries, uint8_t *slot)
{
	struct key key;
	int found = channels_find(c, name);
	if (found < 0) {
		if (name.len == 0 || name.len >= CHANNEL_NAME_MAX || c->count == CHANNEL_ROOM)
			return err_set(t->err, ERR_DATA, "channel name of %zu bytes, or more than %d channels", name.len, CHANNEL_ROOM);
		found = (int)c->count++;
		c->items[found] = (struct channel){.entries = entries};
		memcpy(c->items[found].name, name.data, name.len);
		if (txn_put(t, TABLE_META, key_text(&key, "channels"), c->items, c->count * sizeof *c->items))
			return -1;
	}
	if (c->items[found].entries != entries)
		return err_set(t->err, ERR_DATA, "channel %s is published by %s, not by %s", c->items[found].name, entries ? "commit" : "entry",
			       entries ? "entry" : "commit");
	*slot = (uint8_t)found;
	return 0;
}
