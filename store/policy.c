#include "store/policy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/expr.h"
#include "core/json.h"
#include "store/threshold.h"

enum { AXES_MAX = 32 };

struct policy_tables {
	json_t *flags, *floors, *hardware;
	struct arena arena;
};

static json_t *load(const char *directory, const char *name, struct err *e)
{
	struct buf path = {0};
	buf_printf(&path, "%s/%s", directory, name);
	json_t *root = json_load_config(path.data, e);
	buf_fini(&path);
	return root;
}

static int thresholds(struct policy *p, struct err *e)
{
	const struct threshold wanted[] = {
		{"floorAllowance", &p->floor_allowance, 1e-9, 1e18},
		{"hardFloorBytes", &p->hard_floor_bytes, 1e-9, 1e18},
		{"launchRatio", &p->launch_ratio, 1e-9, 1e18},
		{"launchMedianNs", &p->launch_median_ns, 1e-9, 1e18},
		{"flatTimeRatio", &p->flat_time_ratio, 1e-9, 1e18},
		{"flatFloorRatio", &p->flat_floor_ratio, 1e-9, 1e18},
		{"spreadRatio", &p->spread_ratio, 1e-9, 1e18},
		{"contradictionRatio", &p->contradiction_ratio, 1e-9, 1e18},
		{"dropRatio", &p->drop_ratio, 1e-9, 1e18},
		{"outlierRatio", &p->outlier_ratio, 1e-9, 1e18},
		{"recordGain", &p->record_gain, 1e-9, 1e18},
		{"flushNs", &p->flush_ns, 1e-9, 1e18},
	};
	const json_t *table = json_object_get(p->tables->flags, "thresholds");
	if (thresholds_read(table, wanted, sizeof wanted / sizeof *wanted, "flags.json", "thresholds.", e))
		return -1;
	if (json_object_size(table) != sizeof wanted / sizeof *wanted)
		return err_at(e, ERR_CONFIG, "flags.json", 0, 0, "thresholds: an unknown name is in it");
	p->name = json_string_value(json_object_get(p->tables->flags, "policy"));
	return p->name ? 0 : err_at(e, ERR_CONFIG, "flags.json", 0, 0, "policy: wants a text");
}

int policy_load(const char *config_directory, struct policy *out, struct err *e)
{
	*out = (struct policy){.tables = xcalloc(1, sizeof *out->tables)};
	struct policy_tables *t = out->tables;
	t->flags = load(config_directory, "flags.json", e);
	t->floors = t->flags ? load(config_directory, "floors.json", e) : NULL;
	t->hardware = t->floors ? load(config_directory, "hardware.json", e) : NULL;
	return t->hardware ? thresholds(out, e) : -1;
}

void policy_fini(struct policy *p)
{
	if (!p->tables)
		return;
	json_decref(p->tables->flags);
	json_decref(p->tables->floors);
	json_decref(p->tables->hardware);
	arena_fini(&p->tables->arena);
	free(p->tables);
	*p = (struct policy){0};
}

/* ---- floors ---- */

struct axes {
	const char *names[AXES_MAX];
	int64_t values[AXES_MAX];
	size_t count;
};

static void collect_axes(const json_t *workload, struct slice dtype, struct axes *out)
{
	const char *name;
	json_t *value;
	out->count = 0;
	json_object_foreach(json_object_get(json_object_get(workload, "spec"), "axes"), name, value)
		if (out->count < AXES_MAX - 1) {
			out->names[out->count] = name;
			out->values[out->count++] = json_integer_value(value);
		}
	out->names[out->count] = "s";
	out->values[out->count++] = slice_eq(dtype, "fp32") ? 4 : 2;
}

static int evaluate(struct policy *p, const char *text, const struct axes *axes, const struct catalog_case *k, double *out, struct err *e)
{
	char why[128];
	size_t at;
	int64_t value;
	struct expr *x = expr_compile(&p->tables->arena, text, axes->names, axes->count, why, sizeof why, &at);
	if (!x)
		return err_at(e, ERR_CONFIG, "floors.json", 0, 0, "%.*s: \"%s\": %s", (int)k->parts.operation_slug.len, k->parts.operation_slug.data, text, why);
	*out = expr_eval(x, axes->values, &value) == EXPR_OK ? (double)value : 0;
	arena_reset(&p->tables->arena);
	return 0;
}

static const json_t *member(const json_t *object, struct slice name)
{
	char key[128];
	snprintf(key, sizeof key, "%.*s", (int)name.len, name.data);
	return json_object_get(object, key);
}

double policy_peak(const struct policy *p, struct slice gpu, const char *name)
{
	const json_t *peaks = json_object_get(member(json_object_get(p->tables->hardware, "hardware"), gpu), "peak");
	return json_number_value(json_object_get(peaks, name));
}

int policy_floor(struct policy *p, struct catalog *c, const struct catalog_case *k, struct floor *out)
{
	const json_t *pass = member(member(json_object_get(p->tables->floors, "operations"), k->parts.operation_slug), k->parts.mode);
	const char *bytes = json_string_value(json_object_get(pass, "bytes")), *flops = json_string_value(json_object_get(pass, "flops"));
	const char *rate = slice_eq(k->parts.dtype, "fp32") ? "tf32TFLOPs" : "bf16TFLOPs";
	double gbps = policy_peak(p, k->parts.gpu, "GBps"), tflops = policy_peak(p, k->parts.gpu, rate);
	struct axes axes;
	*out = (struct floor){0};
	if (!bytes || gbps <= 0 || k->parts.metric != METRIC_LATENCY)
		return 0;
	json_t *workload = catalog_load(c, &k->parts.workload);
	if (!workload)
		return -1;
	collect_axes(workload, k->parts.dtype, &axes);
	int rc = evaluate(p, bytes, &axes, k, &out->bytes, c->err);
	if (rc == 0 && flops)
		rc = evaluate(p, flops, &axes, k, &out->flops, c->err);
	json_decref(workload);
	out->ns = out->bytes / gbps;
	if (tflops > 0 && out->flops / tflops / 1e3 > out->ns)
		out->ns = out->flops / tflops / 1e3;
	out->known = rc == 0 && out->ns > 0;
	out->hard = out->known && !json_is_false(json_object_get(pass, "hard")) &&
		    (out->bytes >= p->hard_floor_bytes || out->ns > out->bytes / gbps);
	return rc;
}

double policy_budget_ms(const struct policy *p, struct slice kernel, const char *channel)
{
	const json_t *budgets = json_object_get(p->tables->flags, "sampleBudgetMs");
	const json_t *budget = json_object_get(json_object_get(budgets, "channels"), channel);
	if (!budget)
		budget = member(json_object_get(budgets, "kernels"), kernel);
	return json_number_value(budget ? budget : json_object_get(budgets, "default"));
}

double policy_samples(const struct policy *p, struct slice kernel, const char *channel, double median_ns)
{
	return fmax(1, floor(policy_budget_ms(p, kernel, channel) * 1e6 / (median_ns + p->flush_ns)));
}
