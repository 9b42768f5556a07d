/* Config: what is sound, and every kind of mistake with its place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/file.h"
#include "normalize/curate.h"
#include "core/locate.h"

/* A small sound config. Each test below changes one text in one file. */
static const char bindings[] =
	"{\"version\": 1,\n"
	"\"dtypes\": {\"torch.bfloat16\": \"bf16\", \"torch.float32\": \"fp32\"},\n"
	"\"modes\": {\"forward\": {\"status\": \"prior\", \"pass\": \"the pass\", \"timed\": \"it\"}},\n"
	"\"models\": {\"m\": {\"hidden_size\": 64, \"dtype\": \"bf16\"}},\n"
	"\"operations\": {\n"
	" \"liger-a\": {\"status\": \"prior\", \"family\": \"f\", \"title\": \"A\", \"description\": \"d\",\n"
	"  \"inputs\": [{\"name\": \"x\", \"shape\": [\"rows\", \"half\"], \"dtype\": \"cfg\"}],\n"
	"  \"outputs\": [{\"name\": \"y\", \"shape\": [1], \"dtype\": \"fp32\"}], \"derived\": {\"half\": \"hidden // 2\"}}},\n"
	"\"bindings\": [\n"
	" {\"kernel\": \"a\", \"operation\": \"liger-a\", \"status\": \"prior\", \"when\": {\"x_name\": [\"H\"], \"x\": \"int\", \"config\": {\"M\": \"int\", \"d\": \"dtype\"}}, \"axes\": {\"rows\": \"M\", \"hidden\": \"x\"}, \"dtype\": \"config.d\", \"caveats\": [\"c\"], \"sources\": [\"committed:2024-09-03..\"]},\n"
	" {\"kernel\": \"a\", \"operation\": \"liger-a\", \"status\": \"new\", \"when\": {\"x_name\": [\"T\"], \"x\": \"int\", \"config\": {\"M\": \"int\"}, \"closed\": true}, \"axes\": {\"rows\": \"M * 2\", \"hidden\": \"x\"}, \"dtype\": \"bf16\", \"zero\": [\"x % 2\"], \"scalars\": {\"eps\": 1e-6}}\n"
	"],\n"
	"\"caveats\": {\"c\": {\"text\": \"t\", \"windows\": [{\"modes\": [\"forward\"]}]}}}\n";
static const char providers[] =
	"{\"version\": 1,\n"
	"\"projects\": {\"p\": {\"name\": \"P\", \"kind\": \"library\", \"repository\": \"r\", \"host\": {\"kind\": \"github\", \"id\": \"i\"}}},\n"
	"\"providers\": {\"v\": {\"status\": \"prior\", \"project\": \"p\", \"title\": \"V\", \"language\": \"l\", \"description\": \"d\", \"declared\": \"x\"}},\n"
	"\"overrides\": [{\"channel\": \"cutile\", \"revision\": \"8ef203a42d6856391b9dfdd8115bf313888617b2\", \"provider\": \"u\", \"use\": \"v\", \"reason\": \"r\"}]}\n";
static const char hardware[] =
	"{\"version\": 1,\n\"hardware\": {\"G\": {\"status\": \"new\", \"spec\": {\"vendor\": \"v\", \"product\": \"G\", \"architecture\": \"a\"}}}}\n";
static const char entries[] = "{\"version\": 1,\n\"entries\": {\"0701bab\": \"0701bab26619b088738d096b2737e785d02dbbbc\"}}\n";

static char directory[64];

static int setup(void **state)
{
	(void)state;
	strcpy(directory, "/tmp/test_curate.XXXXXX");
	return mkdtemp(directory) ? 0 : -1;
}

static int teardown(void **state)
{
	static const char *const files[] = {"bindings.json", "providers.json", "hardware.json", "entries.json"};
	char path[128];
	(void)state;
	for (size_t i = 0; i < 4; i++) {
		snprintf(path, sizeof path, "%s/%s", directory, files[i]);
		unlink(path);
	}
	return rmdir(directory);
}

/* Writes one file, with the first `from` in it changed to `to` when the file is `changed`. */
static void put(const char *file, const char *text, const char *changed, const char *from, const char *to)
{
	char path[128];
	struct buf out = {0};
	struct err e = {0};
	const char *at = strcmp(file, changed) == 0 ? strstr(text, from) : NULL;
	if (strcmp(file, changed) == 0 && !at)
		fail_msg("\"%s\" is not in %s", from, file);
	if (at) {
		buf_add(&out, text, (size_t)(at - text));
		buf_str(&out, to);
		buf_str(&out, at + strlen(from));
	} else {
		buf_str(&out, text);
	}
	snprintf(path, sizeof path, "%s/%s", directory, file);
	assert_int_equal(0, file_write(path, out.data, out.len, 0644, &e));
	buf_fini(&out);
}

static struct curate *load(const char *changed, const char *from, const char *to, struct err *e)
{
	put("bindings.json", bindings, changed, from, to);
	put("providers.json", providers, changed, from, to);
	put("hardware.json", hardware, changed, from, to);
	put("entries.json", entries, changed, from, to);
	return curate_new(directory, e);
}

static void a_small_config_is_sound(void **state)
{
	struct err e = {0};
	struct curate *c = load("", "", "", &e);
	(void)state;
	if (!c)
		fail_msg("%s:%u:%u: %s", e.file, e.line, e.column, e.text);
	assert_int_equal(2, c->rule_count);
	assert_string_equal("a:H(M,d)", c->rules[0].id);
	assert_string_equal("a", c->rules[0].segment);
	assert_string_equal("/bindings/1", c->rules[1].pointer);
	curate_free(c);
}

static void mistakes_are_reported_with_their_place(void **state)
{
	static const struct {
		const char *file, *from, *to, *expected; /* line:column: text */
	} cases[] = {
		/* syntax and keys */
		{"bindings.json", "\"models\": {", "\"models\": [", "4:15: not JSON: ']' expected near ':'"},
		{"bindings.json", "\"version\": 1", "\"version\": 2", "1:2: version: \"version\": 1 expected"},
		{"bindings.json", "\"models\"", "\"model\"", "4:1: model: unknown key"},
		{"bindings.json", "\"axes\": {\"rows\": \"M\"", "\"axis\": {\"rows\": \"M\"", "10:138: bindings/0/axis: unknown key"},
		{"bindings.json", "\"x\": \"int\"", "\"x\": \"int\", \"y\": 1", "10:99: bindings/0/when/y: unknown key"},
		{"bindings.json", "\"kernel\": \"a\", ", "", "10:2: bindings/0: \"kernel\" is missing"},
		{"bindings.json", "\"status\": \"new\"", "\"status\": \"old\"", "11:42: bindings/1/status: \"prior\" or \"new\" expected"},
		{"bindings.json", "\"closed\": true", "\"closed\": 1", "11:121: bindings/1/when/closed: true or false expected"},
		/* names */
		{"bindings.json", "\"rows\": \"M\"", "\"rows\": \"N\"", "10:147: bindings/0/axes/rows: unbound name N at character 1 of \"N\""},
		{"bindings.json", "\"rows\": \"M\"", "\"rows\": \"d\"", "10:147: bindings/0/axes/rows: unbound name d at character 1 of \"d\""},
		{"bindings.json", "x % 2", "x % y", "11:206: bindings/1/zero/0: unbound name y at character 5 of \"x % y\""},
		{"bindings.json", "x % 2", "model.hidden_size", "11:206: bindings/1/zero/0: unbound name model.hidden_size at character 1 of \"model.hidden_size\""},
		{"bindings.json", "hidden // 2", "width // 2", "10:138: bindings/0/axes: derived axis half of liger-a: unbound name width"},
		{"bindings.json", "\"hidden\": \"x\"", "\"wide\": \"x\"", "10:138: bindings/0/axes: derived axis half of liger-a: unbound name hidden"},
		{"bindings.json", "\"rows\": \"M\"", "\"half\": \"M\"", "10:138: bindings/0/axes: axis rows of liger-a is not bound"},
		{"bindings.json", "\"hidden\": \"x\"", "\"hidden\": \"x\", \"half\": \"x\"",
		 "10:138: bindings/0/axes: axis half is derived in liger-a and cannot be bound"},
		{"bindings.json", "\"operation\": \"liger-a\"", "\"operation\": \"liger-b\"", "10:18: bindings/0/operation: unknown operation \"liger-b\""},
		{"bindings.json", "[\"c\"]", "[\"c\", \"z\"]", "10:214: bindings/0/caveats/1: unknown caveat \"z\""},
		{"bindings.json", "committed:2024", "elsewhere:2024", "10:227: bindings/0/sources/0: unknown channel in \"elsewhere:2024-09-03..\""},
		{"bindings.json", "config.d", "config.M", "10:176: bindings/0/dtype: no config key of kind dtype has this name"},
		{"bindings.json", "\"dtype\": \"bf16\", \"zero\"", "\"dtype\": \"fp8\", \"zero\"",
		 "11:180: bindings/1/dtype: config.<key>, model.dtype or a dtype token expected"},
		{"bindings.json", "\"dtype\": \"bf16\", \"zero\"", "\"dtype\": \"model.dtype\", \"zero\"", "11:180: bindings/1/dtype: x is no model here"},
		{"bindings.json", "\"eps\": 1e-6", "\"eps\": \"config.eps\"", "11:228: bindings/1/scalars/eps: a number or config.<key of a number> expected"},
		/* guards and shapes */
		{"bindings.json", "\"M\": \"int\"", "\"M\": \"integer\"",
		 "10:110: bindings/0/when/config/M: int, positive, number, dtype, bool or {\"const\": value} expected"},
		{"bindings.json", "\"x\": \"int\"", "\"x\": \"float\"", "10:87: bindings/0/when/x: int or model expected"},
		{"bindings.json", "[\"H\"]", "[]", "10:70: bindings/0/when/x_name: at least one name expected"},
		{"bindings.json", "[{\"name\": \"y\", \"shape\": [1], \"dtype\": \"fp32\"}]", "[]",
		 "8:3: operations/liger-a/outputs: an operation needs at least one tensor here"},
		{"bindings.json", "\"shape\": [1]", "\"shape\": [0]",
		 "8:39: operations/liger-a/outputs/0/shape/0: an axis name or a positive whole number expected"},
		{"bindings.json", "\"shape\": [1]", "\"shape\": []", "8:29: operations/liger-a/outputs/0/shape: a shape has 1 to 8 dimensions"},
		{"bindings.json", "\"dtype\": \"cfg\"", "\"dtype\": \"float\"", "7:55: operations/liger-a/inputs/0/dtype: unknown dtype \"float\""},
		/* rules that never fire */
		{"bindings.json", "[\"T\"], \"x\": \"int\", \"config\": {\"M\": \"int\"}, \"closed\": true", "[\"H\"], \"x\": \"int\", \"config\": {\"M\": \"int\", \"d\": \"dtype\", \"e\": \"int\"}, \"closed\": true",
		 "11:2: bindings/1: this rule can never fire: bindings/0 comes first and takes all its rows"},
		{"bindings.json", "[\"T\"], \"x\": \"int\", \"config\": {\"M\": \"int\"}, \"closed\": true", "[\"H\"], \"x\": \"int\", \"config\": {\"M\": {\"const\": 4}, \"d\": \"dtype\"}",
		 "11:2: bindings/1: this rule can never fire: bindings/0 comes first and takes all its rows"},
		/* the other files */
		{"providers.json", "\"project\": \"p\"", "\"project\": \"q\"", "3:40: providers/v/project: unknown project \"q\""},
		{"providers.json", "\"declared\"", "\"licence\"", "3:107: providers/v/licence: unknown key"},
		{"providers.json", "\"use\": \"v\"", "\"use\": \"w\"", "4:110: overrides/0/use: unknown provider \"w\""},
		{"providers.json", "8ef203a42d68", "8ef203", "4:37: overrides/0/revision: 40 hex digits expected"},
		{"hardware.json", "\"vendor\": \"v\"", "\"vendor\": 1", "2:46: hardware/G/spec/vendor: a string expected"},
		{"hardware.json", "\"spec\"", "\"specs\"", "2:37: hardware/G/specs: unknown key"},
		{"entries.json", "dbbbc", "dbbb", "2:13: entries/0701bab: 40 hex digits expected"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct err e = {0};
		char text[1200], expected[1200];
		struct curate *c = load(cases[i].file, cases[i].from, cases[i].to, &e);
		if (c)
			fail_msg("accepted: %s", cases[i].to);
		snprintf(expected, sizeof expected, "%s/%s:%s", directory, cases[i].file, cases[i].expected);
		assert_string_equal(expected, err_format(&e, text, sizeof text));
		assert_int_equal(ERR_CONFIG, e.code);
	}
}

static void rules_that_overlap_without_covering_are_fine(void **state)
{
	struct err e = {0};
	(void)state;
	struct curate *c = load("bindings.json", "[\"T\"], \"x\": \"int\", \"config\": {\"M\": \"int\"}, \"closed\": true",
				"[\"H\"], \"x\": \"int\", \"config\": {\"M\": \"int\"}, \"closed\": true", &e);
	assert_non_null(c);
	curate_free(c);
	c = load("bindings.json", "\"rows\": \"M\", \"hidden\": \"x\"}, \"dtype\": \"config.d\"", "\"rows\": \"M // 8\", \"hidden\": \"x\"}, \"dtype\": \"config.d\"", &e);
	assert_non_null(c);
	curate_free(c);
}

static struct slice text(const char *s)
{
	return (struct slice){s, strlen(s)};
}

static void an_override_is_for_one_channel_and_commit(void **state)
{
	struct err e = {0};
	struct curate *c = curate_new("config", &e);
	bool any;
	(void)state;
	assert_non_null(c);
	static const struct {
		const char *channel, *commit, *provider, *becomes;
		bool any;
	} cases[] = {
		{"cutile", "8ef203a42d68", "liger", "liger_cutile", true},
		{"cutile", "8ef203a42d6856391b9dfdd8115bf313888617b2", "liger", "liger_cutile", true},
		{"cutile", "8ef203a42d68", "torch", "torch", true},
		{"cutile", "8ef203a42d6", "liger", "liger", false}, /* too short to name a commit */
		{"cutile", "7401db04e301", "liger", "liger", false},
		{"cutile", "", "liger", "liger", false},
		{"committed", "8ef203a42d68", "liger", "liger", false},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct slice got = curate_override(c, text(cases[i].channel), text(cases[i].commit), text(cases[i].provider), &any);
		assert_true(slice_eq(got, cases[i].becomes));
		assert_int_equal(cases[i].any, any);
	}
	curate_free(c);
}

static const struct rule *rule(const struct curate *c, const char *kernel)
{
	for (size_t i = 0; i < c->rule_count; i++)
		if (strcmp(c->rules[i].kernel, kernel) == 0)
			return &c->rules[i];
	fail_msg("no rule of %s", kernel);
	return NULL;
}

static void caveats_apply_where_a_window_is_open(void **state)
{
	static const struct {
		const char *kernel, *mode, *provider;
		enum metric metric;
		const char *source, *codes;
	} cases[] = {
		{"fused_linear_cpo_loss", "forward", "liger", METRIC_LATENCY, "ghp:0701bab", "init-timed"},
		{"fused_linear_cpo_loss", "full", "liger", METRIC_PEAK_MEMORY, "ghp:0701bab", "init-timed"},
		{"fused_linear_cpo_loss", "backward", "liger", METRIC_LATENCY, "ghp:0701bab", ""},
		{"fused_linear_cpo_loss", "forward", "liger", METRIC_LATENCY, "ghp:33924d2", ""},
		{"fused_linear_cpo_loss", "forward", "liger", METRIC_LATENCY, "committed", ""},
		{"dpo_loss", "forward", "liger", METRIC_LATENCY, "ghp:0701bab", "activations-no-grad,init-timed"},
		{"dpo_loss", "forward", "liger", METRIC_LATENCY, "ghp:33924d2", "activations-no-grad"},
		{"embedding", "full", "liger", METRIC_LATENCY, "committed", "random-gradient-timed"},
		{"embedding", "backward", "liger", METRIC_LATENCY, "committed", "random-gradient-timed"},
		{"embedding", "forward", "liger", METRIC_LATENCY, "committed", ""},
		{"embedding", "full", "liger", METRIC_PEAK_MEMORY, "committed", ""},
		{"geglu", "backward", "liger", METRIC_LATENCY, "committed", ""},
		{"megatron_rms_norm", "backward", "liger", METRIC_PEAK_MEMORY, "committed", "backward-includes-forward"},
	};
	struct err e = {0};
	struct curate *c = curate_new("config", &e);
	struct buf codes = {0};
	(void)state;
	assert_non_null(c);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		buf_clear(&codes);
		buf_str(&codes, "");
		curate_caveats(c, rule(c, cases[i].kernel), cases[i].mode, cases[i].provider, cases[i].metric, text(cases[i].source), &codes);
		assert_string_equal(cases[i].codes, codes.data);
	}
	buf_fini(&codes);
	curate_free(c);
}

static void names_are_exact(void **state)
{
	struct err e = {0};
	struct curate *c = curate_new("config", &e);
	(void)state;
	assert_non_null(c);
	assert_non_null(curate_gpu(c, text("NVIDIA H100 80GB HBM3")));
	assert_null(curate_gpu(c, text("nvidia h100 80gb hbm3")));
	assert_null(curate_gpu(c, text("")));
	assert_non_null(curate_provider(c, text("liger-fp32-accum")));
	assert_null(curate_provider(c, text("liger-fp32-accu")));
	assert_null(curate_mode(c, text("Forward")));
	assert_string_equal("fp16", curate_dtype(c, text("torch.float16")));
	assert_null(curate_dtype(c, text("float16")));
	assert_string_equal("33924d20b6fa5dfc9391e4630ae82cc810114a30", curate_entry(c, text("33924d2")));
	assert_null(curate_entry(c, text("33924d")));
	assert_int_equal(71, c->rule_count - c->script_only_count);
	assert_int_equal(47, c->operation_count);
	curate_free(c);
}

static void values_are_located_in_the_text(void **state)
{
	static const char json[] = "{ \"a\": [1, {\"b\\\"\": \"x]\", \"c/d\": {}},\n  true],\n\t\"e\": {\"f\": null} }";
	static const struct {
		const char *pointer;
		unsigned line, column;
	} cases[] = {
		{"", 1, 1}, {"/a", 1, 3}, {"/a/0", 1, 9}, {"/a/1", 1, 12}, {"/a/1/c~1d", 1, 26}, {"/a/2", 2, 3}, {"/e/f", 3, 8},
		{"/e/g", 3, 2}, {"/a/7", 1, 3}, {"/zz", 1, 1},
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		unsigned line, column;
		locate(json, strlen(json), cases[i].pointer, &line, &column);
		if (line != cases[i].line || column != cases[i].column)
			fail_msg("%s: %u:%u", cases[i].pointer, line, column);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_small_config_is_sound, setup, teardown),
		cmocka_unit_test_setup_teardown(mistakes_are_reported_with_their_place, setup, teardown),
		cmocka_unit_test_setup_teardown(rules_that_overlap_without_covering_are_fine, setup, teardown),
		cmocka_unit_test(an_override_is_for_one_channel_and_commit),
		cmocka_unit_test(caveats_apply_where_a_window_is_open),
		cmocka_unit_test(names_are_exact),
		cmocka_unit_test(values_are_located_in_the_text),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
