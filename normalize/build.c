#include "normalize/build.h"

#include <string.h>

#include "core/json.h"
#include "core/text.h"

#define BENCH_REPOSITORY "https://github.com/linkedin/Liger-Kernel"

static struct slice keep(struct arena *a, const struct buf *b)
{
	return (struct slice){arena_strndup(a, b->len ? b->data : "", b->len), b->len};
}

static void put_member(struct buf *out, const char *name, const char *value)
{
	json_put_str(out, name);
	buf_char(out, ':');
	json_put_str(out, value);
}

static void put_digest(struct buf *out, const struct digest *d)
{
	char text[DIGEST_TEXT + 1];
	digest_text(d, text);
	json_put_str(out, text);
}

/* The text before and after a spec. */
static void open_body(struct buf *out, const char *kind)
{
	buf_printf(out, "{\"apiVersion\":\"%s\",\"kind\":\"%s\",\"spec\":", RECORD_API_VERSION, kind);
}

static void close_body(struct buf *body, struct arena *a, struct object *out)
{
	buf_char(body, '}');
	out->body = keep(a, body);
	out->digest = digest_of(body->data, body->len);
	buf_fini(body);
}

void build_identity(const char *kind, struct slice spec, struct arena *a, struct object *out)
{
	struct buf body = {0};
	open_body(&body, kind);
	buf_add(&body, spec.data, spec.len);
	close_body(&body, a, out);
}

struct slice build_metadata(struct arena *a, const char *name, const char *title, const char *description, const char *labels)
{
	struct buf text = {0};
	buf_char(&text, '{');
	if (description) {
		put_member(&text, "description", description);
		buf_char(&text, ',');
	}
	if (labels)
		buf_printf(&text, "\"labels\":%s,", labels);
	put_member(&text, "name", name);
	if (title) {
		buf_char(&text, ',');
		put_member(&text, "title", title);
	}
	buf_char(&text, '}');
	struct slice out = keep(a, &text);
	buf_fini(&text);
	return out;
}

void build_kebab(struct slice text, struct buf *out)
{
	text_kebab(text, out);
}

static const char *kebab(struct arena *a, const char *text)
{
	struct buf out = {0};
	text_kebab(slice_of(text), &out);
	struct slice kept = keep(a, &out);
	buf_fini(&out);
	return kept.data;
}

/* ---- operations ---- */

static void put_shape_names(struct buf *out, const struct tensor *t)
{
	buf_char(out, '[');
	for (size_t i = 0; i < t->rank; i++) {
		if (i)
			buf_char(out, ',');
		if (t->dims[i].name)
			json_put_str(out, t->dims[i].name);
		else
			buf_i64(out, t->dims[i].number);
	}
	buf_char(out, ']');
}

static void put_arguments(struct buf *out, const char *name, const struct tensor *tensors, size_t count)
{
	buf_printf(out, "\"%s\":[", name);
	for (size_t i = 0; i < count; i++) {
		buf_str(out, i ? ",{" : "{");
		put_member(out, "name", tensors[i].name);
		buf_str(out, ",\"tensor\":{");
		put_member(out, "dtype", strcmp(tensors[i].dtype, "cfg") == 0 ? "float" : tensors[i].dtype);
		buf_str(out, ",\"shape\":");
		put_shape_names(out, &tensors[i]);
		buf_str(out, "}}");
	}
	buf_char(out, ']');
}

/* Variable and derived axes in one sorted list: both lists are short, so take the smallest name left each time. */
static void put_operation_axes(struct buf *out, const struct operation *op)
{
	const char *last = "";
	buf_str(out, "\"axes\":{");
	for (;;) {
		const char *name = NULL, *expression = NULL;
		for (size_t i = 0; i < op->variables.count + op->derived_count; i++) {
			bool variable = i < op->variables.count;
			const struct derived *d = variable ? NULL : &op->derived[i - op->variables.count];
			const char *candidate = variable ? op->variables.items[i] : d->name;
			if (strcmp(candidate, last) > 0 && (!name || strcmp(candidate, name) < 0)) {
				name = candidate;
				expression = variable ? NULL : d->expression;
			}
		}
		if (!name)
			break;
		if (*last)
			buf_char(out, ',');
		json_put_str(out, name);
		buf_str(out, ":{");
		if (expression) {
			put_member(out, "expression", expression);
			buf_char(out, ',');
		}
		buf_printf(out, "\"role\":\"%s\",\"type\":\"integer\"}", expression ? "derived" : "variable");
		last = name;
	}
	buf_char(out, '}');
}

static void build_operation(struct operation *op, struct arena *a)
{
	struct buf body = {0};
	open_body(&body, "OperationSpec");
	buf_char(&body, '{');
	put_operation_axes(&body, op);
	buf_char(&body, ',');
	put_member(&body, "family", op->family);
	buf_char(&body, ',');
	put_arguments(&body, "inputs", op->inputs, op->input_count);
	buf_char(&body, ',');
	put_arguments(&body, "outputs", op->outputs, op->output_count);
	buf_str(&body, ",\"semantics\":{\"determinism\":\"unspecified\",\"mutation\":\"none\"}}");
	close_body(&body, a, &op->object);
	op->object.metadata = build_metadata(a, op->slug, op->title, op->description, NULL);
}

/* ---- protocols and environments ---- */

/* The fixed words of each metric's protocol; the pass stands between the two parts of the notes. */
static const struct {
	const char *name, *title, *family, *timer, *notes[2];
} protocols[METRICS] = {
	[METRIC_LATENCY] = {"liger-bench-do-bench-", "Liger benchmark harness · ", "liger_kernel_bench", "cuda_events",
			    {"Timed: ", ", via triton.testing.do_bench with quantiles 0.5/0.2/0.8 (median with p20/p80 spread). The "
					"upstream CSV records no CUDA, driver, or torch version; the Liger release rides each run's "
					"labels. Comparable only within one kernel, workload, timed pass, and GPU."}},
	[METRIC_PEAK_MEMORY] = {"liger-bench-memory-", "Liger benchmark harness, peak memory · ", "liger_kernel_bench_memory",
				"max_memory_allocated",
				{"Peak device memory allocated during ",
				 ", absolute, as PyTorch's allocator counts it: the counter is reset, the call is made, the maximum is "
				 "read, ten times. Comparable only within one kernel, workload, pass, and GPU."}},
};

static void build_protocol(struct mode *mode, enum metric m, struct arena *a)
{
	struct buf body = {0};
	char *notes = arena_printf(a, "%s%s%s", protocols[m].notes[0], mode->pass, protocols[m].notes[1]);
	open_body(&body, "BenchmarkProtocol");
	buf_str(&body, "{\"comparability\":{");
	put_member(&body, "family", protocols[m].family);
	buf_char(&body, ',');
	put_member(&body, "notes", notes);
	buf_str(&body, "},\"harness\":{\"name\":\"Liger-Kernel benchmark scripts\",\"repository\":\"" BENCH_REPOSITORY "\"},");
	buf_str(&body, "\"measurement\":{\"primaryStatistic\":\"median\",");
	put_member(&body, "timer", protocols[m].timer);
	buf_str(&body, "}}");
	close_body(&body, a, &mode->protocol[m]);
	mode->protocol[m].metadata = build_metadata(a, arena_printf(a, "%s%s", protocols[m].name, mode->name),
						    arena_printf(a, "%s%s pass", protocols[m].title, mode->name), NULL, NULL);
}

static void build_environment(struct gpu *gpu, struct arena *a)
{
	const char *shown = strncmp(gpu->name, "NVIDIA ", 7) == 0 ? gpu->name + 7 : gpu->name;
	char *spec = arena_printf(a, "{\"hardware\":%s,\"software\":{}}", gpu->spec.data);
	build_identity("ExecutionEnvironment", (struct slice){spec, strlen(spec)}, a, &gpu->object);
	gpu->object.metadata = build_metadata(a, arena_printf(a, "liger-bench-%s", kebab(a, gpu->name)),
					      arena_printf(a, "Liger benchmark host · %s", shown), NULL, NULL);
}

void build_tables(struct curate *c)
{
	struct arena *a = &c->arena;
	for (size_t i = 0; i < c->operation_count; i++)
		build_operation(&c->operations[i], a);
	for (size_t i = 0; i < c->mode_count; i++)
		for (int m = 0; m < METRICS; m++)
			build_protocol(&c->modes[i], (enum metric)m, a);
	for (size_t i = 0; i < c->gpu_count; i++)
		build_environment(&c->gpus[i], a);
	for (size_t i = 0; i < c->project_count; i++) {
		struct project *p = &c->projects[i];
		build_identity("SoftwareProject", p->spec, a, &p->object);
		p->object.metadata = build_metadata(a, p->slug, p->name, NULL, NULL);
	}
}

/* ---- implementations ---- */

void build_implementation(const struct rule *rule, const struct provider *p, struct arena *a, struct object *out)
{
	struct buf body = {0};
	open_body(&body, "ImplementationRevision");
	buf_char(&body, '{');
	if (p->package) {
		buf_str(&body, "\"buildVariants\":[{\"install\":{\"kind\":\"pip\",");
		put_member(&body, "package", p->package);
		buf_str(&body, "},\"name\":\"pip\"}],");
	}
	buf_str(&body, "\"callable\":{");
	put_member(&body, "language", p->language);
	buf_str(&body, "},\"licensing\":{");
	if (p->concluded) {
		put_member(&body, "concluded", p->concluded);
		buf_char(&body, ',');
	}
	put_member(&body, "declared", p->declared);
	buf_str(&body, "},\"operation\":{\"specDigest\":");
	put_digest(&body, &rule->operation->object.digest);
	buf_str(&body, "},\"projectRevision\":{},\"support\":{\"dtypes\":[],\"hardwareArchitectures\":[]}}");
	close_body(&body, a, out);
	out->metadata = build_metadata(a, arena_printf(a, "liger-bench-%s-%s", kebab(a, rule->segment), kebab(a, p->name)),
				       arena_printf(a, "%s · %s", rule->operation->title, p->title), p->description,
				       p->baseline ? "{\"role\":\"baseline\"}" : NULL);
}

/* ---- workloads ---- */

static void put_workload_axes(struct buf *out, const struct binding *b)
{
	const struct rule *r = b->rule;
	buf_str(out, "\"axes\":{");
	for (size_t i = 0; i < r->axis_count; i++) {
		if (i)
			buf_char(out, ',');
		json_put_str(out, r->axis_names[r->sorted[i]]);
		buf_char(out, ':');
		buf_i64(out, b->axes[r->sorted[i]]);
	}
	buf_char(out, '}');
}

static void put_scalars(struct buf *out, const struct binding *b)
{
	const struct rule *r = b->rule;
	if (r->scalar_count == 0)
		return;
	buf_str(out, ",\"scalars\":{");
	for (size_t i = 0; i < r->scalar_count; i++) {
		if (i)
			buf_char(out, ',');
		json_put_str(out, r->scalars[i].name);
		buf_str(out, ":{\"dtype\":\"fp32\",\"value\":");
		json_put_number(out, b->scalars[i]);
		buf_char(out, '}');
	}
	buf_char(out, '}');
}

int64_t build_dim(const struct binding *b, const struct dim *dim)
{
	if (!dim->name)
		return dim->number;
	size_t i = 0;
	while (strcmp(b->rule->axis_names[i], dim->name) != 0) /* bound or derived: checked when the rules were loaded */
		i++;
	return b->axes[i];
}

static void put_tensor(struct buf *out, const struct binding *b, const struct tensor *t)
{
	json_put_str(out, t->name);
	buf_str(out, ":{");
	put_member(out, "dtype", strcmp(t->dtype, "cfg") == 0 ? b->dtype : t->dtype);
	buf_str(out, ",\"shape\":[");
	for (size_t i = 0; i < t->rank; i++) {
		if (i)
			buf_char(out, ',');
		buf_i64(out, build_dim(b, &t->dims[i]));
	}
	buf_str(out, "]}");
}

/* The operation's inputs in the order of their names. */
static void put_tensors(struct buf *out, const struct binding *b)
{
	const struct operation *op = b->rule->operation;
	const char *last = "";
	buf_str(out, ",\"tensors\":{");
	for (size_t done = 0; done < op->input_count; done++) {
		const struct tensor *next = NULL;
		for (size_t i = 0; i < op->input_count; i++)
			if (strcmp(op->inputs[i].name, last) > 0 && (!next || strcmp(op->inputs[i].name, next->name) < 0))
				next = &op->inputs[i];
		if (done)
			buf_char(out, ',');
		put_tensor(out, b, next);
		last = next->name;
	}
	buf_char(out, '}');
}

/* `rows=2048, hidden=4096`, in the order of the rule. */
static void put_axis_list(struct buf *out, const struct binding *b)
{
	for (size_t i = 0; i < b->rule->axis_count; i++) {
		buf_printf(out, "%s%s=", i ? ", " : "", b->rule->axis_names[i]);
		buf_i64(out, b->axes[i]);
	}
}

static struct slice workload_metadata(const struct binding *b, struct arena *a)
{
	struct buf name = {0}, title = {0};
	build_case_key(b, false, &name);
	put_axis_list(&title, b);
	struct slice out = build_metadata(
		a, kebab(a, arena_printf(a, "liger-%s-%s", b->rule->segment, name.data)),
		arena_printf(a, "%s · %s · %s", b->rule->operation->title, title.data, b->dtype), NULL, NULL);
	buf_fini(&name);
	buf_fini(&title);
	return out;
}

void build_workload(const struct binding *b, struct arena *a, struct object *out)
{
	struct buf body = {0};
	open_body(&body, "WorkloadCase");
	buf_char(&body, '{');
	put_workload_axes(&body, b);
	buf_str(&body, ",\"correctness\":{\"comparator\":\"not_asserted\"},\"operationSpecDigest\":");
	put_digest(&body, &b->rule->operation->object.digest);
	put_scalars(&body, b);
	put_tensors(&body, b);
	buf_char(&body, '}');
	close_body(&body, a, out);
	out->metadata = workload_metadata(b, a);
}

void build_case_key(const struct binding *b, bool with_model, struct buf *out)
{
	for (size_t i = 0; i < b->rule->axis_count; i++) {
		buf_str(out, b->rule->axis_names[b->rule->sorted[i]]);
		buf_i64(out, b->axes[b->rule->sorted[i]]);
		buf_char(out, '-');
	}
	buf_str(out, b->dtype);
	if (with_model && b->model) {
		buf_char(out, '-');
		text_kebab(slice_of(b->model->name), out);
	}
}

void build_workload_label(const struct binding *b, struct buf *out)
{
	for (size_t i = 0; i < b->rule->axis_count; i++) {
		buf_printf(out, "%s = ", b->rule->axis_names[b->rule->shown[i]]);
		buf_i64(out, b->axes[b->rule->shown[i]]);
		buf_str(out, " · ");
	}
	buf_str(out, b->dtype);
}
