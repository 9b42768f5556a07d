#include "core/when.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static bool digits(const char *text, int count, int *out)
{
	int value = 0;
	for (int i = 0; i < count; i++) {
		if (text[i] < '0' || text[i] > '9')
			return false;
		value = value * 10 + (text[i] - '0');
	}
	*out = value;
	return true;
}

static bool leap(int year)
{
	return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static int days_in(int year, int month)
{
	static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	return days[month - 1] + (month == 2 && leap(year));
}

/* Days since 1970-01-01 (the civil calendar counted from March, so that the leap day comes last). */
static int64_t day_number(int year, int month, int day)
{
	int y = month <= 2 ? year - 1 : year;
	int m = month <= 2 ? month + 9 : month - 3;
	int64_t era = y / 400, of_era = y % 400;
	int64_t of_year = (153 * m + 2) / 5 + day - 1;
	return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static void civil(int64_t days, int *year, int *month, int *day)
{
	int64_t z = days + 719468, era = z / 146097, of_era = z % 146097;
	int64_t y = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
	int64_t of_year = of_era - (365 * y + y / 4 - y / 100), m = (5 * of_year + 2) / 153;
	*day = (int)(of_year - (153 * m + 2) / 5 + 1);
	*month = (int)(m < 10 ? m + 3 : m - 9);
	*year = (int)(y + era * 400 + (*month <= 2));
}

/* Reads the part after the seconds: fraction, then Z or offset. */
static bool parse_tail(const char *text, size_t len, int *fraction_ms, int *offset_minutes)
{
	size_t i = 0;
	*fraction_ms = *offset_minutes = 0;
	if (i < len && text[i] == '.') {
		int scale = 100, count = 0;
		for (i++; i < len && text[i] >= '0' && text[i] <= '9'; i++, count++, scale /= 10) {
			if (count == 3)
				return false;
			*fraction_ms += (text[i] - '0') * scale;
		}
		if (count == 0)
			return false;
	}
	if (i == len || (text[i] == 'Z' && i + 1 == len))
		return true;
	int hours, minutes;
	if (len - i != 6 || (text[i] != '+' && text[i] != '-') || text[i + 3] != ':' || !digits(text + i + 1, 2, &hours) ||
	    !digits(text + i + 4, 2, &minutes) || hours > 23 || minutes > 59)
		return false;
	*offset_minutes = (hours * 60 + minutes) * (text[i] == '+' ? 1 : -1);
	return true;
}

bool when_parse(const char *text, size_t len, int64_t *out_ms)
{
	int year, month, day, hour, minute, second, fraction, offset;
	if (len < 19 || !digits(text, 4, &year) || text[4] != '-' || !digits(text + 5, 2, &month) || text[7] != '-' ||
	    !digits(text + 8, 2, &day) || (text[10] != ' ' && text[10] != 'T') || !digits(text + 11, 2, &hour) ||
	    text[13] != ':' || !digits(text + 14, 2, &minute) || text[16] != ':' || !digits(text + 17, 2, &second))
		return false;
	if (year < 1970 || month < 1 || month > 12 || day < 1 || day > days_in(year, month) || hour > 23 || minute > 59 ||
	    second > 59 || !parse_tail(text + 19, len - 19, &fraction, &offset))
		return false;
	int64_t seconds = day_number(year, month, day) * 86400 + hour * 3600 + minute * 60 + second - offset * 60;
	if (seconds < 0 || seconds > INT64_C(253402300799))
		return false;
	*out_ms = seconds * 1000 + fraction;
	return true;
}

static char *put(char *out, int value, int width)
{
	for (int i = width - 1; i >= 0; i--, value /= 10)
		out[i] = (char)('0' + value % 10);
	return out + width;
}

void when_text(int64_t ms, char out[WHEN_TEXT + 1])
{
	int year, month, day;
	int64_t days = ms / 86400000, rest = ms % 86400000;
	civil(days, &year, &month, &day);
	char *p = put(out, year, 4);
	*p++ = '-';
	p = put(p, month, 2);
	*p++ = '-';
	p = put(p, day, 2);
	*p++ = 'T';
	p = put(p, (int)(rest / 3600000), 2);
	*p++ = ':';
	p = put(p, (int)(rest / 60000 % 60), 2);
	*p++ = ':';
	p = put(p, (int)(rest / 1000 % 60), 2);
	*p++ = '.';
	p = put(p, (int)(rest % 1000), 3);
	*p++ = 'Z';
	*p = '\0';
}

bool when_parse_text(const char *text, size_t len, int64_t *out_ms)
{
	return len == WHEN_TEXT && text[10] == 'T' && text[19] == '.' && text[23] == 'Z' && when_parse(text, len, out_ms);
}

int64_t when_now_ms(void)
{
	const char *fixed = getenv("KI_NOW");
	int64_t ms;
	if (fixed && when_parse(fixed, strlen(fixed), &ms))
		return ms;
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int64_t when_monotonic_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}
