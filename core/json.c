#include "core/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "core/pow10.h"

__extension__ typedef unsigned __int128 u128;

/* Finds nesting beyond the limit before the parser recurses into it. */
static int check_depth(const char *text, size_t len, const char *file, struct err *e)
{
	unsigned depth = 0, line = 1, column = 0;
	bool quoted = false;
	for (size_t i = 0; i < len; i++) {
		char c = text[i];
		column++;
		if (c == '\n') {
			line++;
			column = 0;
		}
		if (quoted) {
			if (c == '\\')
				i++, column++;
			else if (c == '"')
				quoted = false;
		} else if (c == '"') {
			quoted = true;
		} else if (c == '{' || c == '[') {
			if (++depth > JSON_DEPTH_MAX)
				return err_at(e, ERR_DATA, file, line, column, "nested deeper than %d levels", JSON_DEPTH_MAX);
		} else if (c == '}' || c == ']') {
			depth--;
		}
	}
	return 0;
}

/* A real that is a whole number within +-(2^53 - 1) as the integer that jansson makes of it elsewhere. Takes and gives the reference. */
static json_t *whole_as_integer(json_t *value)
{
	int64_t whole;
	const char *name;
	json_t *item;
	size_t i;
	json_object_foreach(value, name, item)
		json_object_set_new(value, name, whole_as_integer(json_incref(item)));
	json_array_foreach(value, i, item)
		json_array_set_new(value, i, whole_as_integer(json_incref(item)));
	if (!json_is_real(value) || !json_whole(value, &whole))
		return value;
	json_decref(value);
	return json_integer(whole);
}

static json_t *load(const char *text, size_t len, size_t flags, const char *file, struct err *e)
{
	json_error_t where;
	if (check_depth(text, len, file, e))
		return NULL;
	json_t *value = json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | flags, &where);
	/* An integer beyond 64 bits, as which 1e20 is written in canonical text: jansson takes it only as a double. */
	if (!value && flags == 0 && json_error_code(&where) == json_error_numeric_overflow)
		value = whole_as_integer(json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL, &where));
	if (!value)
		err_at(e, ERR_DATA, file, (unsigned)(where.line > 0 ? where.line : 0),
		       (unsigned)(where.column > 0 ? where.column : 0), "not JSON: %s", where.text);
	return value;
}

json_t *json_load_text(const char *text, size_t len, const char *file, struct err *e)
{
	return load(text, len, 0, file, e);
}

json_t *json_load_numbers_as_double(const char *text, size_t len, const char *file, struct err *e)
{
	return load(text, len, JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL, file, e);
}

void json_set_slice(json_t *object, const char *name, struct slice text)
{
	json_object_set_new(object, name, json_stringn(text.data, text.len));
}

json_t *json_load_config(const char *path, struct err *e)
{
	struct buf text = {0};
	json_t *root = file_read(path, JSON_CONFIG_MAX, &text, e) == 0 ? json_load_text(text.data, text.len, path, e) : NULL;
	if (!root)
		err_in_config(e);
	buf_fini(&text);
	return root;
}

/* floor(log10(2^e)), floor(log10(3/4 * 2^e)) and floor(log2(10^e)), exact in the ranges that doubles need. */
static int log10_pow2(int e)
{
	return (e * 1262611) >> 22;
}

static int log10_three_quarters_pow2(int e)
{
	return (e * 1262611 - 524031) >> 22;
}

static int log2_pow10(int e)
{
	return (e * 1741647) >> 19;
}

/* The high part of g * x / 2^128, its last bit set when anything was cut off. */
static uint64_t scale_to_odd(const uint64_t g[2], uint64_t x)
{
	u128 low = (u128)g[1] * x, high = (u128)g[0] * x + (uint64_t)(low >> 64);
	return (uint64_t)(high >> 64) | ((uint64_t)high > 1);
}

static uint64_t strip_zeros(uint64_t digits, int *exponent)
{
	while (digits % 10 == 0) {
		digits /= 10;
		++*exponent;
	}
	return digits;
}

/* Schubfach (R. Giulietti, "The Schubfach way to render doubles"): scale the rounding interval of the double to integers with
 * two fraction bits, then take the multiple of ten, or else of one, that lies inside and nearest. */
uint64_t json_shortest(double value, int *exponent)
{
	uint64_t bits, fraction, c;
	memcpy(&bits, &value, sizeof bits);
	fraction = bits & ((UINT64_C(1) << 52) - 1);
	int biased = (int)(bits >> 52 & 0x7ff), q = biased ? biased - 1075 : -1074;
	c = biased ? fraction | UINT64_C(1) << 52 : fraction;
	if (q <= 0 && q >= -52 && (c & ((UINT64_C(1) << -q) - 1)) == 0) {
		*exponent = 0;
		return strip_zeros(c >> -q, exponent);
	}
	bool odd = c & 1, lower_closer = fraction == 0 && biased > 1;
	int k = lower_closer ? log10_three_quarters_pow2(q) : log10_pow2(q);
	int h = q + log2_pow10(-k) + 1;
	const uint64_t *g = pow10_table[-k - POW10_MIN];
	uint64_t low = scale_to_odd(g, (4 * c - 2 + lower_closer) << h) + odd;
	uint64_t mid = scale_to_odd(g, (4 * c) << h);
	uint64_t high = scale_to_odd(g, (4 * c + 2) << h) - odd;
	uint64_t s = mid / 4, tens = s / 10;
	if (s >= 10) {
		bool under = low <= 40 * tens, over = 40 * tens + 40 <= high;
		if (under != over) {
			*exponent = k + 1;
			return strip_zeros(tens + over, exponent);
		}
	}
	bool under = low <= 4 * s, over = 4 * s + 4 <= high;
	bool up = under != over ? over : mid > 4 * s + 2 || (mid == 4 * s + 2 && (s & 1));
	*exponent = k;
	return strip_zeros(s + up, exponent);
}

static char *put_digits(char *p, const char *digits, int count)
{
	memcpy(p, digits, (size_t)count);
	return p + count;
}

static char *put_zeros(char *p, int count)
{
	memset(p, '0', (size_t)count);
	return p + count;
}

static char *put_exponent(char *p, int exponent)
{
	*p++ = 'e';
	*p++ = exponent < 0 ? '-' : '+';
	unsigned rest = (unsigned)abs(exponent);
	if (rest >= 100)
		*p++ = (char)('0' + rest / 100);
	if (rest >= 10)
		*p++ = (char)('0' + rest / 10 % 10);
	*p++ = (char)('0' + rest % 10);
	return p;
}

/* ECMAScript Number::toString: `n` digits, decimal point after digit `point`. */
static char *put_layout(char *p, const char *digits, int n, int point)
{
	if (point > 0 && point <= 21) {
		if (n <= point)
			return put_zeros(put_digits(p, digits, n), point - n);
		p = put_digits(p, digits, point);
		*p++ = '.';
		return put_digits(p, digits + point, n - point);
	}
	if (point > -6 && point <= 0) {
		*p++ = '0';
		*p++ = '.';
		return put_digits(put_zeros(p, -point), digits, n);
	}
	*p++ = digits[0];
	if (n > 1) {
		*p++ = '.';
		p = put_digits(p, digits + 1, n - 1);
	}
	return put_exponent(p, point - 1);
}

size_t json_number(double value, char out[JSON_NUMBER_MAX])
{
	char *p = out, digits[20], *end = digits + sizeof digits, *first = end;
	int exponent;
	if (value == 0) {
		memcpy(out, "0", 2);
		return 1;
	}
	if (value < 0) {
		*p++ = '-';
		value = -value;
	}
	uint64_t rest = json_shortest(value, &exponent);
	for (; rest; rest /= 10)
		*--first = (char)('0' + rest % 10);
	p = put_layout(p, first, (int)(end - first), (int)(end - first) + exponent);
	*p = '\0';
	return (size_t)(p - out);
}

void json_put_number(struct buf *out, double value)
{
	buf_reserve(out, JSON_NUMBER_MAX);
	out->len += json_number(value, out->data + out->len);
}

static void put_escape(struct buf *out, unsigned char c)
{
	static const char short_form[] = {['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'};
	if (c == '"' || c == '\\') {
		buf_char(out, '\\');
		buf_char(out, (char)c);
	} else if (c < sizeof short_form && short_form[c]) {
		buf_char(out, '\\');
		buf_char(out, short_form[c]);
	} else {
		buf_printf(out, "\\u%04x", c);
	}
}

void json_put_string(struct buf *out, const char *text, size_t len)
{
	size_t start = 0;
	buf_char(out, '"');
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];
		if (c >= 0x20 && c != '"' && c != '\\')
			continue;
		buf_add(out, text + start, i - start);
		put_escape(out, c);
		start = i + 1;
	}
	buf_add(out, text + start, len - start);
	buf_char(out, '"');
}

void json_put_str(struct buf *out, const char *text)
{
	json_put_string(out, text, strlen(text));
}

/* UTF-8 order is code point order; UTF-16 order differs only in that surrogates (U+10000 and up, lead byte 0xf0 and up) sort
 * before U+E000..U+FFFF (lead bytes 0xee and 0xef). */
int json_compare_names(const char *a, size_t a_len, const char *b, size_t b_len)
{
	size_t common = a_len < b_len ? a_len : b_len;
	for (size_t i = 0; i < common; i++) {
		unsigned char x = (unsigned char)a[i], y = (unsigned char)b[i];
		if (x == y)
			continue;
		if (x >= 0xee && y >= 0xee && (x >= 0xf0) != (y >= 0xf0))
			return x >= 0xf0 ? -1 : 1;
		return x < y ? -1 : 1;
	}
	return (a_len > b_len) - (a_len < b_len);
}

struct member {
	const char *name;
	size_t len;
	const json_t *value;
};

static int compare_members(const void *a, const void *b)
{
	const struct member *x = a, *y = b;
	return json_compare_names(x->name, x->len, y->name, y->len);
}

static int put_object(const json_t *object, struct buf *out, struct err *e)
{
	size_t count = 0, room = json_object_size(object);
	struct member *members = xmalloc(room * sizeof *members);
	int rc = 0;
	for (void *at = json_object_iter((json_t *)object); at; at = json_object_iter_next((json_t *)object, at))
		members[count++] = (struct member){json_object_iter_key(at), json_object_iter_key_len(at), json_object_iter_value(at)};
	qsort(members, count, sizeof *members, compare_members);
	buf_char(out, '{');
	for (size_t i = 0; i < count && rc == 0; i++) {
		if (i)
			buf_char(out, ',');
		json_put_string(out, members[i].name, members[i].len);
		buf_char(out, ':');
		rc = json_canonical(members[i].value, out, e);
	}
	buf_char(out, '}');
	free(members);
	return rc;
}

static int put_array(const json_t *array, struct buf *out, struct err *e)
{
	buf_char(out, '[');
	for (size_t i = 0; i < json_array_size(array); i++) {
		if (i)
			buf_char(out, ',');
		if (json_canonical(json_array_get(array, i), out, e))
			return -1;
	}
	buf_char(out, ']');
	return 0;
}

int json_canonical(const json_t *value, struct buf *out, struct err *e)
{
	if (!value)
		return err_set(e, ERR_DATA, "a text that is not UTF-8, or a number that is not finite, has no JSON");
	switch (json_typeof(value)) {
	case JSON_OBJECT:
		return put_object(value, out, e);
	case JSON_ARRAY:
		return put_array(value, out, e);
	case JSON_STRING:
		json_put_string(out, json_string_value(value), json_string_length(value));
		return 0;
	case JSON_INTEGER:
	case JSON_REAL:
		if (!isfinite(json_number_value(value)))
			return err_set(e, ERR_DATA, "a number that is not finite has no canonical text");
		json_put_number(out, json_number_value(value));
		return 0;
	case JSON_TRUE:
		buf_str(out, "true");
		return 0;
	case JSON_FALSE:
		buf_str(out, "false");
		return 0;
	case JSON_NULL:
		break;
	}
	buf_str(out, "null");
	return 0;
}

int json_check_canonical(struct slice text, const char *what, struct err *e)
{
	struct buf again = {0};
	json_t *value = json_load_text(text.data, text.len, what, e);
	int rc = value ? json_canonical(value, &again, e) : -1;
	if (rc == 0 && !(json_is_object(value) && slice_same(text, (struct slice){again.data, again.len})))
		rc = err_at(e, ERR_DATA, what, 0, 0, "not a canonical JSON object");
	json_decref(value);
	buf_fini(&again);
	return rc;
}

json_int_t json_total(const json_t *value)
{
	const char *name;
	json_t *item;
	size_t i;
	json_int_t total = json_integer_value(value);
	json_object_foreach((json_t *)value, name, item)
		total += json_total(item);
	json_array_foreach((json_t *)value, i, item)
		total += json_total(item);
	return total;
}

int json_put_line(const json_t *value, FILE *out, struct err *e)
{
	struct buf text = {0};
	int rc = json_canonical(value, &text, e);
	if (rc == 0)
		fprintf(out, "%s\n", text.data);
	buf_fini(&text);
	return rc;
}

const char *json_text_of(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));
	return text ? text : "";
}

json_int_t json_whole_of(const json_t *object, const char *name)
{
	return json_integer_value(json_object_get(object, name));
}

bool json_is_utf8(const char *text, size_t len)
{
	const unsigned char *s = (const unsigned char *)text;
	for (size_t i = 0; i < len;) {
		unsigned char c = s[i++];
		if (c < 0x80)
			continue;
		int more = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : 1;
		if (c < 0xc2 || c > 0xf4 || len - i < (size_t)more)
			return false;
		unsigned low = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80, high = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
		if (s[i] < low || s[i] > high)
			return false;
		for (i++; --more > 0; i++)
			if ((s[i] & 0xc0) != 0x80)
				return false;
	}
	return true;
}

bool json_whole(const json_t *value, int64_t *out)
{
	const int64_t limit = (INT64_C(1) << 53) - 1;
	if (json_is_integer(value)) {
		*out = json_integer_value(value);
		return *out >= -limit && *out <= limit;
	}
	double real = json_real_value(value);
	if (!json_is_real(value) || real != floor(real) || fabs(real) > (double)limit)
		return false;
	*out = (int64_t)real;
	return true;
}
