#include "store/site_index.h"

#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "core/text.h"
#include "store/site_compare.h"

static void shard_name(struct slice slug, char out[SITE_NAME_MAX])
{
	struct buf kebab = {0};
	text_kebab(slug, &kebab);
	snprintf(out, SITE_NAME_MAX, "n-%s", kebab.len ? kebab.data : "unnamed");
	buf_fini(&kebab);
}

/* ---- runs by operation ---- */

static int put_group(struct site *s, const struct site_run *runs, size_t count, struct buf *out, struct buf *id)
{
	char hex[DIGEST_HEX + 1];
	struct slice prefix = runs->of->parts.external_prefix;
	buf_char(out, '[');
	html_json(out, prefix);
	buf_str(out, ",[");
	for (size_t i = 0; i < count; i++) {
		if (catalog_external_id(s->c, &runs[i].row, id))
			return -1;
		size_t cut = id->len > prefix.len && memcmp(id->data, prefix.data, prefix.len) == 0 ? prefix.len + 1 : 0;
		digest_hex(&runs[i].row.digest, hex);
		buf_str(out, i ? ",[" : "[");
		html_json(out, (struct slice){id->data + cut, id->len - cut});
		buf_printf(out, ",\"%s\"]", hex);
	}
	buf_str(out, "]]");
	return 0;
}

static int compare_cases(const void *a, const void *b)
{
	const struct site_run *x = a, *y = b;
	int order = slice_cmp(x->of->parts.operation_slug, y->of->parts.operation_slug);
	order = order ? order : slice_cmp(x->of->parts.external_prefix, y->of->parts.external_prefix);
	order = order ? order : (x->row.observed_ms > y->row.observed_ms) - (x->row.observed_ms < y->row.observed_ms);
	return order ? order : digest_cmp(&x->row.digest, &y->row.digest);
}

static int write_operation(struct site *s, const struct site_run *runs, size_t count, struct buf *out, struct buf *id)
{
	char name[SITE_NAME_MAX];
	shard_name(runs->of->parts.operation_slug, name);
	site_shard_begin(out, name);
	for (size_t i = 0, next; i < count; i = next) {
		for (next = i; next < count && slice_same(runs[next].of->parts.external_prefix, runs[i].of->parts.external_prefix);)
			next++;
		buf_char(out, i ? ',' : '[');
		if (put_group(s, runs + i, next - i, out, id))
			return -1;
	}
	buf_char(out, ']');
	return site_shard_end(s, out, name);
}

static void list_operation(const struct site_run *r, bool first, struct buf *pages, struct buf *shards)
{
	char name[SITE_NAME_MAX];
	site_list_name("operations", r->of->parts.operation_slug, name);
	buf_printf(pages, "%s[\"%s\",", first ? "" : ",", name);
	html_json(pages, r->of->parts.operation_title);
	buf_char(pages, ']');
	shard_name(r->of->parts.operation_slug, name);
	buf_printf(shards, "%s[\"%s\",", first ? "" : ",", name);
	html_json(shards, r->of->parts.benchmark);
	buf_char(shards, ']');
}

static int write_names(struct site *s)
{
	struct buf pages = {0}, shards = {0}, out = {0}, id = {0};
	int rc = 0;
	if (s->count)
		qsort(s->runs, s->count, sizeof *s->runs, compare_cases);
	for (size_t i = 0, next; i < s->count && rc == 0; i = next) {
		for (next = i; next < s->count && slice_same(s->runs[next].of->parts.operation_slug, s->runs[i].of->parts.operation_slug);)
			next++;
		list_operation(&s->runs[i], i == 0, &pages, &shards);
		rc = write_operation(s, s->runs + i, next - i, &out, &id);
	}
	site_shard_begin(&out, "names");
	buf_printf(&out, "{\"pages\":[%s%s],\"shards\":[%s]}", pages.len ? pages.data : "", s->names.len ? s->names.data : "", shards.len ? shards.data : "");
	if (rc == 0)
		rc = site_shard_end(s, &out, "names");
	buf_fini(&pages);
	buf_fini(&shards);
	buf_fini(&out);
	buf_fini(&id);
	return rc;
}

/* ---- runs by digest ---- */

static int compare_digests(const void *a, const void *b)
{
	return digest_cmp(&((const struct site_run *)a)->row.digest, &((const struct site_run *)b)->row.digest);
}

static int put_digest(struct site *s, const struct site_run *r, struct buf *out, struct buf *id)
{
	char hex[DIGEST_HEX + 1];
	if (catalog_external_id(s->c, &r->row, id))
		return -1;
	digest_hex(&r->row.digest, hex);
	buf_printf(out, "[\"%s\",", hex);
	html_json(out, (struct slice){id->data, id->len});
	site_compare_run(s, r, out);
	buf_char(out, ']');
	return 0;
}

static int write_digests(struct site *s)
{
	struct buf out = {0}, id = {0};
	int rc = 0;
	if (s->count)
		qsort(s->runs, s->count, sizeof *s->runs, compare_digests);
	for (size_t i = 0, next; i < s->count && rc == 0; i = next) {
		char name[SITE_NAME_MAX];
		snprintf(name, sizeof name, "d%02x", s->runs[i].row.digest.bytes[0]);
		site_shard_begin(&out, name);
		for (next = i; next < s->count && rc == 0 && s->runs[next].row.digest.bytes[0] == s->runs[i].row.digest.bytes[0]; next++) {
			buf_char(&out, next == i ? '[' : ',');
			rc = put_digest(s, &s->runs[next], &out, &id);
		}
		buf_char(&out, ']');
		if (rc == 0)
			rc = site_shard_end(s, &out, name);
	}
	buf_fini(&out);
	buf_fini(&id);
	return rc;
}

/* ---- the page ---- */

void site_put_search(struct page *p, const char *label)
{
	page_printf(p, "<form role=\"search\">\n<p><label for=\"q\">%s</label></p>\n"
		       "<p><input id=\"q\" type=\"search\" autocomplete=\"off\" spellcheck=\"false\"></p>\n"
		       "<p class=\"sub\">Words of an external id in any order (<code>rope backward a100</code>), or eight or more digits of a run digest.</p>\n"
		       "</form>\n<p id=\"said\" role=\"status\"></p>\n<ul id=\"found\"></ul>\n", label);
}

static int write_page(struct site *s)
{
	struct page p = {0};
	page_begin(&p, s, "", slice_of("Index"));
	page_printf(&p, "<p>%u runs in %u publications. Each has a page with its number, its rank, what was measured and how, and the evidence behind it.</p>\n",
		    s->c->counts.runs, s->c->counts.publications);
	site_put_search(&p, "Search names and digests");
	page_str(&p, "<noscript><p>Searching needs a script; the lists below do not.</p></noscript>\n"
		     "<h2>Lists</h2>\n<ul>\n<li><a href=\"operations/index.html\">Operations</a></li>\n<li><a href=\"gpus/index.html\">GPUs</a></li>\n"
		     "<li><a href=\"providers/index.html\">Providers</a></li>\n<li><a href=\"trends/index.html\">Trends: what became slower or faster, and when</a></li>\n<li><a href=\"coverage.html\">Coverage: what was read, what was skipped, how fresh it is</a></li>\n</ul>\n");
	int rc = page_end(&p, "index.html");
	page_fini(&p);
	return rc;
}

int site_index(struct site *s)
{
	return write_names(s) || write_digests(s) || write_page(s) ? -1 : 0;
}
