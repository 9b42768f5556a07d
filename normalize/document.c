#include "normalize/document.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/file.h"
#include "core/json.h"
#include "normalize/curate.h"
#include "core/locate.h"

int document_open(struct document *d, const char *directory, const char *name, struct arena *arena, struct err *e)
{
	*d = (struct document){.path = arena_printf(arena, "%s/%s", directory, name), .arena = arena, .e = e};
	if (file_read(d->path, DOCUMENT_MAX, &d->text, e) || !(d->root = json_load_text(d->text.data, d->text.len, d->path, e))) {
		err_in_config(e);
		return -1;
	}
	if (!json_is_object(d->root))
		return document_complain(d, NULL, "an object expected");
	if (json_integer_value(json_object_get(d->root, "version")) != 1)
		return document_complain(d, &(struct place){.key = "version"}, "\"version\": 1 expected");
	return 0;
}

void document_close(struct document *d)
{
	buf_fini(&d->text);
	json_decref(d->root);
	d->root = NULL;
}

bool document_failed(const struct document *d)
{
	return d->e->code != ERR_NONE;
}

const char *document_pointer(const struct document *d, const struct place *at)
{
	if (!at)
		return "";
	const char *up = document_pointer(d, at->up);
	if (!at->key)
		return arena_printf(d->arena, "%s/%zu", up, at->index);
	struct buf part = {0};
	for (const char *p = at->key; *p; p++) {
		if (*p == '~' || *p == '/')
			buf_str(&part, *p == '~' ? "~0" : "~1");
		else
			buf_char(&part, *p);
	}
	const char *pointer = arena_printf(d->arena, "%s/%s", up, part.len ? part.data : "");
	buf_fini(&part);
	return pointer;
}

int document_complain(const struct document *d, const struct place *at, const char *format, ...)
{
	char text[512];
	unsigned line, column;
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	const char *pointer = document_pointer(d, at);
	locate(d->text.data, d->text.len, pointer, &line, &column);
	return err_at(d->e, ERR_CONFIG, d->path, line, column, "%s: %s", *pointer ? pointer + 1 : "document", text);
}

static bool word_in(const char *words, const char *word)
{
	size_t len = strlen(word);
	for (const char *p = words; (p = strstr(p, word)); p += len)
		if ((p == words || p[-1] == ' ') && (p[len] == ' ' || p[len] == '\0'))
			return true;
	return false;
}

int document_keys(const struct document *d, const struct place *at, const json_t *object, const char *allowed)
{
	const char *key;
	json_t *value;
	if (!json_is_object(object))
		return document_complain(d, at, "an object expected");
	json_object_foreach((json_t *)object, key, value)
		if (!word_in(allowed, key))
			return document_complain(d, &(struct place){.up = at, .key = key}, "unknown key");
	return 0;
}

/* The member, or NULL after a complaint if it was required. */
static const json_t *member(const struct document *d, const struct place *at, const json_t *object, const char *key, bool required)
{
	const json_t *value = json_object_get(object, key);
	if (!value && required)
		document_complain(d, at, "\"%s\" is missing", key);
	return value;
}

const char *document_text(const struct document *d, const struct place *at, const json_t *object, const char *key, bool required)
{
	const json_t *value = member(d, at, object, key, required);
	if (!value)
		return required ? "" : NULL;
	if (json_is_string(value))
		return arena_strdup(d->arena, json_string_value(value));
	document_complain(d, &(struct place){.up = at, .key = key}, "a string expected");
	return "";
}

const json_t *document_object(const struct document *d, const struct place *at, const json_t *object, const char *key, bool required)
{
	const json_t *value = member(d, at, object, key, required);
	if (!value || json_is_object(value))
		return value;
	document_complain(d, &(struct place){.up = at, .key = key}, "an object expected");
	return NULL;
}

const json_t *document_array(const struct document *d, const struct place *at, const json_t *object, const char *key, bool required)
{
	const json_t *value = member(d, at, object, key, required);
	if (!value || json_is_array(value))
		return value;
	document_complain(d, &(struct place){.up = at, .key = key}, "a list expected");
	return NULL;
}

bool document_bool(const struct document *d, const struct place *at, const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);
	if (value && !json_is_boolean(value))
		document_complain(d, &(struct place){.up = at, .key = key}, "true or false expected");
	return json_is_true(value);
}

struct list document_list(const struct document *d, const struct place *at, const json_t *object, const char *key, bool required)
{
	const json_t *array = document_array(d, at, object, key, required);
	struct place here = {.up = at, .key = key};
	struct list out = {.items = arena_alloc(d->arena, json_array_size(array) * sizeof *out.items)}; /* there also when empty */
	for (size_t i = 0; i < json_array_size(array); i++) {
		const json_t *item = json_array_get(array, i);
		if (!json_is_string(item)) {
			document_complain(d, &(struct place){.up = &here, .index = i}, "a string expected");
			return out;
		}
		out.items[out.count++] = arena_strdup(d->arena, json_string_value(item));
	}
	return out;
}

bool document_prior(const struct document *d, const struct place *at, const json_t *object)
{
	const char *status = document_text(d, at, object, "status", true);
	if (strcmp(status, "prior") != 0 && strcmp(status, "new") != 0)
		document_complain(d, &(struct place){.up = at, .key = "status"}, "\"prior\" or \"new\" expected");
	return strcmp(status, "prior") == 0;
}

struct slice document_canonical(const struct document *d, const struct place *at, const json_t *value)
{
	struct buf text = {0};
	struct err ignored = {0};
	if (!value || json_canonical(value, &text, &ignored))
		document_complain(d, at, "no canonical text");
	struct slice out = {arena_strndup(d->arena, text.len ? text.data : "", text.len), text.len};
	buf_fini(&text);
	return out;
}
