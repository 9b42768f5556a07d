#include "verify/job.h"

#include <math.h>
#include <string.h>

#include "core/json.h"

/* The line being read, for errors. */
struct reader {
    const char *name;
    unsigned line;
    struct arena *arena;
    struct err *e;
};

static int bad(const struct reader *r, const char *field, const char *what)
{
    return err_at(r->e, ERR_DATA, r->name, r->line, 0, "%s: %s", field, what);
}

/* A member by dotted path, or NULL. */
static json_t *member(json_t *o, const char *path)
{
    char part[64];
    while (o && *path) {
        size_t n = strcspn(path, ".");
        if (n >= sizeof part)
            return NULL;
        memcpy(part, path, n);
        part[n] = 0;
        o = json_object_get(o, part);
        path += n + (path[n] == '.');
    }
    return o;
}

static int read_text(const struct reader *r, json_t *o, const char *path, size_t max, const char *absent, const char **out)
{
    json_t *v = member(o, path);
    if (!v && absent) {
        *out = absent;
        return 0;
    }
    if (!json_is_string(v) || json_string_length(v) == 0 || json_string_length(v) > max)
        return bad(r, path, v ? "not a text of a sensible length" : "missing");
    *out = arena_strdup(r->arena, json_string_value(v));
    return 0;
}

static int read_number(const struct reader *r, json_t *o, const char *path, double least, double most, double absent, double *out)
{
    json_t *v = member(o, path);
    if (!v && !isnan(absent)) {
        *out = absent;
        return 0;
    }
    if (!json_is_number(v))
        return bad(r, path, v ? "not a number" : "missing");
    *out = json_number_value(v);
    return *out >= least && *out <= most ? 0 : bad(r, path, "out of range");
}

/* The canonical text of a member and its digest. */
static int read_body(const struct reader *r, json_t *o, const char *path, struct slice *body, struct digest *digest)
{
    json_t *v = member(o, path);
    struct buf text = { 0 };
    if (!json_is_object(v))
        return bad(r, path, v ? "not an object" : "missing");
    int rc = json_canonical(v, &text, r->e);
    if (rc == 0) {
        *digest = digest_of(text.data, text.len);
        *body = (struct slice){ arena_strndup(r->arena, text.data, text.len), text.len };
    }
    buf_fini(&text);
    return rc;
}

static int read_subject(const struct reader *r, json_t *o, struct job *j)
{
    const char *run;
    if (read_text(r, o, "subject.run", DIGEST_TEXT, NULL, &run) != 0)
        return -1;
    if (!digest_parse(run, strlen(run), &j->subject))
        return bad(r, "subject.run", "not a digest");
    return read_text(r, o, "subject.externalId", 500, NULL, &j->external_id);
}

static int read_reported(const struct reader *r, json_t *o, struct job *j)
{
    double samples;
    if (read_number(r, o, "reported.median_ns", 1, 1e15, NAN, &j->reported.median_ns) != 0
        || read_number(r, o, "reported.p20_ns", 1, 1e15, 0, &j->reported.p20_ns) != 0
        || read_number(r, o, "reported.p80_ns", 1, 1e15, 0, &j->reported.p80_ns) != 0
        || read_number(r, o, "reported.samples_estimate", 1, 1e9, 1, &samples) != 0
        || read_number(r, o, "reported.width_p90", 0, 10, 0, &j->reported.width_p90) != 0)
        return -1;
    j->reported.samples = (int64_t)samples;
    return 0;
}

static int read_gpu(const struct reader *r, json_t *o, struct job *j)
{
    double memory;
    int rc = read_number(r, o, "gpu.memoryBytes", 0, 1e15, 0, &memory);
    j->gpu_memory_bytes = (int64_t)memory;
    return rc != 0 || read_text(r, o, "gpu.product", 200, NULL, &j->product) != 0 || read_text(r, o, "gpu.formFactor", 100, "", &j->form_factor) != 0
            || read_number(r, o, "gpu.peak.GBps", 0, 1e6, 0, &j->peak.gbps) != 0
            || read_number(r, o, "gpu.peak.bf16TFLOPs", 0, 1e6, 0, &j->peak.bf16_tflops) != 0
            || read_number(r, o, "gpu.peak.tf32TFLOPs", 0, 1e6, 0, &j->peak.tf32_tflops) != 0
            || read_number(r, o, "gpu.peak.fp32TFLOPs", 0, 1e6, 0, &j->peak.fp32_tflops) != 0
        ? -1
        : 0;
}

static int read_limits(const struct reader *r, json_t *o, struct job *j)
{
    double memory;
    if (read_number(r, o, "limits.wall_seconds", 1, 3600, 120, &j->wall_seconds) != 0
        || read_number(r, o, "limits.memory_bytes", 0, 1e15, 0, &memory) != 0
        || read_number(r, o, "reported.budget_ms", 1, 10000, 100, &j->source_budget_ms) != 0)
        return -1;
    j->memory_bytes = (int64_t)memory;
    return 0;
}

/* The float type of the workload: that of its tensors whose type the contract leaves open. All must agree. */
static int read_dtype(const struct reader *r, json_t *workload, const struct ki_operation *op, enum ki_dtype *out)
{
    const char *name;
    json_t *tensor;
    *out = KI_CASE_DTYPE;
    json_object_foreach(member(workload, "spec.tensors"), name, tensor) {
        const char *text = json_string_value(json_object_get(tensor, "dtype"));
        enum ki_dtype d = text ? ki_dtype_find(text) : KI_CASE_DTYPE;
        if (!text)
            return bad(r, "workload.spec.tensors", "a tensor without a dtype");
        int i = ki_tensor_find(op, name);
        if (d == KI_I64 || (i >= 0 && op->tensor[i].dtype != KI_CASE_DTYPE && op->tensor[i].dtype == d))
            continue;
        if (d != KI_F32 && d != KI_BF16 && d != KI_F16)
            return err_at(r->e, ERR_UNAVAILABLE, r->name, r->line, 0, "no kernel here for tensors of %.20s", text);
        if (*out != KI_CASE_DTYPE && *out != d)
            return bad(r, "workload.spec.tensors", "more than one float type");
        *out = d;
    }
    return *out == KI_CASE_DTYPE ? bad(r, "workload.spec.tensors", "no float tensor") : 0;
}

static int read_axes(const struct reader *r, json_t *workload, struct ki_axis_value axes[KI_MAX_AXES], size_t *n)
{
    const char *name;
    json_t *v;
    *n = 0;
    json_object_foreach(member(workload, "spec.axes"), name, v) {
        int64_t whole;
        if (*n == KI_MAX_AXES || !json_whole(v, &whole))
            return bad(r, "workload.spec.axes", "too many, or not a whole number");
        axes[(*n)++] = (struct ki_axis_value){ name, whole };
    }
    return 0;
}

static int read_scalars(const struct reader *r, json_t *workload, struct ki_scalar_value scalars[KI_MAX_SCALARS], size_t *n)
{
    const char *name;
    json_t *v;
    *n = 0;
    json_object_foreach(member(workload, "spec.scalars"), name, v) {
        json_t *value = json_object_get(v, "value");
        if (*n == KI_MAX_SCALARS || !json_is_number(value))
            return bad(r, "workload.spec.scalars", "too many, or not a number");
        scalars[(*n)++] = (struct ki_scalar_value){ name, json_number_value(value) };
    }
    return 0;
}

/* Shapes in the workload must be those of the case: a job that says 4096 in one place and 8192 in another is refused. */
static int check_shapes(const struct reader *r, json_t *workload, const struct ki_case *c)
{
    const char *name;
    json_t *tensor, *dim;
    size_t at;
    json_object_foreach(member(workload, "spec.tensors"), name, tensor) {
        int64_t shape[KI_MAX_RANK], whole;
        int i = ki_tensor_find(c->operation, name);
        json_t *dims = json_object_get(tensor, "shape");
        if (i < 0 || json_array_size(dims) != (size_t)ki_tensor_shape(c, i, shape))
            return bad(r, "workload.spec.tensors", "a tensor that the operation does not have, or of another rank");
        json_array_foreach(dims, at, dim)
            if (!json_whole(dim, &whole) || whole != shape[at])
                return bad(r, "workload.spec.tensors", "a shape that does not follow from the axes");
    }
    return 0;
}

static int read_case(const struct reader *r, json_t *o, struct job *j)
{
    struct ki_axis_value axes[KI_MAX_AXES];
    struct ki_scalar_value scalars[KI_MAX_SCALARS];
    size_t n_axes, n_scalars;
    enum ki_dtype dtype;
    const char *pass, *reason = "";
    json_t *workload = json_object_get(o, "workload");
    const struct ki_operation *op = ki_operation_find(j->kernel);
    if (read_text(r, o, "pass", 32, NULL, &pass) != 0)
        return -1;
    if (ki_pass_find(pass) < 0)
        return bad(r, "pass", "no such pass");
    j->pass = (enum ki_pass)ki_pass_find(pass);
    if (!op || !(op->passes & KI_BIT(j->pass)))
        return err_at(r->e, ERR_UNAVAILABLE, r->name, r->line, 0, "no kernel here for %s %s", j->kernel, pass);
    if (read_dtype(r, workload, op, &dtype) != 0 || read_axes(r, workload, axes, &n_axes) != 0
        || read_scalars(r, workload, scalars, &n_scalars) != 0)
        return -1;
    if (ki_case_set(&j->work, op, dtype, axes, n_axes, scalars, n_scalars, &reason) != 0)
        return err_at(r->e, ERR_UNAVAILABLE, r->name, r->line, 0, "%s: %s", j->kernel, reason);
    return check_shapes(r, workload, &j->work);
}

static int read_identity(const struct reader *r, json_t *o, struct job *j)
{
    const char *type, *runner, *quantity;
    struct slice protocol;
    if (read_text(r, o, "type", 16, NULL, &type) != 0 || read_text(r, o, "id", 200, NULL, &j->id) != 0
        || read_text(r, o, "nonce", 64, NULL, &j->nonce) != 0 || read_text(r, o, "policy", 32, NULL, &j->policy) != 0
        || read_text(r, o, "runner", 16, NULL, &runner) != 0 || read_text(r, o, "quantity", 16, NULL, &quantity) != 0
        || read_text(r, o, "kernel", 100, NULL, &j->kernel) != 0 || read_text(r, o, "provider", 100, NULL, &j->provider) != 0
        || read_subject(r, o, j) != 0 || read_body(r, o, "operation", &j->operation_body, &j->operation) != 0
        || read_body(r, o, "workload", &j->workload_body, &j->workload) != 0 || read_body(r, o, "protocol", &protocol, &j->protocol) != 0)
        return -1;
    if (strcmp(type, "job") != 0)
        return bad(r, "type", "not job");
    if (strcmp(quantity, "latency") != 0)
        return bad(r, "quantity", "only latency is rerun");
    if (strcmp(j->policy, "verify-v1") != 0)
        return bad(r, "policy", "another policy than verify-v1");
    if (strcmp(runner, "native") != 0 && strcmp(runner, "upstream") != 0)
        return bad(r, "runner", "neither native nor upstream");
    j->native = strcmp(runner, "native") == 0;
    return 0;
}

/* Whose code the record ran, and what it says of it. */
static int read_source(const struct reader *r, json_t *o, struct job *j)
{
    struct digest ignored;
    if (read_text(r, o, "source.commit", 40, "", &j->commit) != 0 || read_text(r, o, "source.version", 100, "", &j->version) != 0)
        return -1;
    if (!j->commit[0] && !j->version[0])
        return bad(r, "source", "names neither commit nor version");
    if (j->commit[0] && (strlen(j->commit) != 40 || strspn(j->commit, "0123456789abcdef") != 40))
        return bad(r, "source.commit", "not 40 hex digits");
    return read_body(r, o, "implementation", &j->implementation_body, &ignored);
}

static int read_job(const struct reader *r, json_t *o, struct job *j)
{
    const char *cited = json_string_value(member(o, "workload.spec.operationSpecDigest"));
    struct digest operation;
    if (read_identity(r, o, j) != 0 || read_reported(r, o, j) != 0 || read_gpu(r, o, j) != 0 || read_limits(r, o, j) != 0)
        return -1;
    if (!cited || !digest_parse(cited, strlen(cited), &operation) || digest_cmp(&operation, &j->operation) != 0)
        return bad(r, "workload.spec.operationSpecDigest", "not the digest of the operation in the line");
    if (!j->native && read_source(r, o, j) != 0)
        return -1;
    return read_case(r, o, j);
}

int job_read(struct slice text, const char *name, unsigned line, struct arena *a, struct job *j, struct err *e)
{
    struct reader r = { name, line, a, e };
    struct buf canonical = { 0 };
    *j = (struct job){ 0 };
    if (text.len > JOB_LINE_MAX)
        return bad(&r, "line", "too long");
    json_t *o = json_load_text(text.data, text.len, name, e);
    if (!o) {
        e->line = line;
        return -1;
    }
    int rc = json_is_object(o) ? json_canonical(o, &canonical, e) : bad(&r, "line", "not an object");
    if (rc == 0) {
        j->digest = digest_of(canonical.data, canonical.len);
        rc = read_job(&r, o, j);
    }
    buf_fini(&canonical);
    json_decref(o);
    return rc;
}

const char *job_title(const struct job *j, struct arena *a)
{
    struct buf b = { 0 };
    buf_printf(&b, "%s %s ", j->kernel, ki_pass_name(j->pass));
    for (int i = 0; i < j->work.operation->axes; i++)
        buf_printf(&b, "%s%lld", i ? "x" : "", (long long)j->work.axis[i]);
    buf_printf(&b, " %s", ki_dtype_name(j->work.dtype));
    const char *title = arena_strndup(a, b.data, b.len);
    buf_fini(&b);
    return title;
}
