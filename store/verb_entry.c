#include "store/options.h"

#include <stdio.h>
#include <string.h>

#include "core/home.h"
#include "core/json.h"
#include "store/correct.h"
#include "store/entry.h"

/* What an entry is about: the digest of the one run that a name means. */
static int read_entry_run(struct catalog *c, struct options *o)
{
	uint32_t run;
	struct run_row row;
	if (catalog_find_one(c, o->names[0], &run) || catalog_run(c, run, &row))
		return -1;
	o->run = row.digest;
	return 0;
}

int verb_flag(struct options *o, struct err *e)
{
	struct store st;
	if (!o->clear && !o->reason)
		return err_set(e, ERR_USAGE, "usage: ki flag RUN --reason TEXT | ki flag RUN --clear");
	if (with_catalog(o, e, read_entry_run))
		return -1;
	int rc = store_open(&st, o->store, STORE_WRITE, e);
	if (rc == 0)
		rc = entry_append(&st, o->clear ? "flag-clear" : "flag", &o->run, o->reason, e);
	store_close(&st);
	return rc;
}

/* The run that a correction is about: the one named, or that of the entry to be undone. */
static int read_correction(struct catalog *c, struct options *o)
{
	const json_t *entry;
	const char *run, *id;
	if (!o->undo)
		return read_entry_run(c, o);
	if (!(entry = correction_find(c, o->undo)))
		return -1;
	run = json_text_of(entry, "run");
	id = json_text_of(entry, "id");
	digest_parse(run, strlen(run), &o->run);
	digest_parse(id, strlen(id), &o->entry);
	return 0;
}

/* Signs what `text` says, and lets it in as if it had come from elsewhere. */
static int add_correction(struct options *o, struct correction_text *text, struct err *e)
{
	struct store st;
	struct arena a = {0};
	struct buf path = {0}, envelope = {0};
	char id[DIGEST_TEXT + 1], undone[DIGEST_TEXT + 1];
	const char *config = home_config(&a, o->config, e);
	struct sign_key *key = config ? sign_key_load(o->key, e) : NULL;
	buf_printf(&path, "%s/signers.json", config ? config : "");
	struct signers *signers = key ? signers_load(path.data, e) : NULL;
	int rc = signers ? with_catalog(o, e, read_correction) : -1;
	text->run = o->run;
	digest_text(&o->entry, undone);
	if (o->undo)
		text->entry = undone;
	if (rc == 0)
		rc = correct_sign(text, key, &envelope, e);
	if (rc == 0) {
		rc = store_open(&st, o->store, STORE_WRITE, e);
		if (rc == 0)
			rc = correct_admit(&st, signers, (struct slice){envelope.data, envelope.len}, id, e);
		store_close(&st);
	}
	if (rc == 0 && !o->quiet)
		printf("%s\n", id);
	signers_free(signers);
	sign_key_free(key);
	buf_fini(&envelope);
	buf_fini(&path);
	arena_fini(&a);
	return rc;
}

static int check_correction(const struct options *o, const char *usage_line, bool whole, struct err *e)
{
	if (o->undo ? o->name_count != 0 : o->name_count != 1 || !whole)
		return err_set(e, ERR_USAGE, "%s", usage_line);
	if (!o->key)
		return err_set(e, ERR_USAGE, "not signed: give --key FILE (`ki verify keygen FILE` makes one; config/signers.json says whose count)");
	return 0;
}

int verb_retract(struct options *o, struct err *e)
{
	struct correction_text text = {.type = o->undo ? "undo" : "retract", .text = o->reason};
	if (check_correction(o, "usage: ki retract RUN --reason TEXT [--code CODE] --key FILE | ki retract --undo ENTRY [--reason TEXT] --key FILE",
			     o->reason != NULL, e))
		return -1;
	if (!o->undo)
		text.code = o->code_count ? o->codes[0] : "OTHER";
	if (o->code_count > (o->undo ? 0 : 1) || (text.code && !correct_code_known(text.code))) {
		struct buf codes = {0};
		correct_put_codes(&codes);
		err_set(e, ERR_USAGE, "--code: a retraction has one of %s", codes.data);
		buf_fini(&codes);
		return -1;
	}
	return add_correction(o, &text, e);
}

int verb_note(struct options *o, struct err *e)
{
	struct correction_text text = {.type = o->undo ? "undo" : "note", .text = o->text};
	if (check_correction(o, "usage: ki note RUN --text TEXT --key FILE | ki note --undo ENTRY --key FILE", o->text != NULL, e))
		return -1;
	return add_correction(o, &text, e);
}
