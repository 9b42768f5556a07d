#include "normalize/convert.h"

#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/file.h"
#include "core/json.h"
#include "core/text.h"
#include "core/when.h"
#include "normalize/csv.h"

enum { FLUSH_AT = 256 * 1024, HASH_BLOCK = 256 * 1024, LABEL_MAX = 200 };

/* What the rows of one file share. */
struct input {
	const struct source *source;
	struct csv_reader *csv;
	struct csv_header header;
	struct report *report;
	struct slice caveat_source; /* `ghp:<entry>`, or the channel */
	const char *upstream_commit; /* label; NULL: none */
	bool overrides;
};

void converter_init(struct converter *cv, const struct curate *c, enum convert_mode mode, int fd)
{
	*cv = (struct converter){.curate = c, .cases = cases_new(c), .mode = mode, .fd = fd};
	cv->metrics[METRIC_LATENCY] = true;
}

void converter_fini(struct converter *cv)
{
	cases_free(cv->cases);
	seen_fini(&cv->seen);
	buf_fini(&cv->out);
	buf_fini(&cv->cited);
	buf_fini(&cv->body);
	buf_fini(&cv->id);
	buf_fini(&cv->labels);
}

int converter_flush(struct converter *cv, struct err *e)
{
	int rc = file_write_all(cv->fd, cv->out.data, cv->out.len, "stdout", e);
	buf_clear(&cv->out);
	return rc;
}

/* ---- one row ---- */

static void reject_field(struct input *in, enum reason reason, enum column c, const char *what, struct slice value)
{
	struct buf text = {0};
	unsigned line, column;
	csv_position(in->csv, in->header.place[c], &line, &column);
	buf_printf(&text, "%s: %s: ", csv_column_name(c), what);
	report_quote(value, &text);
	report_reject(in->report, reason, line, column, text.data);
	buf_fini(&text);
}

static bool check_shape(struct input *in, const struct csv_record *row)
{
	char text[96];
	unsigned line, column;
	if (row->count != in->header.width) {
		snprintf(text, sizeof text, "%zu fields where the header has %zu", row->count, in->header.width);
		report_reject(in->report, REJECT_FIELD_COUNT, row->line, 1, text);
		return false;
	}
	for (size_t i = 0; !row->ascii && i < row->count; i++) {
		if (json_is_utf8(row->fields[i].data, row->fields[i].len))
			continue;
		struct buf quoted = {0};
		buf_str(&quoted, "not UTF-8: ");
		report_quote(row->fields[i], &quoted);
		csv_position(in->csv, i, &line, &column);
		report_reject(in->report, REJECT_NOT_UTF8, line, column, quoted.data);
		buf_fini(&quoted);
		return false;
	}
	return true;
}

static const enum column key_columns[KEY_FIELDS] = {
	[KEY_KERNEL] = COLUMN_KERNEL, [KEY_PROVIDER] = COLUMN_PROVIDER, [KEY_MODE] = COLUMN_MODE,
	[KEY_METRIC] = COLUMN_METRIC, [KEY_UNIT] = COLUMN_UNIT,         [KEY_X_NAME] = COLUMN_X_NAME,
	[KEY_X_LABEL] = COLUMN_X_LABEL, [KEY_X_VALUE] = COLUMN_X_VALUE, [KEY_CONFIG] = COLUMN_CONFIG,
	[KEY_GPU] = COLUMN_GPU,
};

static struct known_case *find_case(struct converter *cv, struct input *in, const struct csv_record *row)
{
	struct slice key[KEY_FIELDS];
	for (int i = 0; i < KEY_FIELDS; i++)
		key[i] = row->fields[in->header.place[key_columns[i]]];
	if (in->overrides)
		key[KEY_PROVIDER] = curate_override(cv->curate, slice_of(in->source->channel), slice_of(in->source->commit),
						    key[KEY_PROVIDER], &(bool){false});
	in->report->speed += slice_eq(key[KEY_METRIC], "speed") != 0;
	in->report->memory += slice_eq(key[KEY_METRIC], "memory") != 0;
	struct known_case *k = cases_find(cv->cases, key, cv->mode == CONVERT_WIRE ? &cv->cited : NULL);
	if (k->bound)
		return k;
	if (reason_skips(k->reason)) {
		report_skip(in->report, k->reason, k->name);
	} else {
		unsigned line, column;
		csv_position(in->csv, in->header.place[key_columns[k->field]], &line, &column);
		report_reject(in->report, k->reason, line, column, k->text);
	}
	return NULL;
}

/* NAN for what is no number, negative, or beyond the integers that JSON holds exactly. */
static double read_value(enum metric m, struct slice text)
{
	double value = bind_number(text);
	return value >= 0 && record_units_fit(m, value) ? value : NAN;
}

/* The three values and the time; false when the row was rejected. */
static bool read_values(struct input *in, const struct csv_record *row, struct run_parts *run)
{
	const struct slice *f = row->fields;
	const size_t *place = in->header.place;
	run->source_50 = read_value(run->metric, f[place[COLUMN_Y_50]]);
	run->source_20 = read_value(run->metric, f[place[COLUMN_Y_20]]);
	run->source_80 = read_value(run->metric, f[place[COLUMN_Y_80]]);
	if (isnan(run->source_20) || isnan(run->source_80))
		run->source_20 = run->source_80 = NAN;
	if (!(run->source_50 > 0)) {
		reject_field(in, REJECT_MEDIAN, COLUMN_Y_50, "not a positive number", f[place[COLUMN_Y_50]]);
		return false;
	}
	struct slice time = f[place[COLUMN_TIMESTAMP]], version = f[place[COLUMN_VERSION]];
	if (!when_parse(time.data, time.len, &run->observed_ms)) {
		reject_field(in, REJECT_TIMESTAMP, COLUMN_TIMESTAMP, "not a time", time);
		return false;
	}
	if (version.len > LABEL_MAX) {
		reject_field(in, REJECT_VERSION, COLUMN_VERSION, "longer than 200 bytes", version);
		return false;
	}
	return true;
}

static void make_id(struct buf *id, struct slice prefix, struct slice time)
{
	buf_clear(id);
	buf_add(id, prefix.data, prefix.len);
	if (time.len != 19 || time.data[10] != ' ') {
		text_kebab(time, id);
		return;
	}
	buf_add(id, time.data, time.len); /* `YYYY-MM-DD hh:mm:ss`, as when_parse has seen */
	char *text = id->data + id->len - 19;
	text[10] = text[13] = text[16] = '-';
}

#define LABEL(name) ((struct slice){",\"" name "\":", sizeof(",\"" name "\":") - 1})

/* `name` comes with its quotes, colon and the comma before. */
static void put_label(struct buf *labels, struct slice name, const char *text, size_t len)
{
	bool first = labels->len == 1;
	buf_add(labels, name.data + first, name.len - first);
	json_put_string(labels, text, len);
}

/* How far apart two neighbours of the printed fp32 value are, in bytes: MiB to bytes is 2^20, fp32 has 24 bits. */
static int64_t memory_step(double mib)
{
	int exponent;
	frexp(mib, &exponent);
	int shift = exponent - 24 + 20;
	return shift > 0 ? INT64_C(1) << shift : 1;
}

static void make_labels(struct converter *cv, struct input *in, struct known_case *k, double source_50, struct slice version)
{
	struct buf *labels = &cv->labels;
	buf_clear(labels);
	buf_char(labels, '{');
	if (k->file != cv->file_number) {
		buf_clear(&k->caveats);
		curate_caveats(cv->curate, k->rule, k->mode->name, k->provider->name, k->run.metric, in->caveat_source, &k->caveats);
		k->file = cv->file_number;
	}
	if (k->caveats.len)
		put_label(labels, LABEL("caveats"), k->caveats.data, k->caveats.len);
	if (k->run.metric == METRIC_PEAK_MEMORY && memory_step(source_50) > 1) {
		char step[24];
		int len = snprintf(step, sizeof step, "%lld", (long long)memory_step(source_50));
		put_label(labels, LABEL("inexact"), step, (size_t)len);
	}
	if (version.len)
		put_label(labels, LABEL("liger_version"), version.data, version.len);
	if (in->upstream_commit)
		put_label(labels, LABEL("upstream_commit"), in->upstream_commit, strlen(in->upstream_commit));
	buf_char(labels, '}');
}

static void put_list_line(struct converter *cv, const struct known_case *k, const struct digest *digest)
{
	char text[DIGEST_TEXT + 1];
	if (!cv->metrics[k->run.metric])
		return;
	buf_add(&cv->out, cv->id.data, cv->id.len);
	digest_text(digest, text);
	buf_printf(&cv->out, "\t%s", text);
	digest_text(&k->comparison_key, text);
	buf_printf(&cv->out, "\t%s\n", text);
}

static void count_run(struct report *r, const struct known_case *k)
{
	r->runs[k->run.metric]++;
	if (k->run.metric != METRIC_LATENCY)
		return;
	if (!k->rule->prior)
		report_new(&r->new_rule, slice_of(k->rule->kernel));
	else if (!k->provider->prior)
		report_new(&r->new_provider, slice_of(k->provider->name));
	else if (!k->gpu->prior)
		report_new(&r->new_gpu, slice_of(k->gpu->name));
	else
		r->prior++;
}

static void put_run(struct converter *cv, struct input *in, struct known_case *k, const struct run_parts *run, struct slice version,
		    unsigned line)
{
	buf_clear(&cv->body);
	record_run_body(run, &cv->body);
	struct digest digest = digest_of(cv->body.data, cv->body.len);
	in->report->bound++;
	switch (seen_add(&cv->seen, cv->id.data, cv->id.len, &digest)) {
	case SEEN_DUPLICATE:
		in->report->duplicates++;
		return;
	case SEEN_CONFLICT:
		report_conflict(in->report, line);
		break;
	case SEEN_NEW:
		break;
	}
	count_run(in->report, k);
	if (cv->mode == CONVERT_LIST) {
		put_list_line(cv, k, &digest);
	} else if (cv->mode == CONVERT_WIRE) {
		make_labels(cv, in, k, run->source_50, version);
		buf_add(&cv->out, cv->cited.data, cv->cited.len);
		buf_clear(&cv->cited);
		record_put_run(&cv->out, (struct slice){cv->body.data, cv->body.len}, &digest, &k->digest,
			       (struct slice){cv->labels.data, cv->labels.len}, line);
	}
}

static void convert_row(struct converter *cv, struct input *in, const struct csv_record *row)
{
	struct known_case *k;
	in->report->rows++;
	if (!check_shape(in, row) || !(k = find_case(cv, in, row)))
		return;
	struct run_parts run = k->run;
	if (!read_values(in, row, &run))
		return;
	make_id(&cv->id, k->prefix, row->fields[in->header.place[COLUMN_TIMESTAMP]]);
	run.external_id = (struct slice){cv->id.data, cv->id.len};
	put_run(cv, in, k, &run, row->fields[in->header.place[COLUMN_VERSION]], row->line);
}

/* ---- one file ---- */

static int hash_file(int fd, const struct source *s, struct snapshot_parts *snapshot, struct err *e)
{
	struct buf block = {0};
	struct digest_stream *stream = digest_stream_new();
	ssize_t got;
	buf_reserve(&block, HASH_BLOCK);
	snapshot->size_bytes = 0;
	while ((got = read(fd, block.data, HASH_BLOCK)) > 0) {
		digest_stream_add(stream, block.data, (size_t)got);
		snapshot->size_bytes += got;
	}
	buf_fini(&block);
	snapshot->sha256 = digest_stream_end(stream);
	if (got < 0 || lseek(fd, 0, SEEK_SET) < 0)
		return err_errno(e, s->path, "reading");
	if (s->has_digest && digest_cmp(&snapshot->sha256, &s->sha256) != 0)
		return err_at(e, ERR_DATA, s->path, 0, 0, "its bytes do not have the SHA-256 they should have");
	return 0;
}

static void report_columns(struct input *in)
{
	const char *p = in->header.extra.len ? in->header.extra.data : "";
	for (const char *end; (end = strchr(p, '\n')); p = end + 1) {
		struct buf text = {0};
		buf_str(&text, "unknown column ");
		report_quote((struct slice){p, (size_t)(end - p)}, &text);
		report_drift(in->report, text.data);
		buf_fini(&text);
	}
}

static void put_snapshot(struct converter *cv, const struct source *s, struct snapshot_parts *snapshot)
{
	bool entry = s->entry[0] != '\0';
	snapshot->channel = slice_of(s->channel);
	snapshot->commit = slice_of(entry ? "" : s->commit);
	snapshot->config = slice_of(cv->tables);
	snapshot->entry = slice_of(s->entry);
	snapshot->file = slice_of(s->file);
	snapshot->provenance = s->provenance;
	if (cv->mode == CONVERT_WIRE)
		record_put_snapshot(&cv->out, snapshot);
}

static int convert_rows(struct converter *cv, struct input *in, struct err *e)
{
	struct csv_record row;
	int got;
	while ((got = csv_next(in->csv, &row, e)) > 0) {
		convert_row(cv, in, &row);
		if (cv->out.len >= FLUSH_AT && converter_flush(cv, e))
			return -1;
	}
	return got;
}

static int finish_file(struct converter *cv, struct input *in, int fd, const struct stat *before, struct err *e)
{
	struct stat after;
	if (fstat(fd, &after))
		return err_errno(e, in->source->path, "cannot stat");
	if (after.st_size != before->st_size || after.st_mtim.tv_sec != before->st_mtim.tv_sec ||
	    after.st_mtim.tv_nsec != before->st_mtim.tv_nsec)
		return err_at(e, ERR_DATA, in->source->path, 0, 0, "changed while it was read");
	if (cv->mode == CONVERT_WIRE) {
		struct buf json = {0};
		report_json(in->report, &json);
		record_put_report(&cv->out, (struct slice){json.data, json.len});
		buf_fini(&json);
	}
	return converter_flush(cv, e);
}

/* Facts about the file that its rows need. */
static void prepare(struct converter *cv, struct input *in, struct arena *a)
{
	const struct source *s = in->source;
	bool ghp = strcmp(s->channel, "gh-pages") == 0;
	in->caveat_source = slice_of(ghp ? arena_printf(a, "ghp:%s", s->entry) : s->channel);
	if (ghp)
		in->upstream_commit = s->commit[0] ? s->commit : curate_entry(cv->curate, slice_of(s->entry));
	curate_override(cv->curate, slice_of(s->channel), slice_of(s->commit), slice_of(""), &in->overrides);
	cv->file_number++;
	seen_clear(&cv->seen);
}

static int convert_open_file(struct converter *cv, struct input *in, int fd, struct err *e)
{
	struct snapshot_parts snapshot = {0};
	struct arena names = {0};
	struct stat st;
	int rc = -1;
	if (fstat(fd, &st))
		return err_errno(e, in->source->path, "cannot stat");
	if (!S_ISREG(st.st_mode))
		return err_at(e, ERR_DATA, in->source->path, 0, 0, "not a regular file");
	if (hash_file(fd, in->source, &snapshot, e))
		return -1;
	in->csv = csv_reader_new(fd, in->source->path);
	prepare(cv, in, &names);
	if (csv_read_header(in->csv, in->source->path, &in->header, e))
		goto out;
	report_columns(in);
	put_snapshot(cv, in->source, &snapshot);
	rc = convert_rows(cv, in, e);
	if (rc == 0)
		rc = finish_file(cv, in, fd, &st, e);
	else if (e->code == ERR_DATA) /* what was built so far goes out, without a report line */
		converter_flush(cv, e);
	if (rc) {
		cases_reset(cv->cases);
		buf_clear(&cv->cited);
	}
out:
	csv_reader_free(in->csv);
	buf_fini(&in->header.extra);
	arena_fini(&names);
	return rc;
}

int convert_file(struct converter *cv, const struct source *s, struct report *report, struct err *e)
{
	struct input in = {.source = s, .report = report};
	int fd = open(s->path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_errno(e, s->path, "opening");
	int rc = convert_open_file(cv, &in, fd, e);
	close(fd);
	return rc;
}
