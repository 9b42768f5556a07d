/* What the command line of ki-store said, and its verbs that stand in files of their own. */
#ifndef KI_STORE_OPTIONS_H
#define KI_STORE_OPTIONS_H

#include "store/flag.h"
#include "store/list.h"

struct options {
	const char *store, *config, *out, *format, *config_digest, *reason, *text, *from, *to, *key, *undo, *runner;
	const char *codes[FLAG_CODES]; /* as given; which they may be is the verb's to say */
	int code_count;
	struct list_options list;
	bool json, live, dry_run, quiet, strict, events, clear, ascii, last, flagged, by_doubt, help, version;
	double measure; /* nights */
	double max_age_hours;
	struct digest run, entry; /* what an entry is about, and which it undoes */
	char **names; /* operands */
	int name_count;
};

/* Runs `read` on the opened catalog. */
int with_catalog(struct options *o, struct err *e, int (*read)(struct catalog *c, struct options *o));

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
