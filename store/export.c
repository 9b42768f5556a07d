#include "store/export.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "core/file.h"
#include "core/json.h"
#include "core/when.h"

enum { LEVEL = 6, PIECE = 128 * 1024 };

/* Where lines go: a stream, or a compressor in front of a file. */
struct sink {
	FILE *stream;
	bool array; /* commas between lines */
	struct file_out *file;
	ZSTD_CCtx *zstd;
	struct digest_stream *sha256;
	char *piece;
	uint64_t lines, size_bytes;
	struct err *err;
};

static int compress(struct sink *s, const char *data, size_t len, ZSTD_EndDirective end)
{
	ZSTD_inBuffer in = {data, len, 0};
	size_t left;
	do {
		ZSTD_outBuffer out = {s->piece, PIECE, 0};
		left = ZSTD_compressStream2(s->zstd, &out, &in, end);
		if (ZSTD_isError(left))
			return err_set(s->err, ZSTD_getErrorCode(left) == ZSTD_error_memory_allocation ? ERR_TEMP : ERR_BUG, "zstd: %s", ZSTD_getErrorName(left));
		digest_stream_add(s->sha256, s->piece, out.pos);
		s->size_bytes += out.pos;
		if (out.pos && file_add(s->file, s->piece, out.pos, s->err))
			return -1;
	} while (end == ZSTD_e_end ? left > 0 : in.pos < in.size);
	return 0;
}

static int put_line(struct sink *s, struct buf *line)
{
	s->lines++;
	if (!s->stream) {
		buf_char(line, '\n');
		return compress(s, line->data, line->len, ZSTD_e_continue);
	}
	if (s->array && s->lines > 1 && fputs(",\n", s->stream) == EOF)
		return err_errno(s->err, "standard output", "cannot write");
	if (!s->array)
		buf_char(line, '\n');
	if (fwrite(line->data, 1, line->len, s->stream) != line->len)
		return err_errno(s->err, "standard output", "cannot write");
	return 0;
}

/* ---- what the selected runs cite ---- */

struct cited {
	struct digest digest;
	uint32_t id;
};
struct selection {
	struct listing runs;
	bool *cases;            /* by case id */
	struct cited *objects;  /* sorted by digest, distinct */
	size_t object_count;
	struct cited *case_list; /* likewise */
	size_t case_count;
};

static int compare_cited(const void *a, const void *b)
{
	return digest_cmp(&((const struct cited *)a)->digest, &((const struct cited *)b)->digest);
}

static size_t sort_distinct(struct cited *items, size_t count)
{
	size_t kept = 0;
	if (count)
		qsort(items, count, sizeof *items, compare_cited);
	for (size_t i = 0; i < count; i++)
		if (i == 0 || compare_cited(&items[i], &items[kept - 1]) != 0)
			items[kept++] = items[i];
	return kept;
}

static int select_objects(struct catalog *c, struct selection *s)
{
	s->objects = xmalloc((c->counts.cases * 6 + 1) * sizeof *s->objects);
	s->case_list = xmalloc((c->counts.cases + 1) * sizeof *s->case_list);
	for (uint32_t id = 0; id < c->counts.cases; id++) {
		if (!s->cases[id])
			continue;
		const struct catalog_case *k = catalog_case(c, id);
		if (!k)
			return -1;
		const struct digest *named[] = {&k->parts.project, &k->parts.operation, &k->parts.implementation,
						&k->parts.workload, &k->parts.protocol, &k->parts.environment};
		s->case_list[s->case_count++] = (struct cited){k->digest, id};
		for (size_t i = 0; i < sizeof named / sizeof *named; i++)
			s->objects[s->object_count++].digest = *named[i];
	}
	s->object_count = sort_distinct(s->objects, s->object_count);
	s->case_count = sort_distinct(s->case_list, s->case_count);
	for (size_t i = 0; i < s->object_count; i++)
		if (catalog_object_id(c, &s->objects[i].digest, &s->objects[i].id) != 1)
			return err_set(c->err, ERR_CORRUPT, "a case cites an object that is missing; run `ki check`");
	return 0;
}

static int select_all(struct catalog *c, const struct filter *filter, struct selection *s)
{
	*s = (struct selection){.cases = xcalloc(c->counts.cases, sizeof *s->cases)};
	struct view v = {0};
	int rc = listing_load(c, filter, SORT_DIGEST, &s->runs);
	for (size_t i = 0; i < s->runs.count && rc == 0; i++) {
		rc = listing_view(&s->runs, i, &v);
		if (rc == 0)
			s->cases[s->runs.current.row.case_id] = true;
	}
	view_fini(&v);
	return rc == 0 ? select_objects(c, s) : -1;
}

static void selection_fini(struct selection *s)
{
	listing_fini(&s->runs);
	free(s->cases);
	free(s->objects);
	free(s->case_list);
}

/* ---- lines ---- */

static const char *kind_of(const struct buf *body, size_t *len)
{
	static const char mark[] = "\"kind\":\"";
	const char *at = memmem(body->data, body->len, mark, sizeof mark - 1);
	const char *end = at ? memchr(at + sizeof mark - 1, '"', body->len - (size_t)(at + sizeof mark - 1 - body->data)) : NULL;
	*len = end ? (size_t)(end - at) - (sizeof mark - 1) : 0;
	return end ? at + sizeof mark - 1 : "";
}

static int put_object(struct catalog *c, const struct cited *o, struct sink *sink, struct buf *line, struct buf *body)
{
	char digest[DIGEST_TEXT + 1];
	struct digest stored;
	size_t kind_len;
	if (catalog_object(c, o->id, &stored, body))
		return -1;
	const char *kind = kind_of(body, &kind_len);
	json_t *metadata = catalog_metadata(c, o->id);
	digest_text(&o->digest, digest);
	buf_clear(line);
	buf_printf(line, "{\"body\":%s,\"digest\":\"%s\",\"kind\":\"%.*s\",\"metadata\":", body->data, digest, (int)kind_len, kind);
	int rc = json_canonical(metadata, line, c->err);
	buf_str(line, ",\"type\":\"object\"}");
	json_decref(metadata);
	return rc ? -1 : put_line(sink, line);
}

static int put_case(struct catalog *c, const struct cited *k, struct sink *sink, struct buf *line)
{
	const struct catalog_case *held = catalog_case(c, k->id);
	char digest[DIGEST_TEXT + 1];
	if (!held)
		return -1;
	digest_text(&k->digest, digest);
	buf_clear(line);
	buf_str(line, "{\"body\":");
	record_case_body(&held->parts, line);
	buf_printf(line, ",\"digest\":\"%s\",\"type\":\"case\"}", digest);
	return put_line(sink, line);
}

/* `body` and `case` sort before every column name, so the rest of the line is the view's own JSON. */
static int put_run(struct catalog *c, const struct view *v, struct sink *sink, struct buf *line, struct buf *body)
{
	char digest[DIGEST_TEXT + 1];
	if (catalog_body(c, &v->m->row, body))
		return -1;
	digest_text(&v->m->c->digest, digest);
	buf_clear(line);
	buf_printf(line, "{\"body\":%s,\"case\":\"%s\",", body->data, digest);
	size_t at = line->len;
	if (view_json(v, line, c->err))
		return -1;
	memmove(line->data + at, line->data + at + 1, line->len - at); /* drops the second brace; moves the NUL along */
	line->len--;
	return put_line(sink, line);
}

static int write_lines(struct catalog *c, const struct filter *filter, struct sink *sink)
{
	struct buf line = {0}, body = {0};
	struct selection s;
	struct view v = {0};
	int rc = select_all(c, filter, &s);
	for (size_t i = 0; i < s.object_count && rc == 0; i++)
		rc = put_object(c, &s.objects[i], sink, &line, &body);
	for (size_t i = 0; i < s.case_count && rc == 0; i++)
		rc = put_case(c, &s.case_list[i], sink, &line);
	for (size_t i = 0; i < s.runs.count && rc == 0; i++)
		rc = listing_view(&s.runs, i, &v) || put_run(c, &v, sink, &line, &body) ? -1 : 0;
	selection_fini(&s);
	view_fini(&v);
	buf_fini(&line);
	buf_fini(&body);
	return rc;
}

int export_jsonl(struct catalog *c, const struct filter *filter, FILE *out)
{
	struct sink sink = {.stream = out, .err = c->err};
	return write_lines(c, filter, &sink);
}

int export_json(struct catalog *c, const struct filter *filter, FILE *out)
{
	struct sink sink = {.stream = out, .array = true, .err = c->err};
	fputs("[\n", out);
	int rc = write_lines(c, filter, &sink);
	fputs("\n]\n", out);
	return rc;
}

/* ---- files ---- */

static int newest_date(struct catalog *c, char out[11])
{
	memcpy(out, "0000-00-00", 11);
	if (c->counts.publications == 0)
		return 0;
	json_t *p = catalog_publication(c, c->counts.publications - 1);
	const char *at = json_string_value(json_object_get(p, "publishedAt"));
	if (at && strlen(at) >= 10)
		memcpy(out, at, 10);
	json_decref(p);
	return p ? 0 : -1;
}

/* Its time is that of the state it was made from (core/nightly.c looks). */
static int write_latest(const struct catalog *c, const char *directory, const char *name, const struct digest *d, const struct sink *s, struct err *e)
{
	struct buf path = {0}, text = {0};
	char sha256[DIGEST_TEXT + 1], now[WHEN_TEXT + 1];
	digest_text(d, sha256);
	when_text(when_now_ms(), now);
	buf_printf(&path, "%s/latest.json", directory);
	buf_printf(&text, "{\"file\":\"%s\",\"generatedAt\":\"%s\",\"lines\":%llu,\"sha256\":\"%s\",\"sizeBytes\":%llu}\n", name, now,
		   (unsigned long long)s->lines, sha256, (unsigned long long)s->size_bytes);
	int rc = file_write(path.data, text.data, text.len, 0644, e);
	if (rc == 0 && utimensat(AT_FDCWD, path.data, (const struct timespec[2]){c->st.changed, c->st.changed}, 0) != 0)
		rc = err_errno(e, path.data, "cannot set time");
	buf_fini(&path);
	buf_fini(&text);
	return rc;
}

static int finish_file(struct catalog *c, struct sink *s, const char *directory, char **path)
{
	struct buf name = {0}, full = {0};
	char date[11], hex[DIGEST_HEX + 1];
	struct digest d = digest_stream_end(s->sha256);
	s->sha256 = NULL;
	digest_hex(&d, hex);
	int rc = newest_date(c, date);
	buf_printf(&name, "catalog-%s-%.8s.jsonl.zst", date, hex);
	buf_printf(&full, "%s/%s", directory, name.data);
	if (rc == 0) {
		rc = file_commit_as(s->file, full.data, c->err);
		s->file = NULL;
	}
	if (rc == 0)
		rc = write_latest(c, directory, name.data, &d, s, c->err);
	buf_fini(&name);
	*path = full.data;
	return rc;
}

int export_files(struct catalog *c, const struct filter *filter, const char *directory, char **path)
{
	struct buf temporary = {0};
	struct sink s = {.err = c->err};
	*path = NULL;
	if (file_make_dirs(directory, c->err))
		return -1;
	buf_printf(&temporary, "%s/latest.json", directory);
	file_sweep(temporary.data);
	buf_clear(&temporary);
	buf_printf(&temporary, "%s/catalog.jsonl.zst", directory);
	file_sweep(temporary.data);
	s.file = file_begin(temporary.data, 0644, c->err);
	buf_fini(&temporary);
	if (!s.file)
		return -1;
	if (!(s.zstd = ZSTD_createCCtx()))
		out_of_memory();
	s.piece = xmalloc(PIECE);
	s.sha256 = digest_stream_new();
	ZSTD_CCtx_setParameter(s.zstd, ZSTD_c_compressionLevel, LEVEL);
	ZSTD_CCtx_setParameter(s.zstd, ZSTD_c_checksumFlag, 1);
	int rc = write_lines(c, filter, &s);
	if (rc == 0)
		rc = compress(&s, NULL, 0, ZSTD_e_end);
	if (rc == 0)
		rc = finish_file(c, &s, directory, path);
	if (s.sha256)
		digest_stream_end(s.sha256);
	file_abort(s.file);
	ZSTD_freeCCtx(s.zstd);
	free(s.piece);
	return rc;
}
