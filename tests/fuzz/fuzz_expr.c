/* The arithmetic of config tables. The first 4 bytes are the values of the names a, b, c and hidden; the rest is the expression. */
#include <string.h>

#include "core/expr.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = {"a", "b", "c", "hidden"};
	struct feed feed = {data, size};
	struct arena a = {0};
	int64_t values[4], result = 0;
	char why[120] = "";
	size_t at = 0;
	for (int i = 0; i < 4; i++)
		values[i] = (int8_t)feed_byte(&feed);
	values[3] = values[3] == -1 ? EXPR_NO_VALUE : values[3] * (EXPR_LIMIT / 128);
	struct slice rest = feed_rest(&feed);
	const char *text = arena_strndup(&a, rest.data, rest.len);
	struct expr *x = expr_compile(&a, text, names, 4, why, sizeof why, &at);
	must(at <= strlen(text), "a mistake lies within the text");
	must(x || why[0], "what is no expression is told why");
	if (x) {
		must(strcmp(expr_text(x), text) == 0, "an expression keeps its text");
		bool positive = expr_keeps_positive(x);
		if (expr_eval(x, values, &result) == EXPR_OK) {
			must(result >= -EXPR_LIMIT && result <= EXPR_LIMIT, "a result lies within the limit");
			if (positive && values[0] > 0 && values[1] > 0 && values[2] > 0 && values[3] > 0)
				must(result > 0, "what keeps positive does");
		}
	}
	arena_fini(&a);
	return 0;
}
