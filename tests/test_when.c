/* Times: what is read, what is refused, and what is written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/when.h"

static void check_reads(const char *text, const char *instant)
{
	char written[WHEN_TEXT + 1];
	int64_t ms;
	if (!when_parse(text, strlen(text), &ms))
		fail_msg("not read: %s", text);
	when_text(ms, written);
	assert_string_equal(instant, written);
}

static void a_time_without_zone_is_utc(void **state)
{
	(void)state;
	check_reads("2024-09-03 15:31:39", "2024-09-03T15:31:39.000Z");
	check_reads("1970-01-01 00:00:00", "1970-01-01T00:00:00.000Z");
	check_reads("2024-02-29 23:59:59", "2024-02-29T23:59:59.000Z");
	check_reads("2000-02-29 00:00:00", "2000-02-29T00:00:00.000Z");
	check_reads("9999-12-31 23:59:59", "9999-12-31T23:59:59.000Z");
}

static void milliseconds_count_from_1970(void **state)
{
	int64_t ms;
	(void)state;
	assert_true(when_parse("2025-10-24 00:53:16", 19, &ms));
	assert_int_equal(1761267196000, ms);
	assert_true(when_parse("1970-01-02 00:00:00", 19, &ms));
	assert_int_equal(86400000, ms);
}

static void zone_and_fraction_are_applied(void **state)
{
	(void)state;
	check_reads("2025-01-31T01:27:42", "2025-01-31T01:27:42.000Z");
	check_reads("2025-01-31 01:27:42Z", "2025-01-31T01:27:42.000Z");
	check_reads("2025-01-31 01:27:42+02:00", "2025-01-30T23:27:42.000Z");
	check_reads("2025-01-31 01:27:42-05:30", "2025-01-31T06:57:42.000Z");
	check_reads("2025-01-31 01:27:42.5", "2025-01-31T01:27:42.500Z");
	check_reads("2025-01-31 01:27:42.123+01:00", "2025-01-31T00:27:42.123Z");
}

static void impossible_times_are_refused(void **state)
{
	static const char *const texts[] = {
		"2025-02-29 10:00:00", "2025-02-30 10:00:00", "1900-02-29 10:00:00", "2100-02-29 10:00:00", "2025-04-31 10:00:00",
		"2025-13-01 10:00:00", "2025-00-10 10:00:00", "2025-01-00 10:00:00", "2025-01-01 24:00:00", "2025-06-30 23:59:60",
		"2025-01-01 10:60:00", "2025-1-1 1:00:00", "01/02/2025 10:00:00", "1735689600", "", "2025-01-01", "2025-01-01 10:00:00 PM",
		"2025-01-01 10:00:00.", "2025-01-01 10:00:00.1234", "2025-01-01 10:00:00+2:00", "2025-01-01 10:00:00+24:00",
		"2025-01-01 10:00:00z", " 2025-01-01 10:00:00", "2025-01-01 10:00:00 ", "1969-12-31 23:59:59", "1970-01-01 00:00:00+01:00",
		"+025-01-01 10:00:00", "2025-01-01\t10:00:00",
	};
	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		int64_t ms;
		if (when_parse(texts[i], strlen(texts[i]), &ms))
			fail_msg("read: \"%s\"", texts[i]);
	}
}

static void only_our_own_form_is_our_own_form(void **state)
{
	int64_t ms;
	(void)state;
	assert_true(when_parse_text("2025-01-31T01:27:42.123Z", 24, &ms));
	assert_int_equal(1738286862123, ms);
	assert_false(when_parse_text("2025-01-31 01:27:42.123Z", 24, &ms));
	assert_false(when_parse_text("2025-01-31T01:27:42.12Z", 23, &ms));
	assert_false(when_parse_text("2025-02-30T01:27:42.123Z", 24, &ms));
}

static void the_zone_of_the_host_plays_no_part(void **state)
{
	static const char *const zones[] = {"UTC", "America/Los_Angeles", "Asia/Kolkata", "Europe/Berlin"};
	(void)state;
	for (size_t i = 0; i < sizeof zones / sizeof *zones; i++) {
		setenv("TZ", zones[i], 1);
		tzset();
		check_reads("2025-03-09 02:30:00", "2025-03-09T02:30:00.000Z");
		check_reads("2025-11-02 01:30:00", "2025-11-02T01:30:00.000Z");
	}
	unsetenv("TZ");
	tzset();
}

static void every_day_of_400_years_comes_back(void **state)
{
	(void)state;
	for (int64_t day = 0; day < 146097; day++) {
		char text[WHEN_TEXT + 1];
		int64_t back;
		when_text(day * 86400000 + 1, text);
		if (!when_parse_text(text, WHEN_TEXT, &back) || back != day * 86400000 + 1)
			fail_msg("day %lld: %s", (long long)day, text);
	}
}

static void the_clock_can_be_fixed(void **state)
{
	(void)state;
	setenv("KI_NOW", "2026-08-10T22:36:34.000Z", 1);
	assert_int_equal(1786401394000, when_now_ms());
	unsetenv("KI_NOW");
	assert_true(when_now_ms() > 1700000000000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_time_without_zone_is_utc),
		cmocka_unit_test(milliseconds_count_from_1970),
		cmocka_unit_test(zone_and_fraction_are_applied),
		cmocka_unit_test(impossible_times_are_refused),
		cmocka_unit_test(only_our_own_form_is_our_own_form),
		cmocka_unit_test(the_zone_of_the_host_plays_no_part),
		cmocka_unit_test(every_day_of_400_years_comes_back),
		cmocka_unit_test(the_clock_can_be_fixed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
