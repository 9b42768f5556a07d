#include "store/load.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/file.h"
#include "core/json.h"
#include "store/correct.h"
#include "store/dump.h"
#include "store/entry.h"
#include "store/lines.h"
#include "store/writer.h"

enum { ENTRIES_A_COMMIT = 4096 };

struct load {
	struct store *st;
	struct writer w;
	struct load_totals *totals;
	struct err *err;
	json_t *head;        /* the dump's own account: channels and counts */
	json_t *publication; /* the line at hand, whose runs follow */
	json_t *entries;     /* not yet appended */
	uint64_t lines;      /* read so far */
	struct digest_stream *read;
	bool ended;
};

static bool is_line(struct slice line, const char *ending)
{
	size_t len = strlen(ending);
	return line.len >= len && memcmp(line.data + line.len - len, ending, len) == 0;
}

static int take_head(struct load *l, const json_t *head)
{
	size_t i;
	json_t *channel;
	if (strcmp(json_text_of(head, "type"), "store") != 0)
		return err_set(l->err, ERR_DATA, "not a dump of a whole store: want one that `ki export --format store` has made");
	if (json_whole_of(head, "dump") != DUMP_VERSION)
		return err_set(l->err, ERR_DATA, "a dump of version %lld, and this program reads %d", (long long)json_whole_of(head, "dump"), DUMP_VERSION);
	if (writer_begin(&l->w))
		return -1;
	json_array_foreach(json_object_get(head, "channels"), i, channel)
		if (writer_channel(&l->w, slice_of(json_text_of(channel, "name")), json_is_true(json_object_get(channel, "entries"))))
			return -1;
	l->head = json_incref((json_t *)head);
	return 0;
}

/* `{"set":{…},"type":"labels"}`: ids count up. */
static int take_labels(struct load *l, struct slice line)
{
	static const char before[] = "{\"set\":", after[] = ",\"type\":\"labels\"}";
	uint32_t id, wanted = l->w.counts.labels;
	size_t frame = sizeof before - 1 + sizeof after - 1;
	if (line.len < frame || memcmp(line.data, before, sizeof before - 1) != 0)
		return err_set(l->err, ERR_DATA, "not a line of labels");
	if (writer_labels(&l->w, (struct slice){line.data + sizeof before - 1, line.len - frame}, &id))
		return -1;
	return id == wanted ? 0 : err_set(l->err, ERR_DATA, "these labels were there before");
}

/* The runs of a publication that the store had before it. */
static int take_known_runs(struct load *l, const json_t *ranges, uint32_t first_new)
{
	size_t i;
	json_t *range;
	json_array_foreach((json_t *)ranges, i, range) {
		json_int_t first = json_integer_value(json_array_get(range, 0)), count = json_integer_value(json_array_get(range, 1));
		if (first < 0 || count < 1 || first + count > UINT32_MAX)
			return err_set(l->err, ERR_DATA, "a range of runs is none");
		for (json_int_t n = first; n < first + count && n < first_new; n++)
			if (writer_known_run(&l->w, (uint32_t)n))
				return -1;
	}
	return 0;
}

/* What the publication carries must be what the dump says it carried. */
static bool same_ranges(const struct ranges *carried, const json_t *ranges)
{
	bool same = json_array_size(ranges) == carried->count;
	for (size_t i = 0; i < carried->count && same; i++) {
		const json_t *range = json_array_get(ranges, i);
		same = json_integer_value(json_array_get(range, 0)) == carried->items[i].first && json_integer_value(json_array_get(range, 1)) == carried->items[i].count;
	}
	return same;
}

/* Publishes the publication at hand, if there is one. */
static int end_publication(struct load *l)
{
	const json_t *publication = json_object_get(l->publication, "publication");
	const char *sha256 = json_text_of(publication, "sha256");
	struct digest snapshot;
	if (!l->publication)
		return 0;
	if (!digest_parse(sha256, strlen(sha256), &snapshot))
		return err_set(l->err, ERR_DATA, "publication %u has no snapshot", l->w.counts.publications);
	if (writer_settle(&l->w))
		return -1;
	if (!same_ranges(&l->w.target.carried, json_object_get(l->publication, "runs")))
		return err_set(l->err, ERR_DATA, "publication %u carries other runs than its line says", l->w.counts.publications);
	if (writer_publish(&l->w, publication, &snapshot))
		return -1;
	l->totals->publications++;
	json_decref(l->publication);
	l->publication = NULL;
	return writer_begin(&l->w);
}

/* Its runs follow, in batches that are indexed under its channel; the next line of another sort ends it. */
static int take_publication(struct load *l, const json_t *line)
{
	const json_t *publication = json_object_get(line, "publication");
	if (end_publication(l))
		return -1;
	if (json_whole_of(publication, "id") != l->w.counts.publications)
		return err_set(l->err, ERR_DATA, "not publication %u", l->w.counts.publications);
	l->publication = json_incref((json_t *)line);
	if (writer_channel(&l->w, slice_of(json_text_of(publication, "channel")), json_object_get(publication, "entry") != NULL))
		return -1;
	return take_known_runs(l, json_object_get(line, "runs"), l->w.counts.runs);
}

static int append_entries(struct load *l)
{
	int rc = json_array_size(l->entries) ? entry_append_all(l->st, l->entries, l->err) : 0;
	l->totals->entries += json_array_size(l->entries);
	json_array_clear(l->entries);
	return rc;
}

/* Entries come last, in transactions of their own. */
static int close_writer(struct load *l)
{
	if (!l->w.t.mdb)
		return 0;
	return end_publication(l) || writer_drop(&l->w) ? -1 : 0;
}

static int take_entry(struct load *l, const json_t *line)
{
	if (close_writer(l))
		return -1;
	if (!correct_holds(json_object_get(line, "entry")))
		return err_set(l->err, ERR_DATA, "the entry says something else than was signed");
	json_array_append(l->entries, json_object_get(line, "entry"));
	return json_array_size(l->entries) < ENTRIES_A_COMMIT ? 0 : append_entries(l);
}

static int take_end(struct load *l, const json_t *line)
{
	struct txn t;
	struct meta_counts n;
	const json_t *counts = json_object_get(l->head, "counts");
	if (close_writer(l) || append_entries(l))
		return -1;
	if (json_whole_of(line, "lines") != (json_int_t)l->lines - 1)
		return err_set(l->err, ERR_DATA, "the dump says that it has %lld lines before its last", (long long)json_whole_of(line, "lines"));
	int rc = txn_begin(&t, l->st, STORE_READ, l->err) || txn_counts(&t, &n) ? -1 : 0;
	txn_abort(&t);
	if (rc == 0 && (n.objects != json_whole_of(counts, "objects") || n.cases != json_whole_of(counts, "cases") || n.labels != json_whole_of(counts, "labels") ||
			n.runs != json_whole_of(counts, "runs") || n.publications != json_whole_of(counts, "publications") ||
			n.events != json_whole_of(counts, "entries")))
		rc = err_set(l->err, ERR_DATA, "the dump holds less than its first line says");
	l->totals->runs = n.runs;
	l->ended = true;
	return rc;
}

static int take_json(struct load *l, struct slice line, int (*take)(struct load *l, const json_t *line))
{
	json_t *value = json_load_text(line.data, line.len, "", l->err);
	int rc = value ? take(l, value) : -1;
	json_decref(value);
	return rc;
}

static int take_record(struct load *l, struct slice line)
{
	struct record r;
	if (!l->w.t.mdb)
		return err_set(l->err, ERR_DATA, "a record after the entries");
	if (record_read(line, &r, "", 0, l->err))
		return -1;
	if (r.type == RECORD_OBJECT)
		return writer_object(&l->w, &r.digest, r.body, r.metadata);
	if (r.type == RECORD_CASE)
		return writer_case(&l->w, &r.digest, r.body);
	if (r.type == RECORD_RUN && !l->publication)
		return err_set(l->err, ERR_DATA, "a run before any publication");
	if (r.type == RECORD_RUN)
		return writer_run(&l->w, &r.digest, &r.case_digest, r.body, r.labels);
	return err_set(l->err, ERR_DATA, "not a line of a dump");
}

static int take_line(struct load *l, struct slice line)
{
	if (l->ended)
		return err_set(l->err, ERR_DATA, "a line after the last");
	if (!l->head)
		return take_json(l, line, take_head);
	if (is_line(line, ",\"type\":\"labels\"}"))
		return take_labels(l, line);
	if (is_line(line, ",\"type\":\"publication\"}"))
		return take_json(l, line, take_publication);
	if (is_line(line, ",\"type\":\"entry\"}"))
		return take_json(l, line, take_entry);
	if (is_line(line, ",\"type\":\"end\"}"))
		return take_json(l, line, take_end);
	return take_record(l, line);
}

/* ---- the whole ---- */

static int take_all(struct load *l, int fd, const char *name)
{
	struct lines lines;
	struct slice line;
	int more;
	lines_init_packed(&lines, fd, name);
	while ((more = lines_next(&lines, DUMP_LINE_MAX, &line, l->err)) == 1) {
		l->lines++;
		digest_stream_add(l->read, line.data, line.len + 1); /* and its newline */
		if (take_line(l, line)) {
			if (!l->err->file[0] || l->err->code == ERR_DATA) {
				snprintf(l->err->file, sizeof l->err->file, "%s", name);
				l->err->line = lines.number;
			}
			break;
		}
	}
	lines_fini(&lines);
	if (!l->err->code && !l->ended)
		return err_at(l->err, ERR_DATA, name, 0, 0, "cut off: its last line is missing");
	return l->err->code ? -1 : 0;
}

/* The promise itself: whatever a dump may have said twice, in another order or for nothing is found here. */
static int prove(struct load *l, const struct digest *read)
{
	struct catalog c;
	struct digest made;
	uint64_t lines;
	int rc = catalog_attach(&c, l->st, l->err);
	if (rc == 0)
		rc = dump_digest(&c, &made, &lines);
	catalog_close(&c);
	return rc == 0 && digest_cmp(&made, read) != 0 ? err_set(l->err, ERR_DATA, "a store made from it has another dump, so it is not one that a store has made") : rc;
}

static int build(const char *directory, int fd, const char *name, struct load_totals *totals, struct err *e)
{
	struct store st;
	struct load l = {.st = &st, .totals = totals, .err = e, .entries = json_array()};
	int rc = store_open(&st, directory, STORE_WRITE, e);
	if (rc == 0) {
		writer_init(&l.w, &st, false, e);
		l.read = digest_stream_new();
		rc = take_all(&l, fd, name);
		struct digest read = digest_stream_end(l.read);
		writer_fini(&l.w);
		if (rc == 0)
			rc = prove(&l, &read);
	}
	store_close(&st);
	json_decref(l.head);
	json_decref(l.publication);
	json_decref(l.entries);
	return rc;
}

int load_dump(const char *directory, int fd, const char *name, struct load_totals *totals, struct err *e)
{
	if (access(directory, F_OK) == 0) /* what cannot be looked at fails below */
		return err_at(e, ERR_USAGE, directory, 0, 0, "exists already; an import makes a new store: give --store DIR");
	struct buf temporary = {0};
	file_sweep(directory);
	int held = file_begin_directory(directory, &temporary, e), rc = held < 0 ? -1 : 0;
	if (rc == 0)
		rc = build(temporary.data, fd, name, totals, e);
	return file_end_directory(held, &temporary, directory, rc, e);
}
