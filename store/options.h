/* What the command line of ki-store said, and its verbs. */
#ifndef KI_STORE_OPTIONS_H
#define KI_STORE_OPTIONS_H

#include "store/flag.h"
#include "store/list.h"

enum { OPTIONS_KNOWN = 42 };
struct options {
	const char *store, *config, *out, *format, *config_digest, *reason, *text, *from, *to, *key, *undo, *runner;
	const char *codes[FLAG_CODES]; /* as given; which they may be is the verb's to say */
	int code_count;
	struct list_options list;
	bool json, live, dry_run, quiet, strict, events, clear, ascii, last, flagged, by_doubt, help, version;
	double measure; /* nights */
	double max_age_hours;
	struct digest run, entry; /* what an entry is about, and which it undoes */
	char **names; /* operands; at first with the verb before them */
	int name_count;
	const char *given[OPTIONS_KNOWN]; /* names of the options that were given, NULL for the others */
};

/* Reads options wherever they stand; `o` starts zeroed. ERR_USAGE names the word that is no option, or the value that is none. */
int options_read(struct options *o, int argc, char **argv, struct err *e);
/* An option that a verb would not look at is refused, for its answer would be another than was asked for. `taken`: the names of those it
 * looks at beside the common ones, separated by blanks. */
int options_check(const struct options *o, const char *verb, const char *taken, struct err *e);

/* Runs `read` on the opened catalog. */
int with_catalog(struct options *o, struct err *e, int (*read)(struct catalog *c, struct options *o));

/* verb_read.c: questions. */
int verb_show(struct options *o, struct err *e);
int verb_list(struct options *o, struct err *e);
int verb_cohort(struct options *o, struct err *e);
int verb_compare(struct options *o, struct err *e);
int verb_log(struct options *o, struct err *e);
int verb_history(struct options *o, struct err *e);
int verb_flags(struct options *o, struct err *e);
int verb_trend(struct options *o, struct err *e);
int verb_report(struct options *o, struct err *e);
int verb_plan(struct options *o, struct err *e);
int verb_status(struct options *o, struct err *e);
int verb_published(struct options *o, struct err *e);
/* verb_export.c: what leaves the store in files. */
int verb_export(struct options *o, struct err *e);
/* Where an export goes; NULL for standard output. */
const char *export_directory(const struct options *o);
/* verb_put.c: what publishes. */
int verb_put(struct options *o, struct err *e);
int verb_import(struct options *o, struct err *e);
/* verb_entry.c: what people add to the record. */
int verb_flag(struct options *o, struct err *e);
int verb_retract(struct options *o, struct err *e);
int verb_note(struct options *o, struct err *e);
/* verb_keep.c: what keeps a store. */
int verb_check(struct options *o, struct err *e);
int verb_backup(struct options *o, struct err *e);
int verb_rehearse(struct options *o, struct err *e);
int verb_load(struct options *o, struct err *e);
int verb_upgrade(struct options *o, struct err *e);

#endif
