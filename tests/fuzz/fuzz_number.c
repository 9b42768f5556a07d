/* Numbers and times, from bits and from text: what is printed reads back as the same value, and is the shortest that does. The
 * first 8 bytes are a double and a time; the rest is text. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "core/when.h"
#include "fuzz.h"
#include "normalize/bind.h"

static bool same(double a, double b)
{
	return memcmp(&a, &b, sizeof a) == 0;
}

static void print_double(double value)
{
	char text[JSON_NUMBER_MAX], shorter[64];
	if (!isfinite(value))
		return;
	size_t len = json_number(value, text);
	must(len < JSON_NUMBER_MAX && len == strlen(text), "a number's text has the length that is returned");
	must(strtod(text, NULL) == value, "a number's text reads back as the number");
	if (value > 0) {
		int exponent, digits;
		uint64_t shortest = json_shortest(value, &exponent);
		digits = snprintf(shorter, sizeof shorter, "%llu", (unsigned long long)shortest);
		must(digits <= 17 && shortest % 10 != 0, "shortest digits end in no zero");
		snprintf(shorter, sizeof shorter, "%.*e", digits > 1 ? digits - 2 : 0, value);
		must(digits == 1 || strtod(shorter, NULL) != value, "no shorter text reads back as the number");
	}
}

static void print_time(int64_t ms)
{
	char text[WHEN_TEXT + 1];
	int64_t back;
	if (ms < 0 || ms > INT64_C(253402300799999))
		return;
	when_text(ms, text);
	must(when_parse_text(text, strlen(text), &back) && back == ms, "a time's text reads back as the time");
}

static void read_time(const char *text, size_t len)
{
	int64_t ms;
	if (!when_parse(text, len, &ms))
		return;
	/* an offset may lead out of the years that have a text, by a day */
	must(ms >= -86400000 && ms <= INT64_C(253402300799999) + 86400000, "a time lies in the years 1970 to 9999");
	print_time(ms);
}

static void read_number(const char *text, size_t len)
{
	char copy[400];
	double value = bind_number((struct slice){text, len});
	if (isnan(value) || len >= sizeof copy)
		return;
	memcpy(copy, text, len);
	copy[len] = '\0';
	must(same(strtod(copy, NULL), value), "a decimal reads as strtod() reads it");
	print_double(value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct feed feed = {data, size};
	uint64_t bits = feed_u64(&feed);
	double value;
	memcpy(&value, &bits, sizeof value);
	print_double(value);
	print_time((int64_t)bits);
	struct slice text = feed_rest(&feed);
	read_time(text.data, text.len);
	read_number(text.data, text.len);
	return 0;
}
