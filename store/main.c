/* ki-store: publishes records into the catalog and answers questions about it. */
#include <lmdb.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <zstd.h>

#include "core/file.h"
#include "core/home.h"
#include "core/log.h"
#include "core/memory.h"
#include "core/sandbox.h"
#include "store/compare.h"
#include "store/help.h"
#include "store/options.h"

struct verb {
	const char *name, *operands, *help;
	const char *options; /* names of those it takes beside --store, --config, --json and --quiet */
	int least, most; /* operands; most -1: any number */
	int (*run)(struct options *o, struct err *e);
};

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

/* ---- the command line ---- */

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

/* A verb as it was asked for: its operands and options are ones that it takes. */
static bool fits(const struct verb *v, const struct options *o, struct err *e)
{
	if (o->name_count < v->least || (v->most >= 0 && o->name_count > v->most))
		return err_set(e, ERR_USAGE, "usage: ki-store %s %s", v->name, v->operands) == 0;
	return options_check(o, v->name, v->options, e) == 0;
}

static const struct verb *parse(struct options *o, int argc, char **argv, struct err *e)
{
	o->list.filter.latency = true;
	if (options_read(o, argc, argv, e))
		return NULL;
	const char *name = o->name_count ? o->names[0] : "";
	o->names += o->name_count > 0;
	o->name_count -= o->name_count > 0;
	o->store = home_store(o->store);
	for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
		if (strcmp(verbs[i].name, name) == 0)
			return o->help || o->version || fits(&verbs[i], o, e) ? &verbs[i] : NULL;
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
