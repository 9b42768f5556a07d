#include "store/leaf.h"

#include <stdlib.h>
#include <string.h>

#include "core/json.h"

static void put_value(const char *name, const json_t *value, leaf_put *put, void *context)
{
	struct buf text = {0};
	struct err ignored = {0};
	if (json_is_string(value))
		buf_add(&text, json_string_value(value), json_string_length(value));
	else
		json_canonical(value, &text, &ignored);
	put(context, name, (struct slice){text.data ? text.data : "", text.len});
	buf_fini(&text);
}

static int compare_keys(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void leaf_each(const char *name, const json_t *value, leaf_put *put, void *context)
{
	const char *key;
	json_t *item;
	size_t count = 0;
	if (!json_is_object(value) || json_object_size(value) == 0) {
		put_value(name, value, put, context);
		return;
	}
	const char **keys = xmalloc(json_object_size(value) * sizeof *keys);
	json_object_foreach((json_t *)value, key, item)
		keys[count++] = key;
	qsort(keys, count, sizeof *keys, compare_keys);
	for (size_t i = 0; i < count; i++) {
		struct buf path = {0};
		buf_printf(&path, "%s%s%s", name, *name ? "." : "", keys[i]);
		leaf_each(path.data, json_object_get(value, keys[i]), put, context);
		buf_fini(&path);
	}
	free(keys);
}
