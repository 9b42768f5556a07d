#include "store/dump.h"

#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "store/entry.h"
#include "store/ranges.h"

/* Where lines go: a stream or a digest. */
struct sink {
	struct catalog *c;
	FILE *stream;
	struct digest_stream *digest;
	uint64_t lines;
	struct buf line, body;
};

/* Sends what is in `line`, whole lines. */
static int send(struct sink *s)
{
	s->lines++;
	if (s->digest)
		digest_stream_add(s->digest, s->line.data, s->line.len);
	else if (fwrite(s->line.data, 1, s->line.len, s->stream) != s->line.len)
		return err_errno(s->c->err, "standard output", "cannot write");
	buf_clear(&s->line);
	return 0;
}

/* Sends a JSON value, which is the sink's from then on. */
static int send_json(struct sink *s, json_t *value)
{
	int rc = value ? json_canonical(value, &s->line, s->c->err) : err_set(s->c->err, ERR_BUG, "a line of the dump cannot be made");
	json_decref(value);
	buf_char(&s->line, '\n');
	return rc == 0 ? send(s) : -1;
}

static int send_head(struct sink *s)
{
	const struct meta_counts *n = &s->c->counts;
	json_t *channels = json_array();
	for (size_t i = 0; i < s->c->channels.count; i++)
		json_array_append_new(channels, json_pack("{s:b, s:s}", "entries", s->c->channels.items[i].entries, "name", s->c->channels.items[i].name));
	return send_json(s, json_pack("{s:o, s:{s:I, s:I, s:I, s:I, s:I, s:I}, s:i, s:s}", "channels", channels, "counts", "cases", (json_int_t)n->cases,
				      "entries", (json_int_t)n->events, "labels", (json_int_t)n->labels, "objects", (json_int_t)n->objects, "publications",
				      (json_int_t)n->publications, "runs", (json_int_t)n->runs, "dump", DUMP_VERSION, "type", "store"));
}

static int send_object(struct sink *s, uint32_t id)
{
	struct digest d;
	struct buf metadata = {0};
	size_t i = 0;
	if (catalog_object(s->c, id, &d, &s->body))
		return -1;
	json_t *texts = catalog_metadata(s->c, id);
	int rc = s->c->err->code ? -1 : 0;
	do {
		buf_clear(&metadata);
		if (rc == 0 && json_array_size(texts) > 0)
			rc = json_canonical(json_array_get(texts, i), &metadata, s->c->err);
		else
			buf_str(&metadata, "{}");
		record_put_object(&s->line, (struct slice){s->body.data, s->body.len}, &d, (struct slice){metadata.data, metadata.len});
		if (rc == 0)
			rc = send(s);
	} while (rc == 0 && ++i < json_array_size(texts));
	json_decref(texts);
	buf_fini(&metadata);
	return rc;
}

static int send_case(struct sink *s, uint32_t id)
{
	const struct catalog_case *k = catalog_case(s->c, id);
	if (!k)
		return -1;
	buf_clear(&s->body);
	record_case_body(&k->parts, &s->body);
	record_put_case(&s->line, (struct slice){s->body.data, s->body.len}, &k->digest);
	return send(s);
}

static int send_labels(struct sink *s, uint32_t id)
{
	struct slice text = catalog_labels(s->c, id);
	if (s->c->err->code)
		return -1;
	buf_printf(&s->line, "{\"set\":%.*s,\"type\":\"labels\"}\n", (int)text.len, text.data);
	return send(s);
}

static int send_run(struct sink *s, uint32_t run)
{
	struct run_row row;
	const struct catalog_case *k;
	if (catalog_run(s->c, run, &row) || !(k = catalog_case(s->c, row.case_id)) || catalog_body(s->c, &row, &s->body))
		return -1;
	struct slice labels = catalog_labels(s->c, row.labels);
	record_put_run(&s->line, (struct slice){s->body.data, s->body.len}, &row.digest, &k->digest, labels, 1);
	return s->c->err->code ? -1 : send(s);
}

/* A publication and the runs that it brought: those from *next on, which it moves. */
static int send_publication(struct sink *s, uint32_t id, uint32_t *next)
{
	struct ranges carried = {0};
	json_t *runs = json_array();
	int rc = catalog_carried(s->c, id, &carried);
	uint32_t end = *next;
	for (size_t i = 0; i < carried.count && rc == 0; i++) {
		const struct range *r = &carried.items[i];
		end = r->first + r->count > end ? r->first + r->count : end;
		json_array_append_new(runs, json_pack("[I, I]", (json_int_t)r->first, (json_int_t)r->count));
	}
	if (rc == 0)
		rc = send_json(s, json_pack("{s:o, s:O, s:s}", "publication", catalog_publication(s->c, id), "runs", runs, "type", "publication"));
	for (; *next < end && rc == 0; ++*next)
		rc = send_run(s, *next);
	json_decref(runs);
	ranges_fini(&carried);
	return rc;
}

static int send_entries(struct sink *s)
{
	const json_t *entries = entry_all(s->c);
	size_t i;
	json_t *entry;
	int rc = entries ? 0 : -1;
	json_array_foreach((json_t *)entries, i, entry)
		if (rc == 0)
			rc = send_json(s, json_pack("{s:O, s:s}", "entry", entry, "type", "entry"));
	return rc;
}

static int send_all(struct sink *s)
{
	const struct meta_counts *n = &s->c->counts;
	uint32_t next = 0;
	int rc = send_head(s);
	for (uint32_t id = 0; id < n->objects && rc == 0; id++)
		rc = send_object(s, id);
	for (uint32_t id = 0; id < n->cases && rc == 0; id++)
		rc = send_case(s, id);
	for (uint32_t id = 0; id < n->labels && rc == 0; id++)
		rc = send_labels(s, id);
	for (uint32_t id = 0; id < n->publications && rc == 0; id++)
		rc = send_publication(s, id, &next);
	if (rc == 0 && next != n->runs)
		rc = err_set(s->c->err, ERR_CORRUPT, "%u runs, but publications carry %u; run `ki check`", n->runs, next);
	if (rc == 0)
		rc = send_entries(s);
	if (rc == 0)
		rc = send_json(s, json_pack("{s:I, s:s}", "lines", (json_int_t)s->lines, "type", "end"));
	buf_fini(&s->line);
	buf_fini(&s->body);
	return rc;
}

int dump_write(struct catalog *c, FILE *out)
{
	struct sink s = {.c = c, .stream = out};
	return send_all(&s);
}

int dump_digest(struct catalog *c, struct digest *out, uint64_t *lines)
{
	struct sink s = {.c = c, .digest = digest_stream_new()};
	int rc = send_all(&s);
	*out = digest_stream_end(s.digest);
	*lines = s.lines;
	return rc;
}
