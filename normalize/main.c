/* ki-normalize: upstream's benchmark tables to records on the wire (normalize/record.h). No network, no store. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <csv.h>
#include <openssl/crypto.h>

#include "core/file.h"
#include "core/home.h"
#include "core/log.h"
#include "core/memory.h"
#include "core/sandbox.h"
#include "normalize/canon.h"
#include "normalize/explain.h"
#include "normalize/source.h"
#include "normalize/tables.h"

static const char usage[] =
	"usage: ki-normalize [--channel C] [--commit SHA] [--entry E] [--config DIR] FILE...\n"
	"       ki-normalize --sources -          source lines of ki-ingest on standard input\n"
	"       ki-normalize --list [--metric latency|memory|all] ... FILE...\n"
	"       ki-normalize --report ... FILE...\n"
	"       ki-normalize --canonical | --digest [FILE]...\n"
	"       ki-normalize --check-config [--config DIR]\n"
	"       ki-normalize --explain FILE|-|ROW\n"
	"\n"
	"Reads benchmark tables and prints records, one canonical JSON object a line: for each file a snapshot line, what its runs\n"
	"cite, the runs, a report line.\n"
	"\n"
	"  --channel C     committed (default), cutile, cutedsl or gh-pages (default with --entry)\n"
	"  --commit SHA    the commit of the file, 12 to 40 hex digits\n"
	"  --entry E       the gh-pages entry of the file\n"
	"  --sources -     source lines of ki-ingest on standard input, instead of files\n"
	"  --config DIR    where bindings.json, providers.json, hardware.json and entries.json are\n"
	"  --list          instead of records: external id, run digest and comparison key, tab-separated, a line a run\n"
	"  --metric M      which runs a list shows (default latency)\n"
	"  --report        instead of records: the report of each file as JSON\n"
	"  --rejects       tell on standard error what was skipped and rejected, also with --sources\n"
	"  --quiet         do not tell\n"
	"  --canonical     RFC 8785 text of each JSON document, one a line\n"
	"  --digest        SHA-256 of that text\n"
	"  --config-digest print the digest of the tables that decide how rows bind\n"
	"  --check-config  check the config directory and count what it holds\n"
	"  --explain X     which rule binds each row of a table, or one row in the standard column order, and why others do not\n"
	"  --log-format text|json  of messages on standard error; $KI_LOG_FORMAT, else text, when not given\n"
	"  --strict        fail when this system cannot confine the program\n"
	"  --help          this text\n"
	"  --version       versions of the program and its libraries\n"
	"\n"
	"Exit status: 0 done, 1 some rows were malformed, 64 usage, 65 a file was refused, 66 no such file, 74 input or output\n"
	"failed, 77 not permitted, 78 config.\n";

enum action { ACTION_CONVERT, ACTION_REPORT, ACTION_CANONICAL, ACTION_DIGEST, ACTION_CONFIG_DIGEST, ACTION_CHECK, ACTION_EXPLAIN, ACTION_HELP,
	      ACTION_VERSION };

struct options {
	enum action action;
	const char *channel, *commit, *entry, *config, *sources, *explain;
	bool list, rejects, quiet, strict, metrics[METRICS], metric_given;
	char **files;
	int file_count;
};

struct run {
	const struct options *options;
	struct converter converter;
	struct err first;  /* what ended a file; others go on */
	bool malformed;
};

enum { PIPE_BYTES = 1 << 20 };

enum { OPT_CHANNEL = 256, OPT_COMMIT, OPT_ENTRY, OPT_CONFIG, OPT_SOURCES, OPT_LIST, OPT_METRIC, OPT_REPORT, OPT_REJECTS, OPT_QUIET,
       OPT_CANONICAL, OPT_DIGEST, OPT_CONFIG_DIGEST, OPT_CHECK, OPT_EXPLAIN, OPT_LOG_FORMAT, OPT_STRICT, OPT_HELP, OPT_VERSION };

static const struct option long_options[] = {
	{"channel", required_argument, NULL, OPT_CHANNEL}, {"commit", required_argument, NULL, OPT_COMMIT},
	{"entry", required_argument, NULL, OPT_ENTRY},     {"config", required_argument, NULL, OPT_CONFIG},
	{"sources", required_argument, NULL, OPT_SOURCES}, {"list", no_argument, NULL, OPT_LIST},
	{"metric", required_argument, NULL, OPT_METRIC},   {"report", no_argument, NULL, OPT_REPORT},
	{"rejects", no_argument, NULL, OPT_REJECTS},       {"quiet", no_argument, NULL, OPT_QUIET},
	{"canonical", no_argument, NULL, OPT_CANONICAL},   {"digest", no_argument, NULL, OPT_DIGEST},
	{"config-digest", no_argument, NULL, OPT_CONFIG_DIGEST},
	{"check-config", no_argument, NULL, OPT_CHECK},    {"explain", required_argument, NULL, OPT_EXPLAIN},
	{"log-format", required_argument, NULL, OPT_LOG_FORMAT},
	{"strict", no_argument, NULL, OPT_STRICT},
	{"help", no_argument, NULL, OPT_HELP},             {"version", no_argument, NULL, OPT_VERSION},
	{NULL, 0, NULL, 0},
};

static int take_metric(struct options *o, const char *text, struct err *e)
{
	bool all = strcmp(text, "all") == 0;
	o->metric_given = true;
	o->metrics[METRIC_LATENCY] = all || strcmp(text, "latency") == 0;
	o->metrics[METRIC_PEAK_MEMORY] = all || strcmp(text, "memory") == 0;
	if (o->metrics[METRIC_LATENCY] || o->metrics[METRIC_PEAK_MEMORY])
		return 0;
	return err_set(e, ERR_USAGE, "--metric is latency, memory or all, not \"%s\"", text);
}

static int take_option(struct options *o, int option, struct err *e)
{
	switch (option) {
	case OPT_CHANNEL: o->channel = optarg; return 0;
	case OPT_COMMIT: o->commit = optarg; return 0;
	case OPT_ENTRY: o->entry = optarg; return 0;
	case OPT_CONFIG: o->config = optarg; return 0;
	case OPT_SOURCES: o->sources = optarg; return 0;
	case OPT_LIST: o->list = true; return 0;
	case OPT_METRIC: return take_metric(o, optarg, e);
	case OPT_REPORT: o->action = ACTION_REPORT; return 0;
	case OPT_REJECTS: o->rejects = true; return 0;
	case OPT_QUIET: o->quiet = true; return 0;
	case OPT_CANONICAL: o->action = ACTION_CANONICAL; return 0;
	case OPT_DIGEST: o->action = ACTION_DIGEST; return 0;
	case OPT_CONFIG_DIGEST: o->action = ACTION_CONFIG_DIGEST; return 0;
	case OPT_CHECK: o->action = ACTION_CHECK; return 0;
	case OPT_EXPLAIN: o->action = ACTION_EXPLAIN; o->explain = optarg; return 0;
	case OPT_LOG_FORMAT: return log_set_format(optarg, e);
	case OPT_STRICT: o->strict = true; return 0;
	case OPT_HELP: o->action = ACTION_HELP; return 0;
	case OPT_VERSION: o->action = ACTION_VERSION; return 0;
	default: return err_set(e, ERR_BUG, "option %d is in the table and not here", option);
	}
}

static int parse_options(int argc, char **argv, struct options *o, struct err *e)
{
	int option;
	*o = (struct options){.metrics = {[METRIC_LATENCY] = true}};
	opterr = 0;
	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1)
		if (option == '?' ? err_option(e, argv, "ki-normalize") : take_option(o, option, e))
			return -1;
	o->files = argv + optind;
	o->file_count = argc - optind;
	bool converts = o->action == ACTION_CONVERT || o->action == ACTION_REPORT;
	if (o->sources && strcmp(o->sources, "-") != 0)
		return err_set(e, ERR_USAGE, "--sources reads standard input: --sources -");
	if (converts && (o->sources != NULL) == (o->file_count > 0))
		return err_set(e, ERR_USAGE, "give files, or --sources -; see ki-normalize --help");
	if (o->metric_given && !o->list)
		return err_set(e, ERR_USAGE, "--metric goes with --list");
	return 0;
}

/* ---- records ---- */

/* A refused file does not keep others from being read; what is wrong with the output or the config does. */
static bool ends_all(enum err_code code)
{
	return code == ERR_IO || code == ERR_CONFIG || code == ERR_BUG;
}

static int print_report(const struct report *report, struct err *e)
{
	struct buf json = {0};
	report_json(report, &json);
	buf_char(&json, '\n');
	int rc = file_write_all(STDOUT_FILENO, json.data, json.len, "stdout", e);
	buf_fini(&json);
	return rc;
}

/* 0 also when the file was refused (noted in run->first); -1 to stop. */
static int convert_source(struct run *run, const struct source *s)
{
	const struct options *o = run->options;
	struct report *report = xcalloc(1, sizeof *report);
	struct err e = {0};
	int rc = convert_file(&run->converter, s, report, &e);
	if (rc == 0 && o->action == ACTION_REPORT)
		rc = print_report(report, &e);
	run->malformed |= report_rejected(report) > 0;
	if (o->rejects || (!o->quiet && !o->sources))
		report_print(report, s->file);
	if (rc && !ends_all(e.code))
		log_failure(&e); /* the last word is main's, but each file's error is told where it happens */
	if (rc && run->first.code == ERR_NONE)
		run->first = e;
	report_fini(report);
	free(report);
	return rc && ends_all(e.code) ? -1 : 0;
}

static int convert_files(struct run *run, struct err *e)
{
	const struct options *o = run->options;
	struct arena a = {0};
	struct source s;
	int rc = 0;
	for (int i = 0; i < o->file_count && rc == 0; i++) {
		rc = source_local(o->files[i], o->channel, o->commit, o->entry, &a, &s, e);
		if (rc == 0)
			rc = convert_source(run, &s);
	}
	arena_fini(&a);
	return rc;
}

static int convert_sources(struct run *run)
{
	struct arena a = {0};
	struct source s;
	char *line = NULL;
	size_t room = 0;
	ssize_t len;
	int rc = 0;
	for (unsigned number = 1; rc == 0 && (len = getline(&line, &room, stdin)) > 0; number++) {
		struct err e = {0};
		arena_reset(&a);
		if (source_parse((struct slice){line, (size_t)len}, &a, &s, "standard input", number, &e) == 0) {
			rc = convert_source(run, &s);
			continue;
		}
		log_failure(&e);
		if (run->first.code == ERR_NONE)
			run->first = e;
	}
	if (rc == 0 && ferror(stdin)) { /* an end that is none */
		rc = -1;
		run->first = (struct err){0};
		err_errno(&run->first, "standard input", "cannot read");
	}
	free(line);
	arena_fini(&a);
	return rc;
}

static int convert(const struct options *o, const struct curate *c, const char *tables)
{
	struct run run = {.options = o};
	struct err e = {0};
	enum convert_mode mode = o->action == ACTION_REPORT ? CONVERT_NOTHING : o->list ? CONVERT_LIST : CONVERT_WIRE;
	converter_init(&run.converter, c, mode, STDOUT_FILENO);
	fcntl(STDOUT_FILENO, F_SETPIPE_SZ, PIPE_BYTES); /* fewer switches with the reader, if it is a pipe and may grow */
	memcpy(run.converter.metrics, o->metrics, sizeof o->metrics);
	run.converter.tables = tables;
	int rc = o->sources ? convert_sources(&run) : convert_files(&run, &e);
	converter_fini(&run.converter);
	if (e.code)
		return log_failure(&e);
	if (rc)
		return log_failure(&run.first);
	return run.first.code ? (int)run.first.code : run.malformed ? ERR_PARTIAL : ERR_NONE;
}

/* ---- the other actions ---- */

static void refused(const struct err *e)
{
	log_failure(e);
}

static int canonical(const struct options *o, struct err *e)
{
	bool digest = o->action == ACTION_DIGEST;
	if (o->file_count == 0)
		return canon_lines(stdin, "-", stdout, digest, refused, e);
	for (int i = 0; i < o->file_count; i++) {
		FILE *in = fopen(o->files[i], "r");
		if (!in)
			return err_errno(e, o->files[i], "opening");
		canon_lines(in, o->files[i], stdout, digest, refused, e);
		fclose(in);
	}
	return e->code ? -1 : 0;
}

static int explain(const struct options *o, const struct curate *c, struct err *e)
{
	if (strcmp(o->explain, "-") == 0)
		return explain_rows(c, STDIN_FILENO, "-", NULL, stdout, e);
	if (strchr(o->explain, ',') && access(o->explain, F_OK) != 0)
		return explain_rows(c, -1, "row", o->explain, stdout, e);
	int fd = open(o->explain, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_errno(e, o->explain, "opening");
	int rc = explain_rows(c, fd, o->explain, NULL, stdout, e);
	close(fd);
	return rc;
}

static void print_version(void)
{
	printf("ki-normalize %s (wire %d; libcsv %d.%d.%d, jansson %s, %s)\n", KI_VERSION, RECORD_WIRE, CSV_MAJOR, CSV_MINOR, CSV_RELEASE,
	       jansson_version_str(), OpenSSL_version(OPENSSL_VERSION));
}

static int with_config(const struct options *o, struct err *e)
{
	struct arena a = {0};
	char tables[DIGEST_TEXT + 1];
	const char *directory = home_config(&a, o->config, e);
	struct curate *c = NULL;
	int rc = directory ? tables_digest(directory, tables, e) : -1;
	if (rc == 0 && o->action == ACTION_CONFIG_DIGEST) {
		puts(tables);
		arena_fini(&a);
		return 0;
	}
	if (rc == 0)
		c = curate_new(directory, e);
	rc = -1;
	if (c && o->action == ACTION_CHECK) {
		explain_config(c, stdout);
		rc = 0;
	} else if (c) {
		build_tables(c);
		rc = o->action == ACTION_EXPLAIN ? explain(o, c, e) : convert(o, c, tables);
	}
	curate_free(c);
	arena_fini(&a);
	return rc;
}

int main(int argc, char **argv)
{
	struct options o;
	struct err e = {0};
	int rc = 0;
	file_hold_streams();
	memory_hold();
	log_init("ki-normalize", false);
	int parsed = parse_options(argc, argv, &o, &e);
	log_init("ki-normalize", o.quiet); /* again, for --log-format and --quiet */
	if (parsed || sandbox_enter(&(struct sandbox){.role = SANDBOX_NORMALIZE, .strict = o.strict}, &e))
		return log_failure(&e);
	if (o.action == ACTION_HELP)
		fputs(usage, stdout);
	else if (o.action == ACTION_VERSION)
		print_version();
	else if (o.action == ACTION_CANONICAL || o.action == ACTION_DIGEST)
		rc = canonical(&o, &e);
	else
		rc = with_config(&o, &e);
	file_flush_stdout(&e);
	return e.code ? log_failure(&e) : rc;
}
