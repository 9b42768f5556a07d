/* The arithmetic of config tables, of binding rules and floors (grammar: docs/bindings.md): names, whole numbers,
 * + - * // % and parentheses, usual precedence, left association; // floors and % has the sign of its right side. Names are
 * resolved when an expression is compiled, so an unbound name is a config error and never a surprise on a row. */
#ifndef KI_CORE_EXPR_H
#define KI_CORE_EXPR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/arena.h"

enum { EXPR_STACK = 16 };
#define EXPR_NO_VALUE INT64_MIN                  /* a name that holds no whole number on this row */
#define EXPR_LIMIT ((INT64_C(1) << 53) - 1)      /* results stay within +-EXPR_LIMIT, as JSON numbers do */

struct expr; /* lives in the arena it was compiled into */

enum expr_result {
	EXPR_OK,
	EXPR_UNBOUND,   /* a name holds no whole number */
	EXPR_UNDEFINED, /* division by zero */
	EXPR_RANGE,     /* a result beyond +-EXPR_LIMIT */
};

/* Compiles `text`; a name means the value at its place in `names`. NULL with a reason in `why` when the text is not an
 * expression or names something else; `*at` is then the offset of the mistake. */
struct expr *expr_compile(struct arena *a, const char *text, const char *const *names, size_t count, char *why, size_t why_size,
			  size_t *at);
enum expr_result expr_eval(const struct expr *x, const int64_t *values, int64_t *out);
const char *expr_text(const struct expr *x);
/* True when the expression is a name, a positive number, or products of those: positive whenever its names are. */
bool expr_keeps_positive(const struct expr *x);

#endif
