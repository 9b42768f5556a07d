#include "store/help.h"

#include <string.h>

static const struct text {
	const char *option, *value, *what;
	const char *verb; /* where it means something of its own; NULL: everywhere else. Such lines stand before the general one */
} texts[] = {
	{"kernel", "KERNEL", "only of this kernel: rms_norm", NULL},
	{"gpu", "GPU", "only on this GPU: nvidia-h200", NULL},
	{"mode", "forward|backward|full|no-grad-forward", "only of this pass", NULL},
	{"provider", "PROVIDER", "only of this provider: liger", NULL},
	{"dtype", "bf16|fp16|fp32", "only in this type", NULL},
	{"since", "DATE", "only publications from then on: YYYY-MM-DD, or YYYY-MM-DDThh:mm:ssZ", "report"},
	{"since", "DATE", "only observed from then on: YYYY-MM-DD, or YYYY-MM-DDThh:mm:ssZ", NULL},
	{"metric", "latency|memory|all", "which quantity; latency when not given", NULL},
	{"format", "table|tsv|csv|json|jsonl", "table when not given", "list"},
	{"format", "json|jsonl|csv|store|site", "to standard output (store: all there is, for ki import), or a site of pages under --out; a dump when not given", "export"},
	{"columns", "A,B,C", "these columns, in this order; a wrong name lists them all", NULL},
	{"sort", "store|time|version|rank|id|digest", "in this order; store when not given", NULL},
	{"limit", "N", "at most N lines a section; 10 when not given", "report"},
	{"limit", "N", "at most N; 0: all", NULL},
	{"withdrawn", NULL, "only runs that upstream took back without a successor", NULL},
	{"live", NULL, "publish only what stays within config/gates.json", NULL},
	{"dry-run", NULL, "tell what would be published, and change nothing", NULL},
	{"events", NULL, "changes of a group's first and retractions, instead of publications", NULL},
	{"code", "MEASUREMENT|CONFIGURATION|ATTRIBUTION|DUPLICATE|SOURCE|OTHER", "what kind of reason; OTHER when not given", "retract"},
	{"undo", "ENTRY", "take back what this entry says", NULL},
	{"key", "FILE", "the key that signs (ki verify keygen makes one)", NULL},
	{"text", "TEXT", "what to note", NULL},
	{"code", "CODE", "only flags of this code; may be given more than once; a wrong one lists them all", NULL},
	{"reason", "TEXT", "why", NULL},
	{"clear", NULL, "take a flag set by hand back", NULL},
	{"case", "TEXT", "only cases with this in their key or workload label", NULL},
	{"channel", "CHANNEL", "only what this channel published: committed, cutile, cutedsl, gh-pages", NULL},
	{"from", "VERSION", "from this version, entry or commit on", NULL},
	{"to", "VERSION", "up to this version, entry or commit", NULL},
	{"ascii", NULL, "with ASCII alone, whatever the locale says", NULL},
	{"measure", "N", "instead: how many change points N nights of shuffled series raise", NULL},
	{"last", NULL, "the newest night, however long ago", NULL},
	{"flagged", NULL, "runs with a flag that a rerun could settle", NULL},
	{"by-doubt", NULL, "flagged runs first, then leaders", NULL},
	{"runner", "native|upstream", "whose code the jobs ask for: this project's kernel, or the record's own; native when not given", NULL},
	{"max-age", "HOURS", "exit 75 when nothing was published and upstream not seen for so long", NULL},
	{"out", "DIR", "where to write: var/export, for a site var/site, when not given", NULL},
	{"config-digest", "DIGEST", "only what was bound under these tables", NULL},
	/* the common ones, last */
	{"json", NULL, "one JSON object a line instead of text, where the verb prints any", NULL},
	{"store", "DIR", "the store; $KI_STORE, else var/store, when not given", NULL},
	{"config", "DIR", "the config; $KI_CONFIG, else the installation's, when not given", NULL},
	{"quiet", NULL, "print nothing that needs no person", NULL},
	{"strict", NULL, "fail when this system cannot confine the program", NULL},
	{"log-format", "text|json", "of messages on standard error; $KI_LOG_FORMAT, else text, when not given", NULL},
	{"help", NULL, "this text", NULL},
	{"version", NULL, "versions of the program and its libraries", NULL},
};

/* Verbs that callers reach by another way than `ki VERB`. */
static const struct command {
	const char *verb, *typed;
} commands[] = {{"plan", "ki verify plan"}, {"import", "ki verify import"}, {"load", "ki import"}, {"published", "ki-store published"}};

enum { COMMON = 8, COLUMN = 22 };
static const size_t text_count = sizeof texts / sizeof *texts;

static bool same_word(const char *word, size_t len, const char *text)
{
	return strlen(text) == len && memcmp(word, text, len) == 0;
}

static const struct text *find(const char *verb, const char *option, size_t len)
{
	for (size_t i = 0; i < text_count; i++)
		if (same_word(option, len, texts[i].option) && (!texts[i].verb || strcmp(texts[i].verb, verb) == 0))
			return &texts[i];
	return NULL;
}

static void put(const struct text *t, FILE *out)
{
	int width = fprintf(out, "  --%s%s%s", t->option, t->value ? " " : "", t->value ? t->value : "");
	if (width > COLUMN - 2)
		fprintf(out, "\n%*s%s\n", COLUMN, "", t->what);
	else
		fprintf(out, "%*s%s\n", COLUMN - width, "", t->what);
}

static const char *typed(const char *verb)
{
	for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
		if (strcmp(commands[i].verb, verb) == 0)
			return commands[i].typed;
	return NULL;
}

int help_verb(const char *verb, const char *operands, const char *what, const char *options, FILE *out, struct err *e)
{
	const char *command = typed(verb);
	fprintf(out, "usage: %s%s [option…]%s%s\n\n%s\n\n", command ? command : "ki ", command ? "" : verb, *operands ? " " : "", operands, what);
	for (const char *at = options; *at;) {
		size_t len = strcspn(at, " ");
		const struct text *t = find(verb, at, len);
		if (!t)
			return err_set(e, ERR_BUG, "store/help.c does not describe --%.*s", (int)len, at);
		put(t, out);
		at += len + (at[len] == ' ');
	}
	for (size_t i = text_count - COMMON; i < text_count; i++)
		put(&texts[i], out);
	return 0;
}
