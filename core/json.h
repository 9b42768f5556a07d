/* JSON: strict loading through jansson, and the only writer of canonical text (RFC 8785: object names sorted by UTF-16 code
 * units at every level, no white space, ECMAScript number text, minimal escapes, UTF-8). Writing goes straight into a buffer;
 * there is no pretty printer here. */
#ifndef KI_CORE_JSON_H
#define KI_CORE_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "core/arena.h"
#include "core/err.h"

enum {
	JSON_DEPTH_MAX = 64,     /* nesting accepted by json_load */
	JSON_NUMBER_MAX = 32,    /* room for json_number, NUL included */
	JSON_CONFIG_MAX = 4 << 20,
};

/* Loads one document of any type: duplicate names, trailing text, lone surrogates, bad UTF-8, NUL escapes and nesting beyond
 * JSON_DEPTH_MAX are errors (ERR_DATA, with `file`, line and column). A number beyond 64 bits is the nearest double. The caller
 * owns the result. */
json_t *json_load_text(const char *text, size_t len, const char *file, struct err *e);
/* The same where every number becomes a double, as RFC 8785 asks, and `\u0000` in values is accepted. */
json_t *json_load_numbers_as_double(const char *text, size_t len, const char *file, struct err *e);

/* Loads a file of config/, of at most JSON_CONFIG_MAX bytes. Whatever is wrong with it is ERR_CONFIG. The caller owns the result. */
json_t *json_load_config(const char *path, struct err *e);
/* Sets a member to a text; one that is not UTF-8 is left out. */
void json_set_slice(json_t *object, const char *name, struct slice text);

/* Appends the canonical text of `value`. ERR_DATA for a number that has none (it cannot come from the loaders), and for NULL, which
 * is what jansson makes of a text that is not UTF-8 or a number that is not finite. */
int json_canonical(const json_t *value, struct buf *out, struct err *e);
/* ERR_DATA, naming `what`, unless the text is a JSON object in its canonical form. */
int json_check_canonical(struct slice text, const char *what, struct err *e);
/* The sum of all whole numbers of a tree; 0 for NULL. */
json_int_t json_total(const json_t *value);
/* Writes the canonical text and a newline to a stream, whose errors are its owner's to look for. */
int json_put_line(const json_t *value, FILE *out, struct err *e);

/* A member's text, "" when there is none; its whole number, 0 when there is none. NULL has no members. */
const char *json_text_of(const json_t *object, const char *name);
json_int_t json_whole_of(const json_t *object, const char *name);

/* Writes the ECMAScript text of a finite double and a NUL; returns its length. `value` must be finite. */
size_t json_number(double value, char out[JSON_NUMBER_MAX]);
/* The decimal digits (no trailing zero) and exponent: value = digits * 10^exponent, the shortest that reads back, nearest in a
 * tie. `value` must be finite and above zero. */
uint64_t json_shortest(double value, int *exponent);

/* Append one quoted, escaped string (must be UTF-8), a number, a name with its colon. */
void json_put_string(struct buf *out, const char *text, size_t len);
void json_put_str(struct buf *out, const char *text);
void json_put_number(struct buf *out, double value);

/* Compares two UTF-8 strings by UTF-16 code units, as memcmp does. */
int json_compare_names(const char *a, size_t a_len, const char *b, size_t b_len);
/* True when the bytes are well-formed UTF-8 (no surrogates, no overlong forms). */
bool json_is_utf8(const char *text, size_t len);

/* Reads a JSON number that is a whole number within +-(2^53 - 1), written as integer or real (manifests.md section 3). */
bool json_whole(const json_t *value, int64_t *out);

#endif
