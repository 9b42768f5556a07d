#include "store/correct.h"

#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "core/when.h"
#include "store/entry.h"

enum { TEXT_MAX = 4096 };
static const char STATEMENT[] = "https://in-toto.io/Statement/v1", PREDICATE[] = "https://kernelindex.dev/correction/v1alpha1";

static const char *const codes[] = {"MEASUREMENT", "CONFIGURATION", "ATTRIBUTION", "DUPLICATE", "SOURCE", "OTHER"};

bool correct_code_known(const char *code)
{
	for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
		if (strcmp(codes[i], code) == 0)
			return true;
	return false;
}

void correct_put_codes(struct buf *out)
{
	for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
		buf_printf(out, "%s%s", i ? ", " : "", codes[i]);
}

/* ---- signing ---- */

int correct_sign(const struct correction_text *what, struct sign_key *key, struct buf *envelope, struct err *e)
{
	char run[DIGEST_HEX + 1], now[WHEN_TEXT + 1];
	struct buf payload = {0};
	digest_hex(&what->run, run);
	when_text(when_now_ms(), now);
	json_t *predicate = json_pack("{s:s, s:s, s:s*, s:s*, s:s*}", "type", what->type, "at", now, "code", what->code, "entry", what->entry,
				      strcmp(what->type, "note") == 0 ? "text" : "reason", what->text);
	json_t *statement = json_pack("{s:s, s:[{s:s, s:{s:s}}], s:s, s:o}", "_type", STATEMENT, "subject", "name", "run", "digest", "sha256", run,
				      "predicateType", PREDICATE, "predicate", predicate);
	int rc = statement ? json_canonical(statement, &payload, e) : err_set(e, ERR_DATA, "the text is not UTF-8");
	if (rc == 0)
		rc = sign_envelope((struct slice){payload.data, payload.len}, SIGN_PAYLOAD_TYPE, &key, 1, envelope, e);
	json_decref(statement);
	buf_fini(&payload);
	return rc;
}

/* ---- letting in ---- */

static bool good_text(const json_t *predicate, const char *name, bool required)
{
	const json_t *value = json_object_get(predicate, name);
	if (!value)
		return !required;
	return json_is_string(value) && json_string_length(value) > 0 && json_string_length(value) <= TEXT_MAX;
}

/* What a predicate lacks, in words; NULL when it is whole. */
static const char *wrong_with(const json_t *predicate)
{
	const char *type = json_text_of(predicate, "type"), *at = json_text_of(predicate, "at");
	int64_t ignored;
	struct digest d;
	bool reason = strcmp(type, "note") != 0 && json_object_get(predicate, "reason");
	size_t members = reason ? 4 : 3; /* type, time, and what the type wants */
	if (!when_parse_text(at, strlen(at), &ignored))
		return "its time is not one";
	if (strcmp(type, "retract") == 0) {
		if (!good_text(predicate, "reason", true))
			return "a retraction wants a reason of 1 to 4096 bytes";
		if (!correct_code_known(json_text_of(predicate, "code")))
			return "its code is unknown";
	} else if (strcmp(type, "note") == 0) {
		if (!good_text(predicate, "text", true))
			return "a note wants a text of 1 to 4096 bytes";
	} else if (strcmp(type, "undo") == 0) {
		const char *entry = json_text_of(predicate, "entry");
		if (!digest_parse(entry, strlen(entry), &d) || !good_text(predicate, "reason", false))
			return "it does not say what it undoes, or its reason is longer than 4096 bytes";
	} else {
		return "it is no retraction, note or undo";
	}
	return json_object_size(predicate) == members ? NULL : "it has members that are not known";
}

/* The run that a statement is about, and its predicate. */
static const json_t *predicate_of(const json_t *statement, struct digest *run)
{
	const json_t *subject = json_object_get(statement, "subject");
	const char *hex = json_text_of(json_object_get(json_array_get(subject, 0), "digest"), "sha256");
	if (strcmp(json_text_of(statement, "_type"), STATEMENT) != 0 || strcmp(json_text_of(statement, "predicateType"), PREDICATE) != 0 ||
	    json_array_size(subject) != 1 || !digest_parse_hex(hex, strlen(hex), run))
		return NULL;
	return json_object_get(statement, "predicate");
}

bool correct_holds(const json_t *entry)
{
	const json_t *envelope = json_object_get(entry, "envelope");
	struct buf text = {0}, payload = {0};
	struct sign_check check;
	struct err ignored = {0};
	struct digest run;
	char id[DIGEST_TEXT + 1] = "", about[DIGEST_TEXT + 1] = "";
	const char *name;
	json_t *value, *statement = NULL;
	if (!envelope)
		return !correction_is(entry);
	if (json_canonical(envelope, &text, &ignored) == 0 && sign_open((struct slice){text.data, text.len}, NULL, "entry", 0, &check, &payload, &ignored) == 0)
		statement = json_load_text(payload.data, payload.len, "entry", &ignored);
	const json_t *predicate = predicate_of(statement, &run);
	bool holds = predicate && !wrong_with(predicate);
	if (holds) {
		struct digest d = digest_of(payload.data, payload.len);
		digest_text(&d, id);
		digest_text(&run, about);
	}
	json_object_foreach((json_t *)predicate, name, value)
		holds = holds && json_equal(json_object_get(entry, name), value);
	holds = holds && strcmp(id, json_text_of(entry, "id")) == 0 && strcmp(about, json_text_of(entry, "run")) == 0;
	json_decref(statement);
	buf_fini(&text);
	buf_fini(&payload);
	return holds;
}

/* What is undone must be there, and about the same run. */
static int check_target(struct catalog *c, const json_t *predicate, const char *run)
{
	if (strcmp(json_text_of(predicate, "type"), "undo") != 0)
		return 0;
	const json_t *target = correction_find(c, json_text_of(predicate, "entry"));
	if (!target)
		return -1;
	return strcmp(json_text_of(target, "run"), run) == 0 ? 0 : err_set(c->err, ERR_DATA, "refused: what it undoes is about another run");
}

static bool has_entry(struct catalog *c, const char *id)
{
	size_t i;
	json_t *entry;
	json_array_foreach((json_t *)entry_all(c), i, entry)
		if (strcmp(json_text_of(entry, "id"), id) == 0)
			return true;
	return false;
}

/* The entry of an accepted statement; NULL with an error, or without one when it is there already. */
static json_t *entry_of(struct catalog *c, const json_t *statement, const char *id)
{
	struct digest d;
	char run[DIGEST_TEXT + 1];
	size_t count;
	const json_t *predicate = predicate_of(statement, &d);
	const char *wrong = predicate ? wrong_with(predicate) : "not a statement about one run";
	if (wrong) {
		err_set(c->err, ERR_DATA, "refused: %s", wrong);
		return NULL;
	}
	digest_text(&d, run);
	free(catalog_find(c, run, &count));
	if (!c->err->code && count != 1)
		err_set(c->err, ERR_DATA, "refused: %s is no run of this store", run);
	if (c->err->code || check_target(c, predicate, run) || has_entry(c, id))
		return NULL;
	json_t *entry = json_deep_copy(predicate);
	json_object_set_new(entry, "id", json_string(id));
	json_object_set_new(entry, "run", json_string(run));
	json_object_set_new(entry, "publications", json_integer(c->counts.publications));
	return entry;
}

/* Reads the payload of an envelope that approved keys have signed. */
static json_t *open_signed(const struct signers *signers, struct slice envelope, struct sign_check *check, char id[DIGEST_TEXT + 1], struct err *e)
{
	struct buf payload = {0};
	json_t *statement = NULL;
	int rc = sign_open(envelope, signers, "correction", 0, check, &payload, e);
	if (rc == 0 && !sign_accepted(check))
		err_set(e, ERR_DATA, "refused: %s", check->what[0] ? check->what : "its signatures are not those of approved keys");
	else if (rc == 0)
		statement = json_load_text(payload.data, payload.len, "correction", e);
	struct digest d = digest_of(payload.data, payload.len);
	digest_text(&d, id);
	buf_fini(&payload);
	return statement;
}

int correct_admit(struct store *st, const struct signers *signers, struct slice envelope, char id[DIGEST_TEXT + 1], struct err *e)
{
	struct sign_check check;
	struct catalog c;
	json_t *entry = NULL, *list = NULL, *statement = open_signed(signers, envelope, &check, id, e);
	if (!statement)
		return -1;
	if (catalog_attach(&c, st, e) == 0)
		entry = entry_of(&c, statement, id);
	catalog_close(&c);
	if (entry) {
		json_object_set_new(entry, "key", json_string(check.keyid[0]));
		json_object_set_new(entry, "envelope", json_load_text(envelope.data, envelope.len, "correction", e));
		list = json_pack("[o]", entry);
		entry_append_all(st, list, e);
	}
	json_decref(list);
	json_decref(statement);
	return e->code ? -1 : 0;
}
