/* ki-store: publishes records into the catalog and answers questions about it. */
#include <getopt.h>
#include <lmdb.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "core/file.h"
#include "core/home.h"
#include "core/json.h"
#include "core/log.h"
#include "core/memory.h"
#include "core/sandbox.h"
#include "core/when.h"
#include "store/compare.h"
#include "store/dump.h"
#include "store/event.h"
#include "store/export.h"
#include "store/flag.h"
#include "store/help.h"
#include "store/journal.h"
#include "store/lineage.h"
#include "store/list.h"
#include "store/options.h"
#include "store/put.h"
#include "store/rerun.h"
#include "store/report.h"
#include "store/show.h"
#include "store/site.h"
#include "store/trend.h"

struct verb {
	const char *name, *operands, *help;
	const char *options; /* names of those it takes beside --store, --config, --json and --quiet */
	int least, most; /* operands; most -1: any number */
	int (*run)(struct options *o, struct err *e);
};

/* ---- verbs ---- */

static int verb_put(struct options *o, struct err *e)
{
	struct store st;
	struct gates gates;
	struct arena a = {0};
	struct put_totals totals = {0};
	struct put_options options = {.gates = &gates, .refuse = o->live, .dry_run = o->dry_run, .out = o->json ? stdout : NULL};
	const char *config = home_config(&a, o->config, e);
	if (!config || gates_load(config, &gates, e)) {
		arena_fini(&a);
		return -1;
	}
	int rc = store_open(&st, o->store, o->dry_run ? STORE_TRY : STORE_WRITE, e);
	if (rc == 0)
		rc = put_stream(&st, STDIN_FILENO, &options, &totals, e);
	store_close(&st);
	arena_fini(&a);
	if (!o->json && (rc == 0 || totals.files))
		log_info("%s%llu new runs in %u publications (%llu rows bound, %u files known, %u byte copies, %llu conflicts)",
			 o->dry_run ? "would publish " : "", (unsigned long long)totals.runs_new, totals.published, (unsigned long long)totals.runs_read,
			 totals.known, totals.copies, (unsigned long long)totals.conflicts);
	return rc;
}

/* Runs `read` on the opened catalog. */
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

static int verb_show(struct options *o, struct err *e)
{
	return with_catalog(o, e, read_show);
}

static int read_list(struct catalog *c, struct options *o)
{
	return list_runs(c, &o->list, stdout);
}

static int verb_list(struct options *o, struct err *e)
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

static int verb_cohort(struct options *o, struct err *e)
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

static int verb_compare(struct options *o, struct err *e)
{
	return with_catalog(o, e, read_compare);
}

static int read_log(struct catalog *c, struct options *o)
{
	return o->events ? event_print(c, o->list.limit, o->json, stdout) : journal_log(c, o->list.limit, o->json, stdout);
}

static int verb_log(struct options *o, struct err *e)
{
	return with_catalog(o, e, read_log);
}

static int read_history(struct catalog *c, struct options *o)
{
	uint32_t run;
	return catalog_find_one(c, o->names[0], &run) ? -1 : lineage_history(c, run, o->json, stdout);
}

static int verb_history(struct options *o, struct err *e)
{
	return with_catalog(o, e, read_history);
}

/* The flag codes given, as a bit set. */
static int flag_codes(const struct options *o, unsigned *out, struct err *e)
{
	*out = 0;
	for (int i = 0; i < o->code_count; i++) {
		enum flag_code code;
		if (!flag_parse(o->codes[i], &code)) {
			struct buf names = {0};
			for (int n = 0; n < FLAG_CODES; n++)
				buf_printf(&names, "%s%s", n ? ", " : "", flag_name((enum flag_code)n));
			err_set(e, ERR_USAGE, "--code %s: want one of %s", o->codes[i], names.data);
			buf_fini(&names);
			return -1;
		}
		*out |= 1u << code;
	}
	return 0;
}

static int read_flags(struct catalog *c, struct options *o)
{
	struct arena a = {0};
	struct flags flags = {0};
	struct flag_options options = {.config = home_config(&a, o->config, c->err)};
	int rc = options.config ? flag_codes(o, &options.codes, c->err) : -1;
	if (rc == 0)
		rc = flags_derive(c, &options, &flags);
	if (rc == 0)
		rc = flags_print(c, &flags, &o->list.filter, o->list.limit, o->json, stdout);
	flags_fini(&flags);
	arena_fini(&a);
	return rc;
}

static int verb_flags(struct options *o, struct err *e)
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

static int verb_trend(struct options *o, struct err *e)
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

static int verb_report(struct options *o, struct err *e)
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
		rc = flag_codes(o, &options.flag_codes, c->err);
	if (rc == 0)
		rc = options.config ? rerun_plan(c, &options, &count, stdout) : -1;
	if (rc == 0)
		log_info("%llu jobs", (unsigned long long)count);
	arena_fini(&a);
	return rc;
}

static int verb_plan(struct options *o, struct err *e)
{
	return with_catalog(o, e, read_plan);
}

static int verb_import(struct options *o, struct err *e)
{
	struct store st;
	struct arena a = {0};
	struct import_totals t = {0};
	const char *config = home_config(&a, o->config, e);
	int rc = config ? store_open(&st, o->store, STORE_WRITE, e) : -1;
	if (rc == 0)
		rc = rerun_import(&st, config, o->names[0], &t, stderr, e);
	if (config)
		store_close(&st);
	arena_fini(&a);
	log_info("%u statements: %u accepted, %u known, %u refused; %u reruns published, %u files kept", t.statements, t.accepted, t.known, t.refused,
		 t.published, t.artifacts);
	return rc;
}

static int read_status(struct catalog *c, struct options *o)
{
	return journal_status(c, o->max_age_hours, o->json, stdout);
}

static int verb_status(struct options *o, struct err *e)
{
	return with_catalog(o, e, read_status);
}

static int read_published(struct catalog *c, struct options *o)
{
	return journal_published(c, o->config_digest, stdout);
}

/* A store that does not exist yet has published nothing. */
static int verb_published(struct options *o, struct err *e)
{
	int rc = with_catalog(o, e, read_published);
	if (rc && e->code == ERR_NOTFOUND) {
		*e = (struct err){0};
		rc = 0;
	}
	return rc;
}

/* Some formats are the whole catalog, always. */
static int refuse_filter(const struct options *o, struct err *e)
{
	const struct filter *f = &o->list.filter;
	if (f->kernel || f->gpu || f->mode || f->provider || f->dtype || f->since_ms || f->memory || !f->latency || o->list.columns)
		return err_set(e, ERR_USAGE, "--format %s takes no filter and no --columns", o->format);
	return 0;
}

static int write_dump(struct catalog *c, struct options *o)
{
	return refuse_filter(o, c->err) ? -1 : dump_write(c, stdout);
}

/* Where an export goes; NULL for standard output. */
static const char *export_directory(const struct options *o)
{
	bool site = o->format && strcmp(o->format, "site") == 0;
	if (o->format && !site)
		return NULL;
	return o->out ? o->out : site ? "var/site" : "var/export";
}

static int write_site(struct catalog *c, struct options *o)
{
	if (refuse_filter(o, c->err))
		return -1;
	struct arena a = {0};
	struct site_totals t = {0};
	const char *config = home_config(&a, o->config, c->err);
	int rc = config ? site_export(c, config, export_directory(o), &t) : -1;
	if (rc == 0 && o->json)
		printf("{\"files\":%llu,\"pages\":%llu,\"sizeBytes\":%llu,\"unchanged\":%llu,\"written\":%llu}\n", (unsigned long long)t.files,
		       (unsigned long long)t.pages, (unsigned long long)t.size_bytes, (unsigned long long)t.unchanged, (unsigned long long)t.written);
	else if (rc == 0 && !o->quiet)
		printf("%s: %llu pages in %llu files of %llu bytes; %llu written, %llu unchanged\n", export_directory(o), (unsigned long long)t.pages,
		       (unsigned long long)t.files, (unsigned long long)t.size_bytes, (unsigned long long)t.written, (unsigned long long)t.unchanged);
	arena_fini(&a);
	return rc;
}

static int read_export(struct catalog *c, struct options *o)
{
	char *path = NULL;
	if (!o->format) {
		int rc = export_files(c, &o->list.filter, export_directory(o), &path);
		if (rc == 0 && !o->quiet)
			printf("%s\n", path);
		free(path);
		return rc;
	}
	if (strcmp(o->format, "site") == 0)
		return write_site(c, o);
	if (strcmp(o->format, "store") == 0)
		return write_dump(c, o);
	if (strcmp(o->format, "jsonl") == 0)
		return export_jsonl(c, &o->list.filter, stdout);
	if (strcmp(o->format, "json") == 0)
		return export_json(c, &o->list.filter, stdout);
	if (strcmp(o->format, "csv") != 0)
		return err_set(c->err, ERR_USAGE, "--format %s: want json, jsonl, csv, store or site", o->format);
	o->list.format = LIST_CSV;
	o->list.sort = SORT_DIGEST;
	if (!o->list.columns)
		o->list.columns = "external_id,digest,comparison_key,kernel,mode,provider,gpu,dtype,workload_label,metric,median_ns,p20_ns,p80_ns,"
				  "median_bytes,rank,cohort_size,tied,unranked,evidence,observed_at,liger_version,upstream_commit,caveats";
	return list_runs(c, &o->list, stdout);
}

static int verb_export(struct options *o, struct err *e)
{
	return with_catalog(o, e, read_export);
}

#define FILTERS "kernel gpu mode provider dtype since metric"

static const struct verb verbs[] = {
	{"put", "", "publish the wire stream on standard input", "live dry-run", 0, 0, verb_put},
	{"show", "RUN", "one run with all that is known of it, or any object by its digest", "ascii", 1, 1, verb_show},
	{"list", "", "runs, by filter", FILTERS " format columns sort limit withdrawn", 0, 0, verb_list},
	{"cohort", "KEY|RUN", "a comparison group, best first", "ascii", 1, 1, verb_cohort},
	{"compare", "RUN RUN…", "2 to 8 runs side by side", "ascii", 2, COMPARE_MAX, verb_compare},
	{"log", "", "publications, newest first", "events limit", 0, 0, verb_log},
	{"history", "RUN", "publications that carried a run, its predecessor and successor", "", 1, 1, verb_history},
	{"flags", "", "numbers that deserve doubt, and why", FILTERS " code limit", 0, 0, verb_flags},
	{"flag", "RUN", "flag a run by hand, or clear that", "reason clear", 1, 1, verb_flag},
	{"retract", "[RUN]", "take a run out of its ranking: --reason TEXT [--code CODE] --key FILE, or --undo ENTRY --key FILE", "reason code undo key", 0, 1, verb_retract},
	{"note", "[RUN]", "a signed note on a run: --text TEXT --key FILE, or --undo ENTRY --key FILE", "text undo key", 0, 1, verb_note},
	{"trend", "[KERNEL]", "latencies over drops and versions, with change points", FILTERS " case channel from to ascii measure", 0, 1, verb_trend},
	{"report", "", "what is new, slower, faster, in doubt: of the last day, or --last, or --since DATE", "since last limit", 0, 0, verb_report},
	{"plan", "[RUN…]", "job lines for ki-verify: the runs named, --flagged, or by filter", FILTERS " flagged by-doubt code limit runner", 0, -1, verb_plan},
	{"import", "DIRECTORY", "take signed evidence of ki-verify: publish reruns, link them to their subjects", "", 1, 1, verb_import},
	{"status", "", "counts, sizes, ages", "max-age", 0, 0, verb_status},
	{"check", "", "recompute every digest, resolve every reference, compare every index", "", 0, 0, verb_check},
	{"export", "", "a dump, a table on standard output, or a site of pages", FILTERS " out format columns", 0, 0, verb_export},
	{"backup", "DIRECTORY", "a consistent copy, also while others write", "", 1, 1, verb_backup},
	{"rehearse", "DIRECTORY", "prove that a backup can be restored: check it, dump it, compare with its claims", "", 1, 1, verb_rehearse},
	{"load", "DUMP|-", "make a new store, --store DIR, from `export --format store`, packed with zstd or not", "", 1, 1, verb_load},
	{"upgrade", "", "bring a store of an older program to this one's schema, as the first writer does", "", 0, 0, verb_upgrade},
	{"published", "", "what ki-ingest need not send again", "config-digest", 0, 0, verb_published},
};

/* ---- options ---- */

static void usage(FILE *out)
{
	fputs("usage: ki-store [--store DIR] VERB [option…] [operand…]\n\n", out);
	for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
		fprintf(out, "  %-9s %-9s  %s\n", verbs[i].name, verbs[i].operands, verbs[i].help);
	fputs("\n`ki-store VERB --help` lists what a verb takes.\n"
	      "RUN is a digest or 8 or more of its hex digits, an external id, or a name; ENTRY is 8 or more hex digits of an entry's id.\n\n"
	      "exit: 0 done, 64 usage, 65 refused, 66 not found, 74 I/O, 75 try later or stale, 77 not permitted, 78 config, 80 damaged\n",
	      out);
}

static void version(void)
{
	printf("ki-store %s (%s, jansson %s, zstd %s)\n", KI_VERSION, mdb_version(NULL, NULL, NULL), jansson_version_str(), ZSTD_versionString());
}

enum { OPT_STORE = 256, OPT_CONFIG, OPT_OUT, OPT_FORMAT, OPT_COLUMNS, OPT_SORT, OPT_LIMIT, OPT_KERNEL, OPT_GPU, OPT_MODE, OPT_PROVIDER, OPT_DTYPE,
       OPT_SINCE, OPT_METRIC, OPT_JSON, OPT_LIVE, OPT_DRY_RUN, OPT_QUIET, OPT_MAX_AGE, OPT_CONFIG_DIGEST, OPT_EVENTS,
       OPT_REASON, OPT_CLEAR, OPT_CODE, OPT_WITHDRAWN, OPT_FLAGGED, OPT_BY_DOUBT, OPT_RUNNER, OPT_CASE, OPT_FROM, OPT_TO,
       OPT_ASCII, OPT_LAST, OPT_MEASURE, OPT_CHANNEL, OPT_TEXT, OPT_KEY, OPT_UNDO, OPT_LOG_FORMAT, OPT_STRICT, OPT_HELP, OPT_VERSION };

static const struct option long_options[] = {
	{"store", required_argument, NULL, OPT_STORE},	   {"config", required_argument, NULL, OPT_CONFIG},
	{"out", required_argument, NULL, OPT_OUT},	   {"format", required_argument, NULL, OPT_FORMAT},
	{"columns", required_argument, NULL, OPT_COLUMNS}, {"sort", required_argument, NULL, OPT_SORT},
	{"limit", required_argument, NULL, OPT_LIMIT},	   {"kernel", required_argument, NULL, OPT_KERNEL},
	{"gpu", required_argument, NULL, OPT_GPU},	   {"mode", required_argument, NULL, OPT_MODE},
	{"provider", required_argument, NULL, OPT_PROVIDER}, {"dtype", required_argument, NULL, OPT_DTYPE},
	{"since", required_argument, NULL, OPT_SINCE},	   {"metric", required_argument, NULL, OPT_METRIC},
	{"json", no_argument, NULL, OPT_JSON},		   {"live", no_argument, NULL, OPT_LIVE},
	{"dry-run", no_argument, NULL, OPT_DRY_RUN},	   {"quiet", no_argument, NULL, OPT_QUIET},
	{"max-age", required_argument, NULL, OPT_MAX_AGE}, {"config-digest", required_argument, NULL, OPT_CONFIG_DIGEST},
	{"events", no_argument, NULL, OPT_EVENTS},	   {"reason", required_argument, NULL, OPT_REASON},
	{"clear", no_argument, NULL, OPT_CLEAR},	   {"code", required_argument, NULL, OPT_CODE},
	{"flagged", no_argument, NULL, OPT_FLAGGED},
	{"by-doubt", no_argument, NULL, OPT_BY_DOUBT},	   {"runner", required_argument, NULL, OPT_RUNNER},
	{"withdrawn", no_argument, NULL, OPT_WITHDRAWN},   {"case", required_argument, NULL, OPT_CASE},
	{"from", required_argument, NULL, OPT_FROM},	   {"to", required_argument, NULL, OPT_TO},
	{"ascii", no_argument, NULL, OPT_ASCII},	   {"last", no_argument, NULL, OPT_LAST},
	{"measure", required_argument, NULL, OPT_MEASURE}, {"channel", required_argument, NULL, OPT_CHANNEL},
	{"text", required_argument, NULL, OPT_TEXT},	   {"key", required_argument, NULL, OPT_KEY},
	{"undo", required_argument, NULL, OPT_UNDO},
	{"log-format", required_argument, NULL, OPT_LOG_FORMAT},
	{"strict", no_argument, NULL, OPT_STRICT},
	{"help", no_argument, NULL, OPT_HELP},		   {"version", no_argument, NULL, OPT_VERSION},
	{NULL, 0, NULL, 0},
};

static int set_since(struct options *o, const char *text, struct err *e)
{
	struct buf full = {0};
	buf_str(&full, text);
	if (strlen(text) == 10)
		buf_str(&full, " 00:00:00");
	bool ok = when_parse(full.data, full.len, &o->list.filter.since_ms);
	buf_fini(&full);
	return ok ? 0 : err_set(e, ERR_USAGE, "--since %s: want YYYY-MM-DD, or YYYY-MM-DDThh:mm:ssZ", text);
}

static int set_metric(struct options *o, const char *text, struct err *e)
{
	bool all = strcmp(text, "all") == 0;
	o->list.filter.latency = !all && strcmp(text, "latency") == 0;
	o->list.filter.memory = !all && strcmp(text, "memory") == 0;
	if (all || o->list.filter.latency || o->list.filter.memory)
		return 0;
	return err_set(e, ERR_USAGE, "--metric %s: want latency, memory or all", text);
}

static int add_code(struct options *o, const char *text, struct err *e)
{
	if (o->code_count == FLAG_CODES)
		return err_set(e, ERR_USAGE, "--code: given more often than there are codes");
	o->codes[o->code_count++] = text;
	return 0;
}

static int set_number(double *out, const char *name, const char *text, struct err *e)
{
	char *end;
	*out = strtod(text, &end);
	return *text && !*end && *out >= 0 && *out < 1e15 ? 0 : err_set(e, ERR_USAGE, "%s %s: want a number of at least 0", name, text);
}

static int set_option(struct options *o, int code, const char *value, struct err *e)
{
	double number;
	switch (code) {
	case OPT_STORE: o->store = value; return 0;
	case OPT_CONFIG: o->config = value; return 0;
	case OPT_OUT: o->out = value; return 0;
	case OPT_FORMAT: o->format = value; return 0;
	case OPT_COLUMNS: o->list.columns = value; return 0;
	case OPT_KERNEL: o->list.filter.kernel = value; return 0;
	case OPT_GPU: o->list.filter.gpu = value; return 0;
	case OPT_MODE: o->list.filter.mode = value; return 0;
	case OPT_PROVIDER: o->list.filter.provider = value; return 0;
	case OPT_DTYPE: o->list.filter.dtype = value; return 0;
	case OPT_SINCE: return set_since(o, value, e);
	case OPT_METRIC: return set_metric(o, value, e);
	case OPT_JSON: o->json = true; return 0;
	case OPT_LIVE: o->live = true; return 0;
	case OPT_DRY_RUN: o->dry_run = true; return 0;
	case OPT_QUIET: o->quiet = true; return 0;
	case OPT_STRICT: o->strict = true; return 0;
	case OPT_CONFIG_DIGEST: o->config_digest = value; return 0;
	case OPT_EVENTS: o->events = true; return 0;
	case OPT_REASON: o->reason = value; return 0;
	case OPT_CLEAR: o->clear = true; return 0;
	case OPT_CODE: return add_code(o, value, e);
	case OPT_TEXT: o->text = value; return 0;
	case OPT_KEY: o->key = value; return 0;
	case OPT_UNDO: o->undo = value; return 0;
	case OPT_FLAGGED: o->flagged = true; return 0;
	case OPT_BY_DOUBT: o->by_doubt = true; return 0;
	case OPT_RUNNER: o->runner = optarg; return 0;
	case OPT_WITHDRAWN: o->list.withdrawn = true; return 0;
	case OPT_CASE: o->text = value; return 0;
	case OPT_FROM: o->from = value; return 0;
	case OPT_TO: o->to = value; return 0;
	case OPT_ASCII: o->ascii = true; return 0;
	case OPT_LAST: o->last = true; return 0;
	case OPT_MEASURE: return set_number(&o->measure, "--measure", value, e);
	case OPT_CHANNEL: o->list.filter.channel = value; return 0;
	case OPT_MAX_AGE: return set_number(&o->max_age_hours, "--max-age", value, e);
	case OPT_LOG_FORMAT: return log_set_format(value, e);
	case OPT_HELP: o->help = true; return 0;
	case OPT_VERSION: o->version = true; return 0;
	case OPT_SORT:
		return sort_parse(value, &o->list.sort) ? 0 : err_set(e, ERR_USAGE, "--sort %s: want store, time, version, rank, id or digest", value);
	case OPT_LIMIT:
		if (set_number(&number, "--limit", value, e))
			return -1;
		o->list.limit = (uint64_t)number;
		return 0;
	default: return err_set(e, ERR_BUG, "option %d is in the table and not here", code);
	}
}

/* An option that a verb would not look at is refused, for its answer would be another than was asked for. */
static int check_options(const struct verb *v, const bool *given, struct err *e)
{
	struct buf words = {0}, word = {0};
	int rc = 0;
	buf_printf(&words, " store config json quiet log-format strict %s ", v->options);
	for (size_t i = 0; long_options[i].name && rc == 0; i++) {
		buf_clear(&word);
		buf_printf(&word, " %s ", long_options[i].name);
		if (given[i] && !strstr(words.data, word.data))
			rc = err_set(e, ERR_USAGE, "%s takes no --%s; see ki-store --help", v->name, long_options[i].name);
	}
	buf_fini(&words);
	buf_fini(&word);
	return rc;
}

/* A verb as it was asked for: its operands and options are ones that it takes. */
static bool fits(const struct verb *v, const struct options *o, const bool *given, struct err *e)
{
	if (o->name_count < v->least || (v->most >= 0 && o->name_count > v->most))
		return err_set(e, ERR_USAGE, "usage: ki-store %s %s", v->name, v->operands) == 0;
	return check_options(v, given, e) == 0;
}

static const struct verb *parse(struct options *o, int argc, char **argv, struct err *e)
{
	int code, at;
	bool given[sizeof long_options / sizeof *long_options] = {false};
	o->list.filter.latency = true;
	opterr = 0;
	while ((code = getopt_long(argc, argv, "", long_options, &at)) != -1) {
		if (code == '?')
			err_option(e, argv, "ki-store");
		if (code == '?' || set_option(o, code, optarg, e))
			return NULL;
		given[at] = true;
	}
	const char *name = optind < argc ? argv[optind++] : "";
	o->names = argv + optind;
	o->name_count = argc - optind;
	o->store = home_store(o->store);
	for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
		if (strcmp(verbs[i].name, name) == 0)
			return o->help || o->version || fits(&verbs[i], o, given, e) ? &verbs[i] : NULL;
	if (*name || (!o->help && !o->version))
		err_set(e, ERR_USAGE, "%s%s; see ki-store --help", *name ? "no verb " : "a verb is missing", name);
	return NULL;
}

/* No network, and writing under the store and where this verb's output goes. Readers write there too: LMDB's table of readers. */
static int give_up_rights(const struct verb *v, const struct options *o, struct err *e)
{
	const char *writes[3] = {o->store}; /* ends in NULL */
	if (v->run == verb_export)
		writes[1] = export_directory(o);
	else if (v->run == verb_backup || v->run == verb_rehearse)
		writes[1] = o->names[0];
	return sandbox_enter(&(struct sandbox){SANDBOX_STORE, NULL, writes, o->strict}, e);
}

int main(int argc, char **argv)
{
	struct options o = {0};
	struct err e = {0}, flush = {0};
	setlocale(LC_CTYPE, ""); /* for the character set of what people read alone */
	file_hold_streams();
	memory_hold();
	umask(022); /* modes of files are ours to say */
	const struct verb *verb = parse(&o, argc, argv, &e);
	log_init("ki-store", o.quiet);
	if (o.version)
		version();
	else if (o.help && verb)
		help_verb(verb->name, verb->operands, verb->help, verb->options, stdout, &e);
	else if (o.help && !e.code)
		usage(stdout);
	else if (verb && give_up_rights(verb, &o, &e) == 0)
		verb->run(&o, &e);
	if (file_flush_stdout(&flush) && !e.code)
		e = flush;
	return e.code ? log_failure(&e) : 0;
}
