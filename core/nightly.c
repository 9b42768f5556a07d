#include "core/nightly.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/file.h"
#include "core/home.h"
#include "core/json.h"
#include "core/log.h"
#include "core/metrics.h"
#include "core/process.h"
#include "core/sandbox.h"
#include "core/when.h"

enum { NAMES_MAX = 40 };

struct options {
	const char *store, *config, *commit, *entry, *replay, *out, *metrics;
	const char *channels[NAMES_MAX], *files[NAMES_MAX];
	int channel_count, file_count;
	bool dry_run, quiet, strict, json, recheck, backfill;
};

enum stage { INGEST, NORMALIZE, PUT, STAGES };
static const char *const programs[STAGES] = {"ki-ingest", "ki-normalize", "ki-store"};

struct night {
	struct options o;
	struct arena arena;
	const char *published_path; /* the list for ki-ingest */
	int codes[STAGES];
	json_t *publications;       /* what the store published, or refused */
	char *export_path;          /* "" when nothing was exported */
	int64_t started_ms, started_ns, publish_ns, export_ns; /* how long the steps took */
	int lock;
};

/* ---- options ---- */

static void usage(FILE *out)
{
	fputs("usage: ki nightly [option…]\n"
	      "       ki nightly --snapshot FILE… --commit SHA|--entry E\n"
	      "       ki nightly --replay DIR\n\n"
	      "Fetches every channel, publishes what is new, exports, and reports; report.json in the store keeps the report. The other\n"
	      "forms replay named files, or a directory of them in publication order, instead of fetching: gates report, but do not refuse.\n\n"
	      "  --channel CHANNEL  only this one; may be given more than once\n"
	      "  --backfill         first take every earlier commit that touched a file, oldest first; goes on where it stopped\n"
	      "  --recheck          ask again for gh-pages entries that are held\n"
	      "  --snapshot FILE    a file to replay; may be given more than once\n"
	      "  --commit SHA       the commit that the file is of\n"
	      "  --entry E          the gh-pages entry that the file is of\n"
	      "  --replay DIR       a directory of files to replay\n"
	      "  --dry-run          print what would be published; change nothing in the catalog\n"
	      "  --out DIR          where dumps go; export/ in the store when not given\n"
	      "  --metrics FILE     write metrics for node_exporter's textfile collector, also when the night fails; FILE ends in .prom\n"
	      "  --quiet            print nothing unless something needs a person\n"
	      "  --json             print the report\n"
	      "  --store DIR        the store; $KI_STORE, else var/store, when not given\n"
	      "  --config DIR       the config; $KI_CONFIG, else the installation's, when not given\n"
	      "  --log-format text|json  of messages on standard error; $KI_LOG_FORMAT, else text, when not given\n"
	      "  --strict           fail when this system cannot confine the stages\n"
	      "  --help             this text\n\n"
	      "A crontab line:  17 3 * * *  ki nightly --quiet --store /var/lib/kernelindex\n",
	      out);
}

enum { OPT_STORE = 256, OPT_CONFIG, OPT_COMMIT, OPT_ENTRY, OPT_REPLAY, OPT_OUT, OPT_CHANNEL, OPT_SNAPSHOT, OPT_DRY_RUN, OPT_QUIET, OPT_JSON,
       OPT_RECHECK, OPT_BACKFILL, OPT_LOG_FORMAT, OPT_STRICT, OPT_METRICS, OPT_HELP };

static const struct option long_options[] = {
	{"store", required_argument, NULL, OPT_STORE},	   {"config", required_argument, NULL, OPT_CONFIG},
	{"commit", required_argument, NULL, OPT_COMMIT},   {"entry", required_argument, NULL, OPT_ENTRY},
	{"replay", required_argument, NULL, OPT_REPLAY},   {"out", required_argument, NULL, OPT_OUT},
	{"channel", required_argument, NULL, OPT_CHANNEL}, {"snapshot", required_argument, NULL, OPT_SNAPSHOT},
	{"dry-run", no_argument, NULL, OPT_DRY_RUN},	   {"quiet", no_argument, NULL, OPT_QUIET},
	{"json", no_argument, NULL, OPT_JSON},		   {"recheck", no_argument, NULL, OPT_RECHECK},
	{"backfill", no_argument, NULL, OPT_BACKFILL},	   {"help", no_argument, NULL, OPT_HELP},
	{"metrics", required_argument, NULL, OPT_METRICS},
	{"strict", no_argument, NULL, OPT_STRICT},
	{"log-format", required_argument, NULL, OPT_LOG_FORMAT},
	{NULL, 0, NULL, 0},
};

static int add_name(const char **names, int *count, const char *name, struct err *e)
{
	if (*count == NAMES_MAX / 2)
		return err_set(e, ERR_USAGE, "more than %d of one option; use --replay DIR", NAMES_MAX / 2);
	names[(*count)++] = name;
	return 0;
}

static int set_option(struct options *o, int code, struct err *e)
{
	switch (code) {
	case OPT_STORE: o->store = optarg; return 0;
	case OPT_CONFIG: o->config = optarg; return 0;
	case OPT_COMMIT: o->commit = optarg; return 0;
	case OPT_ENTRY: o->entry = optarg; return 0;
	case OPT_REPLAY: o->replay = optarg; return 0;
	case OPT_OUT: o->out = optarg; return 0;
	case OPT_DRY_RUN: o->dry_run = true; return 0;
	case OPT_QUIET: o->quiet = true; return 0;
	case OPT_STRICT: o->strict = true; return 0;
	case OPT_JSON: o->json = true; return 0;
	case OPT_RECHECK: o->recheck = true; return 0;
	case OPT_BACKFILL: o->backfill = true; return 0;
	case OPT_CHANNEL: return add_name(o->channels, &o->channel_count, optarg, e);
	case OPT_SNAPSHOT: return add_name(o->files, &o->file_count, optarg, e);
	case OPT_METRICS: o->metrics = optarg; return 0;
	case OPT_LOG_FORMAT: return log_set_format(optarg, e);
	default: return err_set(e, ERR_BUG, "option %d is in the table and not here", code);
	}
}

static int parse(struct options *o, int argc, char **argv, struct err *e)
{
	int code;
	opterr = 0;
	while ((code = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		if (code == OPT_HELP) {
			usage(stdout);
			exit(file_flush_stdout(e) ? log_failure(e) : 0);
		}
		if (code == '?' ? err_option(e, argv, "ki nightly") : set_option(o, code, e))
			return -1;
	}
	if (optind < argc)
		return err_set(e, ERR_USAGE, "%s: not an option; see ki nightly --help", argv[optind]);
	if (o->file_count && !o->commit && !o->entry)
		return err_set(e, ERR_USAGE, "--snapshot wants --commit SHA or --entry E: without it nobody can say later where the file came from");
	o->store = home_store(o->store);
	return 0;
}

static bool is_live(const struct options *o)
{
	return o->file_count == 0 && !o->replay;
}

/* ---- the pipeline ---- */

static const char *in_store(struct night *n, const char *name)
{
	return arena_printf(&n->arena, "%s/%s", n->o.store, name);
}

static void start_command(struct night *n, struct command *c, enum stage stage)
{
	command_add(c, home_program(&n->arena, programs[stage]));
	if (stage != NORMALIZE) {
		command_add(c, "--store");
		command_add(c, n->o.store);
	}
	if (n->o.config) {
		command_add(c, "--config");
		command_add(c, n->o.config);
	}
	if (n->o.strict)
		command_add(c, "--strict");
}

static void add_pair(struct command *c, const char *name, const char *value)
{
	if (!value)
		return;
	command_add(c, name);
	command_add(c, value);
}

/* What the catalog holds under today's tables, for ki-ingest to pass over. */
static int write_published(struct night *n, struct err *e)
{
	struct command digest = {0}, list = {0};
	struct buf config = {0}, text = {0};
	start_command(n, &digest, NORMALIZE);
	command_add(&digest, "--config-digest");
	int code = process_read(&digest, &config, e);
	if (code == 0) {
		config.data[strcspn(config.data, "\n")] = '\0';
		start_command(n, &list, PUT);
		command_add(&list, "published");
		add_pair(&list, "--config-digest", config.data);
		code = process_read(&list, &text, e);
	}
	n->published_path = in_store(n, "published.tsv");
	if (code == 0)
		code = file_write(n->published_path, text.data ? text.data : "", text.len, 0644, e);
	else if (code > 0)
		e->code = (enum err_code)code; /* the stage has said why */
	buf_fini(&config);
	buf_fini(&text);
	return code ? -1 : 0;
}

static void build_commands(struct night *n, struct command c[STAGES])
{
	const struct options *o = &n->o;
	for (int s = 0; s < STAGES; s++)
		start_command(n, &c[s], (enum stage)s);
	add_pair(&c[INGEST], "--published", n->published_path);
	add_pair(&c[INGEST], "--commit", o->commit);
	add_pair(&c[INGEST], "--entry", o->entry);
	add_pair(&c[INGEST], "--replay", o->replay);
	for (int i = 0; i < o->channel_count; i++)
		add_pair(&c[INGEST], "--channel", o->channels[i]);
	for (int i = 0; i < o->file_count; i++)
		add_pair(&c[INGEST], "--file", o->files[i]);
	if (o->recheck)
		command_add(&c[INGEST], "--recheck");
	if (o->backfill)
		command_add(&c[INGEST], "--backfill");
	if (o->dry_run && !is_live(o)) /* named files are read where they are; what is fetched must be kept to be read */
		command_add(&c[INGEST], "--dry-run");
	command_add(&c[INGEST], "--quiet");
	add_pair(&c[NORMALIZE], "--sources", "-");
	command_add(&c[NORMALIZE], "--quiet");
	command_add(&c[PUT], "put");
	command_add(&c[PUT], "--json");
	if (is_live(o))
		command_add(&c[PUT], "--live");
	if (o->dry_run)
		command_add(&c[PUT], "--dry-run");
}

/* Reads the store's lines, one a publication, until it ends. */
static void read_publications(struct night *n, int fd, struct err *e)
{
	FILE *in = fdopen(fd, "r");
	char *line = NULL;
	size_t room = 0;
	ssize_t len;
	while (in && (len = getline(&line, &room, in)) > 0) {
		struct err ignored = {0};
		json_t *p = json_load_text(line, (size_t)len, "ki-store", &ignored);
		if (p)
			json_array_append_new(n->publications, p);
	}
	if (!in || ferror(in))
		err_errno(e, programs[PUT], "cannot read what it says");
	free(line);
	if (in)
		fclose(in);
	else
		close(fd);
}

static int run_pipeline(struct night *n, struct err *e)
{
	struct command c[STAGES] = {0};
	int sources[2], wire[2], lines[2];
	pid_t pids[STAGES];
	build_commands(n, c);
	if (process_pipe(sources, e) || process_pipe(wire, e) || process_pipe(lines, e))
		return -1;
	pids[INGEST] = process_start(&c[INGEST], -1, sources[1], e);
	pids[NORMALIZE] = process_start(&c[NORMALIZE], sources[0], wire[1], e);
	pids[PUT] = process_start(&c[PUT], wire[0], lines[1], e);
	read_publications(n, lines[0], e);
	for (int s = 0; s < STAGES; s++) {
		n->codes[s] = pids[s] < 0 ? ERR_IO : process_wait(pids[s]);
		if (n->codes[s] > 128 && n->codes[s] != 128 + SIGPIPE) /* it could not say so itself */
			log_error("%s: ended by signal %d", programs[s], n->codes[s] - 128);
	}
	return e->code ? -1 : 0;
}

/* The night's exit code: that of the stage that failed first. A stage whose reader went away only echoes the reader. */
static int exit_code(const struct night *n)
{
	for (int s = 0; s < STAGES; s++) {
		bool reader_failed = s + 1 < STAGES && n->codes[s + 1] > 1;
		bool echo = n->codes[s] == 128 + SIGPIPE || (n->codes[s] == ERR_IO && reader_failed);
		if (n->codes[s] > 1 && !(echo && reader_failed))
			return n->codes[s] > 128 ? ERR_BUG : n->codes[s];
	}
	return n->codes[NORMALIZE] == 1 ? ERR_PARTIAL : 0;
}

/* ---- export, report, summary ---- */

static int64_t total(const struct night *n, const char *name)
{
	size_t i;
	json_t *p;
	int64_t sum = 0;
	json_array_foreach(n->publications, i, p)
		if (!json_object_get(p, "refused"))
			sum += json_integer_value(json_object_get(p, name));
	return sum;
}

static const char *export_directory(struct night *n)
{
	return n->o.out ? n->o.out : in_store(n, "export");
}

static int run_export(struct night *n, struct err *e)
{
	struct command c = {0};
	struct buf path = {0};
	const char *catalog = in_store(n, "data.mdb");
	/* A night that was killed between publishing and exporting leaves the dump of another state; an export gives latest.json the time of
	 * the state that it read, so that a clock that is set back hides nothing. */
	bool fresh = file_same_time(arena_printf(&n->arena, "%s/latest.json", export_directory(n)), catalog);
	if (n->o.dry_run || (json_array_size(n->publications) == 0 && fresh) || !file_exists(catalog))
		return 0;
	start_command(n, &c, PUT);
	command_add(&c, "export");
	add_pair(&c, "--out", export_directory(n));
	int code = process_read(&c, &path, e);
	if (code == 0 && path.len) {
		path.data[strcspn(path.data, "\n")] = '\0';
		n->export_path = arena_strdup(&n->arena, path.data);
	} else if (code > 0) {
		e->code = (enum err_code)code;
	}
	buf_fini(&path);
	return code ? -1 : 0;
}

enum { REPORT_MAX = 16 << 20 };

json_t *nightly_report(const char *store, struct err *e)
{
	struct buf text = {0}, path = {0};
	json_t *report = NULL;
	buf_printf(&path, "%s/report.json", store);
	if (file_exists(path.data) && file_read(path.data, REPORT_MAX, &text, e) == 0)
		report = json_load_text(text.data, text.len, path.data, e);
	buf_fini(&path);
	buf_fini(&text);
	return report;
}

/* A time that holds until the next one: tonight when `now`, else what the report before says. */
static void set_time(json_t *report, const char *name, bool now, const char *started, const json_t *before)
{
	json_object_set_new(report, name, now ? json_string(started) : json_incref(json_object_get(before, name)));
}

static json_t *report_json(struct night *n, int code)
{
	char started[WHEN_TEXT + 1];
	struct err unread = {0};
	json_t *stages = json_object();
	when_text(n->started_ms, started);
	for (int s = 0; s < STAGES; s++)
		json_object_set_new(stages, programs[s], json_integer(n->codes[s]));
	json_t *r = json_pack("{s:s, s:I, s:i, s:b, s:b, s:s, s:o, s:O, s:{s:I, s:I, s:I}}", "startedAt", started, "durationMs",
			      (json_int_t)((when_monotonic_ns() - n->started_ns) / 1000000), "exitCode", code, "dryRun", n->o.dry_run, "live",
			      is_live(&n->o), "store", n->o.store, "stages", stages, "publications", n->publications, "totals", "newRuns",
			      (json_int_t)total(n, "newRuns"), "carried", (json_int_t)total(n, "carried"), "conflicts", (json_int_t)total(n, "conflicts"));
	json_t *before = nightly_report(n->o.store, &unread);
	if (unread.code)
		log_failure(&unread); /* the times that it held are lost, which is no reason to lose tonight's too */
	set_time(r, "upstreamSeenAt", is_live(&n->o) && code <= ERR_PARTIAL, started, before);
	set_time(r, "lastSuccessAt", code <= ERR_PARTIAL, started, before);
	json_decref(before);
	json_object_set_new(r, "stepsMs", json_pack("{s:I, s:I}", "publish", (json_int_t)(n->publish_ns / 1000000), "export", (json_int_t)(n->export_ns / 1000000)));
	if (n->export_path)
		json_object_set_new(r, "export", json_string(n->export_path));
	return r;
}

static int keep_report(struct night *n, const json_t *report, struct err *e)
{
	struct buf text = {0};
	int rc = json_canonical(report, &text, e);
	buf_char(&text, '\n');
	if (rc == 0 && !n->o.dry_run)
		rc = file_write(in_store(n, "report.json"), text.data, text.len, 0644, e);
	if (rc == 0 && n->o.json)
		fwrite(text.data, 1, text.len, stdout);
	buf_fini(&text);
	return rc;
}

static int64_t rows_of(const json_t *p, const char *name)
{
	const char *reason;
	json_t *value, *report = json_object_get(p, "report");
	int64_t sum = json_integer_value(json_object_get(report, name));
	json_object_foreach(json_object_get(report, name), reason, value)
		sum += json_integer_value(value);
	return sum;
}

/* What is odd about a publication, in words: "" when nothing is. */
static const char *oddity(const json_t *p, struct arena *a)
{
	const json_t *copy = json_object_get(p, "copyOf");
	const char *gate = json_string_value(json_array_get(json_object_get(p, "gatesCrossed"), 0));
	if (copy)
		return arena_printf(a, "; byte copy of %s %.12s, which adds nothing", json_text_of(copy, "channel"), json_text_of(copy, "commit"));
	if (gate)
		return arena_printf(a, "; a live fetch would be refused: %s", gate);
	return json_object_get(p, "changes") ? "; upstream has changed it since it was first published" : "";
}

/* One line for the night. */
static void print_summary(struct night *n)
{
	size_t count = json_array_size(n->publications);
	const json_t *p = count ? json_array_get(n->publications, count - 1) : NULL;
	const char *entry = json_text_of(p, "entry"), *would = n->o.dry_run ? "would publish " : "";
	if (count == 0)
		printf("ki nightly: nothing new");
	else if (count == 1)
		printf("ki nightly: %s%s %.12s: %lld rows, %lld runs, %lld new, %lld rejected, %lld conflicts%s", would, json_text_of(p, "channel"),
		       *entry ? entry : json_text_of(p, "commit"), (long long)rows_of(p, "rows"), json_whole_of(p, "carried"),
		       json_whole_of(p, "newRuns"), (long long)rows_of(p, "rejectedTotal"), json_whole_of(p, "conflicts"), oddity(p, &n->arena));
	else
		printf("ki nightly: %s%zu publications: %lld runs carried, %lld new, %lld conflicts", would, count, (long long)total(n, "carried"),
		       (long long)total(n, "newRuns"), (long long)total(n, "conflicts"));
	printf("%s%s\n", n->export_path ? "; " : "", n->export_path ? n->export_path : "");
}

static int publish(struct night *n, struct err *e)
{
	int rc = write_published(n, e) || run_pipeline(n, e) ? -1 : 0;
	n->publish_ns = when_monotonic_ns() - n->started_ns;
	return rc;
}

static int night(struct night *n, struct err *e)
{
	if (file_make_dirs(n->o.store, e))
		return -1;
	n->lock = file_lock(in_store(n, "nightly.lock"), e);
	if (!n->o.strict)
		sandbox_probe();
	if (n->lock < 0)
		return -1;
	file_sweep(in_store(n, "published.tsv"));
	file_sweep(in_store(n, "report.json"));
	if (publish(n, e))
		return -1;
	int stages = exit_code(n);
	bool exported = run_export(n, e) == 0; /* what was published is reported all the same */
	n->export_ns = when_monotonic_ns() - n->started_ns - n->publish_ns;
	if (!exported && stages > ERR_PARTIAL)
		*e = (struct err){.code = (enum err_code)stages}; /* what failed first counts, and has been told */
	int code = exported ? stages : (int)e->code;
	json_t *report = report_json(n, code);
	int rc = keep_report(n, report, e);
	json_decref(report);
	if (rc || !exported)
		return -1;
	if (!n->o.quiet && !n->o.json && code <= ERR_PARTIAL)
		print_summary(n);
	if (code == ERR_PARTIAL)
		return err_set(e, ERR_PARTIAL, "some rows were malformed: see rejects in %s", in_store(n, "report.json"));
	e->code = (enum err_code)code; /* the stage has said why */
	return code ? -1 : file_flush_stdout(e);
}

/* Also after a night that failed, but not when another one holds the lock: that one will write them. */
static void write_metrics(struct night *n, int code)
{
	struct command status = {0}, flags = {0};
	struct buf text = {0};
	struct err e = {0}, unsaid = {0};
	json_t *report = nightly_report(n->o.store, &unsaid);
	start_command(n, &status, PUT);
	command_add(&status, "status");
	command_add(&status, "--json");
	start_command(n, &flags, PUT);
	command_add(&flags, "flags");
	command_add(&flags, "--json");
	metrics_text(&(struct metrics_night){n->started_ms, when_monotonic_ns() - n->started_ns, code, report, &status, &flags}, &text, &unsaid);
	if (unsaid.code)
		log_failure(&unsaid);
	file_sweep(n->o.metrics);
	if (file_write(n->o.metrics, text.data, text.len, 0644, &e))
		log_failure(&e); /* a night does not fail for its metrics: who watches them sees that they are old */
	json_decref(report);
	buf_fini(&text);
}

int nightly_main(int argc, char **argv, struct err *e)
{
	struct night n = {.publications = json_array(), .started_ms = when_now_ms(), .started_ns = when_monotonic_ns(), .lock = -1};
	log_init("ki nightly", false);
	int parsed = parse(&n.o, argc, argv, e);
	log_init("ki nightly", false); /* again, for --log-format */
	if (parsed == 0)
		night(&n, e);
	if (n.lock >= 0 && n.o.metrics && !n.o.dry_run)
		write_metrics(&n, (int)e->code);
	if (n.lock >= 0)
		close(n.lock);
	json_decref(n.publications);
	arena_fini(&n.arena);
	return e->code ? -1 : 0;
}
