/* Expressions, and what the rules of config/ make of rows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "core/json.h"
#include "normalize/bind.h"

static struct curate *curate;

static int load(void **state)
{
	struct err e = {0};
	(void)state;
	curate = curate_new("config", &e);
	if (!curate)
		print_error("%s: %s\n", e.file, e.text);
	return curate ? 0 : -1;
}

static int unload(void **state)
{
	(void)state;
	curate_free(curate);
	return 0;
}

/* ---- expressions ---- */

static const char *const names[] = {"x", "B", "T", "model.hidden_size"};
static const int64_t values[] = {12, 5, -3, 4096};

static void check_value(const char *text, enum expr_result result, int64_t expected)
{
	struct arena a = {0};
	char why[256];
	size_t at;
	int64_t value = 0;
	struct expr *x = expr_compile(&a, text, names, 4, why, sizeof why, &at);
	if (!x)
		fail_msg("%s: %s", text, why);
	assert_int_equal(result, expr_eval(x, values, &value));
	if (result == EXPR_OK)
		assert_int_equal(expected, value);
	arena_fini(&a);
}

static void expressions_have_the_usual_precedence(void **state)
{
	(void)state;
	check_value("x", EXPR_OK, 12);
	check_value(" B * T ", EXPR_OK, -15);
	check_value("1 + 2 * 3", EXPR_OK, 7);
	check_value("(1 + 2) * 3", EXPR_OK, 9);
	check_value("20 - 5 - 3", EXPR_OK, 12);
	check_value("100 // 7 // 2", EXPR_OK, 7);
	check_value("x % B * 2", EXPR_OK, 4);
	check_value("model.hidden_size // x % 2", EXPR_OK, 1);
	check_value("B * B + 2 * B", EXPR_OK, 35);
}

static void division_floors(void **state)
{
	(void)state;
	check_value("7 // 2", EXPR_OK, 3);
	check_value("(0 - 7) // 2", EXPR_OK, -4);
	check_value("7 // (0 - 2)", EXPR_OK, -4);
	check_value("(0 - 7) % 2", EXPR_OK, 1);
	check_value("7 % T", EXPR_OK, -2);
	check_value("x // 0", EXPR_UNDEFINED, 0);
	check_value("x % (B - 5)", EXPR_UNDEFINED, 0);
}

static void results_stay_exact(void **state)
{
	(void)state;
	check_value("9007199254740991", EXPR_OK, 9007199254740991);
	check_value("9007199254740991 + 1", EXPR_RANGE, 0);
	check_value("(0 - 9007199254740991) - 1", EXPR_RANGE, 0);
	check_value("4294967296 * 4294967296", EXPR_RANGE, 0);
}

static void mistakes_are_found_where_they_are(void **state)
{
	static const struct {
		const char *text;
		size_t at;
		const char *why;
	} cases[] = {
		{"B * N", 4, "unbound name N"},
		{"hidden", 0, "unbound name hidden"},
		{"B *", 3, "a name, a whole number or ( expected"},
		{"(B", 2, "missing )"},
		{"B T", 2, "an operator expected"},
		{"B / T", 2, "an operator expected"},
		{"-1", 0, "a name, a whole number or ( expected"},
		{"1.5", 1, "an operator expected"},
		{"", 0, "a name, a whole number or ( expected"},
		{"99999999999999999999", 15, "number too large"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct arena a = {0};
		char why[256];
		size_t at;
		assert_null(expr_compile(&a, cases[i].text, names, 4, why, sizeof why, &at));
		assert_string_equal(cases[i].why, why);
		assert_int_equal(cases[i].at, at);
		arena_fini(&a);
	}
}

static void deep_nesting_is_refused(void **state)
{
	char text[200], why[256];
	struct arena a = {0};
	size_t at;
	(void)state;
	memset(text, '(', 90);
	text[90] = 'x';
	memset(text + 91, ')', 90);
	text[181] = '\0';
	assert_null(expr_compile(&a, text, names, 4, why, sizeof why, &at));
	arena_fini(&a);
}

/* ---- numbers and config strings ---- */

static void numbers_are_read_whole_or_not_at_all(void **state)
{
	static const char *const bad[] = {"", "nan", "inf", "-inf", "0x10", "1_000", " 1", "1 ", "1e", "e5", ".", "+", "1.2.3", "1,5", "--1"};
	(void)state;
	assert_true(bind_number((struct slice){"0.018432000651955605", 20}) == 0.018432000651955605);
	assert_true(bind_number((struct slice){"1e-06", 5}) == 1e-6);
	assert_true(bind_number((struct slice){"-2.50", 5}) == -2.5);
	assert_true(isinf(bind_number((struct slice){"1e999", 5})));
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		if (!isnan(bind_number((struct slice){bad[i], strlen(bad[i])})))
			fail_msg("read: \"%s\"", bad[i]);
}

static void config_strings_are_objects(void **state)
{
	static const char *const bad[] = {"", "null", "[1]", "{} x", "{\"a\":1,\"a\":2}", "{\"a\":NaN}", "{'a':1}", "{\"a\":1e999}"};
	static char longest[BIND_CONFIG_MAX + 2];
	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct err e = {0};
		assert_null(bind_config((struct slice){bad[i], strlen(bad[i])}, &e));
		assert_int_equal(ERR_DATA, e.code);
	}
	struct err e = {0};
	memset(longest, ' ', sizeof longest);
	memcpy(longest, "{}", 2);
	json_t *config = bind_config((struct slice){longest, BIND_CONFIG_MAX}, &e);
	assert_non_null(config);
	json_decref(config);
	assert_null(bind_config((struct slice){longest, BIND_CONFIG_MAX + 1}, &e));
}

/* ---- rules ---- */

static enum bind_result bind(const char *kernel, const char *x_name, const char *x_value, const char *config, struct binding *b)
{
	struct err e = {0};
	json_t *json = bind_config((struct slice){config, strlen(config)}, &e);
	assert_non_null(json);
	enum bind_result got = bind_row(curate, (struct slice){kernel, strlen(kernel)}, (struct slice){x_name, strlen(x_name)},
					(struct slice){x_value, strlen(x_value)}, json, b);
	json_decref(json);
	return got;
}

static int64_t axis(const struct binding *b, const char *name)
{
	for (size_t i = 0; i < b->rule->axis_count + b->rule->operation->derived_count; i++)
		if (strcmp(b->rule->axis_names[i], name) == 0)
			return b->axes[i];
	fail_msg("no axis %s", name);
	return 0;
}

#define RMS "{\"M\": 2048, \"dtype\": \"torch.bfloat16\", \"eps\": 1e-06}"

static void a_plain_row_binds(void **state)
{
	struct binding b;
	(void)state;
	assert_int_equal(BIND_OK, bind("rms_norm", "H", "4096", RMS, &b));
	assert_string_equal("liger-rms-norm", b.rule->operation->slug);
	assert_string_equal("rms_norm:H|N(M,dtype,eps)", b.rule->id);
	assert_int_equal(2048, axis(&b, "rows"));
	assert_int_equal(4096, axis(&b, "hidden"));
	assert_string_equal("bf16", b.dtype);
	assert_true(b.scalars[0] == 1e-6);
	assert_true(b.rule->prior);
}

static void whole_reals_count_as_integers(void **state)
{
	struct binding b;
	(void)state;
	assert_int_equal(BIND_OK, bind("rms_norm", "H", "4096.0", "{\"M\": 2048.0, \"dtype\": \"torch.bfloat16\", \"eps\": 1e-06}", &b));
	assert_int_equal(2048, axis(&b, "rows"));
	assert_int_equal(BIND_NO_RULE, bind("rms_norm", "H", "4096", "{\"M\": 0.5, \"dtype\": \"torch.bfloat16\", \"eps\": 1e-06}", &b));
}

static void guards_keep_other_values_out(void **state)
{
	static const char *const configs[] = {
		"{\"M\": true, \"dtype\": \"torch.bfloat16\", \"eps\": 1e-06}", "{\"M\": \"2048\", \"dtype\": \"torch.bfloat16\", \"eps\": 1e-06}",
		"{\"M\": null, \"dtype\": \"torch.bfloat16\", \"eps\": 1e-06}", "{\"M\": 0, \"dtype\": \"torch.bfloat16\", \"eps\": 1e-06}",
		"{\"M\": -1, \"dtype\": \"torch.bfloat16\", \"eps\": 1e-06}", "{\"M\": 2048, \"dtype\": \"bfloat16\", \"eps\": 1e-06}",
		"{\"M\": 2048, \"dtype\": \"torch.bfloat16\", \"eps\": 0}", "{\"M\": 2048, \"dtype\": \"torch.bfloat16\"}",
	};
	struct binding b;
	(void)state;
	for (size_t i = 0; i < sizeof configs / sizeof *configs; i++)
		assert_int_equal(BIND_NO_RULE, bind("rms_norm", "H", "4096", configs[i], &b));
	assert_int_equal(BIND_NO_RULE, bind("rms_norm", "Q", "4096", RMS, &b));
	assert_int_equal(BIND_NO_RULE, bind("rms_norm", "H", "wide", RMS, &b));
	assert_int_equal(BIND_NO_RULE, bind("rms_norm", "H", "-4096", RMS, &b));
	assert_int_equal(BIND_NO_RULE, bind("no_such_kernel", "H", "4096", RMS, &b));
}

static void constants_need_the_same_type(void **state)
{
	struct binding b;
	(void)state;
	assert_int_equal(BIND_OK, bind("megatron_cross_entropy", "V", "32768", "{\"S\":2048,\"B\":2,\"TP\":1}", &b));
	assert_string_equal("liger-megatron-cross-entropy", b.rule->operation->slug);
	assert_int_equal(BIND_OK, bind("megatron_cross_entropy", "V", "32768", "{\"S\":2048,\"B\":2,\"TP\":1.0}", &b));
	assert_string_equal("liger-megatron-cross-entropy", b.rule->operation->slug);
	assert_int_equal(BIND_NO_RULE, bind("megatron_cross_entropy", "V", "32768", "{\"S\":2048,\"B\":2,\"TP\":true}", &b));
	assert_int_equal(BIND_OK, bind("megatron_cross_entropy", "V", "32768", "{\"S\":2048,\"B\":2,\"TP\":4}", &b));
	assert_string_equal("liger-megatron-cross-entropy-sharded", b.rule->operation->slug);
	assert_int_equal(8192, axis(&b, "vocab_local"));
}

static void closed_rules_take_no_other_keys(void **state)
{
	struct binding b;
	(void)state;
	assert_int_equal(BIND_OK, bind("megatron_cross_entropy", "V", "32768", "{\"S\":2048,\"B\":2}", &b));
	assert_string_equal("megatron_cross_entropy:V(S,B)", b.rule->id);
	assert_false(b.rule->prior);
	assert_int_equal(BIND_NO_RULE, bind("megatron_cross_entropy", "V", "32768", "{\"S\":2048,\"B\":2,\"extra\":0}", &b));
	assert_int_equal(BIND_OK, bind("rms_norm", "H", "4096", "{\"M\":2048,\"dtype\":\"torch.float16\",\"eps\":1e-05,\"extra\":0}", &b));
}

static void products_and_derived_axes_are_computed(void **state)
{
	struct binding b;
	(void)state;
	assert_int_equal(BIND_OK, bind("cross_entropy", "V", "4096", "{\"B\": 8, \"T\": 2048}", &b));
	assert_int_equal(16384, axis(&b, "tokens"));
	assert_int_equal(BIND_OK, bind("qwen2vl_mrope", "T", "1024",
				       "{\"hidden_size\":3584,\"num_q_heads\":28,\"num_kv_heads\":4,\"dtype\":\"torch.bfloat16\"}", &b));
	assert_int_equal(128, axis(&b, "head_dim"));
	assert_int_equal(24, axis(&b, "section_hw"));
	assert_int_equal(16, axis(&b, "section_t"));
	assert_int_equal(BIND_NO_RULE, bind("rope", "H", "8191",
					    "{\"dtype\":\"torch.bfloat16\",\"seq_len\":2048,\"num_q_heads\":32,\"num_kv_heads\":8}", &b));
}

static void models_give_their_sizes(void **state)
{
	struct binding b;
	(void)state;
	assert_int_equal(BIND_OK, bind("cross_entropy", "model_config", "qwen2.5_14b", "{\"bsz\": 1, \"seq_len\": 2048}", &b));
	assert_int_equal(2048, axis(&b, "tokens"));
	assert_int_equal(152064, axis(&b, "vocab"));
	assert_string_equal("fp32", b.dtype);
	assert_string_equal("qwen2.5_14b", b.model->name);
	assert_int_equal(BIND_NO_RULE, bind("cross_entropy", "model_config", "gpt_2", "{\"bsz\": 1, \"seq_len\": 2048}", &b));
}

static void sizes_beyond_exact_integers_are_told_apart(void **state)
{
	struct binding b;
	(void)state;
	assert_int_equal(BIND_RANGE, bind("rms_norm", "H", "4096", "{\"M\":9007199254740993,\"dtype\":\"torch.bfloat16\",\"eps\":1e-06}", &b));
	assert_int_equal(BIND_RANGE, bind("rms_norm", "H", "1e20", RMS, &b));
	assert_int_equal(BIND_RANGE, bind("cross_entropy", "V", "4096", "{\"B\": 4294967296, \"T\": 4294967296}", &b));
	assert_int_equal(BIND_OK, bind("rms_norm", "H", "4096", "{\"M\":9007199254740991,\"dtype\":\"torch.bfloat16\",\"eps\":1e-06}", &b));
	assert_int_equal(9007199254740991, axis(&b, "rows"));
}

static void the_first_rule_that_fits_wins(void **state)
{
	struct binding b;
	const char *both = "{\"dtype\":\"torch.bfloat16\",\"seq_len\":2048,\"hidden_size\":8192,\"num_q_heads\":32,\"num_kv_heads\":8}";
	(void)state;
	assert_int_equal(BIND_OK, bind("rope", "T", "1024", both, &b));
	assert_int_equal(1024, axis(&b, "seq"));
	assert_int_equal(BIND_OK, bind("rope", "H", "4096", both, &b));
	assert_int_equal(4096, axis(&b, "hidden"));
	assert_int_equal(BIND_OK, bind("rope", "Q", "7", both, &b));
	assert_true(b.rule->quirk);
	assert_int_equal(2048, axis(&b, "seq"));
}

static void a_rule_says_why_it_does_not_fit(void **state)
{
	static const struct {
		const char *x_name, *x_value, *config, *why;
	} cases[] = {
		{"T", "4096", RMS, "x_name is not H or N"},
		{"H", "x", RMS, "x_value is no positive whole number: x"},
		{"H", "4096", "{\"M\":1}", "the config has no dtype"},
		{"H", "4096", "{\"M\":0,\"dtype\":\"torch.bfloat16\",\"eps\":1}", "the config's value does not pass: M"},
	};
	struct binding b;
	const struct rule *rule = NULL;
	(void)state;
	for (size_t i = 0; i < curate->rule_count && !rule; i++)
		if (strcmp(curate->rules[i].id, "rms_norm:H|N(M,dtype,eps)") == 0)
			rule = &curate->rules[i];
	assert_non_null(rule);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct err e = {0};
		struct buf why = {0};
		json_t *config = bind_config((struct slice){cases[i].config, strlen(cases[i].config)}, &e);
		assert_int_equal(BIND_NO_RULE, bind_rule(curate, rule, (struct slice){cases[i].x_name, strlen(cases[i].x_name)},
							 (struct slice){cases[i].x_value, strlen(cases[i].x_value)}, config, &b, &why));
		assert_string_equal(cases[i].why, why.data);
		buf_fini(&why);
		json_decref(config);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(expressions_have_the_usual_precedence),
		cmocka_unit_test(division_floors),
		cmocka_unit_test(results_stay_exact),
		cmocka_unit_test(mistakes_are_found_where_they_are),
		cmocka_unit_test(deep_nesting_is_refused),
		cmocka_unit_test(numbers_are_read_whole_or_not_at_all),
		cmocka_unit_test(config_strings_are_objects),
		cmocka_unit_test(a_plain_row_binds),
		cmocka_unit_test(whole_reals_count_as_integers),
		cmocka_unit_test(guards_keep_other_values_out),
		cmocka_unit_test(constants_need_the_same_type),
		cmocka_unit_test(closed_rules_take_no_other_keys),
		cmocka_unit_test(products_and_derived_axes_are_computed),
		cmocka_unit_test(models_give_their_sizes),
		cmocka_unit_test(sizes_beyond_exact_integers_are_told_apart),
		cmocka_unit_test(the_first_rule_that_fits_wins),
		cmocka_unit_test(a_rule_says_why_it_does_not_fit),
	};
	return cmocka_run_group_tests(tests, load, unload);
}
