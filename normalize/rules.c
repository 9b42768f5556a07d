#include "normalize/rules.h"

#include <stdlib.h>
#include <string.h>

#include "normalize/cover.h"
#include "normalize/operations.h"

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
		if (!operations_axis_name(key) || r->axis_count + r->operation->derived_count == AXES_MAX)
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
		if (r->scalar_count == SCALARS_MAX || !operations_axis_name(key))
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

static int compare_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
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
	if (operations_load(c, d))
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
