/* Manifests against published digests (golden objects, records A and B of the public pages), names, keys and units. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "core/when.h"
#include "normalize/build.h"

static struct curate *curate;

static int load(void **state)
{
	struct err e = {0};
	(void)state;
	curate = curate_new("config", &e);
	if (!curate)
		return -1;
	build_tables(curate);
	return 0;
}

static int unload(void **state)
{
	(void)state;
	curate_free(curate);
	return 0;
}

static struct slice text(const char *s)
{
	return (struct slice){s, strlen(s)};
}

static void check_digest(const char *hex, const struct digest *d)
{
	char shown[DIGEST_HEX + 1];
	digest_hex(d, shown);
	assert_string_equal(hex, shown);
}

static struct digest digest(const char *hex)
{
	struct digest d;
	assert_true(digest_parse_hex(hex, strlen(hex), &d));
	return d;
}

static void bind(const char *kernel, const char *x_name, const char *x_value, const char *config, struct binding *b)
{
	struct err e = {0};
	json_t *json = bind_config(text(config), &e);
	assert_non_null(json);
	assert_int_equal(BIND_OK, bind_row(curate, text(kernel), text(x_name), text(x_value), json, b));
	json_decref(json);
}

#define CROSS_ENTROPY "14cde8c616cb03e202c3c3d33e9df412d0212cef02777cf582c31fa9756a7e34"

static const struct operation *operation(const char *slug)
{
	for (size_t i = 0; i < curate->operation_count; i++)
		if (strcmp(curate->operations[i].slug, slug) == 0)
			return &curate->operations[i];
	fail_msg("no operation %s", slug);
	return NULL;
}

static void operations_have_their_published_digests(void **state)
{
	(void)state;
	check_digest(CROSS_ENTROPY, &operation("liger-cross-entropy")->object.digest);
	check_digest("e655a95629867bb20ea2d0e6b41bbde013db93f7fca6deb9a49b6ee8b4bc31a5", &operation("liger-rope")->object.digest);
	check_digest("2a90dbd952cea3e2cc1fa34fe620380b7e551a6880b30623aa876dd24cd072db", &operation("liger-megatron-swiglu")->object.digest);
	check_digest("b10257d6984bff0331fb98f4789b53522adef23468049aa6a824f66430419f07",
		     &operation("liger-fused-linear-kto-loss")->object.digest);
}

static void an_operation_is_canonical_text(void **state)
{
	(void)state;
	assert_string_equal(
		"{\"apiVersion\":\"kernelindex.dev/v1alpha1\",\"kind\":\"OperationSpec\",\"spec\":{\"axes\":{\"batch\":{\"role\":\"variable\","
		"\"type\":\"integer\"},\"ffn\":{\"role\":\"variable\",\"type\":\"integer\"},\"ffn_double\":{\"expression\":\"ffn * 2\","
		"\"role\":\"derived\",\"type\":\"integer\"},\"seq\":{\"role\":\"variable\",\"type\":\"integer\"}},\"family\":\"swiglu\","
		"\"inputs\":[{\"name\":\"y\",\"tensor\":{\"dtype\":\"float\",\"shape\":[\"seq\",\"batch\",\"ffn_double\"]}}],"
		"\"outputs\":[{\"name\":\"out\",\"tensor\":{\"dtype\":\"float\",\"shape\":[\"seq\",\"batch\",\"ffn\"]}}],"
		"\"semantics\":{\"determinism\":\"unspecified\",\"mutation\":\"none\"}}}",
		operation("liger-megatron-swiglu")->object.body.data);
}

static void protocols_environments_and_projects_have_theirs(void **state)
{
	const struct mode *forward = curate_mode(curate, text("forward")), *backward = curate_mode(curate, text("backward"));
	(void)state;
	check_digest("a79eaf4df66c97c6adc1fb2d09df78682155d1ea86652ae0b70199875bde7747", &forward->protocol[METRIC_LATENCY].digest);
	check_digest("080e6e66e4ec75a131aa0c9121c74b8e8eed64e7b6d621d567c6a28f79548be8", &backward->protocol[METRIC_LATENCY].digest);
	check_digest("5b02ee9a2140fbc6fcc1c89800f6c177ba22718c8897cb532bf0ba91867c1e58",
		     &curate_mode(curate, text("full"))->protocol[METRIC_LATENCY].digest);
	check_digest("90c9e2764222f592477cfccf3373519add5a1b881563956ad058c4f99e41b6b9",
		     &curate_gpu(curate, text("NVIDIA A100-SXM4-80GB"))->object.digest);
	check_digest("ad459e643ef802f7008f1fa8915785c905d05abbfdb5eb0328be214f8d9f3a8b",
		     &curate_gpu(curate, text("NVIDIA B200"))->object.digest);
	check_digest("c3d7b2b90704896756636a77c6d6f47882db5288ec02b17cdb744876e08d9c4e",
		     &curate_provider(curate, text("liger"))->project->object.digest);
	assert_string_equal("{\"name\":\"liger-bench-nvidia-a100-sxm4-80gb\",\"title\":\"Liger benchmark host · A100-SXM4-80GB\"}",
			    curate_gpu(curate, text("NVIDIA A100-SXM4-80GB"))->object.metadata.data);
	assert_string_equal("{\"name\":\"liger-bench-do-bench-forward\",\"title\":\"Liger benchmark harness · forward pass\"}",
			    forward->protocol[METRIC_LATENCY].metadata.data);
}

static void implementations_have_theirs(void **state)
{
	struct arena a = {0};
	struct binding b;
	struct object o;
	(void)state;
	bind("cross_entropy", "V", "4096", "{\"B\": 8, \"T\": 2048}", &b);
	build_implementation(b.rule, curate_provider(curate, text("liger")), &a, &o);
	check_digest("f703c6ddb6c1893842a45a539fe1ac9858c062af9f59c74a32f5d1aa4aa4e707", &o.digest);
	bind("megatron_swiglu", "ffn_local", "32768", "{\"S\": 2048, \"B\": 4}", &b);
	build_implementation(b.rule, curate_provider(curate, text("megatron")), &a, &o);
	check_digest("ebdec3855511a3b6ae7df50fa27a70da8c06b0eb5d8026a2fe27779438c068bb", &o.digest);
	assert_string_equal("{\"description\":\"The Megatron-Core symbol that Liger replaces for this operation.\","
			    "\"name\":\"liger-bench-megatron-swiglu-megatron\",\"title\":\"SwiGLU activation, Megatron layout · Megatron\"}",
			    o.metadata.data);
	build_implementation(b.rule, curate_provider(curate, text("torch")), &a, &o);
	assert_non_null(strstr(o.metadata.data, "\"labels\":{\"role\":\"baseline\"}"));
	arena_fini(&a);
}

static void workloads_have_theirs(void **state)
{
	struct arena a = {0};
	struct binding b;
	struct object o;
	(void)state;
	bind("cross_entropy", "V", "4096", "{\"B\": 8, \"T\": 2048}", &b);
	build_workload(&b, &a, &o);
	check_digest("df069011a833333c75db108c9ab4f5218a0504fc94981ec3a1241be70443d1f1", &o.digest);
	assert_string_equal("{\"name\":\"liger-cross-entropy-tokens16384-vocab4096-fp32\","
			    "\"title\":\"Cross-entropy loss · tokens=16384, vocab=4096 · fp32\"}",
			    o.metadata.data);
	bind("megatron_swiglu", "ffn_local", "32768", "{\"S\": 2048, \"B\": 4}", &b);
	build_workload(&b, &a, &o);
	check_digest("bc1f0115604a5243335df62c7396fa55641bcbe317f358c60fc1b6948fa15fc1", &o.digest);
	bind("rms_norm", "H", "4096", "{\"M\": 2048, \"dtype\": \"torch.bfloat16\", \"eps\": 1e-06}", &b);
	build_workload(&b, &a, &o);
	assert_non_null(strstr(o.body.data, "\"scalars\":{\"eps\":{\"dtype\":\"fp32\",\"value\":0.000001}},\"tensors\":{"
					    "\"weight\":{\"dtype\":\"bf16\",\"shape\":[4096]},\"x\":{\"dtype\":\"bf16\",\"shape\":[2048,4096]}}"));
	arena_fini(&a);
}

/* Record B of the public pages: its facts make its digest. */
static void a_run_has_its_published_digest(void **state)
{
	struct run_parts run = {
		.metric = METRIC_LATENCY,
		.benchmark = text("rope/backward"),
		.external_id = text("rope/backward/huggingface/nvidia-a100-sxm4-80gb/hidden8192-kv_heads8-q_heads32-seq2048-bf16/2024-09-03-15-39-59"),
		.source_50 = 0.621504008769989,
		.source_20 = 0.6208000183105469,
		.source_80 = 0.6223679780960083,
	}, back;
	struct arena a = {0};
	struct binding b;
	struct object workload, implementation;
	struct buf body = {0};
	(void)state;
	bind("rope", "H", "8192", "{\"dtype\": \"torch.bfloat16\", \"seq_len\": 2048, \"num_q_heads\": 32, \"num_kv_heads\": 8}", &b);
	build_workload(&b, &a, &workload);
	build_implementation(b.rule, curate_provider(curate, text("huggingface")), &a, &implementation);
	run.workload = workload.digest;
	run.implementation = implementation.digest;
	run.protocol = curate_mode(curate, text("backward"))->protocol[METRIC_LATENCY].digest;
	run.environment = curate_gpu(curate, text("NVIDIA A100-SXM4-80GB"))->object.digest;
	assert_true(when_parse("2024-09-03 15:39:59", 19, &run.observed_ms));
	record_run_body(&run, &body);
	struct digest d = digest_of(body.data, body.len);
	check_digest("c3252a98ba487075f12047e8fc1ecd6dc156a9144e5fc5a6619de6954416fcf6", &d);
	assert_true(record_run_values((struct slice){body.data, body.len}, run.metric, &back));
	assert_int_equal(run.observed_ms, back.observed_ms);
	assert_true(back.source_50 == run.source_50 && back.source_20 == run.source_20 && back.source_80 == run.source_80);
	struct digest correctness = record_correctness_not_asserted();
	struct digest key = record_comparison_key(&b.rule->operation->object.digest, &run.workload, &run.protocol, &run.environment,
						  &correctness, METRIC_LATENCY);
	check_digest("63b583a3afe1e4d7203af007389a12cd5122b767a995c960ee58637603b24151", &key);
	buf_fini(&body);
	arena_fini(&a);
}

static void a_run_without_spread_has_no_measurements(void **state)
{
	struct run_parts run = {.metric = METRIC_LATENCY, .benchmark = text("a/forward"), .external_id = text("a/b"), .source_50 = 1.5,
				.source_20 = NAN, .source_80 = NAN}, back;
	struct buf body = {0};
	(void)state;
	record_run_body(&run, &body);
	assert_null(strstr(body.data, "measurements"));
	assert_non_null(strstr(body.data, "\"metrics\":{\"ms_50\":1.5}"));
	assert_non_null(strstr(body.data, "\"latencyNs\":{\"median\":1500000}"));
	assert_true(record_run_values((struct slice){body.data, body.len}, run.metric, &back));
	assert_true(isnan(back.source_20) && isnan(back.source_80));
	buf_fini(&body);
}

static void a_memory_run_has_bytes_and_no_timing(void **state)
{
	struct run_parts run = {.metric = METRIC_PEAK_MEMORY, .benchmark = text("a/full"), .external_id = text("a/full-memory/b"),
				.source_50 = 64.25, .source_20 = 64.25, .source_80 = 64.5}, back;
	struct buf body = {0};
	(void)state;
	record_run_body(&run, &body);
	assert_null(strstr(body.data, "timing"));
	assert_non_null(strstr(body.data, "\"measurements\":[{\"metric\":\"peak_memory\",\"statistic\":\"median\",\"unit\":\"bytes\",\"value\":67371008},"
					  "{\"metric\":\"peak_memory\",\"statistic\":\"p20\",\"unit\":\"bytes\",\"value\":67371008},"
					  "{\"metric\":\"peak_memory\",\"statistic\":\"p80\",\"unit\":\"bytes\",\"value\":67633152}]"));
	assert_non_null(strstr(body.data, "\"metrics\":{\"mib_20\":64.25,\"mib_50\":64.25,\"mib_80\":64.5}"));
	assert_true(record_run_values((struct slice){body.data, body.len}, run.metric, &back));
	buf_fini(&body);
}

static void ms_become_ns_ties_upward(void **state)
{
	char line[256];
	int count = 0;
	FILE *f = fopen("fixtures/canonical/ms-to-ns.tsv", "r");
	(void)state;
	assert_non_null(f);
	while (fgets(line, sizeof line, f)) {
		char *tab = strchr(line, '\t');
		if (line[0] == '#' || !tab)
			continue;
		*tab = '\0';
		if (record_units(METRIC_LATENCY, strtod(line, NULL)) != strtoll(tab + 1, NULL, 10))
			fail_msg("%s ms", line);
		count++;
	}
	fclose(f);
	assert_int_equal(158, count);
}

static void mib_become_bytes(void **state)
{
	(void)state;
	assert_int_equal(524288, record_units(METRIC_PEAK_MEMORY, 0.5));
	assert_int_equal(72296210432, record_units(METRIC_PEAK_MEMORY, 68947.0390625));
	assert_true(record_units_fit(METRIC_PEAK_MEMORY, 8589934591.0));
	assert_false(record_units_fit(METRIC_PEAK_MEMORY, 8589934592.0));
	assert_false(record_units_fit(METRIC_LATENCY, 9.1e9));
	assert_true(record_units_fit(METRIC_LATENCY, 9.0e9));
}

static void check_kebab(const char *from, const char *to)
{
	struct buf out = {0};
	buf_str(&out, "before/");
	text_kebab(text(from), &out);
	assert_int_equal(strlen(to) + 7, out.len);
	assert_string_equal(to, out.data + 7);
	buf_fini(&out);
}

static void kebab_names(void **state)
{
	char longest[150];
	(void)state;
	check_kebab("NVIDIA H100 80GB HBM3", "nvidia-h100-80gb-hbm3");
	check_kebab("2025-01-31 01:27:42+02:00", "2025-01-31-01-27-42-02-00");
	check_kebab("--A__b  C--", "a-b-c");
	check_kebab("é", "");
	check_kebab("", "");
	memset(longest, 'a', 99);
	strcpy(longest + 99, "-b");
	assert_int_equal(101, strlen(longest));
	char expected[101];
	memcpy(expected, longest, 100);
	expected[100] = '\0';
	check_kebab(longest, expected); /* cut to 100 characters, a dash at the cut stays */
}

static void cases_are_named_by_their_axes(void **state)
{
	struct binding b;
	struct buf out = {0};
	(void)state;
	bind("fused_neighborhood_attention", "seq_len", "2048",
	     "{\"batch_size\":4,\"hidden_size\":768,\"num_heads\":12,\"kernel_size\":7,\"dilation\":1,\"bias\":true,\"dtype\":\"torch.float32\"}", &b);
	build_case_key(&b, true, &out);
	assert_string_equal("batch4-dilation1-heads12-hidden768-kernel_size7-seq2048-fp32", out.data);
	buf_clear(&out);
	build_workload_label(&b, &out);
	assert_string_equal("seq = 2048 · batch = 4 · heads = 12 · hidden = 768 · dilation = 1 · kernel_size = 7 · fp32", out.data);
	buf_clear(&out);
	bind("cross_entropy", "model_config", "qwen2.5_7b", "{\"bsz\": 1, \"seq_len\": 2048}", &b);
	build_case_key(&b, true, &out);
	assert_string_equal("tokens2048-vocab152064-fp32-qwen2-5-7b", out.data);
	buf_fini(&out);
}

static void the_kernels_part_of_ids_depends_on_status(void **state)
{
	struct binding b;
	(void)state;
	bind("dyt_beta=True", "hidden_size", "1024", "{\"BT\":4096,\"dtype\":\"torch.bfloat16\",\"beta\":true}", &b);
	assert_string_equal("dyt", b.rule->segment);
	bind("dyt_beta=False", "hidden_size", "1024", "{\"BT\":4096,\"dtype\":\"torch.bfloat16\",\"beta\":false}", &b);
	assert_string_equal("dyt_no_beta", b.rule->segment);
	bind("kto_loss", "B", "2", "{\"T\":512,\"H\":1024,\"V\":128256,\"dtype\":\"torch.bfloat16\",\"bias\":true,\"beta\":0.1}", &b);
	assert_string_equal("kto_loss", b.rule->segment);
}

static void other_manifests_are_wrapped_the_same_way(void **state)
{
	struct arena a = {0};
	struct object o;
	(void)state;
	build_identity("ExecutionEnvironment",
		       text("{\"hardware\":{\"architecture\":\"sm_100\",\"product\":\"NVIDIA B200\",\"vendor\":\"nvidia\"},\"software\":{}}"), &a, &o);
	check_digest("ad459e643ef802f7008f1fa8915785c905d05abbfdb5eb0328be214f8d9f3a8b", &o.digest);
	assert_string_equal("{\"description\":\"d \\\"q\\\"\",\"labels\":{\"a\":\"b\"},\"name\":\"n\",\"title\":\"t\"}",
			    build_metadata(&a, "n", "t", "d \"q\"", "{\"a\":\"b\"}").data);
	assert_string_equal("{\"name\":\"n\"}", build_metadata(&a, "n", NULL, NULL, NULL).data);
	struct digest d = digest(CROSS_ENTROPY);
	assert_int_equal(0, digest_cmp(&d, &operation("liger-cross-entropy")->object.digest));
	arena_fini(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(operations_have_their_published_digests),
		cmocka_unit_test(an_operation_is_canonical_text),
		cmocka_unit_test(protocols_environments_and_projects_have_theirs),
		cmocka_unit_test(implementations_have_theirs),
		cmocka_unit_test(workloads_have_theirs),
		cmocka_unit_test(a_run_has_its_published_digest),
		cmocka_unit_test(a_run_without_spread_has_no_measurements),
		cmocka_unit_test(a_memory_run_has_bytes_and_no_timing),
		cmocka_unit_test(ms_become_ns_ties_upward),
		cmocka_unit_test(mib_become_bytes),
		cmocka_unit_test(kebab_names),
		cmocka_unit_test(cases_are_named_by_their_axes),
		cmocka_unit_test(the_kernels_part_of_ids_depends_on_status),
		cmocka_unit_test(other_manifests_are_wrapped_the_same_way),
	};
	return cmocka_run_group_tests(tests, load, unload);
}
