#include "store/site.h"

#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "core/json.h"
#include "core/text.h"
#include "store/site_asset.h"
#include "store/site_cohort.h"
#include "store/site_compare.h"
#include "store/site_coverage.h"
#include "store/site_facet.h"
#include "store/site_index.h"
#include "store/site_operation.h"
#include "store/site_run.h"
#include "store/site_trend.h"

enum { SHARDS = 256 };

/* ---- names and files ---- */

static void digest_name(const char *folder, const struct digest *d, char out[SITE_NAME_MAX])
{
	char hex[DIGEST_HEX + 1];
	digest_hex(d, hex);
	snprintf(out, SITE_NAME_MAX, "%s/%.2s/%s.html", folder, hex, hex);
}

void site_run_name(const struct digest *run, char out[SITE_NAME_MAX])
{
	digest_name("runs", run, out);
}

void site_cohort_name(const struct digest *key, char out[SITE_NAME_MAX])
{
	digest_name("cohorts", key, out);
}

void site_list_name(const char *folder, struct slice name, char out[SITE_NAME_MAX])
{
	struct buf kebab = {0};
	text_kebab(name, &kebab);
	snprintf(out, SITE_NAME_MAX, "%s/%s.html", folder, kebab.len ? kebab.data : "unnamed");
	buf_fini(&kebab);
}

int site_write(struct site *s, const char *name, const struct buf *text)
{
	bool written;
	buf_clear(&s->path);
	buf_printf(&s->path, "%s/%s", s->directory, name);
	if (file_refresh(s->path.data, text->data, text->len, 0644, &written, s->c->err))
		return -1;
	s->totals.files++;
	s->totals.size_bytes += text->len;
	s->totals.written += written;
	s->totals.unchanged += !written;
	return 0;
}

void site_shard_begin(struct buf *out, const char *name)
{
	buf_clear(out);
	buf_printf(out, "kiShard(\"%s\",", name);
}

int site_shard_end(struct site *s, struct buf *out, const char *name)
{
	struct buf file = {0};
	buf_str(out, ");\n");
	buf_printf(&file, "data/%s.js", name);
	int rc = site_write(s, file.data, out);
	buf_fini(&file);
	return rc;
}

/* Makes a folder of the site and clears away what exports that were killed left in it. */
static int make_folder(struct buf *path, struct err *e)
{
	int rc = file_make_dirs(path->data, e);
	file_sweep_directory(path->data);
	buf_clear(path);
	return rc;
}

static int make_folders(struct site *s)
{
	static const char *const plain[] = {"assets", "data", "operations", "gpus", "providers"};
	static const char *const sharded[] = {"runs", "cohorts", "trends"};
	struct buf path = {0};
	buf_str(&path, s->directory);
	int rc = make_folder(&path, s->c->err);
	for (size_t i = 0; i < sizeof plain / sizeof *plain && rc == 0; i++) {
		buf_printf(&path, "%s/%s", s->directory, plain[i]);
		rc = make_folder(&path, s->c->err);
	}
	for (size_t i = 0; i < sizeof sharded / sizeof *sharded * SHARDS && rc == 0; i++) {
		buf_printf(&path, "%s/%s/%02x", s->directory, sharded[i / SHARDS], (unsigned)(i % SHARDS));
		rc = make_folder(&path, s->c->err);
	}
	buf_fini(&path);
	return rc;
}

/* ---- config ---- */

const char *site_text(const struct site *s, const char *name)
{
	return json_text_of(s->config, name);
}

static int check_config(const json_t *config, const char *file, struct err *e)
{
	static const char *const names[] = {"about", "title", "base", "report", "source", "sourceSlug", "sourceUrl", "licence", "holder"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (!json_is_string(json_object_get(config, names[i])))
			return err_at(e, ERR_CONFIG, file, 0, 0, "%s: wants a text", names[i]);
	if (json_whole_of(config, "version") != 1)
		return err_at(e, ERR_CONFIG, file, 0, 0, "version: wants 1");
	return json_object_size(config) == sizeof names / sizeof *names + 1 ? 0 : err_at(e, ERR_CONFIG, file, 0, 0, "an unknown name is in it");
}

json_t *site_config(const char *directory, struct err *e)
{
	struct buf path = {0};
	buf_printf(&path, "%s/site.json", directory);
	json_t *config = json_load_config(path.data, e);
	if (config && check_config(config, path.data, e)) {
		json_decref(config);
		config = NULL;
	}
	buf_fini(&path);
	return config;
}

/* ---- changes, and flags by run ---- */

static int compare_flags(const void *a, const void *b)
{
	const struct flag *x = *(const struct flag *const *)a, *y = *(const struct flag *const *)b;
	if (x->run != y->run)
		return x->run < y->run ? -1 : 1;
	return (x > y) - (x < y);
}

static int load_doubts(struct site *s, const char *config)
{
	struct change_options wanted = {.config = config};
	struct flag_options options = {.config = config, .changes = &s->changes};
	if (change_points(s->c, &wanted, &s->changes) || flags_derive(s->c, &options, &s->flags))
		return -1;
	site_trends_load(s);
	s->by_run = xmalloc((s->flags.count + 1) * sizeof *s->by_run);
	for (size_t i = 0; i < s->flags.count; i++)
		s->by_run[i] = &s->flags.items[i];
	qsort(s->by_run, s->flags.count, sizeof *s->by_run, compare_flags);
	return 0;
}

const struct flag *const *site_flags(const struct site *s, uint32_t run, size_t *count)
{
	size_t first = 0, left = s->flags.count;
	while (left > 0) {
		size_t half = left / 2;
		if (s->by_run[first + half]->run < run) {
			first += half + 1;
			left -= half + 1;
		} else {
			left = half;
		}
	}
	*count = 0;
	while (first + *count < s->flags.count && s->by_run[first + *count]->run == run)
		++*count;
	return s->by_run + first;
}

void site_flag_names(const struct site *s, uint32_t run, struct buf *out)
{
	size_t count;
	const struct flag *const *flags = site_flags(s, run, &count);
	for (size_t i = 0; i < count; i++)
		buf_printf(out, "%s%s", i ? ", " : "", flag_name(flags[i]->code));
}

/* ---- the walk ---- */

struct walk {
	struct site *s;
	struct page page;
	struct whole whole;
};

static void keep(struct site *s, const struct cohort *k, const struct member *m)
{
	if (s->count == s->room) {
		s->room = s->room ? s->room * 2 : 1024;
		s->runs = xrealloc(s->runs, s->room * sizeof *s->runs);
	}
	s->runs[s->count++] = (struct site_run){m->run, m->rank, (uint32_t)k->ranked, m->unranked, m->row, m->c};
}

static int visit(const struct cohort *k, void *context)
{
	struct walk *w = context;
	for (size_t i = 0; i < k->count; i++) {
		if (site_run_page(&w->page, &w->whole, w->s, k, &k->members[i]))
			return -1;
		keep(w->s, k, &k->members[i]);
	}
	return site_cohort_page(&w->page, w->s, k);
}

static int write_all(struct site *s)
{
	struct walk w = {.s = s};
	int rc = cohort_each(s->c, visit, &w);
	page_fini(&w.page);
	whole_fini(&w.whole);
	return rc || site_operations(s) || site_trends(s) || site_facets(s) || site_coverage(s) || site_index(s) || site_compare(s) || site_assets(s) ? -1 : 0;
}

int site_export(struct catalog *c, const char *config, const char *directory, struct site_totals *totals)
{
	struct site s = {.c = c, .directory = directory, .cache = whole_cache_new(c)};
	int rc = -1;
	if ((s.config = site_config(config, c->err)))
		rc = policy_load(config, &s.policy, c->err) || lineage_load(c, &s.lineage) || load_doubts(&s, config) || make_folders(&s) ? -1 : write_all(&s);
	*totals = s.totals;
	whole_cache_free(s.cache);
	lineage_fini(&s.lineage);
	flags_fini(&s.flags);
	site_trends_free(s.trends);
	change_list_fini(&s.changes);
	policy_fini(&s.policy);
	json_decref(s.config);
	free(s.by_run);
	free(s.runs);
	buf_fini(&s.path);
	buf_fini(&s.names);
	return rc;
}
