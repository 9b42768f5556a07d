/* Reading a config file: a JSON tree with the means to say where in the text a mistake is. The first mistake sticks: getters
 * then give harmless values ("" and 0 and empty lists), so a loader may read a whole item and look at the error once. */
#ifndef KI_NORMALIZE_DOCUMENT_H
#define KI_NORMALIZE_DOCUMENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "core/arena.h"
#include "core/err.h"

enum { DOCUMENT_MAX = 8 << 20 };

/* The way from the root to a value, kept on the stack of those who walk down. */
struct place {
	const struct place *up;
	const char *key; /* NULL: an array element */
	size_t index;
};

struct document {
	const char *path;
	struct buf text;
	json_t *root;
	struct arena *arena; /* owns the strings that getters return */
	struct err *e;
};

struct list;

/* Reads `directory`/`name`, which must hold an object with `"version": 1`. */
int document_open(struct document *d, const char *directory, const char *name, struct arena *arena, struct err *e);
/* Frees text and tree; strings from getters stay. */
void document_close(struct document *d);

bool document_failed(const struct document *d);
/* Sets the error at the position of `at` (ERR_CONFIG). Returns -1. */
int document_complain(const struct document *d, const struct place *at, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* JSON pointer of `at`, in the arena. */
const char *document_pointer(const struct document *d, const struct place *at);

/* Complains about every name in `object` that is not in the space-separated `allowed`. */
int document_keys(const struct document *d, const struct place *at, const json_t *object, const char *allowed);
/* Members. A missing one is a mistake when `required`; a wrong type always is. */
const char *document_text(const struct document *d, const struct place *at, const json_t *object, const char *key, bool required);
const json_t *document_object(const struct document *d, const struct place *at, const json_t *object, const char *key, bool required);
const json_t *document_array(const struct document *d, const struct place *at, const json_t *object, const char *key, bool required);
bool document_bool(const struct document *d, const struct place *at, const json_t *object, const char *key);
/* An array of strings, or empty. */
struct list document_list(const struct document *d, const struct place *at, const json_t *object, const char *key, bool required);
/* The member `status`: true for `prior`, false for `new`, a mistake for anything else. */
bool document_prior(const struct document *d, const struct place *at, const json_t *object);
/* The canonical text of a value, in the arena. */
struct slice document_canonical(const struct document *d, const struct place *at, const json_t *value);

#endif
