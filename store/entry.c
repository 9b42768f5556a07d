#include "store/entry.h"

#include <string.h>

#include "core/json.h"
#include "core/when.h"

static int put(struct txn *t, struct meta_counts *counts, const json_t *entry)
{
	struct buf text = {0};
	struct key key;
	int rc = json_canonical(entry, &text, t->err);
	if (rc == 0)
		rc = txn_put(t, TABLE_EVENTS, key_u32(&key, counts->events++), text.data, text.len);
	buf_fini(&text);
	return rc;
}

int entry_append_all(struct store *st, const json_t *entries, struct err *e)
{
	struct meta_counts counts;
	struct txn t;
	size_t i;
	json_t *entry;
	if (txn_begin(&t, st, STORE_WRITE, e))
		return -1;
	int rc = txn_counts(&t, &counts);
	json_array_foreach((json_t *)entries, i, entry)
		if (rc == 0)
			rc = put(&t, &counts, entry);
	if (rc == 0 && txn_put_counts(&t, &counts) == 0)
		return txn_commit(&t);
	txn_abort(&t);
	return -1;
}

int entry_append(struct store *st, const char *type, const struct digest *run, const char *reason, struct err *e)
{
	char digest[DIGEST_TEXT + 1], now[WHEN_TEXT + 1];
	digest_text(run, digest);
	when_text(when_now_ms(), now);
	json_t *entry = json_pack("{s:s, s:s, s:s, s:s*}", "type", type, "run", digest, "at", now, "reason", reason);
	json_t *list = entry ? json_pack("[o]", entry) : NULL;
	int rc = list ? entry_append_all(st, list, e) : err_set(e, ERR_DATA, "the text is not UTF-8");
	json_decref(list);
	return rc;
}

const json_t *entry_all(struct catalog *c)
{
	if (c->entries)
		return c->entries;
	json_t *list = json_array();
	for (uint32_t id = 0; id < c->counts.events; id++) {
		struct key key;
		MDB_val value;
		json_t *entry = txn_get(&c->t, TABLE_EVENTS, key_u32(&key, id), &value) == 1
					? json_load_text(value.mv_data, value.mv_size, "entry", c->err)
					: NULL;
		if (!entry) {
			err_at(c->err, ERR_CORRUPT, c->st.file, 0, 0, "entry number %u is missing or unreadable", id);
			json_decref(list);
			return NULL;
		}
		json_array_append_new(list, entry);
	}
	return c->entries = list;
}

const json_t *entry_last(struct catalog *c, const char *type, const char *run)
{
	const json_t *entries = entry_all(c), *last = NULL;
	size_t i;
	json_t *entry;
	json_array_foreach((json_t *)entries, i, entry)
		if (strncmp(json_text_of(entry, "type"), type, strlen(type)) == 0 && strcmp(json_text_of(entry, "run"), run) == 0)
			last = entry;
	return last;
}
