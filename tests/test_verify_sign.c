/* Keys, envelopes and approved signers: one good signature is worth something, a bad or unknown one is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/file.h"
#include "core/sign.h"
#include "verify/samples.h"

static char dir[] = "/tmp/ki-sign-XXXXXX";

static const char *at(const char *name)
{
    static char path[8][128];
    static int n;
    n = (n + 1) % 8;
    snprintf(path[n], sizeof path[n], "%s/%s", dir, name);
    return path[n];
}

/* RFC 8032, 7.1, test 1: the private key, in the PKCS #8 of RFC 8410. */
static const char rfc_key[] =
    "-----BEGIN PRIVATE KEY-----\n"
    "MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n"
    "-----END PRIVATE KEY-----\n";
static const char rfc_entry[] =
    "{\"keyid\":\"21fe31dfa154a261626bf854046fd2271b7bed4b6abe45aa58877ef47f9721b9\",\"name\":\"rfc\","
    "\"publicKey\":\"11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\"}";

static struct sign_key *key(const char *name)
{
    struct err e = { 0 };
    struct sign_key *k;
    if (!file_exists(at(name)))
        assert_int_equal(sign_keygen(at(name), &e), 0);
    k = sign_key_load(at(name), &e);
    assert_non_null(k);
    return k;
}

/* Approved signers: those keys. */
static struct signers *approve(struct sign_key *const keys[], int n)
{
    struct err e = { 0 };
    struct buf text = { 0 };
    buf_str(&text, "{\"version\":1,\"about\":\"test\",\"signers\":[");
    for (int i = 0; i < n; i++) {
        if (i)
            buf_char(&text, ',');
        sign_key_entry(keys[i], "tester", &text);
    }
    buf_str(&text, "]}");
    assert_int_equal(file_write(at("signers.json"), text.data, text.len, 0644, &e), 0);
    struct signers *s = signers_load(at("signers.json"), &e);
    assert_non_null(s);
    buf_fini(&text);
    return s;
}

static struct sign_check open_envelope(const struct buf *envelope, const struct signers *s, const char *expected)
{
    struct sign_check check;
    struct buf payload = { 0 };
    struct err e = { 0 };
    assert_int_equal(sign_open((struct slice){ envelope->data, envelope->len }, s, "envelope", 1, &check, &payload, &e), 0);
    if (expected)
        assert_true(slice_eq((struct slice){ payload.data, payload.len }, expected));
    buf_fini(&payload);
    return check;
}

static struct buf sign(const char *payload, struct sign_key *const keys[], int n)
{
    struct buf out = { 0 };
    struct err e = { 0 };
    assert_int_equal(sign_envelope((struct slice){ payload, strlen(payload) }, SIGN_PAYLOAD_TYPE, keys, n, &out, &e), 0);
    return out;
}

static void a_key_is_private_and_never_overwritten(void **state)
{
    (void)state;
    struct err e = { 0 };
    struct stat st;
    assert_int_equal(sign_keygen(at("mine.pem"), &e), 0);
    assert_int_equal(stat(at("mine.pem"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(sign_keygen(at("mine.pem"), &e), -1);
}

static void the_key_id_is_the_digest_of_the_public_key(void **state)
{
    (void)state;
    struct err e = { 0 };
    struct buf entry = { 0 };
    assert_int_equal(file_write(at("rfc.pem"), rfc_key, strlen(rfc_key), 0600, &e), 0);
    struct sign_key *k = sign_key_load(at("rfc.pem"), &e);
    assert_non_null(k);
    sign_key_entry(k, "rfc", &entry);
    assert_string_equal(entry.data, rfc_entry);
    buf_fini(&entry);
    sign_key_free(k);
}

/* Ed25519 has no randomness, so the bytes are known: DSSEv1 28 application/vnd.in-toto+json 2 {} under the key above. */
static void an_envelope_has_known_bytes(void **state)
{
    (void)state;
    struct err e = { 0 };
    struct sign_key *k = sign_key_load(at("rfc.pem"), &e);
    struct buf envelope = sign("{}", &k, 1);
    assert_string_equal(envelope.data, "{\"payload\":\"e30=\",\"payloadType\":\"application/vnd.in-toto+json\",\"signatures\":[{\"keyid\":"
        "\"21fe31dfa154a261626bf854046fd2271b7bed4b6abe45aa58877ef47f9721b9\",\"sig\":\"vW8iDoS+pQIrO8G9pV+VHVGcvY/XcGMh2vfWpJJwwrH/m4CRZswsl9wIASL/n2XN7RSNIqdiogwYkqskDFZiAQ==\"}]}");
    buf_fini(&envelope);
    sign_key_free(k);
}

static void a_good_signature_of_an_approved_key_is_accepted(void **state)
{
    (void)state;
    struct sign_key *k = key("a.pem");
    struct signers *s = approve(&k, 1);
    struct buf envelope = sign("{\"a\":1}", &k, 1);
    struct sign_check check = open_envelope(&envelope, s, "{\"a\":1}");
    struct buf entry = {0}, id = {0};
    sign_key_entry(k, "tester", &entry);
    buf_printf(&id, "\"keyid\":\"%s\"", check.keyid[0]);
    assert_int_equal(check.good, 1);
    assert_non_null(strstr(entry.data, id.data));
    buf_fini(&entry);
    buf_fini(&id);
    assert_true(sign_accepted(&check));
    buf_fini(&envelope);
    signers_free(s);
    sign_key_free(k);
}

static void an_unknown_key_is_worth_nothing(void **state)
{
    (void)state;
    struct sign_key *a = key("a.pem"), *b = key("b.pem");
    struct signers *s = approve(&a, 1);
    struct buf envelope = sign("{}", &b, 1);
    struct sign_check check = open_envelope(&envelope, s, "{}");
    assert_int_equal(check.unknown, 1);
    assert_false(sign_accepted(&check));
    assert_memory_equal(check.what, "signed by a key that is not approved: ", 38);
    check = open_envelope(&envelope, NULL, "{}");
    assert_false(sign_accepted(&check));
    buf_fini(&envelope);
    signers_free(s);
    sign_key_free(a);
    sign_key_free(b);
}

static void a_changed_payload_or_signature_is_bad(void **state)
{
    (void)state;
    struct sign_key *k = key("a.pem");
    struct signers *s = approve(&k, 1);
    struct buf envelope = sign("{\"a\":1}", &k, 1);
    char *at_payload = strstr(envelope.data, "eyJhIjoxfQ==");
    assert_non_null(at_payload);
    memcpy(at_payload, "eyJhIjoyfQ==", 12); /* {"a":2} */
    struct sign_check check = open_envelope(&envelope, s, "{\"a\":2}");
    assert_int_equal(check.bad, 1);
    assert_false(sign_accepted(&check));
    memcpy(at_payload, "eyJhIjoxfQ==", 12);
    char *sig = strstr(envelope.data, "\"sig\":\"") + 7;
    sig[3] = sig[3] == 'A' ? 'B' : 'A';
    check = open_envelope(&envelope, s, "{\"a\":1}");
    assert_int_equal(check.bad, 1);
    assert_false(sign_accepted(&check));
    buf_fini(&envelope);
    signers_free(s);
    sign_key_free(k);
}

static void several_signatures_may_stand_on_one_envelope(void **state)
{
    (void)state;
    struct sign_key *keys[] = { key("a.pem"), key("b.pem"), key("c.pem") };
    struct signers *s = approve(keys, 2);
    struct buf envelope = sign("{}", keys, 1), more = { 0 }, most = { 0 };
    struct err e = { 0 };
    assert_int_equal(sign_add((struct slice){ envelope.data, envelope.len }, keys[1], &more, &e), 0);
    struct sign_check check = open_envelope(&more, s, "{}");
    assert_int_equal(check.good, 2);
    assert_true(sign_accepted(&check));
    assert_int_equal(sign_add((struct slice){ more.data, more.len }, keys[2], &most, &e), 0);
    check = open_envelope(&most, s, "{}");
    assert_int_equal(check.good, 2);
    assert_int_equal(check.unknown, 1);
    assert_true(sign_accepted(&check)); /* an unknown one beside a good one does no harm */
    buf_clear(&more);
    assert_int_equal(sign_add((struct slice){ envelope.data, envelope.len }, keys[0], &more, &e), 0);
    check = open_envelope(&more, s, "{}");
    assert_int_equal(check.good, 1); /* the same key twice is one signature */
    buf_fini(&envelope);
    buf_fini(&more);
    buf_fini(&most);
    signers_free(s);
    for (int i = 0; i < 3; i++)
        sign_key_free(keys[i]);
}

static void what_is_no_envelope_is_an_error(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "", "{}", "[1]", "{\"payload\":\"e30=\",\"payloadType\":\"t\"}", "{\"payload\":\"e3\",\"payloadType\":\"t\",\"signatures\":[]}",
        "{\"payload\":\"e=30\",\"payloadType\":\"t\",\"signatures\":[]}", "{\"payload\":\"e30=\\n\",\"payloadType\":\"t\",\"signatures\":[]}",
        "{\"payload\":7,\"payloadType\":\"t\",\"signatures\":[]}",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct sign_check check;
        struct buf payload = { 0 };
        struct err e = { 0 };
        assert_int_equal(sign_open((struct slice){ texts[i], strlen(texts[i]) }, NULL, "file", 4, &check, &payload, &e), -1);
        assert_int_equal(e.code, ERR_DATA);
        assert_int_equal(e.line, 4);
        buf_fini(&payload);
    }
}

static void a_wrong_table_of_signers_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{}", "{\"version\":1}", "{\"version\":2,\"signers\":[]}", "{\"version\":1,\"signers\":[{}]}",
        "{\"version\":1,\"signers\":[{\"keyid\":\"00\",\"name\":\"x\",\"publicKey\":\"11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\"}]}",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct err e = { 0 };
        assert_int_equal(file_write(at("bad.json"), texts[i], strlen(texts[i]), 0644, &e), 0);
        assert_null(signers_load(at("bad.json"), &e));
        assert_int_equal(e.code, ERR_CONFIG);
    }
}

static void samples_are_named_by_their_content(void **state)
{
    (void)state;
    const double ns[] = { 100, 101, 99 }, cycles[] = { 198, 200, 196 };
    struct samples s = { .blocks = 2, .count = { 2, 1 }, .ns = { ns, ns + 2 }, .cycles = { cycles, cycles + 2 } }, back;
    struct digest d, again;
    struct err e = { 0 };
    struct arena a = { 0 };
    char text[DIGEST_TEXT + 1], path[256];
    assert_int_equal(samples_write(dir, &s, &d, &e), 0);
    digest_text(&d, text);
    again = digest_of("{\"blocks\":[{\"cycles\":[198,200],\"ns\":[100,101]},{\"cycles\":[196],\"ns\":[99]}]}", 75);
    assert_int_equal(digest_cmp(&d, &again), 0);
    assert_int_equal(samples_read(dir, &d, &a, &back, &e), 0);
    assert_int_equal(back.blocks, 2);
    assert_int_equal(back.count[1], 1);
    assert_true(back.ns[1][0] == 99 && back.cycles[0][1] == 200);
    /* other bytes under the same name */
    s.count[1] = 0;
    struct digest other;
    char from[256];
    assert_int_equal(samples_write(dir, &s, &other, &e), 0);
    snprintf(path, sizeof path, "%s/samples/%s.json.zst", dir, text + 7);
    digest_text(&other, text);
    snprintf(from, sizeof from, "%s/samples/%s.json.zst", dir, text + 7);
    assert_int_equal(rename(from, path), 0);
    assert_int_equal(samples_read(dir, &d, &a, &back, &e), -1);
    assert_int_equal(e.code, ERR_DATA);
    e = (struct err){ 0 };
    assert_int_equal(samples_read(dir, &other, &a, &back, &e), -1);
    assert_int_equal(e.code, ERR_NOTFOUND);
    arena_fini(&a);
}

static int init(void **state)
{
    (void)state;
    return mkdtemp(dir) ? 0 : -1;
}

static int fini(void **state)
{
    char command[160];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", dir);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_is_private_and_never_overwritten),
        cmocka_unit_test(the_key_id_is_the_digest_of_the_public_key),
        cmocka_unit_test(an_envelope_has_known_bytes),
        cmocka_unit_test(a_good_signature_of_an_approved_key_is_accepted),
        cmocka_unit_test(an_unknown_key_is_worth_nothing),
        cmocka_unit_test(a_changed_payload_or_signature_is_bad),
        cmocka_unit_test(several_signatures_may_stand_on_one_envelope),
        cmocka_unit_test(what_is_no_envelope_is_an_error),
        cmocka_unit_test(a_wrong_table_of_signers_is_refused),
        cmocka_unit_test(samples_are_named_by_their_content),
    };
    return cmocka_run_group_tests(tests, init, fini);
}
