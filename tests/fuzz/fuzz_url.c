/* What upstream may answer with, a line each: a URL to follow, a header to keep, a header with a number, an address. */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "fuzz.h"
#include "ingest/address.h"
#include "ingest/header.h"
#include "ingest/url.h"

static char *text_of(struct slice s)
{
	char *text = xmalloc(s.len + 1);
	memcpy(text, s.data, s.len);
	text[s.len] = '\0';
	return text;
}

static void check_url(const struct sources *sources, const char *text)
{
	struct url u, again;
	struct err e = {0};
	int rc = url_check(sources, text, &u, &e);
	must_agree(rc != 0, &e);
	if (rc) {
		must(e.code == ERR_NOPERM, "a URL is refused by policy");
	} else {
		size_t host = strlen(u.host->name);
		must(strncmp(u.text, "https://", 8) == 0 && strncmp(u.text + 8, u.host->name, host) == 0 && u.text[8 + host] == '/',
		     "what is fetched is https and a host of the list");
		must(sources_host(sources, u.host->name) == u.host, "the host is one of the list");
		must(url_check(sources, u.text, &again, &e) == 0 && strcmp(again.text, u.text) == 0, "a URL put together again stays as it is");
		url_fini(&again);
	}
	url_fini(&u);
}

static void check_header(const char *value)
{
	char *kept = header_text(value);
	if (kept) {
		must(strcmp(kept, value) == 0 && strlen(kept) <= HEADER_TEXT_MAX && json_is_utf8(kept, strlen(kept)) && !strpbrk(kept, "\r\n"),
		     "a header that is kept is text of one line");
		free(kept);
	}
}

static bool is_public(int family, const void *bytes)
{
	char text[INET6_ADDRSTRLEN];
	return address_text_is_public(inet_ntop(family, bytes, text, sizeof text));
}

/* The same four bytes alone and inside an IPv6 address. */
static void check_address(struct slice bytes)
{
	uint8_t v6[16] = {[10] = 0xff, [11] = 0xff};
	if (bytes.len >= 4) {
		memcpy(v6 + 12, bytes.data, 4);
		must(is_public(AF_INET, bytes.data) == is_public(AF_INET6, v6), "an IPv4 address is judged alike wherever it stands");
	}
	if (bytes.len >= sizeof v6) {
		memcpy(v6, bytes.data, sizeof v6);
		must(!is_public(AF_INET6, v6) || v6[0] >> 5 == 1 || v6[0] == 0, "only global unicast is public");
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct sources *sources;
	struct err e = {0};
	struct feed feed = {data, size};
	if (!sources)
		must((sources = sources_load("config", false, &e)) != NULL, "config/ loads (run from the top of the tree)");
	char *url = text_of(feed_line(&feed)), *header = text_of(feed_line(&feed)), *number = text_of(feed_line(&feed)), *address = text_of(feed_line(&feed));
	check_url(sources, url);
	check_header(header);
	int64_t value = header_number(number);
	must(value >= -1 && value < INT64_C(1000000000000000), "a header's number has at most 15 digits");
	must(!(address_text_is_public(address) && address_text_is_loopback(address)), "loopback is not public");
	check_address(feed_rest(&feed));
	free(url);
	free(header);
	free(number);
	free(address);
	return 0;
}
