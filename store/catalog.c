#include "store/catalog.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "core/text.h"
#include "store/known.h"

static int begin(struct catalog *c, struct err *e)
{
	if (txn_begin(&c->t, &c->st, STORE_READ, e) || txn_counts(&c->t, &c->counts) ||
	    channels_load(&c->t, &c->channels) || index_load(&c->t, INDEX_DIGEST, 0, &c->digests))
		return -1;
	for (size_t i = 0; i < c->channels.count; i++)
		if (index_load(&c->t, INDEX_CASE, (uint8_t)i, &c->by_case[i]))
			return -1;
	c->cases = xcalloc(c->counts.cases, sizeof *c->cases);
	c->labels = xcalloc(c->counts.labels, sizeof *c->labels);
	return 0;
}

int catalog_open(struct catalog *c, const char *directory, struct err *e)
{
	*c = (struct catalog){.err = e, .packer = packer_new()};
	return store_open(&c->st, directory, STORE_READ, e) || begin(c, e) ? -1 : 0;
}

int catalog_attach(struct catalog *c, const struct store *st, struct err *e)
{
	*c = (struct catalog){.st = *st, .borrowed = true, .err = e, .packer = packer_new()};
	return begin(c, e);
}

void catalog_close(struct catalog *c)
{
	txn_abort(&c->t);
	if (!c->borrowed)
		store_close(&c->st);
	index_fini(&c->digests);
	for (size_t i = 0; i < CHANNEL_ROOM; i++)
		index_fini(&c->by_case[i]);
	packer_free(c->packer);
	json_decref(c->entries);
	arena_fini(&c->arena);
	free(c->cases);
	free(c->labels);
	for (uint32_t id = 0; c->carried && id < c->counts.publications; id++)
		ranges_fini(&c->carried[id]);
	free(c->carried);
	buf_fini(&c->scratch);
}

static int corrupt(struct catalog *c, const char *what, uint32_t id)
{
	return err_at(c->err, ERR_CORRUPT, c->st.file, 0, 0, "%s number %u is missing or unreadable; run `ki check`", what, id);
}

const struct catalog_case *catalog_case(struct catalog *c, uint32_t id)
{
	struct catalog_case held = {.id = id}, *kept;
	struct key key;
	MDB_val value;
	if (id < c->counts.cases && c->cases[id])
		return c->cases[id];
	buf_clear(&c->scratch);
	if (id >= c->counts.cases || txn_get(&c->t, TABLE_CASES, key_u32(&key, id), &value) != 1 ||
	    known_unpack(c->packer, &value, &held.digest, &held.cohort, &c->scratch, c->err) ||
	    !record_case_parse((struct slice){c->scratch.data, c->scratch.len}, &c->arena, &held.parts)) {
		corrupt(c, "case", id);
		return NULL;
	}
	kept = arena_alloc(&c->arena, sizeof *kept);
	*kept = held;
	return c->cases[id] = kept;
}

struct slice catalog_labels(struct catalog *c, uint32_t id)
{
	struct key key;
	MDB_val value;
	if (id < c->counts.labels && c->labels[id].data)
		return c->labels[id];
	if (id >= c->counts.labels || txn_get(&c->t, TABLE_LABELS, key_u32(&key, id), &value) != 1) {
		corrupt(c, "label set", id);
		return (struct slice){"{}", 2};
	}
	return c->labels[id] = (struct slice){value.mv_data, value.mv_size};
}

int catalog_run(struct catalog *c, uint32_t run, struct run_row *out)
{
	if (run >= c->counts.runs)
		return corrupt(c, "run", run);
	return run_get(&c->t, run, out);
}

int catalog_external_id(struct catalog *c, const struct run_row *row, struct buf *out)
{
	char suffix[RUN_SUFFIX + 1];
	const struct catalog_case *k = catalog_case(c, row->case_id);
	buf_clear(out);
	if (!k)
		return -1;
	if (row->flags & RUN_WHOLE) {
		json_t *body = catalog_load(c, &row->digest);
		const char *text = json_string_value(json_object_get(json_object_get(json_object_get(body, "spec"), "sourceNative"), "externalId"));
		if (text)
			buf_str(out, text);
		json_decref(body);
		if (text)
			return 0;
		if (!body)
			return -1;
	}
	run_suffix(row->observed_ms, suffix);
	buf_add(out, k->parts.external_prefix.data, k->parts.external_prefix.len);
	buf_char(out, '/');
	buf_str(out, suffix);
	return 0;
}

int catalog_object_id(struct catalog *c, const struct digest *d, uint32_t *id)
{
	int found = known_object(&c->t, d, id);
	return found == 1 && *id >= c->counts.objects ? 0 : found;
}

int catalog_object(struct catalog *c, uint32_t id, struct digest *d, struct buf *out)
{
	struct key key;
	MDB_val value;
	buf_clear(out);
	if (id >= c->counts.objects || txn_get(&c->t, TABLE_OBJECTS, key_u32(&key, id), &value) != 1)
		return corrupt(c, "object", id);
	return known_unpack(c->packer, &value, d, NULL, out, c->err);
}

int catalog_body(struct catalog *c, const struct run_row *row, struct buf *out)
{
	const struct catalog_case *k = catalog_case(c, row->case_id);
	struct digest d;
	uint32_t id;
	buf_clear(out);
	if (!k)
		return -1;
	if (!(row->flags & RUN_WHOLE)) {
		run_body(row, &k->parts, &c->scratch, out);
		return 0;
	}
	if (catalog_object_id(c, &row->digest, &id) != 1)
		return err_at(c->err, ERR_CORRUPT, c->st.file, 0, 0, "the body of a run is missing; run `ki check`");
	return catalog_object(c, id, &d, out);
}

json_t *catalog_metadata(struct catalog *c, uint32_t id)
{
	json_t *list = json_array();
	MDB_cursor *cursor = txn_cursor(&c->t, TABLE_METADATA);
	struct key key;
	MDB_val at = *key_u32(&key, id), value;
	if (!cursor)
		return list;
	int found = txn_move(&c->t, TABLE_METADATA, cursor, MDB_SET_RANGE, &at, &value);
	for (; found == 1 && key_read_u32(&at, 0) == id; found = txn_move(&c->t, TABLE_METADATA, cursor, MDB_NEXT, &at, &value))
		json_array_append_new(list, json_load_text(value.mv_data, value.mv_size, "metadata", c->err));
	mdb_cursor_close(cursor);
	return list;
}

json_t *catalog_load(struct catalog *c, const struct digest *d)
{
	struct buf text = {0};
	struct digest stored;
	char name[DIGEST_TEXT + 1];
	uint32_t id;
	json_t *out = NULL;
	int found = catalog_object_id(c, d, &id);
	digest_text(d, name);
	if (found == 1 && catalog_object(c, id, &stored, &text) == 0)
		out = json_load_text(text.data, text.len, name, c->err);
	else if (found == 0)
		err_at(c->err, ERR_CORRUPT, c->st.file, 0, 0, "%s is cited but missing; run `ki check`", name);
	buf_fini(&text);
	return out;
}

json_t *catalog_publication(struct catalog *c, uint32_t id)
{
	struct key key;
	MDB_val value;
	if (id >= c->counts.publications || txn_get(&c->t, TABLE_PUBLICATIONS, key_u32(&key, id), &value) != 1) {
		corrupt(c, "publication", id);
		return NULL;
	}
	return json_load_text(value.mv_data, value.mv_size, "publication", c->err);
}

const char *catalog_identity(const json_t *publication)
{
	const char *entry = json_text_of(publication, "entry");
	return *entry ? entry : json_text_of(publication, "commit");
}

int catalog_carried(struct catalog *c, uint32_t id, struct ranges *out)
{
	struct key key;
	MDB_val value;
	if (txn_get(&c->t, TABLE_CARRIED, key_u32(&key, id), &value) == 1 && ranges_read((struct slice){value.mv_data, value.mv_size}, out))
		return 0;
	return err_at(c->err, ERR_CORRUPT, c->st.file, 0, 0, "the list of runs of publication %u is unreadable; run `ki check`", id);
}

uint32_t *catalog_carriers(struct catalog *c, uint32_t run, size_t *count)
{
	uint32_t publications = c->counts.publications, *out = xmalloc((publications + 1) * sizeof *out);
	*count = 0;
	if (!c->carried) {
		c->carried = xcalloc(publications + 1, sizeof *c->carried);
		for (uint32_t id = 0; id < publications && !c->err->code; id++)
			catalog_carried(c, id, &c->carried[id]);
	}
	for (uint32_t id = 0; id < publications; id++)
		if (ranges_has(&c->carried[id], run))
			out[(*count)++] = id;
	return out;
}

struct case_runs {
	struct catalog *c;
	void (*found)(uint32_t run, void *context);
	void *context;
};

static void pass_published(const struct index_entry *entry, void *context)
{
	struct case_runs *r = context;
	if (entry->run < r->c->counts.runs)
		r->found(entry->run, r->context);
}

int catalog_case_runs(struct catalog *c, uint8_t slot, uint32_t case_id, void (*found)(uint32_t run, void *context), void *context)
{
	struct case_runs r = {c, found, context};
	return index_range(&c->t, &c->by_case[slot], (uint64_t)case_id << 32, (uint64_t)case_id << 32 | UINT32_MAX, pass_published, &r);
}

/* ---- finding runs by what people write ---- */

struct found {
	struct catalog *c;
	uint32_t *runs;
	size_t count;
	/* what is looked for */
	const uint8_t *prefix;
	size_t hex_digits;
	const char *text;
	bool by_name;
};

static void add_found(struct found *f, uint32_t run)
{
	for (size_t i = 0; i < f->count; i++)
		if (f->runs[i] == run)
			return;
	f->runs = xrealloc(f->runs, (f->count + 1) * sizeof *f->runs);
	f->runs[f->count++] = run;
}

static void match_digest(const struct index_entry *entry, void *context)
{
	struct found *f = context;
	char hex[DIGEST_HEX + 1];
	struct run_row row;
	if (entry->run >= f->c->counts.runs || run_get(&f->c->t, entry->run, &row))
		return;
	digest_hex(&row.digest, hex);
	if (strncmp(hex, f->text, f->hex_digits) == 0)
		add_found(f, entry->run);
}

static bool find_digest(struct found *f, const char *text)
{
	char padded[17];
	if (strncmp(text, "sha256:", 7) == 0)
		text += 7;
	f->hex_digits = strspn(text, "0123456789abcdef");
	if (f->hex_digits < 8 || f->hex_digits > DIGEST_HEX || text[f->hex_digits])
		return false;
	f->text = text;
	snprintf(padded, sizeof padded, "%.16s", text);
	size_t len = strlen(padded);
	memset(padded + len, '0', 16 - len);
	padded[16] = '\0';
	uint64_t low = strtoull(padded, NULL, 16);
	memset(padded + len, 'f', 16 - len);
	index_range(&f->c->t, &f->c->digests, low, strtoull(padded, NULL, 16), match_digest, f);
	return true;
}

static void match_external(uint32_t run, void *context)
{
	struct found *f = context;
	struct buf id = {0}, name = {0};
	struct run_row row;
	if (run_get(&f->c->t, run, &row) == 0 && catalog_external_id(f->c, &row, &id) == 0) {
		if (f->by_name)
			catalog_run_name((struct slice){id.data, id.len}, &name);
		if (strcmp(f->by_name ? name.data : id.data, f->text) == 0)
			add_found(f, run);
	}
	buf_fini(&id);
	buf_fini(&name);
}

static void match_case(struct found *f, uint32_t case_id)
{
	for (size_t slot = 0; slot < f->c->channels.count; slot++)
		catalog_case_runs(f->c, (uint8_t)slot, case_id, match_external, f);
}

static void find_external(struct found *f, const char *text)
{
	const char *slash = strrchr(text, '/');
	if (!slash)
		return;
	uint64_t hash = known_prefix_hash((struct slice){text, (size_t)(slash - text)});
	struct key key;
	MDB_val value;
	f->text = text;
	key_u64_u32(&key, hash, 0);
	for (uint32_t id = 0; txn_next(&f->c->t, TABLE_PREFIXES, &key, &value) == 1; key_u64_u32(&key, hash, id + 1)) {
		struct key wanted;
		id = key_read_u32(&key.val, 8);
		key_u64_u32(&wanted, hash, id);
		if (memcmp(key.bytes, wanted.bytes, 8) != 0)
			break;
		if (id < f->c->counts.cases)
			match_case(f, id);
	}
}

/* A name is cut to 100 characters, so several runs can bear one. */
static void find_name(struct found *f, const char *text)
{
	struct buf name = {0};
	f->text = text;
	f->by_name = true;
	for (uint32_t id = 0; id < f->c->counts.cases; id++) {
		const struct catalog_case *k = catalog_case(f->c, id);
		if (!k)
			break;
		catalog_run_name(k->parts.external_prefix, &name);
		if (strncmp(name.data, text, name.len) == 0)
			match_case(f, id);
	}
	buf_fini(&name);
}

static int compare_u32(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return (x > y) - (x < y);
}

uint32_t *catalog_find(struct catalog *c, const char *text, size_t *count)
{
	struct found f = {.c = c};
	if (!find_digest(&f, text) || f.count == 0)
		find_external(&f, text);
	if (f.count == 0 && strncmp(text, "liger-", 6) == 0)
		find_name(&f, text);
	if (f.count)
		qsort(f.runs, f.count, sizeof *f.runs, compare_u32);
	*count = f.count;
	return f.runs;
}

static int ambiguous(struct catalog *c, const char *text, const uint32_t *runs, size_t count)
{
	struct buf list = {0}, id = {0};
	for (size_t i = 0; i < count && i < 8; i++) {
		struct run_row row;
		char hex[DIGEST_HEX + 1];
		if (catalog_run(c, runs[i], &row) || catalog_external_id(c, &row, &id))
			break;
		digest_hex(&row.digest, hex);
		buf_printf(&list, "\n  %.16s  %s", hex, id.data);
	}
	err_set(c->err, ERR_USAGE, "%s: means %zu runs; name one of them%s%s", text, count, count > 8 ? " (the first 8)" : "", list.data);
	buf_fini(&list);
	buf_fini(&id);
	return -1;
}

int catalog_find_one(struct catalog *c, const char *text, uint32_t *run)
{
	size_t count;
	uint32_t *runs = catalog_find(c, text, &count);
	int rc = c->err->code ? -1 : 0;
	if (rc == 0 && count == 0)
		rc = err_set(c->err, ERR_NOTFOUND, "%s: no such run (want a digest or 8 or more of its hex digits, an external id, or a name)", text);
	else if (rc == 0 && count > 1)
		rc = ambiguous(c, text, runs, count);
	else if (rc == 0)
		*run = runs[0];
	free(runs);
	return rc;
}

void catalog_run_name(struct slice external_id, struct buf *out)
{
	struct buf text = {0};
	buf_str(&text, "liger-");
	buf_add(&text, external_id.data, external_id.len);
	buf_clear(out);
	text_kebab((struct slice){text.data, text.len}, out);
	buf_fini(&text);
}
