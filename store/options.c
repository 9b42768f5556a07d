#include "store/options.h"

#include <getopt.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "core/when.h"

/* ---- values that are more than a text ---- */

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

static int set_code(struct options *o, const char *text, struct err *e)
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

static int set_measure(struct options *o, const char *text, struct err *e)
{
	return set_number(&o->measure, "--measure", text, e);
}

static int set_max_age(struct options *o, const char *text, struct err *e)
{
	return set_number(&o->max_age_hours, "--max-age", text, e);
}

static int set_limit(struct options *o, const char *text, struct err *e)
{
	double number;
	if (set_number(&number, "--limit", text, e))
		return -1;
	o->list.limit = (uint64_t)number;
	return 0;
}

static int set_sort(struct options *o, const char *text, struct err *e)
{
	return sort_parse(text, &o->list.sort) ? 0 : err_set(e, ERR_USAGE, "--sort %s: want store, time, version, rank, id or digest", text);
}

static int set_log_format(struct options *o, const char *text, struct err *e)
{
	(void)o;
	return log_set_format(text, e);
}

/* ---- all options ---- */

/* What an option sets: a text or a switch of struct options, or what `set` makes of its value. Help texts: help.c. */
static const struct known {
	const char *name;
	enum { TEXT, SWITCH, PARSED } kind;
	size_t at;
	int (*set)(struct options *o, const char *text, struct err *e);
} known[] = {
	{"store", TEXT, offsetof(struct options, store), NULL},
	{"config", TEXT, offsetof(struct options, config), NULL},
	{"out", TEXT, offsetof(struct options, out), NULL},
	{"format", TEXT, offsetof(struct options, format), NULL},
	{"columns", TEXT, offsetof(struct options, list.columns), NULL},
	{"kernel", TEXT, offsetof(struct options, list.filter.kernel), NULL},
	{"gpu", TEXT, offsetof(struct options, list.filter.gpu), NULL},
	{"mode", TEXT, offsetof(struct options, list.filter.mode), NULL},
	{"provider", TEXT, offsetof(struct options, list.filter.provider), NULL},
	{"dtype", TEXT, offsetof(struct options, list.filter.dtype), NULL},
	{"channel", TEXT, offsetof(struct options, list.filter.channel), NULL},
	{"config-digest", TEXT, offsetof(struct options, config_digest), NULL},
	{"reason", TEXT, offsetof(struct options, reason), NULL},
	{"text", TEXT, offsetof(struct options, text), NULL},
	{"case", TEXT, offsetof(struct options, text), NULL},
	{"key", TEXT, offsetof(struct options, key), NULL},
	{"undo", TEXT, offsetof(struct options, undo), NULL},
	{"runner", TEXT, offsetof(struct options, runner), NULL},
	{"from", TEXT, offsetof(struct options, from), NULL},
	{"to", TEXT, offsetof(struct options, to), NULL},
	{"json", SWITCH, offsetof(struct options, json), NULL},
	{"live", SWITCH, offsetof(struct options, live), NULL},
	{"dry-run", SWITCH, offsetof(struct options, dry_run), NULL},
	{"quiet", SWITCH, offsetof(struct options, quiet), NULL},
	{"strict", SWITCH, offsetof(struct options, strict), NULL},
	{"events", SWITCH, offsetof(struct options, events), NULL},
	{"clear", SWITCH, offsetof(struct options, clear), NULL},
	{"flagged", SWITCH, offsetof(struct options, flagged), NULL},
	{"by-doubt", SWITCH, offsetof(struct options, by_doubt), NULL},
	{"withdrawn", SWITCH, offsetof(struct options, list.withdrawn), NULL},
	{"ascii", SWITCH, offsetof(struct options, ascii), NULL},
	{"last", SWITCH, offsetof(struct options, last), NULL},
	{"help", SWITCH, offsetof(struct options, help), NULL},
	{"version", SWITCH, offsetof(struct options, version), NULL},
	{"since", PARSED, 0, set_since},
	{"metric", PARSED, 0, set_metric},
	{"code", PARSED, 0, set_code},
	{"measure", PARSED, 0, set_measure},
	{"max-age", PARSED, 0, set_max_age},
	{"limit", PARSED, 0, set_limit},
	{"sort", PARSED, 0, set_sort},
	{"log-format", PARSED, 0, set_log_format},
};
_Static_assert(sizeof known / sizeof *known == OPTIONS_KNOWN, "struct options has a place for each");

static int set_option(struct options *o, const struct known *k, const char *value, struct err *e)
{
	void *at = (char *)o + k->at;
	switch (k->kind) {
	case TEXT: *(const char **)at = value; return 0;
	case SWITCH: *(bool *)at = true; return 0;
	case PARSED: return k->set(o, value, e);
	}
	return -1;
}

int options_read(struct options *o, int argc, char **argv, struct err *e)
{
	struct option words[OPTIONS_KNOWN + 1] = {{0}};
	int code, at;
	for (size_t i = 0; i < OPTIONS_KNOWN; i++)
		words[i] = (struct option){known[i].name, known[i].kind == SWITCH ? no_argument : required_argument, NULL, 1};
	opterr = 0;
	while ((code = getopt_long(argc, argv, "", words, &at)) != -1) {
		if (code == '?')
			return err_option(e, argv, "ki-store");
		if (set_option(o, &known[at], optarg, e))
			return -1;
		o->given[at] = known[at].name;
	}
	o->names = argv + optind;
	o->name_count = argc - optind;
	return 0;
}

int options_check(const struct options *o, const char *verb, const char *taken, struct err *e)
{
	struct buf words = {0}, word = {0};
	int rc = 0;
	buf_printf(&words, " store config json quiet log-format strict %s ", taken);
	for (size_t i = 0; i < OPTIONS_KNOWN && rc == 0; i++) {
		buf_clear(&word);
		buf_printf(&word, " %s ", o->given[i] ? o->given[i] : "");
		if (o->given[i] && !strstr(words.data, word.data))
			rc = err_set(e, ERR_USAGE, "%s takes no --%s; see ki-store --help", verb, o->given[i]);
	}
	buf_fini(&words);
	buf_fini(&word);
	return rc;
}
