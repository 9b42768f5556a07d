#include "store/put.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "core/log.h"
#include "core/when.h"
#include "store/batch.h"
#include "store/channel.h"
#include "store/known.h"
#include "store/lines.h"

struct writer {
	struct store *st;
	const struct put_options *options;
	struct put_totals *totals;
	struct err *err;
	struct txn t;
	struct meta_counts counts; /* what this file will publish */
	struct known known;
	struct channels channels;
	struct batch batch;
	struct batch_target target;
	/* the file at hand */
	bool open, skipped; /* between snapshot and report; skipped: already known, so its records are passed over */
	struct snapshot_parts snapshot;
	struct arena file_arena; /* what `snapshot` points to */
	json_t *copy_of;
	uint64_t runs, objects, cases;
	struct buf text, external_id;
	struct err refusal; /* the first gate that refused a file; later files are still taken */
};

/* ---- beginning and dropping ---- */

static int load_target(struct writer *w)
{
	struct batch_target *target = &w->target;
	*target = (struct batch_target){.runs = w->counts.runs, .next_segment = w->counts.next_segment};
	if (index_load(&w->t, INDEX_DIGEST, 0, &target->digests))
		return -1;
	for (size_t i = 0; i < w->channels.count; i++, target->channel_count++)
		if (index_load(&w->t, INDEX_CASE, (uint8_t)i, &target->channels[i]))
			return -1;
	return 0;
}

static void free_target(struct writer *w)
{
	index_fini(&w->target.digests);
	for (size_t i = 0; i < w->target.channel_count; i++)
		index_fini(&w->target.channels[i]);
	ranges_fini(&w->target.carried);
	w->target = (struct batch_target){0};
}

/* A dry run is one transaction from end to end, never committed. */
static int begin(struct writer *w)
{
	if (!w->t.mdb && txn_begin(&w->t, w->st, STORE_WRITE, w->err))
		return -1;
	return txn_counts(&w->t, &w->counts) || channels_load(&w->t, &w->channels) || load_target(w) ? -1 : 0;
}

static int commit(struct writer *w)
{
	return w->options->dry_run ? 0 : txn_commit(&w->t);
}

static int drop_table(struct txn *t, enum table table, enum table ids, uint32_t count)
{
	struct key key, id_key;
	MDB_val value;
	int found;
	while (key_u32(&key, count), (found = txn_next(t, table, &key, &value)) == 1) {
		struct digest d;
		memcpy(d.bytes, value.mv_data, DIGEST_SIZE);
		if (txn_delete(t, ids, key_digest(&id_key, &d)) || txn_delete(t, table, &key.val))
			return -1;
	}
	return found;
}

/* Cohorts and prefixes of dropped cases: their keys end in the case id. */
static int drop_case_keys(struct txn *t, enum table table, size_t id_at, uint32_t count)
{
	MDB_cursor *cursor = txn_cursor(t, table);
	MDB_val key, value;
	int rc = cursor ? 0 : -1;
	while (rc == 0 && mdb_cursor_get(cursor, &key, &value, MDB_NEXT) == 0)
		if (key_read_u32(&key, id_at) >= count)
			rc = txn_delete_at(t, cursor);
	if (cursor)
		mdb_cursor_close(cursor);
	return rc;
}

static int drop_from(struct txn *t, enum table table, uint32_t first)
{
	struct key key;
	MDB_val value;
	int found;
	while (key_u32(&key, first), (found = txn_next(t, table, &key, &value)) == 1)
		if (txn_delete(t, table, &key.val))
			return -1;
	return found;
}

static int drop_segments(struct txn *t, uint32_t next_segment)
{
	MDB_cursor *cursor = txn_cursor(t, TABLE_INDEX);
	MDB_val key, value;
	int rc = cursor ? 0 : -1;
	while (rc == 0 && mdb_cursor_get(cursor, &key, &value, MDB_NEXT) == 0)
		if (key_read_u32(&key, 2) >= next_segment)
			rc = txn_delete_at(t, cursor);
	if (cursor)
		mdb_cursor_close(cursor);
	return rc;
}

static uint32_t chunk_after(uint32_t runs)
{
	return (runs + RUNS_PER_CHUNK - 1) / RUNS_PER_CHUNK * RUNS_PER_CHUNK;
}

int put_recover(struct store *st, struct err *e)
{
	struct txn t;
	struct meta_counts c;
	if (txn_begin(&t, st, STORE_WRITE, e))
		return -1;
	if (txn_counts(&t, &c) || drop_table(&t, TABLE_OBJECTS, TABLE_OBJECT_IDS, c.objects) ||
	    drop_case_keys(&t, TABLE_COHORTS, DIGEST_SIZE, c.cases) || drop_case_keys(&t, TABLE_PREFIXES, 8, c.cases) ||
	    drop_table(&t, TABLE_CASES, TABLE_CASE_IDS, c.cases) || drop_from(&t, TABLE_LABELS, c.labels) ||
	    drop_from(&t, TABLE_METADATA, c.objects) || drop_from(&t, TABLE_RUNS, chunk_after(c.runs)) || drop_segments(&t, c.next_segment)) {
		txn_abort(&t);
		return -1;
	}
	return txn_commit(&t);
}

/* Ends a file without publishing its runs. Objects and cases stay: they are true by themselves, and later files of the stream
 * cite them without sending them again. */
static int pass_over(struct writer *w)
{
	struct meta_counts held;
	w->open = false;
	w->batch.count = 0;
	free_target(w);
	if (txn_counts(&w->t, &held))
		return -1;
	bool more = w->counts.objects > held.objects || w->counts.cases > held.cases || w->counts.labels > held.labels;
	held.objects = w->counts.objects;
	held.cases = w->counts.cases;
	held.labels = w->counts.labels;
	if (more && txn_put_counts(&w->t, &held))
		return -1;
	if (more && commit(w))
		return -1;
	if (!w->options->dry_run)
		txn_abort(&w->t);
	return 0;
}

/* ---- one line at a time ---- */

static struct slice keep(struct writer *w, struct slice s)
{
	return (struct slice){arena_strndup(&w->file_arena, s.data, s.len), s.len};
}

/* Whether a publication is of the same commit or entry; a commit may be given by its first 12 or more digits. */
static bool same_identity(const struct snapshot_parts *s, const json_t *held)
{
	const char *entry = json_string_value(json_object_get(held, "entry")), *commit = json_string_value(json_object_get(held, "commit"));
	if (s->entry.len || entry || !commit)
		return slice_eq(s->entry, entry ? entry : "") && slice_eq(s->commit, commit ? commit : "");
	size_t len = strlen(commit) < s->commit.len ? strlen(commit) : s->commit.len;
	return len >= 12 && memcmp(commit, s->commit.data, len) == 0;
}

/* Looks through the publications of the same bytes: the same one means there is nothing to do; one in a file channel means
 * that an entry with these bytes is a copy of that file. */
static int look_for_twin(struct writer *w, bool *same)
{
	const struct snapshot_parts *s = &w->snapshot;
	struct key key;
	MDB_val value;
	int found;
	*same = false;
	key_digest_u32(&key, &s->sha256, 0);
	while ((found = txn_next(&w->t, TABLE_SNAPSHOTS, &key, &value)) == 1 && memcmp(key.bytes, s->sha256.bytes, DIGEST_SIZE) == 0) {
		uint32_t id = key_read_u32(&key.val, DIGEST_SIZE);
		struct key id_key;
		if (txn_get(&w->t, TABLE_PUBLICATIONS, key_u32(&id_key, id), &value) != 1)
			return err_at(w->err, ERR_CORRUPT, w->st->file, 0, 0, "publication %u is missing", id);
		json_t *held = json_load_text(value.mv_data, value.mv_size, "publication", w->err);
		if (!held)
			return -1;
		const char *channel = json_string_value(json_object_get(held, "channel")), *entry = json_string_value(json_object_get(held, "entry"));
		const char *config = json_string_value(json_object_get(held, "config"));
		const char *commit = json_string_value(json_object_get(held, "commit"));
		if (slice_eq(s->channel, channel) && same_identity(s, held) && slice_eq(s->config, config ? config : ""))
			*same = true;
		else if (s->entry.len && !entry && !w->copy_of)
			w->copy_of = json_pack("{s:s, s:s, s:I}", "channel", channel, "commit", commit ? commit : "", "publication", (json_int_t)id);
		json_decref(held);
		key_digest_u32(&key, &s->sha256, id + 1);
	}
	return found < 0 ? -1 : 0;
}

/* A file whose report never came was cut off by the stage before. The files after it are still taken. */
static int drop_cut_file(struct writer *w)
{
	err_at(&w->refusal, ERR_DATA, w->snapshot.file.data, 0, 0, "the stream went on before its report: nothing of it was published");
	w->totals->refused++;
	return pass_over(w) || (!w->options->dry_run && put_recover(w->st, w->err)) ? -1 : 0;
}

static int take_snapshot(struct writer *w, const struct record *r)
{
	const struct snapshot_parts *s = &r->snapshot;
	bool same;
	if (w->open && drop_cut_file(w))
		return -1;
	if (begin(w))
		return -1;
	arena_reset(&w->file_arena);
	json_decref(w->copy_of);
	w->copy_of = NULL;
	w->snapshot = *s;
	w->snapshot.channel = keep(w, s->channel);
	w->snapshot.commit = keep(w, s->commit);
	w->snapshot.config = keep(w, s->config);
	w->snapshot.entry = keep(w, s->entry);
	w->snapshot.file = keep(w, s->file);
	w->snapshot.provenance = keep(w, s->provenance);
	w->open = true;
	w->runs = w->objects = w->cases = 0;
	if (look_for_twin(w, &same))
		return -1;
	w->skipped = same || w->copy_of;
	if (same)
		w->totals->known++;
	if (same)
		return 0;
	if (channels_add(&w->t, &w->channels, w->snapshot.channel, w->snapshot.entry.len > 0, &w->target.slot))
		return -1;
	if (w->channels.count > w->target.channel_count)
		w->target.channels[w->target.channel_count++] = (struct index){.kind = INDEX_CASE, .slot = w->target.slot};
	return 0;
}

static int check_digest(struct writer *w, const struct record *r)
{
	struct digest d = digest_of(r->body.data, r->body.len);
	char given[DIGEST_TEXT + 1], computed[DIGEST_TEXT + 1];
	if (digest_cmp(&d, &r->digest) == 0)
		return 0;
	digest_text(&r->digest, given);
	digest_text(&d, computed);
	return err_set(w->err, ERR_DATA, "the record says %s, but its bytes are %s", given, computed);
}

/* Every `…Digest":"sha256:…"` in an object must be known. Canonical text, so the pattern cannot stand inside a string. */
static int check_citations(struct writer *w, struct slice body)
{
	static const char mark[] = "Digest\":\"sha256:";
	const char *at = body.data, *end = body.data + body.len;
	while ((at = memmem(at, (size_t)(end - at), mark, sizeof mark - 1))) {
		const char *text = at + 9;
		struct digest d;
		uint32_t id;
		if (end - text < DIGEST_TEXT || !digest_parse(text, DIGEST_TEXT, &d))
			return err_set(w->err, ERR_DATA, "an object cites a digest that is not one");
		int found = known_object(&w->t, &d, &id);
		if (found < 0)
			return -1;
		if (found == 0)
			return err_set(w->err, ERR_DATA, "an object cites %.*s, which is not in the store and was not sent before it", DIGEST_TEXT, text);
		at = text;
	}
	return 0;
}

static int take_object(struct writer *w, const struct record *r)
{
	bool added;
	if (check_digest(w, r) || check_citations(w, r->body) ||
	    known_add_object(&w->known, &w->t, &w->counts, &r->digest, r->body, r->metadata, &added))
		return -1;
	w->objects += added;
	return 0;
}

static int take_case(struct writer *w, const struct record *r)
{
	bool added;
	if (check_digest(w, r) || known_add_case(&w->known, &w->t, &w->counts, &r->digest, r->body, &added))
		return -1;
	w->cases += added;
	return 0;
}

/* The usual run: its row rebuilds its bytes. False when it does not, for whatever reason. */
static bool compact_row(struct writer *w, const struct record *r, const struct known_case *c, struct run_row *row)
{
	struct run_parts run;
	if (!record_run_values(r->body, c->parts.metric, &run))
		return false;
	*row = (struct run_row){r->digest, run.source_50, run.source_20, run.source_80, run.observed_ms, c->id, 0, 0};
	buf_clear(&w->text);
	run_body(row, &c->parts, &w->external_id, &w->text);
	return w->text.len == r->body.len && memcmp(w->text.data, r->body.data, w->text.len) == 0;
}

static double statistic(const json_t *spec, enum metric m, const char *name)
{
	size_t i;
	json_t *item;
	json_array_foreach(json_object_get(spec, "measurements"), i, item)
		if (json_is_string(json_object_get(item, "metric")) && strcmp(json_string_value(json_object_get(item, "metric")), metric_name(m)) == 0 &&
		    strcmp(json_string_value(json_object_get(item, "statistic")), name) == 0)
			return json_number_value(json_object_get(item, "value"));
	return NAN;
}

static bool same_digest(const json_t *spec, const char *name, const struct digest *want)
{
	char text[DIGEST_TEXT + 1];
	const char *held = json_string_value(json_object_get(spec, name));
	digest_text(want, text);
	return held && strcmp(held, text) == 0;
}

/* Any other run: its body is kept whole, and its row carries what ranking needs. */
static int whole_row(struct writer *w, const struct record *r, const struct known_case *c, struct run_row *row)
{
	json_t *root = json_load_text(r->body.data, r->body.len, "run", w->err);
	const json_t *spec = json_object_get(root, "spec");
	const char *kind = json_string_value(json_object_get(root, "kind")), *observed = json_string_value(json_object_get(spec, "observedAt"));
	const char *status = json_string_value(json_object_get(spec, "status"));
	const json_t *median = json_object_get(json_object_get(json_object_get(spec, "timing"), "latencyNs"), "median");
	bool added;
	int rc = root ? 0 : -1;
	*row = (struct run_row){.digest = r->digest, .case_id = c->id, .flags = RUN_WHOLE | RUN_UNITS};
	row->value_50 = json_is_number(median) ? json_number_value(median) : statistic(spec, c->parts.metric, "median");
	row->value_20 = statistic(spec, c->parts.metric, "p20");
	row->value_80 = statistic(spec, c->parts.metric, "p80");
	if (!status || strcmp(status, "passed") != 0)
		row->flags |= RUN_FAILED;
	if (rc == 0 && !(row->flags & RUN_FAILED) && !(row->value_50 >= 0 && row->value_50 < 9007199254740992.0))
		rc = err_set(w->err, ERR_DATA, "a run that passed has no median within 0 and 2^53");
	if (rc == 0 && (!kind || strcmp(kind, "BenchmarkRun") != 0 || !observed || !when_parse_text(observed, strlen(observed), &row->observed_ms)))
		rc = err_set(w->err, ERR_DATA, "a run's body is no BenchmarkRun with an observedAt");
	if (rc == 0 && (!same_digest(spec, "implementationDigest", &c->parts.implementation) || !same_digest(spec, "workloadDigest", &c->parts.workload) ||
			!same_digest(spec, "protocolDigest", &c->parts.protocol) || !same_digest(spec, "environmentDigest", &c->parts.environment)))
		rc = err_set(w->err, ERR_DATA, "a run cites other objects than its case does");
	if (rc == 0)
		rc = known_add_object(&w->known, &w->t, &w->counts, &r->digest, r->body, (struct slice){"{}", 2}, &added);
	json_decref(root);
	return rc;
}

/* Commits what a batch holds, out of sight of readers, and goes on in a new transaction. */
static int flush(struct writer *w)
{
	if (batch_flush(&w->batch, &w->t, &w->target) || commit(w))
		return -1;
	return w->t.mdb ? 0 : txn_begin(&w->t, w->st, STORE_WRITE, w->err);
}

static int take_run(struct writer *w, const struct record *r)
{
	struct run_row *row = &w->batch.rows[w->batch.count];
	uint32_t labels;
	const struct known_case *c = known_case(&w->known, &w->t, &r->case_digest);
	if (!c)
		return err_set(w->err, ERR_DATA, "a run cites a case that is not in the store and was not sent before it");
	if (check_digest(w, r) || (!compact_row(w, r, c, row) && whole_row(w, r, c, row)) ||
	    known_label(&w->known, &w->t, &w->counts, r->labels, &labels))
		return -1;
	row->labels = labels & 0xffffff;
	w->runs++;
	return ++w->batch.count == BATCH_RUNS ? flush(w) : 0;
}

/* ---- the report line: gates, then everything becomes visible ---- */

static int64_t sum_of(const json_t *value)
{
	const char *name;
	json_t *item;
	int64_t total = json_integer_value(value);
	json_object_foreach((json_t *)value, name, item)
		total += sum_of(item);
	return total;
}

/* Whether a publication's text can be of the same commit or entry: a look at the bytes, which spares reading most of them. */
static bool may_be_same(const struct snapshot_parts *s, const MDB_val *text)
{
	struct slice name = s->entry.len ? s->entry : s->commit;
	size_t len = s->entry.len || name.len < 12 ? name.len : 12;
	return memmem(text->mv_data, text->mv_size, name.data, len) != NULL;
}

/* What the catalog holds of the same channel: rows of its newest publication (0: none), and the newest publication of the same
 * commit or entry with other bytes (-1: none), which upstream has changed after the fact. */
static void look_back(struct writer *w, int64_t *rows, int64_t *changed)
{
	struct key key;
	MDB_val value;
	bool newest = true; /* no publication of the channel was seen yet */
	*rows = 0;
	*changed = -1;
	for (uint32_t id = w->counts.publications; id-- > 0 && *changed < 0;) {
		if (txn_get(&w->t, TABLE_PUBLICATIONS, key_u32(&key, id), &value) != 1)
			break;
		if (!newest && !may_be_same(&w->snapshot, &value))
			continue;
		json_t *held = json_load_text(value.mv_data, value.mv_size, "publication", w->err);
		const char *sha256 = json_string_value(json_object_get(held, "sha256"));
		struct digest d;
		if (slice_eq(w->snapshot.channel, json_string_value(json_object_get(held, "channel")))) {
			if (newest)
				*rows = json_whole_of(json_object_get(held, "report"), "rows");
			newest = false;
			if (same_identity(&w->snapshot, held) && sha256 && digest_parse(sha256, strlen(sha256), &d) && digest_cmp(&d, &w->snapshot.sha256) != 0)
				*changed = id;
		}
		json_decref(held);
	}
}

static void note(json_t *list, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void note(json_t *list, const char *format, ...)
{
	struct buf text = {0};
	va_list args;
	va_start(args, format);
	buf_vprintf(&text, format, args);
	va_end(args);
	json_array_append_new(list, json_string(text.data));
	buf_fini(&text);
}

/* What the gates say about the file: a list of reasons, empty when it may pass. */
static json_t *gate_reasons(struct writer *w, const json_t *report, const struct gates *g, double before)
{
	json_t *reasons = json_array();
	double rows = (double)json_whole_of(report, "rows");
	double rejected = (double)sum_of(json_object_get(report, "rejected")), skipped = (double)sum_of(json_object_get(report, "skipped"));
	if (rows == 0)
		note(reasons, "the file has no rows");
	if (rows > 0 && rejected / rows > g->rejected_share_max)
		note(reasons, "%.0f of %.0f rows rejected (limit %g of the rows)", rejected, rows, g->rejected_share_max);
	if (rows > 0 && skipped / rows > g->skipped_share_max)
		note(reasons, "%.0f of %.0f rows skipped as unknown (limit %g of the rows)", skipped, rows, g->skipped_share_max);
	if (before > 0 && w->snapshot.entry.len == 0 && (before - rows) / before > g->shrink_share_max)
		note(reasons, "%.0f rows where the publication before had %.0f (limit: %g of them may go)", rows, before, g->shrink_share_max);
	if (g->drift_refused && json_array_size(json_object_get(report, "drift")))
		note(reasons, "the header has changed");
	return reasons;
}

static void set_text(json_t *object, const char *name, struct slice text)
{
	if (text.len)
		json_object_set_new(object, name, json_stringn(text.data, text.len));
}

static json_t *publication_json(struct writer *w, const json_t *report)
{
	char sha256[DIGEST_TEXT + 1], now[WHEN_TEXT + 1];
	json_t *p = json_object();
	digest_text(&w->snapshot.sha256, sha256);
	when_text(when_now_ms(), now);
	set_text(p, "channel", w->snapshot.channel);
	set_text(p, "commit", w->snapshot.commit);
	set_text(p, "config", w->snapshot.config);
	set_text(p, "entry", w->snapshot.entry);
	set_text(p, "file", w->snapshot.file);
	json_object_set_new(p, "sha256", json_string(sha256));
	json_object_set_new(p, "sizeBytes", json_integer(w->snapshot.size_bytes));
	json_object_set_new(p, "publishedAt", json_string(now));
	json_object_set_new(p, "id", json_integer(w->counts.publications));
	json_object_set_new(p, "carried", json_integer((json_int_t)ranges_total(&w->target.carried)));
	json_object_set_new(p, "newRuns", json_integer((json_int_t)w->target.runs_new));
	json_object_set_new(p, "newObjects", json_integer((json_int_t)w->objects));
	json_object_set_new(p, "newCases", json_integer((json_int_t)w->cases));
	json_object_set_new(p, "conflicts", json_integer((json_int_t)w->target.conflicts));
	if (w->copy_of)
		json_object_set(p, "copyOf", w->copy_of);
	if (w->snapshot.provenance.len)
		json_object_set_new(p, "provenance", json_load_text(w->snapshot.provenance.data, w->snapshot.provenance.len, "provenance", w->err));
	json_object_set(p, "report", (json_t *)report);
	return p;
}

static int put_publication(struct writer *w, const json_t *publication)
{
	uint32_t id = w->counts.publications++;
	struct buf text = {0}, carried = {0};
	struct key key;
	ranges_write(&w->target.carried, &carried);
	int rc = json_canonical(publication, &text, w->err);
	if (rc == 0)
		rc = txn_put(&w->t, TABLE_PUBLICATIONS, key_u32(&key, id), text.data, text.len);
	if (rc == 0)
		rc = txn_put(&w->t, TABLE_CARRIED, key_u32(&key, id), carried.data, carried.len);
	if (rc == 0)
		rc = txn_put(&w->t, TABLE_SNAPSHOTS, key_digest_u32(&key, &w->snapshot.sha256, id), "", 0);
	buf_fini(&text);
	buf_fini(&carried);
	return rc;
}

static int publish_indexes(struct writer *w)
{
	struct batch_target *target = &w->target;
	if (index_publish(&w->t, &target->digests, &target->next_segment))
		return -1;
	return target->channel_count == 0 ? 0 : index_publish(&w->t, &target->channels[target->slot], &target->next_segment);
}

static int publish(struct writer *w, const json_t *publication)
{
	if (put_publication(w, publication) || publish_indexes(w))
		return -1;
	w->counts.runs = w->target.runs;
	w->counts.next_segment = w->target.next_segment;
	if (txn_put_counts(&w->t, &w->counts) || commit(w))
		return -1;
	w->totals->published++;
	w->totals->copies += w->copy_of != NULL;
	w->totals->runs_new += w->target.runs_new;
	w->totals->objects_new += w->objects;
	w->totals->cases_new += w->cases;
	w->totals->conflicts += w->target.conflicts;
	free_target(w);
	w->open = false;
	return 0;
}

static int print_line(struct writer *w, const json_t *value)
{
	buf_clear(&w->text);
	if (!w->options->out)
		return 0;
	if (json_canonical(value, &w->text, w->err))
		return -1;
	buf_char(&w->text, '\n');
	if (fwrite(w->text.data, 1, w->text.len, w->options->out) != w->text.len)
		return err_errno(w->err, "standard output", "cannot write");
	return 0;
}

static int finish_file(struct writer *w, const json_t *report)
{
	if (batch_flush(&w->batch, &w->t, &w->target))
		return -1;
	ranges_sort(&w->target.carried);
	int64_t rows_before, changed;
	look_back(w, &rows_before, &changed);
	json_t *reasons = w->options->gates ? gate_reasons(w, report, w->options->gates, (double)rows_before) : json_array();
	bool crossed = json_array_size(reasons) > 0, refused = crossed && w->options->refuse;
	json_t *publication = publication_json(w, report);
	int rc = w->err->code ? -1 : 0;
	if (changed >= 0)
		json_object_set_new(publication, "changes", json_integer(changed));
	if (crossed)
		json_object_set(publication, refused ? "refused" : "gatesCrossed", reasons);
	if (rc == 0)
		rc = print_line(w, publication);
	if (rc == 0 && refused) {
		w->totals->refused++;
		err_at(&w->refusal, ERR_DATA, w->snapshot.file.data, 0, 0, "not published: %s; look at it, then replay it by name to accept it",
		       json_string_value(json_array_get(reasons, 0)));
		rc = pass_over(w) || (!w->options->dry_run && put_recover(w->st, w->err)) ? -1 : 0;
	} else if (rc == 0) {
		rc = publish(w, publication);
	}
	json_decref(publication);
	json_decref(reasons);
	return rc;
}

static int take_report(struct writer *w, const struct record *r)
{
	json_t *report = json_load_text(r->body.data, r->body.len, "report", w->err);
	if (!report)
		return -1;
	w->totals->files++;
	w->totals->runs_read += w->runs;
	w->totals->rejected += (uint64_t)sum_of(json_object_get(report, "rejected"));
	int rc = w->skipped && !w->copy_of ? pass_over(w) : finish_file(w, report);
	json_decref(report);
	return rc;
}

static int take(struct writer *w, const struct record *r)
{
	if (r->type == RECORD_SNAPSHOT)
		return take_snapshot(w, r);
	if (!w->open)
		return err_set(w->err, ERR_DATA, "a record before the snapshot line of its file");
	if (r->type == RECORD_REPORT)
		return take_report(w, r);
	if (r->type == RECORD_OBJECT)
		return take_object(w, r);
	if (r->type == RECORD_CASE)
		return take_case(w, r);
	return w->skipped ? 0 : take_run(w, r);
}

static int run_stream(struct writer *w, struct lines *lines)
{
	struct slice line;
	struct record record;
	int more;
	while ((more = lines_next(lines, RECORD_LINE_MAX, &line, w->err)) == 1) {
		if (record_read(line, &record, "standard input", lines->number, w->err))
			return -1;
		if (take(w, &record)) {
			if (w->err->line == 0 && w->err->file[0] == '\0') {
				snprintf(w->err->file, sizeof w->err->file, "standard input");
				w->err->line = lines->number;
			}
			return -1;
		}
	}
	if (more == 0 && w->open)
		return err_set(w->err, ERR_DATA, "the stream ended before the report of %s: nothing of that file was published", w->snapshot.file.data);
	return more;
}

int put_stream(struct store *st, int fd, const struct put_options *options, struct put_totals *totals, struct err *e)
{
	struct writer w = {.st = st, .options = options, .totals = totals, .err = e};
	struct lines lines;
	if (!options->dry_run && put_recover(st, e))
		return -1;
	known_init(&w.known);
	batch_init(&w.batch);
	lines_init(&lines, fd);
	int rc = run_stream(&w, &lines);
	txn_abort(&w.t); /* what a failed file had committed lies beyond the counts; the next writer drops it */
	free_target(&w);
	if (rc == 0 && w.refusal.code) {
		*e = w.refusal;
		rc = -1;
	}
	lines_fini(&lines);
	batch_fini(&w.batch);
	known_fini(&w.known);
	arena_fini(&w.file_arena);
	json_decref(w.copy_of);
	buf_fini(&w.text);
	buf_fini(&w.external_id);
	return rc ? -1 : 0;
}
