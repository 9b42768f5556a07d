#include "normalize/cover.h"

#include <math.h>
#include <string.h>

static const struct guard *find_guard(const struct rule *r, const char *key)
{
	for (size_t i = 0; i < r->guard_count; i++)
		if (strcmp(r->guards[i].key, key) == 0)
			return &r->guards[i];
	return NULL;
}

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
