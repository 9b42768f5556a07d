#include "core/expr.h"

#include <stdio.h>
#include <string.h>

enum op { OP_NUMBER, OP_NAME, OP_ADD, OP_SUB, OP_MUL, OP_DIV, OP_MOD };

struct step {
	enum op op;
	int64_t value; /* the number, or the place of the name */
};

struct expr {
	const char *text;
	size_t count;
	struct step steps[]; /* in postfix order */
};

enum { STEPS_MAX = 64 };

struct parser {
	const char *text, *at;
	const char *const *names;
	size_t name_count;
	struct step steps[STEPS_MAX];
	size_t count, depth;
	char *why;
	size_t why_size;
	bool failed;
};

static void fail(struct parser *p, const char *what, const char *name, size_t len)
{
	if (!p->failed)
		snprintf(p->why, p->why_size, "%s%.*s", what, (int)len, name);
	p->failed = true;
}

static void push(struct parser *p, enum op op, int64_t value)
{
	p->depth += op <= OP_NAME ? 1 : (size_t)-1;
	if (p->count == STEPS_MAX || p->depth > EXPR_STACK)
		fail(p, "expression too long", "", 0);
	else
		p->steps[p->count++] = (struct step){op, value};
}

static void skip_space(struct parser *p)
{
	while (*p->at == ' ')
		p->at++;
}

static bool name_char(char c, bool first)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (!first && ((c >= '0' && c <= '9') || c == '.'));
}

static void parse_name(struct parser *p)
{
	const char *start = p->at;
	while (name_char(*p->at, p->at == start))
		p->at++;
	size_t len = (size_t)(p->at - start);
	for (size_t i = 0; i < p->name_count; i++)
		if (strlen(p->names[i]) == len && memcmp(p->names[i], start, len) == 0) {
			push(p, OP_NAME, (int64_t)i);
			return;
		}
	p->at = start;
	fail(p, "unbound name ", start, len);
}

static void parse_number(struct parser *p)
{
	int64_t value = 0;
	for (; *p->at >= '0' && *p->at <= '9'; p->at++) {
		int digit = *p->at - '0';
		if (value > (EXPR_LIMIT - digit) / 10) {
			fail(p, "number too large", "", 0);
			return;
		}
		value = value * 10 + digit;
	}
	push(p, OP_NUMBER, value);
}

static void parse_sum(struct parser *p, int level);

static void parse_atom(struct parser *p, int level)
{
	skip_space(p);
	if (p->failed)
		return;
	if (*p->at == '(' && level < EXPR_STACK) {
		p->at++;
		parse_sum(p, level + 1);
		skip_space(p);
		if (!p->failed && *p->at != ')')
			fail(p, "missing )", "", 0);
		else if (!p->failed)
			p->at++;
	} else if (name_char(*p->at, true)) {
		parse_name(p);
	} else if (*p->at >= '0' && *p->at <= '9') {
		parse_number(p);
	} else {
		fail(p, "a name, a whole number or ( expected", "", 0);
	}
}

static void parse_product(struct parser *p, int level)
{
	parse_atom(p, level);
	for (skip_space(p); !p->failed; skip_space(p)) {
		enum op op = *p->at == '*' ? OP_MUL : *p->at == '%' ? OP_MOD : p->at[0] == '/' && p->at[1] == '/' ? OP_DIV : OP_NUMBER;
		if (op == OP_NUMBER)
			return;
		p->at += op == OP_DIV ? 2 : 1;
		parse_atom(p, level);
		push(p, op, 0);
	}
}

static void parse_sum(struct parser *p, int level)
{
	parse_product(p, level);
	for (skip_space(p); !p->failed && (*p->at == '+' || *p->at == '-'); skip_space(p)) {
		enum op op = *p->at++ == '+' ? OP_ADD : OP_SUB;
		parse_product(p, level);
		push(p, op, 0);
	}
}

struct expr *expr_compile(struct arena *a, const char *text, const char *const *names, size_t count, char *why, size_t why_size,
			  size_t *at)
{
	struct parser p = {.text = text, .at = text, .names = names, .name_count = count, .why = why, .why_size = why_size};
	parse_sum(&p, 0);
	if (!p.failed && *p.at)
		fail(&p, "an operator expected", "", 0);
	*at = (size_t)(p.at - text);
	if (p.failed)
		return NULL;
	struct expr *x = arena_alloc(a, sizeof *x + p.count * sizeof *p.steps);
	x->text = arena_strdup(a, text);
	x->count = p.count;
	memcpy(x->steps, p.steps, p.count * sizeof *p.steps);
	return x;
}

static int64_t floor_div(int64_t a, int64_t b)
{
	return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static enum expr_result apply(enum op op, int64_t a, int64_t b, int64_t *out)
{
	bool over = false;
	if ((op == OP_DIV || op == OP_MOD) && b == 0)
		return EXPR_UNDEFINED;
	if (op == OP_ADD)
		over = __builtin_add_overflow(a, b, out);
	else if (op == OP_SUB)
		over = __builtin_sub_overflow(a, b, out);
	else if (op == OP_MUL)
		over = __builtin_mul_overflow(a, b, out);
	else if (op == OP_DIV)
		*out = floor_div(a, b);
	else
		*out = a - floor_div(a, b) * b;
	return over || *out > EXPR_LIMIT || *out < -EXPR_LIMIT ? EXPR_RANGE : EXPR_OK;
}

enum expr_result expr_eval(const struct expr *x, const int64_t *values, int64_t *out)
{
	int64_t stack[EXPR_STACK];
	size_t depth = 0;
	for (size_t i = 0; i < x->count; i++) {
		const struct step *s = &x->steps[i];
		if (s->op <= OP_NAME) {
			int64_t value = s->op == OP_NUMBER ? s->value : values[s->value];
			if (value == EXPR_NO_VALUE)
				return EXPR_UNBOUND;
			stack[depth++] = value;
			continue;
		}
		depth--;
		enum expr_result r = apply(s->op, stack[depth - 1], stack[depth], &stack[depth - 1]);
		if (r != EXPR_OK)
			return r;
	}
	*out = stack[0];
	return EXPR_OK;
}

const char *expr_text(const struct expr *x)
{
	return x->text;
}

bool expr_keeps_positive(const struct expr *x)
{
	for (size_t i = 0; i < x->count; i++)
		if (x->steps[i].op > OP_NAME && x->steps[i].op != OP_MUL && x->steps[i].op != OP_ADD)
			return false;
		else if (x->steps[i].op == OP_NUMBER && x->steps[i].value == 0)
			return false;
	return true;
}
