#include "store/put.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "core/log.h"
#include "core/when.h"
#include "store/lines.h"
#include "store/recover.h"
#include "store/writer.h"

/* The stream at hand: one file of it after the other. */
struct intake {
	struct writer w;
	const struct put_options *options;
	struct put_totals *totals;
	bool open, skipped; /* between snapshot and report; skipped: already known, so its records are passed over */
	struct snapshot_parts snapshot;
	struct arena file_arena; /* what `snapshot` points to */
	json_t *copy_of;
	struct err refusal; /* the first gate that refused a file; later files are still taken */
};

/* Ends a file without publishing its runs. */
static int pass_over(struct intake *in)
{
	in->open = false;
	return writer_drop(&in->w);
}

/* The same for a file that batches were committed of already. */
static int drop_file(struct intake *in)
{
	in->totals->refused++;
	return pass_over(in) || (!in->w.dry_run && recover_store(in->w.st, in->w.err)) ? -1 : 0;
}

/* ---- one line at a time ---- */

static struct slice keep(struct intake *in, struct slice s)
{
	return (struct slice){arena_strndup(&in->file_arena, s.data, s.len), s.len};
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
static int look_for_twin(struct intake *in, bool *same)
{
	const struct snapshot_parts *s = &in->snapshot;
	struct key key;
	MDB_val value;
	int found;
	*same = false;
	key_digest_u32(&key, &s->sha256, 0);
	while ((found = txn_next(&in->w.t, TABLE_SNAPSHOTS, &key, &value)) == 1 && memcmp(key.bytes, s->sha256.bytes, DIGEST_SIZE) == 0) {
		uint32_t id = key_read_u32(&key.val, DIGEST_SIZE);
		struct key id_key;
		if (txn_get(&in->w.t, TABLE_PUBLICATIONS, key_u32(&id_key, id), &value) != 1)
			return err_at(in->w.err, ERR_CORRUPT, in->w.st->file, 0, 0, "publication %u is missing", id);
		json_t *held = json_load_text(value.mv_data, value.mv_size, "publication", in->w.err);
		if (!held)
			return -1;
		const char *channel = json_string_value(json_object_get(held, "channel")), *entry = json_string_value(json_object_get(held, "entry"));
		const char *config = json_string_value(json_object_get(held, "config"));
		const char *commit = json_string_value(json_object_get(held, "commit"));
		if (slice_eq(s->channel, channel) && same_identity(s, held) && slice_eq(s->config, config ? config : ""))
			*same = true;
		else if (s->entry.len && !entry && !in->copy_of)
			in->copy_of = json_pack("{s:s, s:s, s:I}", "channel", channel, "commit", commit ? commit : "", "publication", (json_int_t)id);
		json_decref(held);
		key_digest_u32(&key, &s->sha256, id + 1);
	}
	return found < 0 ? -1 : 0;
}

/* A file whose report never came was cut off by the stage before. The files after it are still taken. */
static int drop_cut_file(struct intake *in)
{
	err_at(&in->refusal, ERR_DATA, in->snapshot.file.data, 0, 0, "the stream went on before its report: nothing of it was published");
	return drop_file(in);
}

static int take_snapshot(struct intake *in, const struct record *r)
{
	const struct snapshot_parts *s = &r->snapshot;
	bool same;
	if (in->open && drop_cut_file(in))
		return -1;
	if (writer_begin(&in->w))
		return -1;
	arena_reset(&in->file_arena);
	json_decref(in->copy_of);
	in->copy_of = NULL;
	in->snapshot = *s;
	in->snapshot.channel = keep(in, s->channel);
	in->snapshot.commit = keep(in, s->commit);
	in->snapshot.config = keep(in, s->config);
	in->snapshot.entry = keep(in, s->entry);
	in->snapshot.file = keep(in, s->file);
	in->snapshot.provenance = keep(in, s->provenance);
	in->open = true;
	if (look_for_twin(in, &same))
		return -1;
	in->skipped = same || in->copy_of;
	if (!same)
		return writer_channel(&in->w, in->snapshot.channel, in->snapshot.entry.len > 0);
	in->totals->known++;
	return 0;
}

/* ---- the report line: gates, then everything becomes visible ---- */

/* Whether a publication's text can be of the same commit or entry: a look at the bytes, which spares reading most of them. */
static bool may_be_same(const struct snapshot_parts *s, const MDB_val *text)
{
	struct slice name = s->entry.len ? s->entry : s->commit;
	size_t len = s->entry.len || name.len < 12 ? name.len : 12;
	return memmem(text->mv_data, text->mv_size, name.data, len) != NULL;
}

/* What the catalog holds of the same channel: rows of its newest publication (0: none), and the newest publication of the same
 * commit or entry with other bytes (-1: none), which upstream has changed after the fact. */
static void look_back(struct intake *in, int64_t *rows, int64_t *changed)
{
	struct key key;
	MDB_val value;
	bool newest = true; /* no publication of the channel was seen yet */
	*rows = 0;
	*changed = -1;
	for (uint32_t id = in->w.counts.publications; id-- > 0 && *changed < 0;) {
		if (txn_get(&in->w.t, TABLE_PUBLICATIONS, key_u32(&key, id), &value) != 1)
			break;
		if (!newest && !may_be_same(&in->snapshot, &value))
			continue;
		json_t *held = json_load_text(value.mv_data, value.mv_size, "publication", in->w.err);
		const char *sha256 = json_string_value(json_object_get(held, "sha256"));
		struct digest d;
		if (slice_eq(in->snapshot.channel, json_string_value(json_object_get(held, "channel")))) {
			if (newest)
				*rows = json_whole_of(json_object_get(held, "report"), "rows");
			newest = false;
			if (same_identity(&in->snapshot, held) && sha256 && digest_parse(sha256, strlen(sha256), &d) && digest_cmp(&d, &in->snapshot.sha256) != 0)
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
static json_t *gate_reasons(struct intake *in, const json_t *report, const struct gates *g, double before)
{
	json_t *reasons = json_array();
	double rows = (double)json_whole_of(report, "rows");
	double rejected = (double)json_total(json_object_get(report, "rejected")), skipped = (double)json_total(json_object_get(report, "skipped"));
	if (rows == 0)
		note(reasons, "the file has no rows");
	if (rows > 0 && rejected / rows > g->rejected_share_max)
		note(reasons, "%.0f of %.0f rows rejected (limit %g of the rows)", rejected, rows, g->rejected_share_max);
	if (rows > 0 && skipped / rows > g->skipped_share_max)
		note(reasons, "%.0f of %.0f rows skipped as unknown (limit %g of the rows)", skipped, rows, g->skipped_share_max);
	if (before > 0 && in->snapshot.entry.len == 0 && (before - rows) / before > g->shrink_share_max)
		note(reasons, "%.0f rows where the publication before had %.0f (limit: %g of them may go)", rows, before, g->shrink_share_max);
	if (g->drift_refused && json_array_size(json_object_get(report, "drift")))
		note(reasons, "the header has changed");
	return reasons;
}

static void set_text(json_t *object, const char *name, struct slice text)
{
	if (text.len)
		json_set_slice(object, name, text);
}

static json_t *publication_json(struct intake *in, const json_t *report)
{
	char sha256[DIGEST_TEXT + 1], now[WHEN_TEXT + 1];
	json_t *p = json_object();
	digest_text(&in->snapshot.sha256, sha256);
	when_text(when_now_ms(), now);
	set_text(p, "channel", in->snapshot.channel);
	set_text(p, "commit", in->snapshot.commit);
	set_text(p, "config", in->snapshot.config);
	set_text(p, "entry", in->snapshot.entry);
	set_text(p, "file", in->snapshot.file);
	json_object_set_new(p, "sha256", json_string(sha256));
	json_object_set_new(p, "sizeBytes", json_integer(in->snapshot.size_bytes));
	json_object_set_new(p, "publishedAt", json_string(now));
	json_object_set_new(p, "id", json_integer(in->w.counts.publications));
	json_object_set_new(p, "carried", json_integer((json_int_t)ranges_total(&in->w.target.carried)));
	json_object_set_new(p, "newRuns", json_integer((json_int_t)in->w.target.runs_new));
	json_object_set_new(p, "newObjects", json_integer((json_int_t)in->w.objects));
	json_object_set_new(p, "newCases", json_integer((json_int_t)in->w.cases));
	json_object_set_new(p, "conflicts", json_integer((json_int_t)in->w.target.conflicts));
	if (in->copy_of)
		json_object_set(p, "copyOf", in->copy_of);
	if (in->snapshot.provenance.len)
		json_object_set_new(p, "provenance", json_load_text(in->snapshot.provenance.data, in->snapshot.provenance.len, "provenance", in->w.err));
	json_object_set(p, "report", (json_t *)report);
	return p;
}

static int publish(struct intake *in, const json_t *publication)
{
	uint64_t runs_new = in->w.target.runs_new, conflicts = in->w.target.conflicts;
	if (writer_publish(&in->w, publication, &in->snapshot.sha256))
		return -1;
	in->totals->published++;
	in->totals->copies += in->copy_of != NULL;
	in->totals->runs_new += runs_new;
	in->totals->objects_new += in->w.objects;
	in->totals->cases_new += in->w.cases;
	in->totals->conflicts += conflicts;
	in->open = false;
	return 0;
}

static int print_line(struct intake *in, const json_t *value)
{
	buf_clear(&in->w.text);
	if (!in->options->out)
		return 0;
	if (json_canonical(value, &in->w.text, in->w.err))
		return -1;
	buf_char(&in->w.text, '\n');
	if (fwrite(in->w.text.data, 1, in->w.text.len, in->options->out) != in->w.text.len)
		return err_errno(in->w.err, "standard output", "cannot write");
	return 0;
}

static int finish_file(struct intake *in, const json_t *report)
{
	if (writer_settle(&in->w))
		return -1;
	int64_t rows_before, changed;
	look_back(in, &rows_before, &changed);
	json_t *reasons = in->options->gates ? gate_reasons(in, report, in->options->gates, (double)rows_before) : json_array();
	bool crossed = json_array_size(reasons) > 0, refused = crossed && in->options->refuse;
	json_t *publication = publication_json(in, report);
	int rc = in->w.err->code ? -1 : 0;
	if (changed >= 0)
		json_object_set_new(publication, "changes", json_integer(changed));
	if (crossed)
		json_object_set(publication, refused ? "refused" : "gatesCrossed", reasons);
	if (rc == 0)
		rc = print_line(in, publication);
	if (rc == 0 && refused) {
		err_at(&in->refusal, ERR_DATA, in->snapshot.file.data, 0, 0, "not published: %s; look at it, then replay it by name to accept it",
		       json_string_value(json_array_get(reasons, 0)));
		rc = drop_file(in);
	} else if (rc == 0) {
		rc = publish(in, publication);
	}
	json_decref(publication);
	json_decref(reasons);
	return rc;
}

static int take_report(struct intake *in, const struct record *r)
{
	json_t *report = json_load_text(r->body.data, r->body.len, "report", in->w.err);
	if (!report)
		return -1;
	in->totals->files++;
	in->totals->runs_read += in->w.runs;
	in->totals->rejected += (uint64_t)json_total(json_object_get(report, "rejected"));
	int rc = in->skipped && !in->copy_of ? pass_over(in) : finish_file(in, report);
	json_decref(report);
	return rc;
}

static int take(struct intake *in, const struct record *r)
{
	if (r->type == RECORD_SNAPSHOT)
		return take_snapshot(in, r);
	if (!in->open)
		return err_set(in->w.err, ERR_DATA, "a record before the snapshot line of its file");
	if (r->type == RECORD_REPORT)
		return take_report(in, r);
	if (r->type == RECORD_OBJECT)
		return writer_object(&in->w, &r->digest, r->body, r->metadata);
	if (r->type == RECORD_CASE)
		return writer_case(&in->w, &r->digest, r->body);
	return in->skipped ? 0 : writer_run(&in->w, &r->digest, &r->case_digest, r->body, r->labels);
}

static int run_stream(struct intake *in, struct lines *lines)
{
	struct slice line;
	struct record record;
	int more;
	while ((more = lines_next(lines, RECORD_LINE_MAX, &line, in->w.err)) == 1) {
		if (record_read(line, &record, "standard input", lines->number, in->w.err))
			return -1;
		if (take(in, &record)) {
			if (in->w.err->line == 0 && in->w.err->file[0] == '\0') {
				snprintf(in->w.err->file, sizeof in->w.err->file, "standard input");
				in->w.err->line = lines->number;
			}
			return -1;
		}
	}
	if (more == 0 && in->open)
		return err_set(in->w.err, ERR_DATA, "the stream ended before the report of %s: nothing of that file was published", in->snapshot.file.data);
	return more;
}

int put_stream(struct store *st, int fd, const struct put_options *options, struct put_totals *totals, struct err *e)
{
	struct intake in = {.options = options, .totals = totals};
	struct lines lines;
	if (!options->dry_run && recover_store(st, e))
		return -1;
	writer_init(&in.w, st, options->dry_run, e);
	lines_init(&lines, fd);
	int rc = run_stream(&in, &lines);
	if (rc == 0 && in.refusal.code) {
		*e = in.refusal;
		rc = -1;
	}
	lines_fini(&lines);
	writer_fini(&in.w);
	arena_fini(&in.file_arena);
	json_decref(in.copy_of);
	return rc ? -1 : 0;
}
