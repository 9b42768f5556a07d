#include "verify/compare.h"

#include <stdio.h>
#include <string.h>

#include "verify/errors.h"

const char *compare_status_text(enum compare_status s)
{
    static const char *const text[] = {
        [COMPARE_PASSED] = "passed",
        [COMPARE_NUMERICAL] = "incorrect_numerical",
        [COMPARE_UNWRITTEN] = "incorrect_numerical",
        [COMPARE_MUTATION] = "policy_violation",
        [COMPARE_RUNTIME] = "runtime_error",
        [COMPARE_MEMORY] = "resource_exceeded",
    };
    return text[s];
}

static int own_launch(void *state, const struct ki_call *c)
{
    const struct place *place = state;
    return place->launch(c);
}

struct implementation compare_own(const struct place *place)
{
    return (struct implementation){ .launch = own_launch, .state = (void *)(uintptr_t)place };
}

/* What one comparison needs beside the tensors: both readings of the reference, a chunk of values each, the sums. */
struct checker {
    const struct place *place;
    const struct ki_reference *reference;
    struct ki_call exact, baseline;
    double *values[2];
    struct error_sums *sums;
    void *memory[5];
    int allocations;
};

enum { CHUNK = 1 << 24 };

static int checker_take(struct checker *b, size_t size_bytes, void **out, struct err *e)
{
    if (tensors_error(b->place, b->place->alloc(out, size_bytes), "allocating for the reference", e) != 0)
        return -1;
    if (!*out)
        return err_set(e, ERR_TEMP, "out of memory for the reference: %zu bytes", size_bytes);
    b->memory[b->allocations++] = *out;
    return 0;
}

static void checker_fini(struct checker *b)
{
    for (int i = 0; i < b->allocations; i++)
        b->place->release(b->memory[i]);
}

static int64_t largest_written(const struct tensors *t, enum ki_pass pass)
{
    int64_t most = 1;
    for (int i = 0; i < t->total; i++)
        if (ki_tensor_use(t->work.operation, pass, i) == KI_WRITE && t->tensor[i].count > most)
            most = t->tensor[i].count;
    return most;
}

static int checker_init(struct checker *b, const struct tensors *t, enum ki_pass pass, void *stream, struct err *e)
{
    *b = (struct checker){ .place = t->place, .reference = t->place->reference(t->work.operation) };
    tensors_call(t, pass, stream, &b->exact);
    b->baseline = b->exact;
    int64_t chunk = largest_written(t, pass);
    size_t scratch = ((size_t)b->reference->scratch_count(&b->exact) + 1) * sizeof(double);
    size_t values = (size_t)(chunk < CHUNK ? chunk : CHUNK) * sizeof(double);
    void *at[5];
    const size_t size_bytes[5] = { scratch, scratch, values, values, sizeof *b->sums };
    for (int i = 0; i < 5; i++)
        if (checker_take(b, size_bytes[i], &at[i], e) != 0)
            return -1;
    b->exact.scratch = at[0];
    b->baseline.scratch = at[1];
    b->values[0] = at[2];
    b->values[1] = at[3];
    b->sums = at[4];
    int rc = b->reference->prepare(&b->exact, KI_EXACT);
    if (rc == 0)
        rc = b->reference->prepare(&b->baseline, KI_BASELINE);
    return tensors_error(b->place, rc, "preparing the reference", e);
}

static int sum_errors(struct checker *b, const struct ki_tensor *t, int tensor, double floor_ulps, void *stream, struct error_sums *out)
{
    int rc = b->place->fill(b->sums, sizeof *b->sums, 0, stream);
    for (int64_t first = 0; first < t->count && rc == 0; first += CHUNK) {
        int64_t n = t->count - first < CHUNK ? t->count - first : CHUNK;
        rc = b->reference->values(&b->exact, KI_EXACT, tensor, first, n, b->values[0]);
        if (rc == 0)
            rc = b->reference->values(&b->baseline, KI_BASELINE, tensor, first, n, b->values[1]);
        if (rc == 0)
            rc = b->place->measure(t, first, n, b->values[0], b->values[1], floor_ulps, b->sums, stream);
    }
    return rc ? rc : b->place->read(out, b->sums, sizeof *out, stream);
}

static void judge(struct compare_tensor *c, const struct error_sums *s, enum ki_dtype dtype, const struct tolerance *tolerance)
{
    double n = (double)s->elements, ulp_rms = sqrt(s->ulp_squares / n);
    c->elements = (int64_t)s->elements;
    c->nonfinite = (int64_t)s->nonfinite;
    c->largest_error = errors_value(s->max_error);
    c->max_error = errors_value(s->max_beyond);
    c->rms_error = sqrt(s->squares / n);
    c->baseline_max = errors_value(s->baseline_max);
    c->baseline_rms = sqrt(s->baseline_squares / n);
    c->exact_max = errors_value(s->exact_max);
    c->exact_rms = sqrt(s->exact_squares / n);
    c->worst = (int64_t)(s->worst & 0xffffffffu);
    c->max_allowed = tolerance->factor * c->baseline_max;
    c->rms_allowed = fmax(tolerance->factor * c->baseline_rms, tolerance->floor_ulps * ulp_rms);
    if (n < tolerance->few_elements) {
        double always = tolerance->few_floor_ulps * ki_ulp(dtype, c->exact_max);
        c->max_allowed = fmax(c->max_allowed, always);
        c->rms_allowed = fmax(c->rms_allowed, always);
    }
    c->passed = s->nonfinite == 0 && c->max_error <= c->max_allowed && c->rms_error <= c->rms_allowed;
    c->vacuous = c->exact_max <= c->max_allowed && c->exact_rms <= c->rms_allowed;
}

static void describe(struct compare_result *r, const struct compare_tensor *c)
{
    if (c->nonfinite)
        snprintf(r->text, sizeof r->text, "%s: %lld of %lld elements are not finite, or should not be", c->name,
            (long long)c->nonfinite, (long long)c->elements);
    else
        snprintf(r->text, sizeof r->text, "%s: error max %.3g (allowed %.3g, baseline %.3g, at element %lld), rms %.3g (allowed %.3g, baseline %.3g)",
            c->name, c->largest_error, c->max_allowed, c->baseline_max, (long long)c->worst, c->rms_error, c->rms_allowed,
            c->baseline_rms);
}

static int compare_tensors(struct checker *b, const struct tensors *t, enum ki_pass pass, const struct tolerance by_tensor[], void *stream,
    struct compare_result *r, struct err *e)
{
    const struct ki_operation *op = t->work.operation;
    r->vacuous = true;
    for (int i = 0; i < t->total; i++) {
        if (ki_tensor_use(op, pass, i) != KI_WRITE || op->tensor[i].role == KI_SAVED)
            continue;
        struct compare_tensor *c = &r->tensor[r->tensors++];
        struct error_sums sums;
        if (tensors_error(t->place, sum_errors(b, &t->tensor[i], i, by_tensor[i].floor_ulps, stream, &sums), "comparing", e) != 0)
            return -1;
        c->name = op->tensor[i].name;
        judge(c, &sums, t->tensor[i].dtype, &by_tensor[i]);
        r->vacuous = r->vacuous && c->vacuous;
        if (!c->passed && r->status == COMPARE_PASSED) {
            r->status = COMPARE_NUMERICAL;
            describe(r, c);
        }
    }
    return 0;
}

int compare_values(const struct tensors *t, enum ki_pass pass, const struct tolerance by_tensor[], void *stream, struct compare_result *r,
    struct err *e)
{
    struct checker b;
    r->tensors = 0;
    int rc = checker_init(&b, t, pass, stream, e);
    if (rc == 0)
        rc = compare_tensors(&b, t, pass, by_tensor, stream, r, e);
    checker_fini(&b);
    return rc;
}

static int fail(struct compare_result *r, enum compare_status status, const char *what, const char *why)
{
    r->status = status;
    snprintf(r->text, sizeof r->text, "%s%s%s", what, *why ? ": " : "", why);
    return 0;
}

/* A call and its end, on the way to a check of the pass `of`. 0 when it ran; 1 when it failed, which the result says. */
static int run(const struct tensors *t, enum ki_pass pass, enum ki_pass of, struct implementation by, void *stream, struct compare_result *r)
{
    struct ki_call call;
    tensors_call(t, pass, stream, &call);
    int rc = by.before && pass == of ? by.before(by.state, &call) : 0;
    if (rc == 0)
        rc = by.launch(by.state, &call);
    if (rc == 0 && by.after && pass == of)
        rc = by.after(by.state, &call);
    if (rc == 0)
        rc = t->place->sync(stream);
    if (rc == 0)
        return 0;
    fail(r, t->place->is_memory(rc) ? COMPARE_MEMORY : COMPARE_RUNTIME, ki_pass_name(pass), t->place->text(rc));
    return 1;
}

/* What the call touched that it should not have, or left alone that it should not have. */
static int look_around(const struct tensors *t, enum ki_pass pass, uint64_t inputs_before, void *stream, struct compare_result *r,
    struct err *e)
{
    uint64_t inputs_after;
    if (tensors_guards(t, stream, &r->guards_changed, e) != 0 || tensors_hash(t, pass, false, stream, &inputs_after, e) != 0
        || tensors_unwritten(t, pass, poison_nan, stream, &r->unwritten, e) != 0)
        return -1;
    r->inputs_changed = inputs_after != inputs_before;
    if (r->guards_changed)
        return fail(r, COMPARE_MUTATION, "wrote outside of a tensor", "");
    if (r->inputs_changed)
        return fail(r, COMPARE_MUTATION, "changed an input", "");
    if (r->unwritten) {
        char n[32];
        snprintf(n, sizeof n, "%llu elements", (unsigned long long)r->unwritten);
        return fail(r, COMPARE_UNWRITTEN, "left unwritten", n);
    }
    return 0;
}

int compare_pass(const struct tensors *t, enum ki_pass pass, struct implementation by, const struct tolerance by_tensor[], uint64_t seed,
    void *stream, struct compare_result *r, struct err *e)
{
    uint64_t before;
    *r = (struct compare_result){ .status = COMPARE_PASSED };
    if (tensors_draw(t, seed, stream, e) != 0)
        return -1;
    if (pass == KI_BACKWARD && run(t, KI_FORWARD, KI_BACKWARD, by, stream, r) != 0)
        return 0;
    if (tensors_poison(t, pass, poison_nan, stream, e) != 0 || tensors_hash(t, pass, false, stream, &before, e) != 0)
        return -1;
    if (run(t, pass, pass, by, stream, r) != 0)
        return 0;
    if (look_around(t, pass, before, stream, r, e) != 0)
        return -1;
    return r->status == COMPARE_PASSED ? compare_values(t, pass, by_tensor, stream, r, e) : 0;
}
