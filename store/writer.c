#include "store/writer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "core/when.h"

void writer_init(struct writer *w, struct store *st, bool dry_run, struct err *e)
{
	*w = (struct writer){.st = st, .dry_run = dry_run, .err = e};
	known_init(&w->known);
	batch_init(&w->batch);
}

/* ---- beginning and ending ---- */

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

void writer_fini(struct writer *w)
{
	txn_abort(&w->t);
	free_target(w);
	batch_fini(&w->batch);
	known_fini(&w->known);
	buf_fini(&w->text);
	buf_fini(&w->external_id);
}

/* A dry run is one transaction from end to end, never committed. */
int writer_begin(struct writer *w)
{
	if (!w->t.mdb && txn_begin(&w->t, w->st, STORE_WRITE, w->err))
		return -1;
	w->runs = w->objects = w->cases = 0;
	return txn_counts(&w->t, &w->counts) || channels_load(&w->t, &w->channels) || load_target(w) ? -1 : 0;
}

static int commit(struct writer *w)
{
	return w->dry_run ? 0 : txn_commit(&w->t);
}

int writer_channel(struct writer *w, struct slice name, bool entries)
{
	struct batch_target *target = &w->target;
	if (channels_add(&w->t, &w->channels, name, entries, &target->slot))
		return -1;
	if (w->channels.count > target->channel_count)
		target->channels[target->channel_count++] = (struct index){.kind = INDEX_CASE, .slot = target->slot};
	return 0;
}

int writer_drop(struct writer *w)
{
	struct meta_counts held;
	w->batch.count = 0;
	free_target(w);
	if (txn_counts(&w->t, &held))
		return -1;
	bool more = w->counts.objects > held.objects || w->counts.cases > held.cases || w->counts.labels > held.labels;
	held.objects = w->counts.objects;
	held.cases = w->counts.cases;
	held.labels = w->counts.labels;
	if (more && (txn_put_counts(&w->t, &held) || commit(w)))
		return -1;
	if (!w->dry_run)
		txn_abort(&w->t);
	return 0;
}

/* ---- records ---- */

static int check_digest(struct writer *w, const struct digest *named, struct slice body)
{
	struct digest d = digest_of(body.data, body.len);
	char given[DIGEST_TEXT + 1], computed[DIGEST_TEXT + 1];
	if (digest_cmp(&d, named) == 0)
		return 0;
	digest_text(named, given);
	digest_text(&d, computed);
	return err_set(w->err, ERR_DATA, "the record says %s, but its bytes are %s", given, computed);
}

/* Every digest that an object cites must be known. */
static int check_citations(struct writer *w, struct slice body)
{
	size_t at = 0;
	const char *cited;
	struct digest d;
	uint32_t id;
	for (int found; (found = known_citation(body, &at, &cited, &d));) {
		if (found < 0)
			return err_set(w->err, ERR_DATA, "an object cites a digest that is not one");
		found = known_object(&w->t, &d, &id);
		if (found < 0)
			return -1;
		if (found == 0)
			return err_set(w->err, ERR_DATA, "an object cites %.*s, which is not in the store and was not sent before it", DIGEST_TEXT, cited);
	}
	return 0;
}

int writer_object(struct writer *w, const struct digest *d, struct slice body, struct slice metadata)
{
	bool added;
	if (check_digest(w, d, body) || check_citations(w, body) || known_add_object(&w->known, &w->t, &w->counts, d, body, metadata, &added))
		return -1;
	w->objects += added;
	return 0;
}

int writer_case(struct writer *w, const struct digest *d, struct slice body)
{
	bool added;
	if (check_digest(w, d, body) || known_add_case(&w->known, &w->t, &w->counts, d, body, &added))
		return -1;
	w->cases += added;
	return 0;
}

int writer_labels(struct writer *w, struct slice labels, uint32_t *id)
{
	return known_label(&w->known, &w->t, &w->counts, labels, id);
}

/* The usual run: its row rebuilds its bytes. False when it does not, for whatever reason. */
static bool compact_row(struct writer *w, const struct digest *d, struct slice body, const struct known_case *c, struct run_row *row)
{
	struct run_parts run;
	if (!record_run_values(body, c->parts.metric, &run))
		return false;
	*row = (struct run_row){*d, run.source_50, run.source_20, run.source_80, run.observed_ms, c->id, 0, 0};
	buf_clear(&w->text);
	run_body(row, &c->parts, &w->external_id, &w->text);
	return w->text.len == body.len && memcmp(w->text.data, body.data, w->text.len) == 0;
}

static double statistic(const json_t *spec, enum metric m, const char *name)
{
	size_t i;
	json_t *item;
	json_array_foreach(json_object_get(spec, "measurements"), i, item)
		if (strcmp(json_text_of(item, "metric"), metric_name(m)) == 0 && strcmp(json_text_of(item, "statistic"), name) == 0)
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
static int whole_row(struct writer *w, const struct digest *d, struct slice body, const struct known_case *c, struct run_row *row)
{
	json_t *root = json_load_text(body.data, body.len, "run", w->err);
	const json_t *spec = json_object_get(root, "spec");
	const char *kind = json_string_value(json_object_get(root, "kind")), *observed = json_string_value(json_object_get(spec, "observedAt"));
	const char *status = json_string_value(json_object_get(spec, "status"));
	const json_t *median = json_object_get(json_object_get(json_object_get(spec, "timing"), "latencyNs"), "median");
	bool added;
	int rc = root ? 0 : -1;
	*row = (struct run_row){.digest = *d, .case_id = c->id, .flags = RUN_WHOLE | RUN_UNITS};
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
		rc = check_citations(w, body);
	if (rc == 0)
		rc = known_add_object(&w->known, &w->t, &w->counts, d, body, (struct slice){"{}", 2}, &added);
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

int writer_run(struct writer *w, const struct digest *d, const struct digest *case_digest, struct slice body, struct slice labels)
{
	struct run_row *row = &w->batch.rows[w->batch.count];
	uint32_t label;
	const struct known_case *c = known_case(&w->known, &w->t, case_digest);
	if (!c)
		return err_set(w->err, ERR_DATA, "a run cites a case that is not in the store and was not sent before it");
	if (check_digest(w, d, body) || (!compact_row(w, d, body, c, row) && whole_row(w, d, body, c, row)) || writer_labels(w, labels, &label))
		return -1;
	row->labels = label & 0xffffff;
	w->runs++;
	return ++w->batch.count == BATCH_RUNS ? flush(w) : 0;
}

int writer_known_run(struct writer *w, uint32_t run)
{
	if (run_get(&w->t, run, &w->batch.rows[w->batch.count]))
		return -1;
	w->runs++;
	return ++w->batch.count == BATCH_RUNS ? flush(w) : 0;
}

/* ---- publishing: everything becomes visible ---- */

int writer_settle(struct writer *w)
{
	if (batch_flush(&w->batch, &w->t, &w->target))
		return -1;
	ranges_sort(&w->target.carried);
	return 0;
}

static int put_publication(struct writer *w, const json_t *publication, const struct digest *snapshot)
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
		rc = txn_put(&w->t, TABLE_SNAPSHOTS, key_digest_u32(&key, snapshot, id), "", 0);
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

int writer_publish(struct writer *w, const json_t *publication, const struct digest *snapshot)
{
	if (put_publication(w, publication, snapshot) || publish_indexes(w))
		return -1;
	w->counts.runs = w->target.runs;
	w->counts.next_segment = w->target.next_segment;
	if (txn_put_counts(&w->t, &w->counts) || commit(w))
		return -1;
	free_target(w);
	return 0;
}
