/* ki: the front door. `ki VERB …` finds the program that serves the verb; `ki nightly` locks, runs ingest, normalize and store
 * as processes joined by pipes, exports, and reports. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/doctor.h"
#include "core/file.h"
#include "core/home.h"
#include "core/json.h"
#include "core/log.h"
#include "core/memory.h"
#include "core/nightly.h"
#include "core/process.h"
#include "core/verify.h"

/* A verb and what it becomes: the program and the words before the caller's own, or a function here. */
static const struct route {
	const char *verb, *program, *first, *help;
	int (*own)(int argc, char **argv, struct err *e);
} routes[] = {
	{"nightly", NULL, NULL, "fetch, normalize, publish, export, report: for cron", nightly_main},
	{"ingest", "ki-ingest", NULL, "fetch upstream's CSVs and keep them", NULL},
	{"normalize", "ki-normalize", NULL, "rows of CSV files to records", NULL},
	{"show", "ki-store", "show", "one run with all that is known of it", NULL},
	{"list", "ki-store", "list", "runs, by filter", NULL},
	{"cohort", "ki-store", "cohort", "a comparison group, best first", NULL},
	{"compare", "ki-store", "compare", "2 to 8 runs side by side", NULL},
	{"verify", NULL, NULL, "rerun records on this machine's GPU: plan, run, import", verify_main},
	{"history", "ki-store", "history", "publications that carried a run, its predecessor and successor", NULL},
	{"flags", "ki-store", "flags", "numbers that deserve doubt, and why", NULL},
	{"flag", "ki-store", "flag", "flag a run by hand, or clear that", NULL},
	{"retract", "ki-store", "retract", "take a run out of its ranking, signed; or undo that", NULL},
	{"note", "ki-store", "note", "a signed note on a run; or undo it", NULL},
	{"trend", "ki-store", "trend", "a kernel over drops and versions, with change points", NULL},
	{"report", "ki-store", "report", "the morning mail: what is new, slower, faster, in doubt", NULL},
	{"log", "ki-store", "log", "publications, newest first; --events: changes of leader", NULL},
	{"status", "ki-store", "status", "counts, sizes, ages", NULL},
	{"doctor", NULL, NULL, "is everything here that a night needs?", doctor_main},
	{"check", "ki-store", "check", "prove that nothing is lost or altered", NULL},
	{"export", "ki-store", "export", "normalized JSON dumps", NULL},
	{"backup", "ki-store", "backup", "a consistent copy of the store", NULL},
	{"rehearse", "ki-store", "rehearse", "prove that a backup can be restored", NULL},
	{"import", "ki-store", "load", "make a new store from a dump of a whole one", NULL},
	{"upgrade", "ki-store", "upgrade", "bring an older store to this program's schema", NULL},
	{"put", "ki-store", "put", "publish a wire stream from standard input", NULL},
	{"config", "ki-normalize", NULL, "check the tables, or explain how a row binds", NULL},
};

static void usage(FILE *out)
{
	fputs("usage: ki VERB [option…] [operand…]\n\n", out);
	for (size_t i = 0; i < sizeof routes / sizeof *routes; i++)
		fprintf(out, "  %-9s  %s\n", routes[i].verb, routes[i].help);
	fputs("\n`ki VERB --help` says more. --store DIR (default $KI_STORE, else var/store) goes with every verb that touches a store.\n"
	      "exit: 0 done, 1 done but some rows were malformed, 64 usage, 65 input or gate refused, 66 not found, 69 not available here,\n"
	      "      70 bug, 74 I/O, 75 try later, 77 not permitted, 78 config, 80 store damaged\n",
	      out);
}

/* `ki config check` and `ki config explain ROW` are options of ki-normalize. */
static int config_words(int argc, char **argv, char **words, struct err *e)
{
	if (argc >= 1 && strcmp(argv[0], "check") == 0) {
		words[0] = (char *)"--check-config";
	} else if (argc >= 2 && strcmp(argv[0], "explain") == 0) {
		words[0] = (char *)"--explain";
	} else if (argc >= 1 && strcmp(argv[0], "--help") == 0) {
		words[0] = (char *)"--help";
	} else {
		return err_set(e, ERR_USAGE, "usage: ki config check | ki config explain ROW|FILE|-");
	}
	memcpy(words + 1, argv + 1, (size_t)(argc - 1) * sizeof *words);
	return 0;
}

/* Replaces this process by the program of the route. */
static int pass_on(const struct route *r, int argc, char **argv, struct err *e)
{
	struct arena a = {0};
	char **words = arena_alloc(&a, ((size_t)argc + 4) * sizeof *words);
	int count = 0;
	words[count++] = (char *)home_program(&a, r->program);
	if (strcmp(r->verb, "config") == 0) {
		if (config_words(argc, argv, words + 1, e)) {
			arena_fini(&a);
			return -1;
		}
	} else {
		if (r->first)
			words[count++] = (char *)r->first;
		memcpy(words + count, argv, (size_t)argc * sizeof *words);
	}
	execv(words[0], words);
	err_errno(e, words[0], "cannot run");
	arena_fini(&a);
	return -1;
}

static int run(int argc, char **argv, struct err *e)
{
	const char *verb = argc > 1 ? argv[1] : "";
	if (strcmp(verb, "--help") == 0 || strcmp(verb, "help") == 0) {
		usage(stdout);
		return file_flush_stdout(e);
	}
	if (strcmp(verb, "--version") == 0) {
		printf("ki %s (jansson %s); `ki-ingest`, `ki-normalize` and `ki-store --version` name their libraries\n", KI_VERSION, jansson_version_str());
		return file_flush_stdout(e);
	}
	for (size_t i = 0; i < sizeof routes / sizeof *routes; i++)
		if (strcmp(routes[i].verb, verb) == 0)
			return routes[i].program ? pass_on(&routes[i], argc - 2, argv + 2, e) : routes[i].own(argc - 1, argv + 1, e);
	return err_set(e, ERR_USAGE, "%s%s; see ki --help", *verb ? "no verb " : "a verb is missing", verb);
}

int main(int argc, char **argv)
{
	struct err e = {0}, settled = {0};
	file_hold_streams();
	memory_hold();
	umask(022); /* modes of files are ours to say */
	log_init("ki", false);
	if (process_settle(&settled))
		log_warn("%s", settled.text);
	run(argc, argv, &e);
	return e.code && e.text[0] ? log_failure(&e) : (int)e.code;
}
