#include "store/check.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "core/file.h"
#include "core/json.h"
#include "store/correct.h"
#include "store/entry.h"
#include "store/known.h"
#include "store/seal.h"

enum { KEPT_MAX = 1 << 30 };

struct check {
	struct catalog *c;
	FILE *out;
	struct check_totals *totals;
	struct buf body;
	struct ranges *by_channel; /* what each channel carried, from the publications */
};

static void problem(struct check *k, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void problem(struct check *k, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	fputs("check: ", k->out);
	vfprintf(k->out, format, args);
	fputc('\n', k->out);
	va_end(args);
	k->totals->problems++;
	*k->c->err = (struct err){0}; /* the next item is checked all the same */
}

static bool digest_holds(const struct digest *d, const struct buf *body)
{
	struct digest computed = digest_of(body->data, body->len);
	return digest_cmp(&computed, d) == 0;
}

static void check_id(struct check *k, enum table ids, const struct digest *d, uint32_t id, const char *what)
{
	struct key key;
	MDB_val value;
	if (txn_get(&k->c->t, ids, key_digest(&key, d), &value) != 1 || key_read_u32(&value, 0) != id)
		problem(k, "%s %u is not found under its digest", what, id);
}

static void check_citations(struct check *k, uint32_t object)
{
	struct slice body = {k->body.data, k->body.len};
	size_t at = 0;
	const char *cited;
	struct digest d;
	uint32_t id;
	for (int found; (found = known_citation(body, &at, &cited, &d));)
		if (found < 0)
			problem(k, "object %u cites a digest that is not one", object);
		else if (catalog_object_id(k->c, &d, &id) != 1)
			problem(k, "object %u cites %.*s, which is missing", object, DIGEST_TEXT, cited);
}

static void check_objects(struct check *k)
{
	for (uint32_t id = 0; id < k->c->counts.objects; id++) {
		struct digest d;
		if (catalog_object(k->c, id, &d, &k->body)) {
			problem(k, "object %u is unreadable: %s", id, k->c->err->text);
			continue;
		}
		if (!digest_holds(&d, &k->body))
			problem(k, "object %u has other bytes than its digest says", id);
		check_id(k, TABLE_OBJECT_IDS, &d, id, "object");
		check_citations(k, id);
		k->totals->objects++;
	}
}

/* What no digest proves. The values are looked at as they lie in the file. */
static void check_seals(struct check *k)
{
	for (int table = 0; table < TABLES && k->c->t.sealed; table++) {
		MDB_cursor *cursor = seal_wanted((enum table)table) ? txn_cursor(&k->c->t, (enum table)table) : NULL;
		MDB_val key, value;
		uint64_t number = 0;
		for (; cursor && mdb_cursor_get(cursor, &key, &value, MDB_NEXT) == 0; number++)
			if (!seal_holds((enum table)table, &key, &value))
				problem(k, "entry %llu of table %s has other bytes than its checksum says", (unsigned long long)number, table_names[table]);
		if (cursor)
			mdb_cursor_close(cursor);
	}
	k->totals->unsealed = !k->c->t.sealed;
}

/* Metadata is filed under its object and its own digest. */
static void check_metadata(struct check *k)
{
	MDB_cursor *cursor = txn_cursor(&k->c->t, TABLE_METADATA);
	MDB_val key, value;
	while (cursor && txn_move(&k->c->t, TABLE_METADATA, cursor, MDB_NEXT, &key, &value) == 1) {
		struct digest d = digest_of(value.mv_data, value.mv_size);
		uint32_t object = key.mv_size == 4 + DIGEST_SIZE ? key_read_u32(&key, 0) : UINT32_MAX;
		if (object == UINT32_MAX || memcmp((const char *)key.mv_data + 4, d.bytes, DIGEST_SIZE) != 0)
			problem(k, "metadata of object %u has other bytes than its digest says", object);
	}
	if (cursor)
		mdb_cursor_close(cursor);
}

static bool key_exists(struct check *k, enum table table, MDB_val *key)
{
	MDB_val value;
	return txn_get(&k->c->t, table, key, &value) == 1;
}

static void check_comparison_key(struct check *k, const struct catalog_case *of)
{
	const struct case_parts *p = &of->parts;
	json_t *workload = catalog_load(k->c, &p->workload);
	json_t *correctness = json_pack("{s:O?}", "correctness", json_object_get(json_object_get(workload, "spec"), "correctness"));
	struct key key;
	buf_clear(&k->body);
	if (!workload || json_canonical(correctness, &k->body, k->c->err)) {
		problem(k, "case %u: its workload is unreadable", of->id);
	} else {
		struct digest c = digest_of(k->body.data, k->body.len);
		struct digest wanted = record_comparison_key(&p->operation, &p->workload, &p->protocol, &p->environment, &c, p->metric);
		if (digest_cmp(&wanted, &of->cohort) != 0)
			problem(k, "case %u has another comparison key than its parts give", of->id);
		if (!key_exists(k, TABLE_COHORTS, key_digest_u32(&key, &of->cohort, of->id)))
			problem(k, "case %u is missing from its cohort", of->id);
	}
	json_decref(correctness);
	json_decref(workload);
}

static void check_cases(struct check *k)
{
	struct key key;
	for (uint32_t id = 0; id < k->c->counts.cases; id++) {
		const struct catalog_case *of = catalog_case(k->c, id);
		if (!of) {
			problem(k, "case %u is unreadable", id);
			continue;
		}
		buf_clear(&k->body);
		record_case_body(&of->parts, &k->body);
		if (!digest_holds(&of->digest, &k->body))
			problem(k, "case %u has other bytes than its digest says", id);
		check_id(k, TABLE_CASE_IDS, &of->digest, id, "case");
		if (!key_exists(k, TABLE_PREFIXES, key_u64_u32(&key, known_prefix_hash(of->parts.external_prefix), id)))
			problem(k, "case %u is missing from the external ids", id);
		check_comparison_key(k, of);
		k->totals->cases++;
	}
}

/* An index or id table may hold no more than what is published, apart from a writer's remains. */
static void check_size(struct check *k, enum table table, uint64_t wanted)
{
	MDB_stat stat;
	mdb_stat(k->c->t.mdb, k->c->st.tables[table], &stat);
	if (stat.ms_entries < wanted)
		problem(k, "table %s has %zu entries where %llu are published", table_names[table], stat.ms_entries, (unsigned long long)wanted);
	else if (stat.ms_entries > wanted)
		k->totals->unpublished = true;
}

static void check_runs(struct check *k)
{
	for (uint32_t run = 0; run < k->c->counts.runs; run++) {
		struct run_row row;
		if (catalog_run(k->c, run, &row) || row.case_id >= k->c->counts.cases || row.labels >= k->c->counts.labels ||
		    catalog_body(k->c, &row, &k->body)) {
			problem(k, "run %u is unreadable", run);
			continue;
		}
		if (!digest_holds(&row.digest, &k->body))
			problem(k, "run %u rebuilds to other bytes than its digest says", run);
		k->totals->runs++;
	}
}

/* Walks one index: every entry must follow from its row, and the runs in it must be those wanted, each once. */
static void check_index(struct check *k, const struct index *x, const struct ranges *wanted)
{
	struct index_walk *w = index_walk_new(&k->c->t, x, 0);
	const struct index_entry *entry;
	uint8_t *seen = xcalloc(k->c->counts.runs / 8 + 1, 1);
	uint64_t count = 0;
	while ((entry = index_walk_next(w))) {
		struct run_row row;
		if (entry->run >= k->c->counts.runs || catalog_run(k->c, entry->run, &row)) {
			problem(k, "index %d.%u names run %u, which is not published", x->kind, x->slot, entry->run);
			continue;
		}
		uint64_t key = x->kind == INDEX_DIGEST ? key_of_digest(&row.digest) : key_of_case(row.case_id, row.observed_ms);
		if (key != entry->key || seen[entry->run / 8] >> entry->run % 8 & 1 || (wanted && !ranges_has(wanted, entry->run)))
			problem(k, "index %d.%u is wrong about run %u", x->kind, x->slot, entry->run);
		seen[entry->run / 8] |= (uint8_t)(1u << entry->run % 8);
		count++;
	}
	if (k->c->err->code)
		problem(k, "index %d.%u is unreadable: %s", x->kind, x->slot, k->c->err->text);
	if (count != (wanted ? ranges_total(wanted) : k->c->counts.runs))
		problem(k, "index %d.%u has %llu entries", x->kind, x->slot, (unsigned long long)count);
	k->totals->entries += count;
	index_walk_free(w);
	free(seen);
}

static void carry(struct check *k, uint32_t id, int slot)
{
	struct ranges carried = {0};
	if (catalog_carried(k->c, id, &carried)) {
		problem(k, "the list of runs of publication %u is unreadable", id);
	} else {
		for (size_t i = 0; i < carried.count; i++) {
			if (carried.items[i].first + (uint64_t)carried.items[i].count > k->c->counts.runs)
				problem(k, "publication %u carries runs that are not published", id);
			for (uint32_t n = 0; slot >= 0 && n < carried.items[i].count; n++)
				ranges_add(&k->by_channel[slot], carried.items[i].first + n);
		}
	}
	ranges_fini(&carried);
}

static void check_publications(struct check *k)
{
	for (uint32_t id = 0; id < k->c->counts.publications; id++) {
		json_t *p = catalog_publication(k->c, id);
		const char *channel = json_string_value(json_object_get(p, "channel")), *sha256 = json_string_value(json_object_get(p, "sha256"));
		struct digest d;
		struct key key;
		int slot = channel ? channels_find(&k->c->channels, (struct slice){channel, strlen(channel)}) : -1;
		if (!p || slot < 0 || !sha256 || !digest_parse(sha256, strlen(sha256), &d))
			problem(k, "publication %u is unreadable", id);
		else if (!key_exists(k, TABLE_SNAPSHOTS, key_digest_u32(&key, &d, id)))
			problem(k, "publication %u is missing from the snapshots", id);
		carry(k, id, slot);
		json_decref(p);
		k->totals->publications++;
	}
}

static void check_labels(struct check *k)
{
	for (uint32_t id = 0; id < k->c->counts.labels; id++) {
		struct slice text = catalog_labels(k->c, id);
		json_t *labels = json_load_text(text.data, text.len, "labels", k->c->err);
		if (!labels || k->c->err->code)
			problem(k, "label set %u is unreadable", id);
		json_decref(labels);
	}
}

static void check_entries(struct check *k)
{
	size_t i;
	json_t *entry, *entries = (json_t *)entry_all(k->c);
	if (!entries)
		problem(k, "%s", k->c->err->text);
	json_array_foreach(entries, i, entry)
		if (!correct_holds(entry))
			problem(k, "entry %zu says something else than was signed", i);
}

/* A kept file's text: its bytes, or what they hold when they are packed. */
static int read_kept(const char *path, bool packed, struct buf *out, struct err *e)
{
	struct buf bytes = {0};
	if (!packed)
		return file_read(path, KEPT_MAX, out, e);
	int rc = file_read(path, KEPT_MAX, &bytes, e);
	unsigned long long len = rc == 0 ? ZSTD_getFrameContentSize(bytes.data, bytes.len) : 0;
	if (rc == 0 && len > KEPT_MAX)
		rc = err_at(e, ERR_DATA, path, 0, 0, "not a whole zstd frame");
	if (rc == 0) {
		buf_reserve(out, len);
		size_t got = ZSTD_decompress(out->data, len, bytes.data, bytes.len);
		out->len = ZSTD_isError(got) ? 0 : got;
	}
	buf_fini(&bytes);
	return rc;
}

/* Files named by digest and ending. */
struct kept_kind {
	const char *what, *ending;
	bool packed;
};

/* Each must hold what its name says. One that cannot be looked at (no descriptors, a disk that fails) says nothing about the store. */
static int check_file(struct check *k, const struct kept_kind *kind, const char *directory, const char *name)
{
	struct buf path = {0}, text = {0};
	struct digest named;
	struct err *e = k->c->err;
	if (strlen(name) != DIGEST_HEX + strlen(kind->ending) || !digest_parse_hex(name, DIGEST_HEX, &named) || strcmp(name + DIGEST_HEX, kind->ending) != 0)
		return 0;
	buf_printf(&path, "%s/%s", directory, name);
	int rc = read_kept(path.data, kind->packed, &text, e);
	if (rc && (e->code == ERR_DATA || e->code == ERR_NOTFOUND)) {
		problem(k, "%s %s is unreadable: %s", kind->what, name, e->text);
		rc = 0;
	} else if (rc == 0 && !digest_holds(&named, &text)) {
		problem(k, "%s %s has other bytes than its name says", kind->what, name);
	}
	k->totals->kept++;
	buf_fini(&path);
	buf_fini(&text);
	return rc;
}

static int check_directory(struct check *k, const struct kept_kind *kind, const char *directory)
{
	DIR *d = opendir(directory);
	struct dirent *item;
	int rc = 0;
	if (!d)
		return err_code_of(errno) == ERR_NOTFOUND ? 0 : err_errno(k->c->err, directory, "cannot read directory");
	while (rc == 0 && (errno = 0, item = readdir(d)))
		rc = check_file(k, kind, directory, item->d_name);
	if (rc == 0 && errno)
		rc = err_errno(k->c->err, directory, "cannot read directory");
	closedir(d);
	return rc;
}

static int check_kept(struct check *k)
{
	static const struct kept_kind snapshot = {"snapshot", "", false}, evidence = {"evidence", ".jsonl", false}, samples = {"samples", ".json.zst", true};
	struct buf path = {0};
	int rc = 0;
	for (unsigned i = 0; i < 256 && rc == 0; i++) {
		buf_clear(&path);
		buf_printf(&path, "%s/snapshots/%02x", k->c->st.directory, i);
		rc = check_directory(k, &snapshot, path.data);
	}
	buf_clear(&path);
	buf_printf(&path, "%s/evidence", k->c->st.directory);
	if (rc == 0)
		rc = check_directory(k, &evidence, path.data);
	buf_clear(&path);
	buf_printf(&path, "%s/samples", k->c->st.directory);
	if (rc == 0)
		rc = check_directory(k, &samples, path.data);
	buf_fini(&path);
	return rc;
}

int check_catalog(struct catalog *c, FILE *out, struct check_totals *totals)
{
	struct check k = {.c = c, .out = out, .totals = totals};
	*totals = (struct check_totals){0};
	k.by_channel = xcalloc(c->channels.count + 1, sizeof *k.by_channel);
	check_seals(&k);
	check_objects(&k);
	check_metadata(&k);
	check_cases(&k);
	check_labels(&k);
	check_runs(&k);
	check_publications(&k);
	check_entries(&k);
	check_index(&k, &c->digests, NULL);
	for (size_t i = 0; i < c->channels.count; i++) {
		ranges_sort(&k.by_channel[i]);
		check_index(&k, &c->by_case[i], &k.by_channel[i]);
		ranges_fini(&k.by_channel[i]);
	}
	check_size(&k, TABLE_OBJECTS, c->counts.objects);
	check_size(&k, TABLE_OBJECT_IDS, c->counts.objects);
	check_size(&k, TABLE_CASES, c->counts.cases);
	check_size(&k, TABLE_CASE_IDS, c->counts.cases);
	check_size(&k, TABLE_COHORTS, c->counts.cases);
	check_size(&k, TABLE_PREFIXES, c->counts.cases);
	check_size(&k, TABLE_LABELS, c->counts.labels);
	check_size(&k, TABLE_RUNS, (c->counts.runs + RUNS_PER_CHUNK - 1) / RUNS_PER_CHUNK);
	check_size(&k, TABLE_PUBLICATIONS, c->counts.publications);
	check_size(&k, TABLE_CARRIED, c->counts.publications);
	check_size(&k, TABLE_SNAPSHOTS, c->counts.publications);
	check_size(&k, TABLE_EVENTS, c->counts.events);
	if (check_kept(&k) && totals->problems) /* damage is the worse news */
		problem(&k, "%s: %s", c->err->file, c->err->text);
	free(k.by_channel);
	buf_fini(&k.body);
	return c->err->code ? -1 : 0;
}
