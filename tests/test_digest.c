/* SHA-256 digests as values. Vectors: FIPS 180-4, appendix B; the empty text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "core/digest.h"

static const struct {
	const char *text, *hex;
} vectors[] = {
	{"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
	{"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
	{"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
};

static void test_digests_of_known_texts(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
		char hex[DIGEST_HEX + 1], text[DIGEST_TEXT + 1], wanted[DIGEST_TEXT + 1] = "sha256:";
		struct digest d = digest_of(vectors[i].text, strlen(vectors[i].text));
		digest_hex(&d, hex);
		assert_string_equal(hex, vectors[i].hex);
		digest_text(&d, text);
		strcat(wanted, vectors[i].hex);
		assert_string_equal(text, wanted);
	}
}

static void test_pieces_give_the_digest_of_the_whole(void **state)
{
	(void)state;
	char *text = malloc(1000000);
	char hex[DIGEST_HEX + 1];
	memset(text, 'a', 1000000);
	struct digest_stream *s = digest_stream_new();
	for (size_t at = 0, len = 0; at < 1000000; at += len) {
		len = at % 977 + 1 < 1000000 - at ? at % 977 + 1 : 1000000 - at;
		digest_stream_add(s, text + at, len);
	}
	struct digest d = digest_stream_end(s);
	digest_hex(&d, hex);
	assert_string_equal(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
	free(text);
}

static void test_what_is_written_is_read_back(void **state)
{
	(void)state;
	struct digest d = digest_of("abc", 3), back;
	char hex[DIGEST_HEX + 1], text[DIGEST_TEXT + 1], bare[DIGEST_HEX];
	digest_hex(&d, hex);
	digest_text(&d, text);
	digest_put_hex(&d, bare);
	assert_memory_equal(bare, hex, DIGEST_HEX);
	assert_true(digest_parse_hex(hex, DIGEST_HEX, &back));
	assert_int_equal(digest_cmp(&d, &back), 0);
	assert_true(digest_parse(text, DIGEST_TEXT, &back));
	assert_int_equal(digest_cmp(&d, &back), 0);
}

static void test_anything_else_is_no_digest(void **state)
{
	(void)state;
	struct digest d;
	char hex[DIGEST_HEX + 2] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad0";
	assert_false(digest_parse_hex(hex, 63, &d));
	assert_false(digest_parse_hex(hex, 65, &d));
	assert_false(digest_parse_hex("", 0, &d));
	for (const char *wrong = "ABFGgx /:`\xc3"; *wrong; wrong++) {
		char copy[DIGEST_HEX + 1];
		memcpy(copy, hex, DIGEST_HEX);
		copy[33] = *wrong;
		assert_false(digest_parse_hex(copy, DIGEST_HEX, &d));
	}
	assert_false(digest_parse(hex, DIGEST_HEX, &d));
	assert_false(digest_parse("sha512:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", DIGEST_TEXT, &d));
	assert_false(digest_parse("SHA256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", DIGEST_TEXT, &d));
}

static void test_order_is_by_bytes(void **state)
{
	(void)state;
	struct digest a = {{0}}, b = {{0}};
	b.bytes[31] = 1;
	assert_true(digest_cmp(&a, &b) < 0);
	a.bytes[0] = 0x80;
	assert_true(digest_cmp(&a, &b) > 0);
	assert_int_equal(digest_cmp(&a, &a), 0);
}

static void test_equal_digests_are_found_in_a_row(void **state)
{
	struct item {
		struct digest of;
		int number;
	} items[5] = {{.number = 0}, {.number = 1}, {.number = 2}, {.number = 3}, {.number = 4}};
	static const uint8_t lasts[5] = {1, 3, 3, 3, 7};
	/* by the byte wanted: where it stands or would, and how often it is there */
	static const size_t wants[9][2] = {{0, 0}, {0, 1}, {1, 0}, {1, 3}, {4, 0}, {4, 0}, {4, 0}, {4, 1}, {5, 0}};
	(void)state;
	for (int i = 0; i < 5; i++)
		items[i].of.bytes[31] = lasts[i];
	for (uint8_t last = 0; last < 9; last++) {
		struct digest wanted = {{0}};
		size_t found;
		wanted.bytes[31] = last;
		assert_int_equal(digest_search(items, 5, sizeof *items, &wanted, &found), wants[last][0]);
		assert_int_equal(found, wants[last][1]);
		assert_int_equal(digest_search(NULL, 0, sizeof *items, &wanted, &found), 0);
		assert_int_equal(found, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_digests_of_known_texts),		 cmocka_unit_test(test_pieces_give_the_digest_of_the_whole),
		cmocka_unit_test(test_what_is_written_is_read_back),	 cmocka_unit_test(test_anything_else_is_no_digest),
		cmocka_unit_test(test_order_is_by_bytes),		 cmocka_unit_test(test_equal_digests_are_found_in_a_row),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
