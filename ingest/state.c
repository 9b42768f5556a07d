#include "ingest/state.h"

#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "core/json.h"
#include "core/log.h"
#include "ingest/sources.h"

enum { STATE_BYTES_MAX = 64 << 20 };

static const char *copy_text(struct state *st, const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));
	return text ? arena_strdup(&st->arena, text) : NULL;
}

static bool read_item(struct state *st, const json_t *value)
{
	const char *id = json_string_value(json_object_get(value, "id"));
	const char *sha256 = json_string_value(json_object_get(value, "sha256"));
	const char *commit = json_string_value(json_object_get(value, "commit"));
	if (!id || !(source_commit_valid(id) || source_entry_valid(id)) || (commit && !source_commit_valid(commit)))
		return false;
	struct state_item *item = state_add(st, id);
	item->absent = json_is_true(json_object_get(value, "absent"));
	item->commit = copy_text(st, value, "commit");
	item->committed_at = copy_text(st, value, "committedAt");
	item->etag = copy_text(st, value, "etag");
	return item->absent || (sha256 && digest_parse(sha256, strlen(sha256), &item->sha256));
}

static bool read_state(struct state *st, const json_t *root)
{
	const char *channel = json_string_value(json_object_get(root, "channel"));
	const json_t *items = json_object_get(root, "items");
	if (!channel || strcmp(channel, st->channel) != 0 || !json_is_array(items))
		return false;
	for (size_t i = 0; i < json_array_size(items); i++)
		if (!read_item(st, json_array_get(items, i)))
			return false;
	st->newest = copy_text(st, root, "newest");
	st->etag = copy_text(st, root, "etag");
	if (st->newest && !state_find(st, st->newest))
		return false;
	st->dirty = false;
	return true;
}

static struct state *empty_state(const char *channel)
{
	struct state *st = xcalloc(1, sizeof *st);
	st->channel = arena_strdup(&st->arena, channel);
	return st;
}

struct state *state_load(const struct snapshots *s, const char *channel)
{
	struct state *st = empty_state(channel);
	struct buf path = {0}, text = {0};
	struct err why = {0};
	json_t *root = NULL;
	snapshots_state_path(s, channel, &path);
	if (file_read(path.data, STATE_BYTES_MAX, &text, &why) == 0)
		root = json_load_text(text.data, text.len, path.data, &why);
	if (why.code != ERR_NOTFOUND && (!root || !read_state(st, root))) {
		log_warn("%s: not readable as state, starting anew", path.data);
		state_free(st);
		st = empty_state(channel);
	}
	json_decref(root);
	buf_fini(&text);
	buf_fini(&path);
	return st;
}

static void put_member(struct buf *out, const char *name, const char *text)
{
	if (!text)
		return;
	if (out->data[out->len - 1] != '{')
		buf_char(out, ',');
	json_put_str(out, name);
	buf_char(out, ':');
	json_put_str(out, text);
}

static void put_item(struct buf *out, const struct state_item *item)
{
	char sha256[DIGEST_TEXT + 1];
	digest_text(&item->sha256, sha256);
	buf_str(out, item->absent ? "{\"absent\":true" : "{");
	put_member(out, "commit", item->commit);
	put_member(out, "committedAt", item->committed_at);
	put_member(out, "etag", item->etag);
	put_member(out, "id", item->id);
	put_member(out, "sha256", item->absent ? NULL : sha256);
	buf_char(out, '}');
}

int state_save(struct state *st, const struct snapshots *s, struct err *e)
{
	struct buf path = {0}, text = {0};
	if (!st->dirty)
		return 0;
	buf_char(&text, '{');
	put_member(&text, "channel", st->channel);
	put_member(&text, "etag", st->etag);
	buf_str(&text, ",\"items\":[");
	for (size_t i = 0; i < st->count; i++) {
		buf_str(&text, i ? ",\n" : "\n");
		put_item(&text, &st->items[i]);
	}
	buf_char(&text, ']');
	put_member(&text, "newest", st->newest);
	buf_str(&text, "}\n");
	snapshots_state_path(s, st->channel, &path);
	int rc = file_write(path.data, text.data, text.len, 0644, e);
	st->dirty = rc != 0;
	buf_fini(&text);
	buf_fini(&path);
	return rc;
}

void state_free(struct state *st)
{
	if (!st)
		return;
	free(st->items);
	arena_fini(&st->arena);
	free(st);
}

struct state_item *state_find(struct state *st, const char *id)
{
	for (size_t i = 0; i < st->count; i++)
		if (strcmp(st->items[i].id, id) == 0)
			return &st->items[i];
	return NULL;
}

struct state_item *state_add(struct state *st, const char *id)
{
	if (st->count == st->room) {
		st->room = st->room ? st->room * 2 : 64;
		st->items = xrealloc(st->items, st->room * sizeof *st->items);
	}
	struct state_item *item = &st->items[st->count++];
	*item = (struct state_item){.id = arena_strdup(&st->arena, id)};
	st->dirty = true;
	return item;
}

void state_set(struct state *st, const char **field, const char *text)
{
	if (*field == text || (*field && text && strcmp(*field, text) == 0))
		return;
	*field = text ? arena_strdup(&st->arena, text) : NULL;
	st->dirty = true;
}
