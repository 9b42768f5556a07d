/* Letting corrections in: whatever was not signed by an approved key, as it stands, about a run of the store, stays out. */
#include "core/json.h"
#include "store/correct.h"
#include "tests/store_stream.h"

struct desk {
	struct place *p;
	struct sign_key *ann, *eve;
	struct signers *signers; /* ann alone */
	struct digest run;
};

static struct sign_key *new_key(const struct place *p, const char *name)
{
	struct buf path = {0};
	struct err e = {0};
	buf_printf(&path, "%s/%s.pem", p->root, name);
	assert_int_equal(sign_keygen(path.data, &e), 0);
	struct sign_key *k = sign_key_load(path.data, &e);
	assert_non_null(k);
	buf_fini(&path);
	return k;
}

static struct desk desk_of(struct place *p)
{
	struct desk d = {.p = p, .ann = new_key(p, "ann"), .eve = new_key(p, "eve")};
	struct buf text = {0}, path = {0}, body = {0};
	struct err e = {0};
	buf_str(&text, "{\"version\":1,\"signers\":[");
	sign_key_entry(d.ann, "ann", &text);
	buf_str(&text, "]}");
	buf_printf(&path, "%s/signers.json", p->root);
	FILE *f = fopen(path.data, "w");
	assert_non_null(f);
	fwrite(text.data, 1, text.len, f);
	fclose(f);
	d.signers = signers_load(path.data, &e);
	assert_non_null(d.signers);
	stream_begin(p, "111111111111");
	stream_run(p, &liger, 1.5, 1);
	stream_end(p);
	put_well(p);
	stream_run_body(p, &liger, 1.5, EPOCH + SECOND, &body);
	d.run = digest_of(body.data, body.len);
	buf_fini(&text);
	buf_fini(&path);
	buf_fini(&body);
	return d;
}

static void desk_fini(struct desk *d)
{
	sign_key_free(d->ann);
	sign_key_free(d->eve);
	signers_free(d->signers);
}

static int admit(const struct desk *d, const struct buf *envelope, char id[DIGEST_TEXT + 1], struct err *e)
{
	struct store st;
	*e = (struct err){0};
	assert_int_equal(store_open(&st, d->p->root, STORE_WRITE, e), 0);
	int rc = correct_admit(&st, d->signers, (struct slice){envelope->data, envelope->len}, id, e);
	store_close(&st);
	return rc;
}

/* Entries in the store, and whether the run is retracted. */
static size_t entries_of(const struct desk *d, bool *retracted)
{
	struct catalog c;
	struct err e = {0};
	assert_int_equal(catalog_open(&c, d->p->root, &e), 0);
	*retracted = correction_retraction(&c, &d->run) != NULL;
	size_t count = c.counts.events;
	catalog_close(&c);
	return count;
}

static void refuses(const struct desk *d, const struct buf *envelope, const char *words)
{
	char id[DIGEST_TEXT + 1];
	struct err e;
	bool retracted;
	assert_int_equal(admit(d, envelope, id, &e), -1);
	assert_int_equal(e.code, ERR_DATA);
	if (!strstr(e.text, words))
		fail_msg("\"%s\" does not say \"%s\"", e.text, words);
	assert_int_equal(entries_of(d, &retracted), 0);
}

static void sign(const struct correction_text *what, struct sign_key *key, struct buf *out)
{
	struct err e = {0};
	buf_clear(out);
	if (correct_sign(what, key, out, &e))
		fail_msg("%s", e.text);
}

static void what_an_approved_key_has_signed_is_let_in_once(void **state)
{
	struct desk d = desk_of(*state);
	struct buf envelope = {0};
	const struct correction_text what = {.type = "retract", .run = d.run, .code = "OTHER", .text = "not ours"};
	char id[DIGEST_TEXT + 1], again[DIGEST_TEXT + 1];
	bool retracted;
	struct err e;
	sign(&what, d.ann, &envelope);
	assert_int_equal(admit(&d, &envelope, id, &e), 0);
	assert_int_equal(admit(&d, &envelope, again, &e), 0);
	assert_string_equal(id, again);
	assert_int_equal(entries_of(&d, &retracted), 1);
	assert_true(retracted);
	buf_fini(&envelope);
	desk_fini(&d);
}

static void what_nobody_approved_has_signed_is_refused(void **state)
{
	struct desk d = desk_of(*state);
	struct buf envelope = {0};
	struct err e = {0};
	const struct correction_text what = {.type = "retract", .run = d.run, .code = "OTHER", .text = "not ours"};
	sign(&what, d.eve, &envelope);
	refuses(&d, &envelope, "a key that is not approved");
	buf_clear(&envelope);
	assert_int_equal(sign_envelope(slice_of("{}"), SIGN_PAYLOAD_TYPE, NULL, 0, &envelope, &e), 0);
	refuses(&d, &envelope, "not signed");
	buf_clear(&envelope);
	buf_str(&envelope, "{\"type\":\"retract\"}");
	refuses(&d, &envelope, "not a DSSE envelope");
	buf_fini(&envelope);
	desk_fini(&d);
}

static void what_was_altered_after_signing_is_refused(void **state)
{
	struct desk d = desk_of(*state);
	struct buf envelope = {0};
	const struct correction_text what = {.type = "note", .run = d.run, .text = "as measured"};
	sign(&what, d.ann, &envelope);
	char *payload = strstr(envelope.data, "\"payload\":\"") + 40;
	*payload = *payload == 'A' ? 'B' : 'A';
	refuses(&d, &envelope, "does not fit the payload");
	buf_fini(&envelope);
	desk_fini(&d);
}

static void a_statement_of_another_shape_is_refused(void **state)
{
	static const struct {
		const char *predicate, *words;
	} wrong[] = {
		{"{\"at\":\"2026-01-02T03:04:05.000Z\",\"code\":\"OTHER\",\"type\":\"retract\"}", "wants a reason"},
		{"{\"at\":\"2026-01-02T03:04:05.000Z\",\"code\":\"BECAUSE\",\"reason\":\"x\",\"type\":\"retract\"}", "code is unknown"},
		{"{\"at\":\"soon\",\"code\":\"OTHER\",\"reason\":\"x\",\"type\":\"retract\"}", "time"},
		{"{\"at\":\"2026-01-02T03:04:05.000Z\",\"text\":\"\",\"type\":\"note\"}", "wants a text"},
		{"{\"at\":\"2026-01-02T03:04:05.000Z\",\"rank\":1,\"text\":\"x\",\"type\":\"note\"}", "members that are not known"},
		{"{\"at\":\"2026-01-02T03:04:05.000Z\",\"reason\":\"y\",\"text\":\"x\",\"type\":\"note\"}", "members that are not known"},
		{"{\"at\":\"2026-01-02T03:04:05.000Z\",\"type\":\"delete\"}", "no retraction, note or undo"},
		{"{\"at\":\"2026-01-02T03:04:05.000Z\",\"entry\":\"x\",\"type\":\"undo\"}", "what it undoes"},
	};
	struct desk d = desk_of(*state);
	struct err e = {0};
	char run[DIGEST_HEX + 1];
	digest_hex(&d.run, run);
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		struct buf payload = {0}, envelope = {0};
		buf_printf(&payload,
			   "{\"_type\":\"https://in-toto.io/Statement/v1\",\"predicate\":%s,\"predicateType\":\"https://kernelindex.dev/correction/v1alpha1\","
			   "\"subject\":[{\"digest\":{\"sha256\":\"%s\"},\"name\":\"run\"}]}",
			   wrong[i].predicate, run);
		assert_int_equal(sign_envelope((struct slice){payload.data, payload.len}, SIGN_PAYLOAD_TYPE, &d.ann, 1, &envelope, &e), 0);
		refuses(&d, &envelope, wrong[i].words);
		buf_fini(&payload);
		buf_fini(&envelope);
	}
	desk_fini(&d);
}

static void a_run_that_is_not_there_cannot_be_corrected(void **state)
{
	struct desk d = desk_of(*state);
	struct buf envelope = {0};
	const struct correction_text what = {.type = "note", .run = digest_of("x", 1), .text = "about nothing"};
	sign(&what, d.ann, &envelope);
	refuses(&d, &envelope, "no run of this store");
	buf_fini(&envelope);
	desk_fini(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_an_approved_key_has_signed_is_let_in_once, place_setup, place_teardown),
		cmocka_unit_test_setup_teardown(what_nobody_approved_has_signed_is_refused, place_setup, place_teardown),
		cmocka_unit_test_setup_teardown(what_was_altered_after_signing_is_refused, place_setup, place_teardown),
		cmocka_unit_test_setup_teardown(a_statement_of_another_shape_is_refused, place_setup, place_teardown),
		cmocka_unit_test_setup_teardown(a_run_that_is_not_there_cannot_be_corrected, place_setup, place_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
