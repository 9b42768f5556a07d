#include "normalize/operations.h"

#include <stdlib.h>
#include <string.h>

bool operations_axis_name(const char *s)
{
	if (*s < 'a' || *s > 'z')
		return false;
	return strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789_") == strlen(s);
}

static int load_dims(const struct document *d, const struct place *at, const json_t *shape, struct tensor *t)
{
	t->rank = json_array_size(shape);
	if (t->rank == 0 || t->rank > DIMS_MAX)
		return document_complain(d, at, "a shape has 1 to %d dimensions", DIMS_MAX);
	for (size_t i = 0; i < t->rank; i++) {
		const json_t *dim = json_array_get(shape, i);
		if (json_is_integer(dim) && json_integer_value(dim) > 0)
			t->dims[i].number = json_integer_value(dim);
		else if (json_is_string(dim) && operations_axis_name(json_string_value(dim)))
			t->dims[i].name = arena_strdup(d->arena, json_string_value(dim));
		else
			return document_complain(d, &(struct place){.up = at, .index = i}, "an axis name or a positive whole number expected");
	}
	return 0;
}

static bool tensor_dtype(const struct curate *c, const char *dtype)
{
	static const char *const others[] = {"cfg", "int64", "int32", "bool"};
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		if (strcmp(dtype, others[i]) == 0)
			return true;
	for (size_t i = 0; i < c->dtype_count; i++)
		if (strcmp(dtype, c->dtypes[i].token) == 0)
			return true;
	return false;
}

static int load_tensor(const struct curate *c, const struct document *d, const struct place *at, const json_t *item,
		       struct tensor *t)
{
	struct place shape_at = {.up = at, .key = "shape"};
	if (document_keys(d, at, item, "name shape dtype"))
		return -1;
	t->name = document_text(d, at, item, "name", true);
	t->dtype = document_text(d, at, item, "dtype", true);
	const json_t *shape = document_array(d, at, item, "shape", true);
	if (document_failed(d))
		return -1;
	if (!operations_axis_name(t->name))
		return document_complain(d, &(struct place){.up = at, .key = "name"}, "not a name: \"%s\"", t->name);
	if (!tensor_dtype(c, t->dtype))
		return document_complain(d, &(struct place){.up = at, .key = "dtype"}, "unknown dtype \"%s\"", t->dtype);
	return load_dims(d, &shape_at, shape, t);
}

static int load_tensors(struct curate *c, const struct document *d, const struct place *at, const json_t *object, const char *key,
			struct tensor **out, size_t *count)
{
	const json_t *array = document_array(d, at, object, key, true);
	struct place here = {.up = at, .key = key};
	if (!array)
		return -1;
	*count = json_array_size(array);
	if (*count == 0)
		return document_complain(d, &here, "an operation needs at least one tensor here");
	*out = arena_alloc(&c->arena, *count * sizeof **out);
	for (size_t i = 0; i < *count; i++) {
		struct place item = {.up = &here, .index = i};
		if (load_tensor(c, d, &item, json_array_get(array, i), &(*out)[i]))
			return -1;
		for (size_t j = 0; j < i; j++)
			if (strcmp((*out)[j].name, (*out)[i].name) == 0)
				return document_complain(d, &item, "a second tensor named %s", (*out)[i].name);
	}
	return 0;
}

static int load_derived(const struct document *d, const struct place *at, const json_t *object, struct operation *op)
{
	const json_t *derived = document_object(d, at, object, "derived", false);
	struct place here = {.up = at, .key = "derived"};
	const char *key;
	json_t *value;
	if (!derived)
		return document_failed(d) ? -1 : 0;
	json_object_foreach((json_t *)derived, key, value) {
		struct place item = {.up = &here, .key = key};
		if (!operations_axis_name(key) || !json_is_string(value) || op->derived_count == AXES_MAX)
			return document_complain(d, &item, "an axis name with an expression expected");
		op->derived[op->derived_count++] =
			(struct derived){arena_strdup(d->arena, key), arena_strdup(d->arena, json_string_value(value))};
	}
	return 0;
}

static void note_variable(struct operation *op, const char *name)
{
	for (size_t i = 0; i < op->derived_count; i++)
		if (strcmp(op->derived[i].name, name) == 0)
			return;
	if (!list_has(&op->variables, (struct slice){name, strlen(name)}))
		op->variables.items[op->variables.count++] = name;
}

static int compare_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void collect_variables(struct curate *c, struct operation *op)
{
	op->variables.items = arena_alloc(&c->arena, (op->input_count + op->output_count) * DIMS_MAX * sizeof(char *));
	for (size_t i = 0; i < op->input_count + op->output_count; i++) {
		const struct tensor *t = i < op->input_count ? &op->inputs[i] : &op->outputs[i - op->input_count];
		for (size_t j = 0; j < t->rank; j++)
			if (t->dims[j].name)
				note_variable(op, t->dims[j].name);
	}
	qsort(op->variables.items, op->variables.count, sizeof *op->variables.items, compare_text);
}

static int load_operation(struct curate *c, const struct document *d, const struct place *at, const json_t *object,
			  struct operation *op)
{
	if (document_keys(d, at, object, "status family title description inputs outputs derived forward backward"))
		return -1;
	op->slug = arena_strdup(&c->arena, at->key);
	op->prior = document_prior(d, at, object);
	op->family = document_text(d, at, object, "family", true);
	op->title = document_text(d, at, object, "title", true);
	op->description = document_text(d, at, object, "description", true);
	document_text(d, at, object, "forward", false);
	document_text(d, at, object, "backward", false);
	if (document_failed(d) || load_tensors(c, d, at, object, "inputs", &op->inputs, &op->input_count) ||
	    load_tensors(c, d, at, object, "outputs", &op->outputs, &op->output_count) || load_derived(d, at, object, op))
		return -1;
	if (strncmp(op->slug, "liger-", 6) != 0)
		return document_complain(d, at, "the slug of an operation starts with liger-");
	collect_variables(c, op);
	return 0;
}

int operations_load(struct curate *c, const struct document *d)
{
	const json_t *table = document_object(d, NULL, d->root, "operations", true);
	struct place here = {.key = "operations"};
	const char *key;
	json_t *value;
	if (!table)
		return -1;
	c->operations = arena_alloc(&c->arena, json_object_size(table) * sizeof *c->operations);
	json_object_foreach((json_t *)table, key, value) {
		struct place at = {.up = &here, .key = key};
		if (load_operation(c, d, &at, value, &c->operations[c->operation_count++]))
			return -1;
	}
	return 0;
}
