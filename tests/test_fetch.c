/* The fetch policy's parts: addresses, URLs, config, and what is believed of upstream's replies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/file.h"
#include "ingest/address.h"
#include "ingest/fetch.h"
#include "ingest/github.h"
#include "ingest/index.h"
#include "ingest/published.h"
#include "ingest/sources.h"
#include "ingest/url.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))
#define SHA "00112233445566778899aabbccddeeff00112233"

static const char *const public_addresses[] = {
	"140.82.121.6", "185.199.108.133", "1.1.1.1", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0",
	"126.255.255.255", "128.0.0.0", "169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0", "192.0.1.0",
	"192.0.3.0", "192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0", "223.255.255.255",
	"2606:50c0:8000::153", "2a00:1450:4001:81b::200e", "2001:200::1", "3ffe::1",
	"::ffff:140.82.121.6", "64:ff9b::8c52:7906", "2002:8c52:7906::1",
};
static const char *const refused_addresses[] = {
	"0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.0", "100.127.255.255", "127.0.0.1", "127.255.0.1",
	"169.254.169.254", "172.16.0.0", "172.31.255.255", "192.0.0.1", "192.0.2.1", "192.88.99.1", "192.168.1.1", "198.18.0.1",
	"198.19.255.255", "198.51.100.7", "203.0.113.9", "224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255",
	"::", "::1", "::127.0.0.1", "fe80::1", "fec0::1", "fc00::1", "fd12:3456::1", "ff02::1", "100::1", "2001::1", "2001:10::1",
	"2001:1ff::1", "2001:db8::1", "3fff::1", "5f00::1", "4000::1", "64:ff9b:1::1",
	"::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "64:ff9b::a00:1", "64:ff9b::7f00:1", "2002:7f00:1::1",
	"2002:c0a8:101::1", "2002:a9fe:a9fe::",
	"", "localhost", "1.2.3", "0x7f.1", "140.82.121.6 ", "[::1]",
};

static void test_public_addresses_may_be_connected_to(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(public_addresses); i++)
		if (!address_text_is_public(public_addresses[i]))
			fail_msg("%s is refused", public_addresses[i]);
}

static void test_special_addresses_are_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(refused_addresses); i++)
		if (address_text_is_public(refused_addresses[i]))
			fail_msg("%s is taken for public", refused_addresses[i]);
}

static struct sources *shipped(void)
{
	struct err e = {0};
	struct sources *s = sources_load("config", false, &e);
	if (!s)
		fail_msg("config: %u:%u: %s", e.line, e.column, e.text);
	return s;
}

static void test_the_shipped_config_names_four_channels_and_two_hosts(void **state)
{
	(void)state;
	struct sources *s = shipped();
	assert_int_equal(s->channel_count, 4);
	assert_int_equal(s->host_count, 2);
	assert_string_equal(sources_channel(s, "cutile")->commits, "benchmark/data/all_benchmark_data_cutile.csv");
	assert_string_equal(sources_channel(s, "gh-pages")->index, "benchmarks/commits.txt");
	assert_null(sources_channel(s, "other"));
	assert_string_equal(s->token_host, "api.github.com");
	assert_int_equal(s->limits.redirects, 3);
	assert_null(s->ca_file);
	sources_free(s);
}

static void test_urls_of_the_listed_hosts_are_put_together_again(void **state)
{
	(void)state;
	static const char *const urls[][2] = {
		{"https://api.github.com/a?b=c/d&e=1", "https://api.github.com/a?b=c/d&e=1"},
		{"HTTPS://API.GitHub.com:443/a#part", "https://api.github.com/a"},
		{"https://raw.githubusercontent.com", "https://raw.githubusercontent.com/"},
		{"https://raw.githubusercontent.com/a/../b", "https://raw.githubusercontent.com/b"},
	};
	struct sources *s = shipped();
	for (size_t i = 0; i < COUNT(urls); i++) {
		struct url u;
		struct err e = {0};
		assert_int_equal(url_check(s, urls[i][0], &u, &e), 0);
		assert_string_equal(u.text, urls[i][1]);
		url_fini(&u);
	}
	sources_free(s);
}

static void test_urls_outside_the_policy_are_not_permitted(void **state)
{
	(void)state;
	static const char *const urls[] = {
		"http://api.github.com/a", "ftp://api.github.com/a", "file:///etc/hostname", "gopher://127.0.0.1:11211/_stats",
		"https://objects.example.net/c.csv", "https://169.254.169.254/latest", "https://[::1]/a", "https://2130706433/",
		"https://0x7f000001/", "https://api.github.com.evil.example/", "https://api.github.com./a",
		"https://raw.githubusercontent.com@objects.example.net/c.csv", "https://user@api.github.com/a",
		"https://user:word@api.github.com/a", "https://api.github.com:8443/a", "https:///a", "//api.github.com/a", "",
		"javascript:alert(1)", "https://api.github.com\\@objects.example.net/",
	};
	struct sources *s = shipped();
	for (size_t i = 0; i < COUNT(urls); i++) {
		struct url u;
		struct err e = {0};
		if (url_check(s, urls[i], &u, &e) == 0)
			fail_msg("%s is permitted, as %s", urls[i], u.text);
		assert_int_equal(e.code, ERR_NOPERM);
	}
	sources_free(s);
}

static char *config_directory(void)
{
	static char path[64];
	strcpy(path, "/tmp/test_fetch.XXXXXX");
	assert_non_null(mkdtemp(path));
	return path;
}

static void remove_config(const char *directory)
{
	char path[128];
	snprintf(path, sizeof path, "%s/sources.json", directory);
	unlink(path);
	rmdir(directory);
}

/* The shipped config with `from` replaced by `to`, loaded. */
static struct sources *load_edited(const char *from, const char *to, bool testing, struct err *e)
{
	struct buf text = {0}, edited = {0};
	char path[128], *directory = config_directory();
	assert_int_equal(file_read("config/sources.json", 1 << 20, &text, e), 0);
	char *at = strstr(text.data, from);
	assert_non_null(at);
	buf_add(&edited, text.data, (size_t)(at - text.data));
	buf_str(&edited, to);
	buf_str(&edited, at + strlen(from));
	snprintf(path, sizeof path, "%s/sources.json", directory);
	assert_int_equal(file_write(path, edited.data, edited.len, 0644, e), 0);
	struct sources *s = sources_load(directory, testing, e);
	remove_config(directory);
	buf_fini(&text);
	buf_fini(&edited);
	return s;
}

static void test_wrong_config_is_refused_with_its_position(void **state)
{
	(void)state;
	static const struct {
		const char *from, *to;
		unsigned line, column;
		const char *text;
	} cases[] = {
		{"\"redirects\": 3", "\"redirects\": 4", 13, 5, "redirects: not a whole number in the allowed range"},
		{"\"redirects\": 3", "\"redirects\": \"3\"", 13, 5, "redirects: not a whole number in the allowed range"},
		{"\"redirects\": 3", "\"redirect\": 3", 13, 5, "redirect: unknown field"},
		{"\"totalSeconds\": 180,", "", 12, 3, "field totalSeconds is missing"},
		{"{\"host\": \"raw.githubusercontent.com\"}", "{\"host\": \"127.0.0.1\"}", 9, 6, "host: not a lowercase DNS name"},
		{"{\"host\": \"raw.githubusercontent.com\"}", "{\"host\": \"2130706433\"}", 9, 6, "host: not a lowercase DNS name"},
		{"{\"host\": \"raw.githubusercontent.com\"}", "{\"host\": \"api.github.com\"}", 9, 6, "host: listed twice"},
		{"\"api\": \"https://api.github.com\"", "\"api\": \"http://api.github.com\"", 5, 3,
		 "api: not https:// and one of the hosts"},
		{"benchmark/data/all_benchmark_data.csv", "../data.csv", 31, 30, "commits: not a plain path"},
		{"benchmark/data/all_benchmark_data.csv", "a//data.csv", 31, 30, "commits: not a plain path"},
		{"\"channel\": \"cutile\"", "\"channel\": \"committed\"", 32, 6, "channel: listed twice"},
		{"\"token\": {\"host\": \"api.github.com\"}", "\"token\": {\"host\": \"example.org\"}", 11, 3,
		 "token: its host is not one of the hosts"},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct err e = {0};
		assert_null(load_edited(cases[i].from, cases[i].to, false, &e));
		assert_int_equal(e.code, ERR_CONFIG);
		assert_string_equal(e.text, cases[i].text);
		if (e.line != cases[i].line || e.column != cases[i].column)
			fail_msg("%s: at %u:%u", cases[i].text, e.line, e.column);
	}
}

#define TESTING(map) "\"version\": 1, \"testing\": {\"hostMap\": {" map "}},"

static void test_the_testing_section_maps_listed_hosts_to_loopback_only(void **state)
{
	(void)state;
	static const char *const wrong[] = {
		TESTING("\"api.github.com\": \"10.0.0.1:443\""),      TESTING("\"api.github.com\": \"127.0.0.1\""),
		TESTING("\"api.github.com\": \"127.0.0.1:0\""),       TESTING("\"api.github.com\": \"127.0.0.1:65536\""),
		TESTING("\"example.org\": \"127.0.0.1:443\""),        TESTING("\"api.github.com\": 8443"),
		TESTING("\"api.github.com\": \"169.254.169.254:80\""), TESTING("\"api.github.com\": \"localhost:443\""),
	};
	struct err e = {0};
	for (size_t i = 0; i < COUNT(wrong); i++) {
		struct err own = {0};
		assert_null(load_edited("\"version\": 1,", wrong[i], true, &own));
		assert_int_equal(own.code, ERR_CONFIG);
	}
	struct sources *s = load_edited("\"version\": 1,", TESTING("\"api.github.com\": \"127.0.0.1:8443\""), true, &e);
	assert_non_null(s);
	assert_string_equal(sources_host(s, "api.github.com")->mapped_address, "127.0.0.1");
	assert_int_equal(sources_host(s, "api.github.com")->mapped_port, 8443);
	assert_null(sources_host(s, "raw.githubusercontent.com")->mapped_address);
	sources_free(s);
}

static void test_the_testing_section_needs_a_named_config_directory(void **state)
{
	(void)state;
	struct err e = {0};
	assert_null(load_edited("\"version\": 1,", TESTING("\"api.github.com\": \"127.0.0.1:8443\""), false, &e));
	assert_int_equal(e.code, ERR_CONFIG);
	assert_string_equal(e.text, "testing: accepted only from a directory given with --config");
}

static void test_a_token_that_cannot_stand_in_a_header_is_refused(void **state)
{
	(void)state;
	static const char *const tokens[] = {"two words", "line\r\nHost: x", "\x7f", "\xc3\xa9"};
	struct sources *s = shipped();
	for (size_t i = 0; i < COUNT(tokens); i++) {
		struct err e = {0};
		setenv("KI_GITHUB_TOKEN", tokens[i], 1);
		assert_null(fetch_new(s, &e));
		assert_int_equal(e.code, ERR_CONFIG);
		assert_null(strstr(e.text, tokens[i]));
	}
	unsetenv("KI_GITHUB_TOKEN");
	sources_free(s);
}

static void test_names_from_upstream_are_checked_before_use(void **state)
{
	(void)state;
	static const char *const entries[] = {"b6ed735", "81f932a-v0.6.5", "0a62700-v0.6.4", SHA, "abcdef0-rc_1"};
	static const char *const no_entries[] = {"", "b6ed73", "B6ED735", "../../x", "b6ed735/..", "b6ed735-", "b6ed735-../x",
						 "b6ed735-.x", "b6ed735 ", "b6ed735v1", SHA "0"};
	for (size_t i = 0; i < COUNT(entries); i++)
		assert_true(source_entry_valid(entries[i]));
	for (size_t i = 0; i < COUNT(no_entries); i++)
		assert_false(source_entry_valid(no_entries[i]));
	assert_true(source_commit_valid(SHA));
	assert_false(source_commit_valid("main"));
	assert_false(source_commit_valid("00112233445566778899AABBCCDDEEFF00112233"));
	assert_false(source_commit_valid(SHA "4"));
	assert_true(source_commit_prefix_valid("001122334455"));
	assert_false(source_commit_prefix_valid("00112233445"));
}

static int read_commits(const char *text, struct github_commit *first, size_t *count, struct err *e)
{
	static struct arena a;
	struct github_commit *all;
	arena_fini(&a);
	int rc = github_read_commits(&a, (struct slice){text, strlen(text)}, "url", &all, count, e);
	if (rc == 0 && *count)
		*first = all[0];
	return rc;
}

static void test_a_list_of_commits_is_read(void **state)
{
	(void)state;
	struct github_commit first = {0};
	struct err e = {0};
	size_t count;
	assert_int_equal(read_commits("[{\"sha\":\"" SHA "\",\"commit\":{\"committer\":{\"date\":\"2025-05-14T23:53:13Z\"}}}]", &first,
				      &count, &e), 0);
	assert_int_equal(count, 1);
	assert_string_equal(first.sha, SHA);
	assert_string_equal(first.committed_at, "2025-05-14T23:53:13Z");
	assert_int_equal(read_commits("[{\"sha\":\"" SHA "\",\"commit\":{\"committer\":{\"date\":\"soon\"}}}]", &first, &count, &e), 0);
	assert_null(first.committed_at);
	assert_int_equal(read_commits("[]", &first, &count, &e), 0);
	assert_int_equal(count, 0);
}

static void test_anything_else_is_no_list_of_commits(void **state)
{
	(void)state;
	static const char *const texts[] = {
		"", "{}", "{\"message\":\"moved\"}", "[{\"sha\":\"main\"}]", "[{\"sha\":\"../../../../etc/passwd\"}]", "[null]", "[[]]",
		"[{\"sha\":7}]", "[{\"sha\":\"" SHA "\"},{}]", "[", "null", "[{\"sha\":\"" SHA "\",\"sha\":\"" SHA "\"}]",
	};
	for (size_t i = 0; i < COUNT(texts); i++) {
		struct github_commit first;
		struct err e = {0};
		size_t count;
		if (read_commits(texts[i], &first, &count, &e) == 0)
			fail_msg("%s is taken for a list of commits", texts[i]);
		assert_int_equal(e.code, ERR_DATA);
	}
}

static void test_a_list_of_entries_gives_each_good_line_once(void **state)
{
	(void)state;
	static const char text[] = "b6ed735\r\nc1bdc24\n\n../../x\n81f932a-v0.6.5\nb6ed735\nB\n7644a0f";
	struct arena a = {0};
	struct entry_index index;
	struct err e = {0};
	assert_int_equal(index_read(&a, (struct slice){text, sizeof text - 1}, "commits.txt", &index, &e), -1);
	assert_int_equal(e.code, ERR_DATA);
	assert_int_equal(e.line, 4);
	assert_int_equal(index.count, 4);
	assert_string_equal(index.entries[0], "b6ed735");
	assert_string_equal(index.entries[2], "81f932a-v0.6.5");
	assert_string_equal(index.entries[3], "7644a0f");
	arena_fini(&a);
}

static void test_an_entry_gets_its_commit_only_from_a_fitting_line(void **state)
{
	(void)state;
	static const char text[] = "0011223\t" SHA "\n0011223-v1\t" SHA "\nabcdef0\t" SHA "\n0011224\tmain\n";
	struct slice table = {text, sizeof text - 1};
	struct arena a = {0};
	assert_string_equal(index_commit(&a, table, "0011223"), SHA);
	assert_string_equal(index_commit(&a, table, "0011223-v1"), SHA);
	assert_null(index_commit(&a, table, "abcdef0"));
	assert_null(index_commit(&a, table, "0011224"));
	assert_null(index_commit(&a, table, "0011225"));
	arena_fini(&a);
}

#define DIGEST_A "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static struct published *load_list(const char *text, struct err *e)
{
	char path[] = "/tmp/test_fetch.XXXXXX";
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(file_write_all(fd, text, strlen(text), path, e), 0);
	close(fd);
	struct published *list = published_load(path, e);
	unlink(path);
	return list;
}

static void test_a_published_commit_is_known_by_its_first_digits(void **state)
{
	(void)state;
	struct err e = {0};
	struct published *list = load_list("committed\t001122334455\t" DIGEST_A "\ngh-pages\t0011223-v1\t" DIGEST_A "\n", &e);
	struct publication p = {.channel = "committed", .commit = SHA};
	assert_non_null(list);
	assert_true(digest_parse(DIGEST_A, strlen(DIGEST_A), &p.sha256));
	assert_true(published_has(list, &p));
	p.channel = "cutile";
	assert_false(published_has(list, &p));
	p = (struct publication){.channel = "gh-pages", .entry = "0011223-v1", .commit = SHA, .sha256 = p.sha256};
	assert_true(published_has(list, &p));
	p.entry = "0011223";
	assert_false(published_has(list, &p));
	p = (struct publication){.channel = "committed", .commit = SHA};
	assert_false(published_has(list, &p));
	published_free(list);
}

static void test_a_malformed_published_list_is_refused_with_its_line(void **state)
{
	(void)state;
	static const char *const texts[] = {
		"committed\t" SHA "\t" DIGEST_A "\ncommitted " SHA " " DIGEST_A "\n",
		"committed\t" SHA "\t" DIGEST_A "\ncommitted\t" SHA "\tsha256:aa\n",
		"committed\t" SHA "\t" DIGEST_A "\ncommitted\t" SHA "\t" DIGEST_A,
		"committed\t" SHA "\t" DIGEST_A "\n\n",
	};
	for (size_t i = 0; i < COUNT(texts); i++) {
		struct err e = {0};
		assert_null(load_list(texts[i], &e));
		assert_int_equal(e.code, ERR_DATA);
		assert_int_equal(e.line, 2);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_public_addresses_may_be_connected_to),
		cmocka_unit_test(test_special_addresses_are_refused),
		cmocka_unit_test(test_the_shipped_config_names_four_channels_and_two_hosts),
		cmocka_unit_test(test_urls_of_the_listed_hosts_are_put_together_again),
		cmocka_unit_test(test_urls_outside_the_policy_are_not_permitted),
		cmocka_unit_test(test_wrong_config_is_refused_with_its_position),
		cmocka_unit_test(test_the_testing_section_maps_listed_hosts_to_loopback_only),
		cmocka_unit_test(test_the_testing_section_needs_a_named_config_directory),
		cmocka_unit_test(test_a_token_that_cannot_stand_in_a_header_is_refused),
		cmocka_unit_test(test_names_from_upstream_are_checked_before_use),
		cmocka_unit_test(test_a_list_of_commits_is_read),
		cmocka_unit_test(test_anything_else_is_no_list_of_commits),
		cmocka_unit_test(test_a_list_of_entries_gives_each_good_line_once),
		cmocka_unit_test(test_an_entry_gets_its_commit_only_from_a_fitting_line),
		cmocka_unit_test(test_a_published_commit_is_known_by_its_first_digits),
		cmocka_unit_test(test_a_malformed_published_list_is_refused_with_its_line),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
