#include "normalize/rules.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- operations ---- */

static bool axis_name(const char *s)
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
		else if (json_is_string(dim) && axis_name(json_string_value(dim)))
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
	if (!axis_name(t->name))
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
		if (!axis_name(key) || !json_is_string(value) || op->derived_count == AXES_MAX)
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

static int load_operations(struct curate *c, const struct document *d)
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

/* ---- rules ---- */

/* The names that expressions of a rule may use; a key that holds no number has the name "". */
struct scope {
	const char *names[1 + GUARDS_MAX + 64];
	size_t count;
};

static bool numeric_guard(const struct guard *g)
{
	return g->type <= GUARD_NUMBER || (g->type == GUARD_CONST && json_is_number(g->constant));
}

static void make_scope(const struct curate *c, const struct rule *r, struct scope *s)
{
	s->count = 0;
	s->names[s->count++] = r->x_model ? "" : "x";
	for (size_t i = 0; i < r->guard_count; i++)
		s->names[s->count++] = numeric_guard(&r->guards[i]) ? r->guards[i].key : "";
	for (size_t i = 0; r->x_model && i < c->model_fields.count; i++)
		s->names[s->count++] = c->model_fields.items[i];
}

static struct expr *compile(const struct document *d, const struct place *at, const json_t *text, const char *const *names,
			    size_t count)
{
	char why[256];
	size_t offset;
	if (!json_is_string(text)) {
		document_complain(d, at, "an expression expected");
		return NULL;
	}
	struct expr *x = expr_compile(d->arena, json_string_value(text), names, count, why, sizeof why, &offset);
	if (!x)
		document_complain(d, at, "%s at character %zu of \"%s\"", why, offset + 1, json_string_value(text));
	return x;
}

static int load_guard(const struct document *d, const struct place *at, json_t *value, struct guard *g)
{
	static const char *const words[] = {[GUARD_INT] = "int", [GUARD_POSITIVE] = "positive", [GUARD_NUMBER] = "number",
					    [GUARD_DTYPE] = "dtype", [GUARD_BOOL] = "bool"};
	g->key = arena_strdup(d->arena, at->key);
	if (json_is_object(value)) {
		if (document_keys(d, at, value, "const"))
			return -1;
		g->type = GUARD_CONST;
		g->constant = json_object_get(value, "const");
		if (!g->constant || json_is_object(g->constant) || json_is_array(g->constant))
			return document_complain(d, at, "\"const\" needs a string, a number, true, false or null");
		return 0;
	}
	for (size_t i = 0; i < GUARD_CONST; i++)
		if (json_is_string(value) && strcmp(json_string_value(value), words[i]) == 0) {
			g->type = (enum guard_type)i;
			return 0;
		}
	return document_complain(d, at, "int, positive, number, dtype, bool or {\"const\": value} expected");
}

static int load_guards(const struct document *d, const struct place *at, const json_t *when, struct rule *r)
{
	const json_t *config = document_object(d, at, when, "config", true);
	struct place here = {.up = at, .key = "config"};
	const char *key;
	json_t *value;
	if (!config)
		return -1;
	json_object_foreach((json_t *)config, key, value) {
		struct place item = {.up = &here, .key = key};
		if (r->guard_count == GUARDS_MAX)
			return document_complain(d, &here, "more than %d keys", GUARDS_MAX);
		if (load_guard(d, &item, value, &r->guards[r->guard_count++]))
			return -1;
	}
	return 0;
}

static int load_when(const struct document *d, const struct place *rule_at, const json_t *object, struct rule *r)
{
	const json_t *when = document_object(d, rule_at, object, "when", true);
	struct place at = {.up = rule_at, .key = "when"};
	if (!when || document_keys(d, &at, when, "x_name not_x_name x config closed"))
		return -1;
	r->x_names = document_list(d, &at, when, "x_name", true);
	r->not_x_names = document_list(d, &at, when, "not_x_name", false);
	r->closed = document_bool(d, &at, when, "closed");
	const char *x = document_text(d, &at, when, "x", true);
	if (document_failed(d))
		return -1;
	r->x_any = r->x_names.count == 1 && strcmp(r->x_names.items[0], "*") == 0;
	r->x_model = strcmp(x, "model") == 0;
	if (!r->x_model && strcmp(x, "int") != 0)
		return document_complain(d, &(struct place){.up = &at, .key = "x"}, "int or model expected");
	if (r->x_names.count == 0)
		return document_complain(d, &(struct place){.up = &at, .key = "x_name"}, "at least one name expected");
	if (r->not_x_names.count && !r->x_any)
		return document_complain(d, &(struct place){.up = &at, .key = "not_x_name"}, "only with x_name \"*\"");
	return load_guards(d, &at, when, r);
}

static int load_zero(const struct document *d, const struct place *at, const json_t *object, const struct scope *s, struct rule *r)
{
	const json_t *zero = document_array(d, at, object, "zero", false);
	struct place here = {.up = at, .key = "zero"};
	for (size_t i = 0; i < json_array_size(zero); i++) {
		struct place item = {.up = &here, .index = i};
		if (i == AXES_MAX)
			return document_complain(d, &here, "more than %d expressions", AXES_MAX);
		r->zero[i] = compile(d, &item, json_array_get(zero, i), s->names, s->count);
		if (!r->zero[i])
			return -1;
		r->zero_count++;
	}
	return document_failed(d) ? -1 : 0;
}

static int load_axes(const struct document *d, const struct place *at, const json_t *object, const struct scope *s, struct rule *r)
{
	const json_t *axes = document_object(d, at, object, "axes", true);
	struct place here = {.up = at, .key = "axes"};
	const char *key;
	json_t *value;
	json_object_foreach((json_t *)axes, key, value) {
		struct place item = {.up = &here, .key = key};
		if (!axis_name(key) || r->axis_count + r->operation->derived_count == AXES_MAX)
			return document_complain(d, &item, "not an axis name, or too many axes");
		r->axis_names[r->axis_count] = arena_strdup(d->arena, key);
		r->axes[r->axis_count] = compile(d, &item, value, s->names, s->count);
		if (!r->axes[r->axis_count++])
			return -1;
	}
	return document_failed(d) ? -1 : 0;
}

static bool has_axis(const struct rule *r, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(r->axis_names[i], name) == 0)
			return true;
	return false;
}

/* The rule's axes against what its operation needs. */
static int join_operation(const struct document *d, const struct place *at, struct rule *r)
{
	struct place axes_at = {.up = at, .key = "axes"};
	char why[256];
	size_t offset;
	for (size_t i = 0; i < r->operation->variables.count; i++)
		if (!has_axis(r, r->axis_count, r->operation->variables.items[i]))
			return document_complain(d, &axes_at, "axis %s of %s is not bound", r->operation->variables.items[i],
						 r->operation->slug);
	for (size_t i = 0; i < r->operation->derived_count; i++) {
		const struct derived *derived = &r->operation->derived[i];
		size_t known = r->axis_count + i;
		if (has_axis(r, known, derived->name))
			return document_complain(d, &axes_at, "axis %s is derived in %s and cannot be bound", derived->name,
						 r->operation->slug);
		r->derived[i] = expr_compile(d->arena, derived->expression, r->axis_names, known, why, sizeof why, &offset);
		if (!r->derived[i])
			return document_complain(d, &axes_at, "derived axis %s of %s: %s", derived->name, r->operation->slug, why);
		r->axis_names[known] = derived->name;
	}
	return 0;
}

static const struct guard *find_guard(const struct rule *r, const char *key)
{
	for (size_t i = 0; i < r->guard_count; i++)
		if (strcmp(r->guards[i].key, key) == 0)
			return &r->guards[i];
	return NULL;
}

static int load_dtype(const struct curate *c, const struct document *d, const struct place *at, const json_t *object, struct rule *r)
{
	struct place here = {.up = at, .key = "dtype"};
	r->dtype = document_text(d, at, object, "dtype", true);
	r->dtype_from = DTYPE_LITERAL;
	if (strncmp(r->dtype, "config.", 7) == 0) {
		r->dtype_from = DTYPE_CONFIG;
		r->dtype += 7;
		const struct guard *g = find_guard(r, r->dtype);
		return g && g->type == GUARD_DTYPE ? 0 : document_complain(d, &here, "no config key of kind dtype has this name");
	}
	if (strcmp(r->dtype, "model.dtype") == 0) {
		r->dtype_from = DTYPE_MODEL;
		return r->x_model ? 0 : document_complain(d, &here, "x is no model here");
	}
	for (size_t i = 0; i < c->dtype_count; i++)
		if (strcmp(c->dtypes[i].token, r->dtype) == 0)
			return 0;
	return document_complain(d, &here, "config.<key>, model.dtype or a dtype token expected");
}

static int compare_scalars(const void *a, const void *b)
{
	return strcmp(((const struct scalar *)a)->name, ((const struct scalar *)b)->name);
}

static int load_scalars(const struct document *d, const struct place *at, const json_t *object, struct rule *r)
{
	const json_t *scalars = document_object(d, at, object, "scalars", false);
	struct place here = {.up = at, .key = "scalars"};
	const char *key;
	json_t *value;
	json_object_foreach((json_t *)scalars, key, value) {
		struct place item = {.up = &here, .key = key};
		if (r->scalar_count == SCALARS_MAX || !axis_name(key))
			return document_complain(d, &item, "not a name, or more than %d scalars", SCALARS_MAX);
		struct scalar *s = &r->scalars[r->scalar_count++];
		s->name = arena_strdup(d->arena, key);
		const char *text = json_string_value(value);
		if (json_is_number(value)) {
			s->number = json_number_value(value);
		} else if (text && strncmp(text, "config.", 7) == 0 && find_guard(r, text + 7) && numeric_guard(find_guard(r, text + 7))) {
			s->key = find_guard(r, text + 7)->key;
		} else {
			return document_complain(d, &item, "a number or config.<key of a number> expected");
		}
	}
	qsort(r->scalars, r->scalar_count, sizeof *r->scalars, compare_scalars);
	return document_failed(d) ? -1 : 0;
}

static int check_codes(const struct curate *c, const struct document *d, const struct place *at, const json_t *object, struct rule *r)
{
	struct place here = {.up = at, .key = "caveats"};
	r->caveats = document_list(d, at, object, "caveats", false);
	for (size_t i = 0; i < r->caveats.count; i++) {
		size_t j = 0;
		while (j < c->caveat_count && strcmp(c->caveats[j].code, r->caveats.items[i]) != 0)
			j++;
		if (j == c->caveat_count)
			return document_complain(d, &(struct place){.up = &here, .index = i}, "unknown caveat \"%s\"", r->caveats.items[i]);
	}
	qsort(r->caveats.items, r->caveats.count, sizeof *r->caveats.items, compare_text);
	return document_failed(d) ? -1 : 0;
}

static int check_sources(const struct document *d, const struct place *at, const json_t *object)
{
	static const char *const channels[] = {"committed:", "cutile:", "cutedsl:", "ghp:"};
	struct list sources = document_list(d, at, object, "sources", false);
	struct place here = {.up = at, .key = "sources"};
	for (size_t i = 0; i < sources.count; i++) {
		size_t j = 0;
		while (j < 4 && strncmp(sources.items[i], channels[j], strlen(channels[j])) != 0)
			j++;
		if (j == 4)
			return document_complain(d, &(struct place){.up = &here, .index = i}, "unknown channel in \"%s\"", sources.items[i]);
	}
	return document_failed(d) ? -1 : 0;
}

/* The kernel's part of external ids: manifests.md section 3. */
static const char *make_segment(struct curate *c, const struct rule *r)
{
	if (r->prior)
		return r->kernel;
	char *segment = arena_strdup(&c->arena, r->operation->slug + strlen("liger-"));
	for (char *p = segment; *p; p++)
		if (*p == '-')
			*p = '_';
	return segment;
}

static const char *make_id(struct curate *c, const struct rule *r)
{
	struct buf id = {0};
	buf_printf(&id, "%s:", r->kernel);
	for (size_t i = 0; i < r->x_names.count; i++)
		buf_printf(&id, "%s%s", i ? "|" : "", r->x_names.items[i]);
	for (size_t i = 0; i < r->guard_count; i++) {
		buf_printf(&id, "%s%s", i ? "," : "(", r->guards[i].key);
		char *constant = r->guards[i].constant ? json_dumps(r->guards[i].constant, JSON_ENCODE_ANY) : NULL;
		if (constant)
			buf_printf(&id, "=%s", constant);
		free(constant);
	}
	buf_str(&id, ")");
	const char *text = arena_strdup(&c->arena, id.data);
	buf_fini(&id);
	return text;
}

static int compare_shown(const char *a, const char *b)
{
	size_t x = strlen(a), y = strlen(b);
	return x != y ? (x > y) - (x < y) : strcmp(a, b);
}

/* Two orders of the bound axes: by name (case key, canonical text), and shorter first (labels). Insertion sort: a handful. */
static void sort_axes(struct rule *r)
{
	for (size_t i = 0; i < r->axis_count; i++) {
		size_t by_name = i, by_length = i;
		for (; by_name && strcmp(r->axis_names[r->sorted[by_name - 1]], r->axis_names[i]) > 0; by_name--)
			r->sorted[by_name] = r->sorted[by_name - 1];
		r->sorted[by_name] = (uint8_t)i;
		for (; by_length && compare_shown(r->axis_names[r->shown[by_length - 1]], r->axis_names[i]) > 0; by_length--)
			r->shown[by_length] = r->shown[by_length - 1];
		r->shown[by_length] = (uint8_t)i;
	}
}

static const struct operation *find_operation(const struct curate *c, const char *slug)
{
	for (size_t i = 0; i < c->operation_count; i++)
		if (strcmp(c->operations[i].slug, slug) == 0)
			return &c->operations[i];
	return NULL;
}

static int load_head(struct curate *c, const struct document *d, const struct place *at, const json_t *object, struct rule *r)
{
	if (document_keys(d, at, object,
			  "kernel operation status when zero axes dtype scalars caveats quirk note sources script"))
		return -1;
	r->kernel = document_text(d, at, object, "kernel", true);
	r->prior = document_prior(d, at, object);
	r->quirk = document_bool(d, at, object, "quirk");
	document_text(d, at, object, "note", false);
	document_text(d, at, object, "script", false);
	const char *slug = document_text(d, at, object, "operation", true);
	if (document_failed(d))
		return -1;
	r->operation = find_operation(c, slug);
	if (!r->operation)
		return document_complain(d, &(struct place){.up = at, .key = "operation"}, "unknown operation \"%s\"", slug);
	return 0;
}

static int load_rule(struct curate *c, const struct document *d, const struct place *at, const json_t *object, struct rule *r)
{
	struct scope s;
	if (load_head(c, d, at, object, r) || load_when(d, at, object, r))
		return -1;
	make_scope(c, r, &s);
	if (load_zero(d, at, object, &s, r) || load_axes(d, at, object, &s, r) || join_operation(d, at, r) ||
	    load_dtype(c, d, at, object, r) || load_scalars(d, at, object, r) || check_codes(c, d, at, object, r) ||
	    check_sources(d, at, object))
		return -1;
	sort_axes(r);
	r->segment = make_segment(c, r);
	r->pointer = document_pointer(d, at);
	r->id = make_id(c, r);
	for (const struct rule *earlier = c->rules; earlier < r; earlier++)
		if (rules_cover(earlier, r) || strcmp(earlier->id, r->id) == 0)
			return document_complain(d, at, "this rule can never fire: %s comes first and takes all its rows", earlier->pointer + 1);
	return 0;
}

int rules_load(struct curate *c, const struct document *d, struct err *e)
{
	static const char *const sections[] = {"bindings", "scriptOnly"};
	const json_t *lists[2];
	if (load_operations(c, d))
		return -1;
	for (size_t i = 0; i < 2; i++)
		if (!(lists[i] = document_array(d, NULL, d->root, sections[i], i == 0)) && e->code)
			return -1;
	c->script_only_count = json_array_size(lists[1]);
	c->rules = arena_alloc(&c->arena, (json_array_size(lists[0]) + c->script_only_count) * sizeof *c->rules);
	for (size_t i = 0; i < 2; i++) {
		struct place here = {.key = sections[i]};
		for (size_t j = 0; j < json_array_size(lists[i]); j++) {
			struct place at = {.up = &here, .index = j};
			if (load_rule(c, d, &at, json_array_get(lists[i], j), &c->rules[c->rule_count]))
				return -1;
			c->rule_count++;
		}
	}
	return 0;
}

/* ---- does an earlier rule leave anything for a later one? ---- */

/* Every value that passes `b` passes `a`. */
static bool guard_implies(const struct guard *b, const struct guard *a)
{
	if (a->type == GUARD_CONST)
		return b->type == GUARD_CONST && json_equal(a->constant, b->constant);
	if (b->type == GUARD_CONST) {
		double value = json_number_value(b->constant);
		bool number = json_is_number(b->constant);
		if (a->type == GUARD_BOOL)
			return json_is_boolean(b->constant);
		return (a->type == GUARD_NUMBER && number) || (a->type == GUARD_POSITIVE && number && value > 0) ||
		       (a->type == GUARD_INT && number && value > 0 && value == floor(value));
	}
	if (a->type <= GUARD_NUMBER)
		return b->type <= a->type; /* int, positive, number: each takes all that the ones before it take */
	return a->type == b->type;
}

static bool x_covers(const struct rule *a, const struct rule *b)
{
	if (a->x_model != b->x_model)
		return false;
	if (b->x_any) {
		for (size_t i = 0; a->x_any && i < a->not_x_names.count; i++)
			if (!list_has(&b->not_x_names, (struct slice){a->not_x_names.items[i], strlen(a->not_x_names.items[i])}))
				return false;
		return a->x_any;
	}
	for (size_t i = 0; i < b->x_names.count; i++) {
		struct slice name = {b->x_names.items[i], strlen(b->x_names.items[i])};
		if (a->x_any ? list_has(&a->not_x_names, name) : !list_has(&a->x_names, name))
			return false;
	}
	return true;
}

static bool has_expression(struct expr *const *list, size_t count, const struct expr *x)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(expr_text(list[i]), expr_text(x)) == 0)
			return true;
	return false;
}

bool rules_cover(const struct rule *a, const struct rule *b)
{
	if (strcmp(a->kernel, b->kernel) != 0 || !x_covers(a, b))
		return false;
	if (a->closed && (!b->closed || a->guard_count != b->guard_count))
		return false;
	for (size_t i = 0; i < a->guard_count; i++) {
		const struct guard *g = find_guard(b, a->guards[i].key);
		if (!g || !guard_implies(g, &a->guards[i]))
			return false;
	}
	for (size_t i = 0; i < a->zero_count; i++)
		if (!has_expression(b->zero, b->zero_count, a->zero[i]))
			return false;
	for (size_t i = 0; i < a->axis_count; i++)
		if (!expr_keeps_positive(a->axes[i]) && !has_expression(b->axes, b->axis_count, a->axes[i]))
			return false;
	return true;
}
