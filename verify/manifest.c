#include "verify/manifest.h"

#include <math.h>
#include <string.h>

#include "core/home.h"
#include "core/json.h"
#include "core/when.h"
#include "normalize/record.h"

#ifndef KI_CUDA_ARCHS
#define KI_CUDA_ARCHS ""
#endif

/* An identity body out of a spec, which is given up here. */
static int identity(const char *kind, json_t *spec, struct arena *a, struct object *out, struct err *e)
{
    struct buf text = { 0 };
    int rc = spec ? json_canonical(spec, &text, e) : err_set(e, ERR_BUG, "a manifest of kind %s could not be built", kind);
    if (rc == 0)
        build_identity(kind, (struct slice){ text.data, text.len }, a, out);
    buf_fini(&text);
    json_decref(spec);
    return rc;
}

int manifest_project(struct arena *a, struct object *out, struct err *e)
{
    if (identity("SoftwareProject", json_pack("{s:s,s:s}", "name", "kernelindex", "kind", "library"), a, out, e) != 0)
        return -1;
    out->metadata = build_metadata(a, "kernelindex", "kernelindex", NULL, NULL);
    return 0;
}

/* The architectures this program was built for: sm_80, sm_90, …. */
static json_t *architectures(void)
{
    char text[] = KI_CUDA_ARCHS, *save = NULL;
    json_t *list = json_array();
    for (char *word = strtok_r(text, " ", &save); word; word = strtok_r(NULL, " ", &save))
        json_array_append_new(list, json_sprintf("sm_%s", word));
    return list;
}

static json_t *dtypes(const struct ki_operation *op)
{
    json_t *list = json_array();
    for (int d = KI_F32; d <= KI_F16; d++)
        if (op->dtypes & KI_BIT(d))
            json_array_append_new(list, json_string(ki_dtype_name((enum ki_dtype)d)));
    return list;
}

int manifest_implementation(const struct job *j, struct arena *a, struct object *out, struct err *e)
{
    char operation[DIGEST_TEXT + 1];
    digest_text(&j->operation, operation);
    json_t *spec = json_pack("{s:{s:s},s:{s:s},s:{s:s,s:s},s:{s:o,s:o},s:{s:s,s:s}}", "projectRevision", "version", KI_VERSION, "operation",
        "specDigest", operation, "callable", "language", "cuda", "path", arena_printf(a, "kernels/%s.cu", j->kernel), "support",
        "hardwareArchitectures", architectures(), "dtypes", dtypes(j->work.operation), "licensing", "declared", "Apache-2.0", "concluded",
        "Apache-2.0");
    if (identity("ImplementationRevision", spec, a, out, e) != 0)
        return -1;
    struct buf name = { 0 };
    build_kebab((struct slice){ j->kernel, strlen(j->kernel) }, &name);
    out->metadata = build_metadata(a, arena_printf(a, "kernelindex-%.*s-cuda", (int)name.len, name.data),
        arena_printf(a, "%s · kernelindex CUDA %s", j->kernel, KI_VERSION), NULL, NULL);
    buf_fini(&name);
    return 0;
}

int manifest_upstream(const struct job *j, const struct hardware *h, bool same_code, struct arena *a, struct object *out, struct err *e)
{
    json_t *body = json_load_text(j->implementation_body.data, j->implementation_body.len, "implementation", e);
    json_t *spec = json_incref(json_object_get(body, "spec")), *revision = json_object();
    const char *version = j->bundle->version[0] ? j->bundle->version : same_code ? j->version : "";
    json_decref(body);
    if (version[0])
        json_object_set_new(revision, "version", json_string(version));
    if (same_code && j->commit[0])
        json_object_set_new(revision, "commit", json_string(j->commit));
    json_object_set_new(spec, "projectRevision", revision);
    json_object_set_new(spec, "support", json_pack("{s:[s],s:[s]}", "hardwareArchitectures", h->architecture, "dtypes", ki_dtype_name(j->work.dtype)));
    if (identity("ImplementationRevision", spec, a, out, e) != 0)
        return -1;
    const char *which = same_code && j->commit[0] ? arena_strndup(a, j->commit, 7) : version[0] ? version : "unknown";
    const char *words = arena_printf(a, "%s-%s-%s", j->bundle->package, j->kernel, which);
    struct buf name = { 0 };
    build_kebab((struct slice){ words, strlen(words) }, &name);
    out->metadata = build_metadata(a, arena_strndup(a, name.data, name.len), arena_printf(a, "%s · %s %s", j->kernel, j->bundle->package, which), NULL, NULL);
    buf_fini(&name);
    return 0;
}

static const char *const pass_phrase[KI_PASSES] = {
    [KI_FORWARD] = "the forward pass",
    [KI_BACKWARD] = "the backward pass of an already computed output given a random upstream gradient",
    [KI_FULL] = "the forward pass and the backward pass in one call",
    [KI_NO_GRAD] = "the forward pass with nothing kept for a backward pass",
};

int manifest_protocol(enum ki_pass pass, bool by_child, struct arena *a, struct object *out, struct err *e)
{
    const char *here = "launch cost hidden by a kernel that holds the stream until all is queued; a graph replay agrees within 3% or 1 us a kernel. "
                       "Before each sample: new inputs, poisoned outputs, no persisting L2, twice the L2 size written.";
    const char *there = "in another process, launch cost hidden by a kernel that holds its stream until a part of the inputs has been drawn anew; the "
                        "clock outside of it agrees within 3% or 5 us. Before each sample: new inputs, poisoned outputs, twice the L2 size written.";
    const char *notes = arena_printf(a,
        "Timed: %s, as device time between two events, %s 5 blocks in fresh processes, each at least 200 samples or 0.25 s of GPU time, until the "
        "95%% interval of the median is within 0.5%% or 2 s have passed. Comparable only within one operation, workload, pass and GPU.",
        pass_phrase[pass], by_child ? there : here);
    json_t *spec = json_pack("{s:{s:s},s:{s:s,s:s,s:b,s:b,s:s,s:s,s:s,s:s},s:{s:s,s:s},s:{s:s,s:s}}", "harness", "name",
        "kernelindex controlled rerun", "measurement", "timer", "cuda_events", "synchronization", "blocking_kernel", "compileIncluded", 0,
        "setupIncluded", 0, "warmupDuration", "100 ms", "inputRegeneration", "every_call", "outlierPolicy",
        "labelled, never dropped; samples under a clock slowdown are replaced", "primaryStatistic", "median", "correctness", "reference",
        "fp64, from the operation's maths, on the same inputs", "comparator", "error_budget", "comparability", "family",
        "kernelindex_device_time", "notes", notes);
    if (identity("BenchmarkProtocol", spec, a, out, e) != 0)
        return -1;
    out->metadata = build_metadata(a, arena_printf(a, "kernelindex-device-time-%s%s", by_child ? "child-" : "", ki_pass_name(pass)),
        arena_printf(a, "Controlled rerun · device time%s · %s", by_child ? " in a child" : "", ki_pass_name(pass)), NULL, NULL);
    return 0;
}

static json_t *hardware_spec(const struct hardware *h, int64_t memory_bytes)
{
    json_t *o = json_pack("{s:s,s:s,s:s,s:I}", "vendor", h->vendor, "product", h->product, "architecture", h->architecture, "memoryBytes",
        (json_int_t)memory_bytes);
    if (h->form_factor[0])
        json_object_set_new(o, "formFactor", json_string(h->form_factor));
    return o;
}

static json_t *software_spec(const struct device_cuda *c, const struct device_nvml *n, const struct device_host *host)
{
    json_t *libraries = json_object();
    json_t *o = json_pack("{s:s,s:s,s:s}", "kernel", host->kernel, "cudaToolkit", "", "compiler", c->compiler);
    json_object_set_new(o, "cudaToolkit", json_sprintf("%d.%d", c->runtime / 1000, c->runtime % 1000 / 10));
    if (host->os[0])
        json_object_set_new(o, "operatingSystem", json_string(host->os));
    if (n->driver[0])
        json_object_set_new(o, "driver", json_string(n->driver));
    if (c->cublas[0])
        json_object_set_new(libraries, "cublas", json_string(c->cublas));
    json_object_set_new(libraries, "cuda_runtime", json_sprintf("%d.%d", c->runtime / 1000, c->runtime % 1000 / 10));
    json_object_set_new(libraries, "cuda_driver_api", json_sprintf("%d.%d", c->driver / 1000, c->driver % 1000 / 10));
    json_object_set_new(o, "libraries", libraries);
    return o;
}

static json_t *settings_spec(const struct device_cuda *c, const struct device_nvml *n)
{
    json_t *o = json_pack("{s:b,s:{s:s}}", "eccEnabled", n->ecc == DEVICE_UNKNOWN ? c->ecc : n->ecc == 1, "environmentVariables",
        "CUDA_MODULE_LOADING", "EAGER");
    if (n->power_limit_mw > 0)
        json_object_set_new(o, "powerLimitWatts", json_real(n->power_limit_mw / 1000.0));
    if (n->persistence != DEVICE_UNKNOWN)
        json_object_set_new(o, "persistenceMode", json_boolean(n->persistence));
    return o;
}

static struct slice environment_metadata(const char *product, struct arena *a)
{
    struct buf name = { 0 };
    build_kebab((struct slice){ product, strlen(product) }, &name);
    struct slice m = build_metadata(a, arena_printf(a, "kernelindex-%.*s", (int)name.len, name.data),
        arena_printf(a, "Controlled rerun host · %s", product), NULL, NULL);
    buf_fini(&name);
    return m;
}

int manifest_environment(const struct device_cuda *c, const struct device_nvml *n, const struct device_host *host, const struct hardware *h,
    struct arena *a, struct object *out, struct err *e)
{
    json_t *spec = json_pack("{s:o,s:o,s:o}", "hardware", hardware_spec(h, c->memory_bytes), "software", software_spec(c, n, host), "settings",
        settings_spec(c, n));
    if (identity("ExecutionEnvironment", spec, a, out, e) != 0)
        return -1;
    out->metadata = environment_metadata(h->product, a);
    return 0;
}

int manifest_environment_cpu(const struct device_host *host, struct arena *a, struct object *out, struct err *e)
{
    json_t *spec = json_pack("{s:{s:s,s:s,s:s},s:{s:s}}", "hardware", "vendor", "cpu", "product", host->cpu[0] ? host->cpu : "CPU",
        "architecture", "x86_64", "software", "kernel", host->kernel);
    if (identity("ExecutionEnvironment", spec, a, out, e) != 0)
        return -1;
    out->metadata = environment_metadata(host->cpu[0] ? host->cpu : "cpu", a);
    return 0;
}

static json_t *ns_of(double ns)
{
    return json_integer((json_int_t)floor(ns + 0.5));
}

static json_t *timing_spec(const struct manifest_run *r)
{
    char digest[DIGEST_TEXT + 1];
    const struct stats_summary *t = r->timing;
    digest_text(&r->samples, digest);
    return json_pack("{s:s,s:I,s:{s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:[oo]},s:{s:o,s:s}}", "primaryStatistic", "median", "samples",
        (json_int_t)t->samples, "latencyNs", "median", ns_of(t->median), "mean", ns_of(t->mean), "p05", ns_of(t->p05), "p95", ns_of(t->p95),
        "minimum", ns_of(t->minimum), "maximum", ns_of(t->maximum), "mad", ns_of(t->mad), "confidence95", ns_of(t->low95), ns_of(t->high95),
        "rawSamples", "uri", json_sprintf("urn:sha256:%s", digest + strlen("sha256:")), "digest", digest);
}

static json_t *measurement(const char *metric, const char *unit, const char *statistic, double value)
{
    return json_pack("{s:s,s:s,s:s,s:f}", "metric", metric, "unit", unit, "statistic", statistic, "value", value);
}

static json_t *measurements_spec(const struct manifest_run *r)
{
    const struct stats_summary *t = r->timing;
    json_t *list = json_array();
    json_array_append_new(list, measurement("latency", "ns", "p20", floor(t->p20 + 0.5)));
    json_array_append_new(list, measurement("latency", "ns", "p80", floor(t->p80 + 0.5)));
    json_array_append_new(list, measurement("event_time", "ns", "median", floor(r->t_src_ns + 0.5)));
    json_array_append_new(list, measurement("host_enqueue", "ns", "median", floor(r->h_ns + 0.5)));
    json_array_append_new(list, measurement("traffic", "bytes", "floor", r->bytes));
    if (r->flops > 0) {
        json_array_append_new(list, measurement("work", "flops", "floor", r->flops));
        json_array_append_new(list, measurement("rate", "tflops", "median", r->flops / t->median * 1e-3));
    }
    json_array_append_new(list, measurement("bandwidth", "gb_per_s", "median", r->bytes / t->median));
    if (r->copy_gbps > 0)
        json_array_append_new(list, measurement("bandwidth", "share_of_copy", "median", r->bytes / t->median / r->copy_gbps));
    return list;
}

static json_t *run_spec(const struct manifest_run *r)
{
    char implementation[DIGEST_TEXT + 1], workload[DIGEST_TEXT + 1], protocol[DIGEST_TEXT + 1], environment[DIGEST_TEXT + 1], at[WHEN_TEXT + 1];
    digest_text(&r->implementation, implementation);
    digest_text(&r->job->workload, workload);
    digest_text(&r->protocol, protocol);
    digest_text(&r->environment, environment);
    when_text(r->observed_ms, at);
    json_t *spec = json_pack("{s:s,s:s,s:s,s:s,s:s,s:s}", "implementationDigest", implementation, "workloadDigest", workload, "protocolDigest",
        protocol, "environmentDigest", environment, "status", r->status, "observedAt", at);
    json_t *correctness = json_pack("{s:s}", "comparator", "error_budget");
    if (isfinite(r->max_error))
        json_object_set_new(correctness, "maximumAbsoluteError", json_real(r->max_error));
    json_object_set_new(spec, "correctness", correctness);
    if (r->timing) {
        json_object_set_new(spec, "timing", timing_spec(r));
        json_object_set_new(spec, "measurements", measurements_spec(r));
    }
    return spec;
}

int manifest_run(const struct manifest_run *r, struct arena *a, struct object *out, struct err *e)
{
    if (identity("BenchmarkRun", run_spec(r), a, out, e) != 0)
        return -1;
    char at[WHEN_TEXT + 1];
    when_text(r->observed_ms, at);
    const char *provider = r->job->native ? "kernelindex" : r->job->provider;
    const char *words = arena_printf(a, "kernelindex-%s%s%s-%s", r->job->native ? "" : provider, r->job->native ? "" : "-", job_title(r->job, a), at);
    struct buf name = { 0 }, labels = { 0 };
    build_kebab((struct slice){ words, strlen(words) }, &name);
    buf_str(&labels, "{\"batch\":");
    json_put_str(&labels, r->batch);
    buf_str(&labels, ",\"kernel\":");
    json_put_str(&labels, r->job->kernel);
    buf_str(&labels, ",\"pass\":");
    json_put_str(&labels, ki_pass_name(r->job->pass));
    buf_str(&labels, ",\"provider\":");
    json_put_str(&labels, provider);
    buf_char(&labels, '}');
    out->metadata = build_metadata(a, arena_strndup(a, name.data, name.len),
        arena_printf(a, "%s · %s · %s", r->job->kernel, provider, ki_pass_name(r->job->pass)), NULL, arena_strndup(a, labels.data, labels.len));
    buf_fini(&name);
    buf_fini(&labels);
    return 0;
}
