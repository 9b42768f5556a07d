#include "verify/wire.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/json.h"

static const char *const ask_text[] = { [ASK_DEVICE] = "device", [ASK_SENTINELS] = "sentinels", [ASK_BLOCK] = "block" };

/* Canonical text of an object that is given up here, and a newline. */
static void put_line(json_t *o, struct buf *out)
{
    struct err e = { 0 };
    if (json_canonical(o, out, &e) != 0)
        buf_str(out, "{}");
    buf_char(out, '\n');
    json_decref(o);
}

static json_t *number_or_null(double v)
{
    return isfinite(v) ? json_real(v) : json_null();
}

static double number(json_t *o, const char *name)
{
    json_t *v = json_object_get(o, name);
    return json_is_number(v) ? json_number_value(v) : NAN;
}

static bool copy_text(json_t *o, const char *name, char *out, size_t out_size)
{
    const char *text = json_string_value(json_object_get(o, name));
    if (!text || strlen(text) >= out_size)
        return false;
    memcpy(out, text, strlen(text) + 1);
    return true;
}

static json_t *put_case(const struct ki_case *c)
{
    json_t *axes = json_object(), *scalars = json_object();
    for (int i = 0; i < c->operation->axes; i++)
        json_object_set_new(axes, c->operation->axis[i], json_integer(c->axis[i]));
    for (int i = 0; i < KI_MAX_SCALARS && c->operation->scalar[i].name; i++)
        json_object_set_new(scalars, c->operation->scalar[i].name, json_real(c->scalar[i]));
    return json_pack("{s:s,s:s,s:o,s:o}", "operation", c->operation->name, "dtype", ki_dtype_name(c->dtype), "axes", axes, "scalars", scalars);
}

static int read_case(json_t *o, struct ki_case *c, struct err *e)
{
    struct ki_axis_value axes[KI_MAX_AXES];
    struct ki_scalar_value scalars[KI_MAX_SCALARS];
    size_t n_axes = 0, n_scalars = 0;
    const char *name, *reason = "not a case", *text = json_string_value(json_object_get(o, "operation"));
    const char *dtype = json_string_value(json_object_get(o, "dtype"));
    const struct ki_operation *op = text ? ki_operation_find(text) : NULL;
    json_t *v;
    json_object_foreach(json_object_get(o, "axes"), name, v)
        if (n_axes < KI_MAX_AXES)
            axes[n_axes++] = (struct ki_axis_value){ name, json_integer_value(v) };
    json_object_foreach(json_object_get(o, "scalars"), name, v)
        if (n_scalars < KI_MAX_SCALARS)
            scalars[n_scalars++] = (struct ki_scalar_value){ name, json_number_value(v) };
    if (!op || !dtype || ki_dtype_find(dtype) == KI_F64
        || ki_case_set(c, op, ki_dtype_find(dtype), axes, n_axes, scalars, n_scalars, &reason) != 0)
        return err_set(e, ERR_DATA, "case: %s", reason);
    return 0;
}

void wire_put_request(const struct request *r, struct buf *out)
{
    json_t *o = json_pack("{s:s,s:s}", "ask", ask_text[r->ask], "nonce", r->nonce);
    char bundle[DIGEST_TEXT + 1] = "";
    if (r->bundles[0])
        digest_text(&r->bundle, bundle);
    if (r->ask == ASK_BLOCK)
        json_object_update_new(o, json_pack("{s:o,s:s,s:I,s:I,s:f,s:f,s:b,s:b,s:s,s:s,s:s,s:s}", "case", put_case(&r->work), "pass", ki_pass_name(r->pass),
            "seed", (json_int_t)r->seed, "memory_bytes", (json_int_t)r->memory_bytes, "source_budget_ms", r->source_budget_ms,
            "host_delay_us", r->host_delay_us, "first", r->first, "whole", r->whole, "control", r->control, "bundles", r->bundles, "bundle", bundle,
            "child", r->child));
    put_line(o, out);
}

static int read_block_request(json_t *o, struct request *r, struct err *e)
{
    const char *pass = json_string_value(json_object_get(o, "pass"));
    const char *bundle = json_text_of(o, "bundle");
    if (!pass || ki_pass_find(pass) < 0 || !copy_text(o, "control", r->control, sizeof r->control) || !copy_text(o, "bundles", r->bundles, sizeof r->bundles)
        || !copy_text(o, "child", r->child, sizeof r->child)
        || (r->bundles[0] && !digest_parse(bundle, strlen(bundle), &r->bundle)))
        return err_set(e, ERR_DATA, "request: no pass, control or bundle");
    r->pass = (enum ki_pass)ki_pass_find(pass);
    r->seed = (uint64_t)json_integer_value(json_object_get(o, "seed"));
    r->memory_bytes = json_integer_value(json_object_get(o, "memory_bytes"));
    r->source_budget_ms = number(o, "source_budget_ms");
    r->host_delay_us = number(o, "host_delay_us");
    r->first = json_is_true(json_object_get(o, "first"));
    r->whole = json_is_true(json_object_get(o, "whole"));
    return read_case(json_object_get(o, "case"), &r->work, e);
}

int wire_read_request(struct slice line, struct request *r, struct err *e)
{
    *r = (struct request){ 0 };
    json_t *o = json_load_text(line.data, line.len, "request", e);
    const char *ask = json_string_value(json_object_get(o, "ask"));
    int rc = -1;
    for (int i = ASK_DEVICE; i <= ASK_BLOCK && ask; i++)
        if (strcmp(ask, ask_text[i]) == 0) {
            r->ask = (enum ask)i;
            rc = 0;
        }
    if (rc != 0 || !copy_text(o, "nonce", r->nonce, sizeof r->nonce))
        rc = err_set(e, ERR_DATA, "request: no ask or nonce");
    else if (r->ask == ASK_BLOCK)
        rc = read_block_request(o, r, e);
    json_decref(o);
    return rc;
}

static json_t *put_device(const struct device_cuda *d)
{
    return json_pack("{s:s,s:s,s:s,s:s,s:s,s:i,s:i,s:i,s:i,s:i,s:I,s:I,s:b}", "name", d->name, "uuid", d->uuid, "pci_bus", d->pci_bus,
        "compiler", d->compiler, "cublas", d->cublas, "major", d->major, "minor", d->minor, "multiprocessors", d->multiprocessors, "runtime",
        d->runtime, "driver", d->driver, "memory_bytes", (json_int_t)d->memory_bytes, "l2_bytes", (json_int_t)d->l2_bytes, "ecc", d->ecc);
}

static int read_device(json_t *o, struct device_cuda *d, struct err *e)
{
    json_int_t memory, l2;
    json_error_t at;
    int ecc;
    if (!copy_text(o, "name", d->name, sizeof d->name) || !copy_text(o, "uuid", d->uuid, sizeof d->uuid)
        || !copy_text(o, "pci_bus", d->pci_bus, sizeof d->pci_bus) || !copy_text(o, "compiler", d->compiler, sizeof d->compiler)
        || !copy_text(o, "cublas", d->cublas, sizeof d->cublas)
        || json_unpack_ex(o, &at, 0, "{s:i,s:i,s:i,s:i,s:i,s:I,s:I,s:b}", "major", &d->major, "minor", &d->minor, "multiprocessors",
               &d->multiprocessors, "runtime", &d->runtime, "driver", &d->driver, "memory_bytes", &memory, "l2_bytes", &l2, "ecc", &ecc) != 0
        || memory < 1 || l2 < 0)
        return err_set(e, ERR_DATA, "reply: not a device");
    d->memory_bytes = memory;
    d->l2_bytes = l2;
    d->ecc = ecc != 0;
    return 0;
}

static json_t *put_sentinels(const struct sentinels *s)
{
    json_t *spins = json_array();
    for (int i = 0; i < WIRE_SPINS; i++)
        json_array_append_new(spins, number_or_null(s->spin_ns[i]));
    return json_pack("{s:o,s:o,s:o,s:o,s:o,s:o}", "empty_ns", number_or_null(s->empty_ns), "copy_gbps", number_or_null(s->copy_gbps),
        "matmul_tflops", number_or_null(s->matmul_tflops), "spin_ns", spins, "slope", number_or_null(s->slope), "clock_mhz", number_or_null(s->clock_mhz));
}

static void read_sentinels(json_t *o, struct sentinels *s)
{
    json_t *spins = json_object_get(o, "spin_ns");
    s->empty_ns = number(o, "empty_ns");
    s->copy_gbps = number(o, "copy_gbps");
    s->matmul_tflops = number(o, "matmul_tflops");
    s->slope = number(o, "slope");
    s->clock_mhz = number(o, "clock_mhz");
    for (size_t i = 0; i < WIRE_SPINS; i++) {
        json_t *v = json_array_get(spins, i);
        s->spin_ns[i] = json_is_number(v) ? json_number_value(v) : NAN;
    }
}

static json_t *put_numbers(const double *v, int64_t n)
{
    json_t *a = json_array();
    for (int64_t i = 0; i < n; i++)
        json_array_append_new(a, json_integer((json_int_t)llround(v[i])));
    return a;
}

static json_t *put_source(const struct bench_source *s)
{
    return json_pack("{s:f,s:f,s:f,s:f,s:f,s:I}", "median_ns", s->median_ns, "p20_ns", s->p20_ns, "p80_ns", s->p80_ns, "host_ns", s->host_ns,
        "flush_ns", s->flush_ns, "samples", (json_int_t)s->samples);
}

static json_t *put_errors(const struct compare_tensor *t)
{
    const double v[] = { t->max_error, t->max_allowed, t->rms_error, t->rms_allowed, t->largest_error, t->baseline_max, t->baseline_rms,
        t->exact_max, t->exact_rms };
    json_t *a = json_array();
    for (size_t i = 0; i < sizeof v / sizeof v[0]; i++)
        json_array_append_new(a, json_real(isfinite(v[i]) ? v[i] : 1e300));
    return a;
}

static json_t *put_result(const struct compare_result *r)
{
    json_t *tensors = json_array();
    for (int i = 0; i < r->tensors; i++) {
        const struct compare_tensor *t = &r->tensor[i];
        json_array_append_new(tensors, json_pack("{s:s,s:I,s:I,s:I,s:b,s:b,s:o}", "name", t->name, "elements", (json_int_t)t->elements,
            "nonfinite", (json_int_t)t->nonfinite, "worst", (json_int_t)t->worst, "passed", t->passed, "vacuous", t->vacuous, "errors",
            put_errors(t)));
    }
    return json_pack("{s:o,s:b}", "tensors", tensors, "vacuous", r->vacuous);
}

static json_t *put_block(const struct reply *r)
{
    json_t *o = json_pack("{s:o,s:o,s:I,s:b,s:b,s:b,s:i,s:i,s:o,s:o,s:o,s:i,s:b,s:I,s:I}", "ns", put_numbers(r->ns, r->samples), "cycles",
        put_numbers(r->cycles, r->samples), "throttled", (json_int_t)r->throttled, "timed", r->timed, "complete", r->complete, "power_capped",
        r->power_capped, "temperature_c", r->temperature_c, "power_mw", r->power_mw, "half_width", number_or_null(r->half_width), "graph_ns", number_or_null(r->methods.graph_ns), "stream_ns",
        number_or_null(r->methods.stream_ns), "nodes", r->methods.nodes, "checked",
        r->checked, "compared", (json_int_t)r->compared, "tensor_bytes", (json_int_t)r->tensor_bytes);
    if (r->timed)
        json_object_set_new(o, "source", put_source(&r->source));
    if (r->checked)
        json_object_set_new(o, "result", put_result(&r->result));
    return o;
}

void wire_put_reply(enum ask ask, const struct reply *r, struct buf *out)
{
    json_t *o = json_pack("{s:s,s:s,s:s}", "nonce", r->nonce, "status", r->status, "text", r->text);
    if (ask == ASK_DEVICE)
        json_object_set_new(o, "device", put_device(&r->device));
    else if (ask == ASK_SENTINELS)
        json_object_set_new(o, "sentinels", put_sentinels(&r->sentinels));
    else
        json_object_set_new(o, "block", put_block(r));
    put_line(o, out);
}

/* An array of whole numbers above zero; NULL when it is anything else. */
static double *read_numbers(json_t *a, int64_t n, struct arena *arena)
{
    double *out = arena_alloc(arena, (size_t)(n + 1) * sizeof *out);
    size_t i;
    json_t *v;
    if ((int64_t)json_array_size(a) != n)
        return NULL;
    json_array_foreach(a, i, v) {
        int64_t whole;
        if (!json_whole(v, &whole) || whole < 0 || whole > 1000000000000000)
            return NULL;
        out[i] = (double)whole;
    }
    return out;
}

static void read_source(json_t *o, struct bench_source *s)
{
    s->median_ns = number(o, "median_ns");
    s->p20_ns = number(o, "p20_ns");
    s->p80_ns = number(o, "p80_ns");
    s->host_ns = number(o, "host_ns");
    s->flush_ns = number(o, "flush_ns");
    s->samples = json_integer_value(json_object_get(o, "samples"));
}

static int read_result(json_t *o, const struct request *request, struct compare_result *r)
{
    json_t *v, *tensors = json_object_get(o, "tensors");
    size_t i;
    if (!json_is_array(tensors) || json_array_size(tensors) > KI_MAX_TENSORS)
        return -1;
    r->vacuous = json_is_true(json_object_get(o, "vacuous"));
    json_array_foreach(tensors, i, v) {
        struct compare_tensor *t = &r->tensor[r->tensors++];
        const char *name = json_string_value(json_object_get(v, "name"));
        int at = name ? ki_tensor_find(request->work.operation, name) : -1;
        double *to[] = { &t->max_error, &t->max_allowed, &t->rms_error, &t->rms_allowed, &t->largest_error, &t->baseline_max,
            &t->baseline_rms, &t->exact_max, &t->exact_rms };
        json_t *errors = json_object_get(v, "errors");
        if (at < 0)
            return -1;
        t->name = request->work.operation->tensor[at].name;
        t->elements = json_integer_value(json_object_get(v, "elements"));
        t->nonfinite = json_integer_value(json_object_get(v, "nonfinite"));
        t->worst = json_integer_value(json_object_get(v, "worst"));
        t->passed = json_is_true(json_object_get(v, "passed"));
        t->vacuous = json_is_true(json_object_get(v, "vacuous"));
        for (size_t k = 0; k < sizeof to / sizeof to[0]; k++)
            *to[k] = json_number_value(json_array_get(errors, k));
    }
    return 0;
}

static int read_block(json_t *o, const struct request *request, struct arena *a, struct reply *r, struct err *e)
{
    int64_t n = (int64_t)json_array_size(json_object_get(o, "ns"));
    if (!json_is_object(o) || n > WIRE_SAMPLES_MAX)
        return err_set(e, ERR_DATA, "reply: no block, or too many samples");
    r->samples = n;
    r->ns = read_numbers(json_object_get(o, "ns"), n, a);
    r->cycles = read_numbers(json_object_get(o, "cycles"), n, a);
    r->throttled = json_integer_value(json_object_get(o, "throttled"));
    r->timed = json_is_true(json_object_get(o, "timed"));
    r->complete = json_is_true(json_object_get(o, "complete"));
    r->power_capped = json_is_true(json_object_get(o, "power_capped"));
    r->temperature_c = (int)json_integer_value(json_object_get(o, "temperature_c"));
    r->power_mw = (int)json_integer_value(json_object_get(o, "power_mw"));
    r->checked = json_is_true(json_object_get(o, "checked"));
    r->half_width = number(o, "half_width");
    r->methods = (struct bench_methods){ number(o, "graph_ns"), number(o, "stream_ns"), (int)json_integer_value(json_object_get(o, "nodes")) };
    r->compared = json_integer_value(json_object_get(o, "compared"));
    r->tensor_bytes = json_integer_value(json_object_get(o, "tensor_bytes"));
    read_source(json_object_get(o, "source"), &r->source);
    if (!r->ns || !r->cycles || (r->checked && read_result(json_object_get(o, "result"), request, &r->result) != 0))
        return err_set(e, ERR_DATA, "reply: samples or errors that are no numbers");
    return 0;
}

int wire_read_reply(struct slice line, const struct request *request, struct arena *a, struct reply *r, struct err *e)
{
    *r = (struct reply){ .methods = { NAN, NAN, 0 }, .half_width = NAN };
    json_t *o = line.len <= WIRE_LINE_MAX ? json_load_text(line.data, line.len, "reply", e) : NULL;
    int rc = 0;
    if (!o || !copy_text(o, "nonce", r->nonce, sizeof r->nonce) || !copy_text(o, "status", r->status, sizeof r->status)
        || !copy_text(o, "text", r->text, sizeof r->text))
        rc = err_set(e, ERR_DATA, "reply: not an object with nonce, status and text");
    else if (request->ask == ASK_DEVICE)
        rc = strcmp(r->status, "passed") == 0 ? read_device(json_object_get(o, "device"), &r->device, e) : 0;
    else if (request->ask == ASK_SENTINELS)
        read_sentinels(json_object_get(o, "sentinels"), &r->sentinels);
    else
        rc = read_block(json_object_get(o, "block"), request, a, r, e);
    json_decref(o);
    return rc;
}

const char *reply_check(const struct request *request, const struct reply *r, double wall_ns, double light_ns)
{
    double sum = 0;
    int64_t below = 0;
    if (strcmp(r->nonce, request->nonce) != 0)
        return "the answer is not to what was asked";
    if (strcmp(r->status, "passed") != 0 || !r->timed)
        return NULL;
    for (int64_t i = 0; i < r->samples; i++) {
        sum += r->ns[i];
        below += r->ns[i] < light_ns;
        if (r->ns[i] < 1)
            return "a sample of no length";
    }
    if (sum > wall_ns)
        return "its samples add up to more than the wall clock";
    if (r->complete && (r->samples < 5 || (r->samples < 200 && sum < 0.25e9)))
        return "too few samples to be complete";
    if (2 * below > r->samples)
        return "faster than light";
    if (!(r->source.median_ns > 0) || !(r->source.host_ns > 0) || !(r->source.flush_ns > 0))
        return "no times by the source's protocol";
    return NULL;
}
