#include "normalize/bind.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/json.h"

json_t *bind_config(struct slice text, struct err *e)
{
	if (text.len > BIND_CONFIG_MAX) {
		err_set(e, ERR_DATA, "longer than %d bytes", BIND_CONFIG_MAX);
		return NULL;
	}
	json_t *config = json_load_text(text.data, text.len, "", e);
	if (config && !json_is_object(config)) {
		err_set(e, ERR_DATA, "not a JSON object");
		json_decref(config);
		return NULL;
	}
	return config;
}

double bind_number(struct slice text)
{
	char copy[64], *end;
	if (text.len == 0 || text.len >= sizeof copy)
		return NAN;
	for (size_t i = 0; i < text.len; i++) {
		char c = text.data[i];
		if (!((c >= '0' && c <= '9') || c == '.' || c == '-' || c == '+' || c == 'e' || c == 'E'))
			return NAN;
		copy[i] = c;
	}
	copy[text.len] = '\0';
	double value = strtod(copy, &end);
	return *end ? NAN : value;
}

/* What one rule sees of a row. */
struct row {
	int64_t values[1 + GUARDS_MAX + 64]; /* as the rule's expressions name them */
	bool range; /* a size was too large to be a number here */
	const struct model *model;
};

static void say(struct buf *why, const char *text, struct slice name)
{
	if (!why)
		return;
	buf_str(why, text);
	buf_add(why, name.data, name.len);
}

static struct slice text_slice(const char *s)
{
	return (struct slice){s, strlen(s)};
}

static bool fits_x_name(const struct rule *r, struct slice x_name, struct buf *why)
{
	if (r->x_any ? !list_has(&r->not_x_names, x_name) : list_has(&r->x_names, x_name))
		return true;
	say(why, "x_name is not ", r->x_any ? text_slice("allowed here") : text_slice(r->x_names.items[0]));
	for (size_t i = 1; why && i < r->x_names.count; i++)
		buf_printf(why, " or %s", r->x_names.items[i]);
	return false;
}

static bool fits_x_value(const struct curate *c, const struct rule *r, struct slice x_value, struct row *row, struct buf *why)
{
	if (r->x_model) {
		row->model = curate_model(c, x_value);
		row->values[0] = EXPR_NO_VALUE;
		if (!row->model)
			say(why, "no model is named ", x_value);
		return row->model != NULL;
	}
	double x = bind_number(x_value);
	if (isfinite(x) && x > (double)EXPR_LIMIT && x == floor(x)) {
		row->range = true;
		row->values[0] = 1;
		say(why, "x_value is too large: ", x_value);
		return true;
	}
	if (!(x > 0) || x > (double)EXPR_LIMIT || x != floor(x)) {
		say(why, "x_value is no positive whole number: ", x_value);
		return false;
	}
	row->values[0] = (int64_t)x;
	return true;
}

static bool same_value(const json_t *a, const json_t *b)
{
	if (json_is_number(a) && json_is_number(b))
		return json_number_value(a) == json_number_value(b);
	return json_equal(a, b);
}

/* A config value against the guard of its key; the number it stands for goes to `*value`. */
static bool passes(const struct curate *c, const struct guard *g, const json_t *json, int64_t *value, bool *range)
{
	double number = json_number_value(json);
	*value = EXPR_NO_VALUE;
	if (json_is_number(json) && !json_whole(json, value)) {
		*value = EXPR_NO_VALUE;
		if (g->type == GUARD_INT && number > 0 && number == floor(number)) {
			*range = true;
			*value = 1;
			return true;
		}
	}
	switch (g->type) {
	case GUARD_INT:
		return *value != EXPR_NO_VALUE && *value > 0;
	case GUARD_POSITIVE:
		return json_is_number(json) && isfinite(number) && number > 0;
	case GUARD_NUMBER:
		return json_is_number(json) && isfinite(number);
	case GUARD_DTYPE:
		return json_is_string(json) &&
		       curate_dtype(c, (struct slice){json_string_value(json), json_string_length(json)}) != NULL;
	case GUARD_BOOL:
		return json_is_boolean(json);
	case GUARD_CONST:
		break;
	}
	return same_value(g->constant, json);
}

static bool fits_config(const struct curate *c, const struct rule *r, const json_t *config, struct row *row, struct buf *why)
{
	for (size_t i = 0; i < r->guard_count; i++) {
		const struct guard *g = &r->guards[i];
		const json_t *json = json_object_get(config, g->key);
		if (!json) {
			say(why, "the config has no ", text_slice(g->key));
			return false;
		}
		if (!passes(c, g, json, &row->values[1 + i], &row->range)) {
			say(why, "the config's value does not pass: ", text_slice(g->key));
			return false;
		}
	}
	if (r->closed && json_object_size(config) != r->guard_count) {
		say(why, "the config has other keys too", text_slice(""));
		return false;
	}
	return true;
}

static void fill_model(const struct curate *c, const struct rule *r, struct row *row)
{
	for (size_t i = 0; row->model && i < c->model_fields.count; i++) {
		int64_t *value = &row->values[1 + r->guard_count + i];
		*value = EXPR_NO_VALUE;
		for (size_t j = 0; j < row->model->count; j++)
			if (strcmp(row->model->names[j], c->model_fields.items[i]) == 0)
				*value = row->model->values[j];
	}
}

static bool is_zero(const struct expr *x, struct row *row, struct buf *why)
{
	int64_t value;
	enum expr_result got = expr_eval(x, row->values, &value);
	row->range |= got == EXPR_RANGE;
	if (got == EXPR_RANGE || row->range || (got == EXPR_OK && value == 0))
		return true;
	say(why, "not zero: ", text_slice(expr_text(x)));
	return false;
}

static bool eval_axis(const struct expr *x, const int64_t *values, int64_t *out, bool *range, struct buf *why)
{
	enum expr_result got = expr_eval(x, values, out);
	if (got == EXPR_RANGE || (*range && got == EXPR_OK)) {
		*range = true;
		*out = 1;
		return true;
	}
	if (got == EXPR_OK && *out > 0)
		return true;
	say(why, "not a positive whole number: ", text_slice(expr_text(x)));
	return false;
}

static bool fits_axes(const struct rule *r, struct row *row, struct binding *out, struct buf *why)
{
	for (size_t i = 0; i < r->zero_count; i++)
		if (!is_zero(r->zero[i], row, why))
			return false;
	for (size_t i = 0; i < r->axis_count; i++)
		if (!eval_axis(r->axes[i], row->values, &out->axes[i], &row->range, why))
			return false;
	for (size_t i = 0; i < r->operation->derived_count; i++)
		if (!eval_axis(r->derived[i], out->axes, &out->axes[r->axis_count + i], &row->range, why))
			return false;
	return true;
}

static void fill_rest(const struct curate *c, const struct rule *r, const json_t *config, const struct model *model,
		      struct binding *out)
{
	const json_t *json = r->dtype_from == DTYPE_CONFIG ? json_object_get(config, r->dtype) : NULL;
	out->rule = r;
	out->model = model;
	out->dtype = r->dtype;
	if (json)
		out->dtype = curate_dtype(c, (struct slice){json_string_value(json), json_string_length(json)});
	else if (r->dtype_from == DTYPE_MODEL)
		out->dtype = model->dtype;
	for (size_t i = 0; i < r->scalar_count; i++)
		out->scalars[i] = r->scalars[i].key ? json_number_value(json_object_get(config, r->scalars[i].key)) : r->scalars[i].number;
}

enum bind_result bind_rule(const struct curate *c, const struct rule *rule, struct slice x_name, struct slice x_value,
			   const json_t *config, struct binding *out, struct buf *why)
{
	struct row row;
	row.range = false;
	row.model = NULL;
	if (!fits_x_name(rule, x_name, why) || !fits_x_value(c, rule, x_value, &row, why) ||
	    !fits_config(c, rule, config, &row, why))
		return BIND_NO_RULE;
	fill_model(c, rule, &row);
	if (!fits_axes(rule, &row, out, why))
		return BIND_NO_RULE;
	if (row.range) {
		say(why, "a size is beyond 2^53 - 1", text_slice(""));
		return BIND_RANGE;
	}
	fill_rest(c, rule, config, row.model, out);
	return BIND_OK;
}

enum bind_result bind_row(const struct curate *c, struct slice kernel, struct slice x_name, struct slice x_value,
			  const json_t *config, struct binding *out)
{
	enum bind_result result = BIND_NO_RULE;
	for (size_t i = 0; i < c->rule_count; i++) {
		if (!slice_eq(kernel, c->rules[i].kernel))
			continue;
		enum bind_result got = bind_rule(c, &c->rules[i], x_name, x_value, config, out, NULL);
		if (got == BIND_OK)
			return BIND_OK;
		if (got == BIND_RANGE)
			result = BIND_RANGE;
	}
	return result;
}
