#include "store/options.h"

#include <stdlib.h>
#include <string.h>

#include "core/home.h"
#include "core/log.h"
#include "store/compare.h"
#include "store/event.h"
#include "store/journal.h"
#include "store/lineage.h"
#include "store/rerun.h"
#include "store/report.h"
#include "store/show.h"
#include "store/trend.h"

int with_catalog(struct options *o, struct err *e, int (*read)(struct catalog *c, struct options *o))
{
	struct catalog c;
	int rc = catalog_open(&c, o->store, e);
	if (rc == 0)
		rc = read(&c, o);
	catalog_close(&c);
	return rc;
}

static int read_show(struct catalog *c, struct options *o)
{
	struct digest d;
	const char *name = o->names[0];
	size_t count;
	uint32_t run;
	uint32_t *runs = catalog_find(c, name, &count);
	free(runs);
	const char *hex = strncmp(name, "sha256:", 7) == 0 ? name + 7 : name;
	if (c->err->code)
		return -1;
	if (count == 0 && digest_parse_hex(hex, strlen(hex), &d))
		return show_object(c, &d, stdout);
	if (catalog_find_one(c, name, &run))
		return -1;
	if (o->json)
		return show_json(c, run, stdout);
	struct arena a = {0};
	struct err no_config = {0}; /* a record is read without it too */
	struct screen on = screen_of(stdout, o->ascii);
	int rc = show_text(c, run, home_config(&a, o->config, &no_config), &on);
	arena_fini(&a);
	return rc;
}

int verb_show(struct options *o, struct err *e)
{
	return with_catalog(o, e, read_show);
}

static int read_list(struct catalog *c, struct options *o)
{
	return list_runs(c, &o->list, stdout);
}

int verb_list(struct options *o, struct err *e)
{
	if (o->json)
		o->list.format = LIST_JSONL;
	if (o->format && !list_format_parse(o->format, &o->list.format))
		return err_set(e, ERR_USAGE, "--format %s: want table, tsv, csv, json or jsonl", o->format);
	return with_catalog(o, e, read_list);
}

/* Names a cohort by its key, or by a run in it. */
static int read_cohort(struct catalog *c, struct options *o)
{
	struct digest key;
	struct err held = {0}, *outer = c->err;
	struct run_row row;
	uint32_t run;
	c->err = c->t.err = &held;
	bool by_key = cohort_find(c, o->names[0], &key) == 0;
	c->err = c->t.err = outer;
	if (!by_key) {
		const struct catalog_case *of;
		if (catalog_find_one(c, o->names[0], &run) || catalog_run(c, run, &row) || !(of = catalog_case(c, row.case_id)))
			return -1;
		key = of->cohort;
	}
	struct screen on = screen_of(stdout, o->ascii);
	return list_cohort(c, &key, o->json, &on);
}

int verb_cohort(struct options *o, struct err *e)
{
	return with_catalog(o, e, read_cohort);
}

static int read_compare(struct catalog *c, struct options *o)
{
	struct screen on = screen_of(stdout, o->ascii);
	uint32_t runs[COMPARE_MAX];
	for (int i = 0; i < o->name_count; i++)
		if (catalog_find_one(c, o->names[i], &runs[i]))
			return -1;
	return compare_runs(c, runs, (size_t)o->name_count, o->json, &on);
}

int verb_compare(struct options *o, struct err *e)
{
	return with_catalog(o, e, read_compare);
}

static int read_log(struct catalog *c, struct options *o)
{
	return o->events ? event_print(c, o->list.limit, o->json, stdout) : journal_log(c, o->list.limit, o->json, stdout);
}

int verb_log(struct options *o, struct err *e)
{
	return with_catalog(o, e, read_log);
}

static int read_history(struct catalog *c, struct options *o)
{
	uint32_t run;
	return catalog_find_one(c, o->names[0], &run) ? -1 : lineage_history(c, run, o->json, stdout);
}

int verb_history(struct options *o, struct err *e)
{
	return with_catalog(o, e, read_history);
}

static int read_flags(struct catalog *c, struct options *o)
{
	struct arena a = {0};
	struct flags flags = {0};
	struct flag_options options = {.config = home_config(&a, o->config, c->err)};
	int rc = options.config ? flag_codes_parse(o->codes, o->code_count, &options.codes, c->err) : -1;
	if (rc == 0)
		rc = flags_derive(c, &options, &flags);
	if (rc == 0)
		rc = flags_print(c, &flags, &o->list.filter, o->list.limit, o->json, stdout);
	flags_fini(&flags);
	arena_fini(&a);
	return rc;
}

int verb_flags(struct options *o, struct err *e)
{
	return with_catalog(o, e, read_flags);
}

static int read_trend(struct catalog *c, struct options *o)
{
	struct arena a = {0};
	struct trend_options options = {home_config(&a, o->config, c->err), o->list.filter, o->text, o->from, o->to, o->json, o->ascii, (unsigned)o->measure};
	if (o->name_count)
		options.filter.kernel = o->names[0];
	int rc = options.config ? trend_print(c, &options, stdout) : -1;
	arena_fini(&a);
	return rc;
}

int verb_trend(struct options *o, struct err *e)
{
	return with_catalog(o, e, read_trend);
}

static int read_report(struct catalog *c, struct options *o)
{
	struct arena a = {0};
	struct report_options options = {home_config(&a, o->config, c->err), o->list.filter.since_ms, o->last, o->list.limit, o->json};
	int rc = options.config ? report_print(c, &options, stdout) : -1;
	arena_fini(&a);
	return rc;
}

int verb_report(struct options *o, struct err *e)
{
	return with_catalog(o, e, read_report);
}

static int read_plan(struct catalog *c, struct options *o)
{
	struct arena a = {0};
	uint32_t *runs = arena_alloc(&a, ((size_t)o->name_count + 1) * sizeof *runs);
	uint64_t count;
	int rc = 0;
	for (int i = 0; i < o->name_count && rc == 0; i++)
		rc = catalog_find_one(c, o->names[i], &runs[i]);
	struct plan_options options = {.config = home_config(&a, o->config, c->err), .filter = &o->list.filter, .runs = o->name_count ? runs : NULL,
				       .run_count = (size_t)o->name_count, .flagged = o->flagged, .by_doubt = o->by_doubt, .limit = o->list.limit,
				       .upstream = o->runner && strcmp(o->runner, "upstream") == 0};
	if (rc == 0 && o->runner && !options.upstream && strcmp(o->runner, "native") != 0)
		rc = err_set(c->err, ERR_USAGE, "--runner is native or upstream, not %s", o->runner);
	if (rc == 0)
		rc = flag_codes_parse(o->codes, o->code_count, &options.flag_codes, c->err);
	if (rc == 0)
		rc = options.config ? rerun_plan(c, &options, &count, stdout) : -1;
	if (rc == 0)
		log_info("%llu jobs", (unsigned long long)count);
	arena_fini(&a);
	return rc;
}

int verb_plan(struct options *o, struct err *e)
{
	return with_catalog(o, e, read_plan);
}

static int read_status(struct catalog *c, struct options *o)
{
	return journal_status(c, o->max_age_hours, o->json, stdout);
}

int verb_status(struct options *o, struct err *e)
{
	return with_catalog(o, e, read_status);
}

static int read_published(struct catalog *c, struct options *o)
{
	return journal_published(c, o->config_digest, stdout);
}

/* A store that does not exist yet has published nothing. */
int verb_published(struct options *o, struct err *e)
{
	int rc = with_catalog(o, e, read_published);
	if (rc && e->code == ERR_NOTFOUND) {
		*e = (struct err){0};
		rc = 0;
	}
	return rc;
}
