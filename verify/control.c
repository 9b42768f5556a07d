#include "verify/control.h"

#include <stdlib.h>
#include <string.h>

#include "core/arena.h"

static const struct control controls[] = {
    { 1, "side_stream", true, false },
    { 2, "pointer_cache", false, false },
    { 2, "fingerprint_cache", false, false },
    { 3, "skips", false, false },
    { 4, "deferred", true, false },
    { 5, "wrong_timer", true, false },
    { 6, "forged_nonce", false, false },
    { 6, "forged_samples", false, false },
    { 6, "forged_time", false, false },
    { 6, "forged_light", true, false },
    { 7, "no_op", false, false },
    { 8, "zeros", false, false },
    { 8, "constant", false, false },
    { 9, "wrong_accumulation", false, false },
    { 10, "carve_out", true, false },
    { 11, "mutation", false, false },
    { 11, "out_of_bounds", false, false },
    { 11, "partial_tile", false, false },
    { 12, "empty_graph", true, false },
    { 1, "child_side_stream", true, true },
    { 2, "child_cached", false, true },
    { 5, "child_timer", true, true },
    { 6, "child_forged", false, true },
    { 7, "child_stale", false, true },
    { CONTROL_KILLED, "child_killed", false, true },
    { CONTROL_HUNG, "child_hung", false, true },
};

const struct control *control_at(size_t i)
{
    return i < sizeof controls / sizeof controls[0] ? &controls[i] : NULL;
}

const struct control *control_find(const char *name)
{
    for (size_t i = 0; control_at(i); i++)
        if (strcmp(control_at(i)->name, name) == 0)
            return control_at(i);
    return NULL;
}

int control_case(const char *device, struct ki_case *c)
{
    bool gpu = strcmp(device, "cuda") == 0;
    const struct ki_axis_value axes[] = { { "rows", gpu ? 8192 : 16 }, { "hidden", gpu ? 4096 : 1024 } };
    const char *reason;
    return ki_case_set(c, ki_operation_find("rms_norm"), KI_F32, axes, 2, NULL, 0, &reason);
}

enum { ENTRIES = 4 }; /* more than input sets rotate */

/* What a cache remembers of the inputs at one address. */
struct entry {
    const void *address;
    void *outputs;
    float head[64];
};

struct control_state {
    const struct place *place;
    int calls;
    struct entry entry[ENTRIES];
    void *scratch;
    const struct control_cuda *cuda;
    void *cuda_state;
};

static struct ki_tensor output(const struct ki_call *c)
{
    return c->tensor[ki_tensor_find(c->work.operation, "y")];
}

static size_t size_of(const struct ki_tensor *t)
{
    return (size_t)(t->count * ki_dtype_bytes(t->dtype));
}

static int honest(struct control_state *s, const struct ki_call *c)
{
    return s->place->launch(c);
}

/* The entry of the call's inputs; `fresh` when it has just been made. NULL when all are taken. */
static struct entry *entry_of(struct control_state *s, const struct ki_call *c, bool *fresh)
{
    for (int i = 0; i < ENTRIES; i++) {
        *fresh = s->entry[i].address == NULL;
        if (*fresh)
            s->entry[i].address = c->tensor[0].data;
        if (s->entry[i].address == c->tensor[0].data)
            return &s->entry[i];
    }
    return NULL;
}

/* The answer in the cache, or an honest one that goes into it. */
static int cached(struct control_state *s, const struct ki_call *c, struct entry *entry, bool hit)
{
    struct ki_tensor y = output(c);
    if (hit)
        return s->place->copy(y.data, entry->outputs, size_of(&y), c->stream);
    int rc = entry->outputs ? 0 : s->place->alloc(&entry->outputs, size_of(&y));
    if (rc == 0)
        rc = honest(s, c);
    return rc ? rc : s->place->copy(entry->outputs, y.data, size_of(&y), c->stream);
}

static int pointer_cache(void *state, const struct ki_call *c)
{
    bool fresh;
    struct entry *entry = entry_of(state, c, &fresh);
    return entry ? cached(state, c, entry, !fresh) : honest(state, c);
}

static int fingerprint_cache(void *state, const struct ki_call *c)
{
    bool fresh;
    struct entry *entry = entry_of(state, c, &fresh);
    if (!entry)
        return honest(state, c);
    bool hit = !fresh && memcmp(entry->head, c->tensor[0].data, sizeof entry->head) == 0;
    memcpy(entry->head, c->tensor[0].data, sizeof entry->head);
    return cached(state, c, entry, hit);
}

static int skips(void *state, const struct ki_call *c)
{
    struct control_state *s = state;
    return ++s->calls > 4 ? 0 : honest(s, c);
}

static int no_op(void *state, const struct ki_call *c)
{
    (void)state;
    (void)c;
    return 0;
}

static int fill_output(struct control_state *s, const struct ki_call *c, float value)
{
    struct ki_tensor y = output(c);
    return s->place->fill(y.data, size_of(&y), ki_float_bits(value), c->stream);
}

static int zeros(void *state, const struct ki_call *c)
{
    return fill_output(state, c, 0.0f);
}

static int constant(void *state, const struct ki_call *c)
{
    return fill_output(state, c, 0.5f);
}

static int mutation(void *state, const struct ki_call *c)
{
    struct control_state *s = state;
    int rc = honest(s, c);
    return rc ? rc : s->place->fill((char *)c->tensor[0].data + 4096, 4, 0x3f000000u, c->stream);
}

static int out_of_bounds(void *state, const struct ki_call *c)
{
    struct control_state *s = state;
    struct ki_tensor y = output(c);
    int rc = honest(s, c);
    return rc ? rc : s->place->fill((char *)y.data + size_of(&y), 16, 0, c->stream);
}

/* Puts back what the last 64 bytes held before the call. */
static int partial_tile(void *state, const struct ki_call *c)
{
    struct control_state *s = state;
    struct ki_tensor y = output(c);
    char *end = (char *)y.data + size_of(&y) - 64;
    int rc = s->scratch ? 0 : s->place->alloc(&s->scratch, 256);
    if (rc == 0)
        rc = s->place->copy(s->scratch, end, 64, c->stream);
    if (rc == 0)
        rc = honest(s, c);
    return rc ? rc : s->place->copy(end, s->scratch, 64, c->stream);
}

/* On the host; the device has its own. */
static int wrong_accumulation(void *state, const struct ki_call *c)
{
    (void)state;
    struct ki_tensor x = c->tensor[0], w = c->tensor[1], y = output(c);
    int64_t hidden = w.count;
    for (int64_t row = 0; row < x.count / hidden; row++) {
        float sum = 0;
        for (int64_t h = 0; h < hidden; h++) {
            float v = (float)ki_get(&x, row * hidden + h);
            sum = ki_bf16_float(ki_float_bf16(sum + v * v));
        }
        double r = 1 / sqrt((double)sum / (double)hidden + c->work.scalar[0]);
        for (int64_t h = 0; h < hidden; h++)
            ki_put(&y, row * hidden + h, ki_get(&x, row * hidden + h) * r * ki_get(&w, h));
    }
    return 0;
}

static const struct { const char *name; int (*launch)(void *, const struct ki_call *); } launches[] = {
    { "pointer_cache", pointer_cache }, { "fingerprint_cache", fingerprint_cache }, { "skips", skips }, { "no_op", no_op },
    { "zeros", zeros }, { "constant", constant }, { "mutation", mutation }, { "out_of_bounds", out_of_bounds },
    { "partial_tile", partial_tile }, { "wrong_accumulation", wrong_accumulation },
};

int control_begin(const char *name, const struct place *place, struct control_state **state, struct implementation *out, struct err *e)
{
    bool device = strcmp(place->name, "cuda") == 0;
    struct control_state *s = xcalloc(1, sizeof *s);
    s->place = place;
    s->cuda = device && control_cuda_find ? control_cuda_find(name) : NULL;
    *state = s;
    if (s->cuda && s->cuda->begin(&s->cuda_state) == 0) {
        *out = (struct implementation){ .launch = s->cuda->launch, .state = s->cuda_state };
        return 0;
    }
    for (size_t i = 0; i < sizeof launches / sizeof launches[0] && !s->cuda; i++)
        if (strcmp(launches[i].name, name) == 0) {
            *out = (struct implementation){ .launch = launches[i].launch, .state = s };
            return 0;
        }
    control_end(s);
    *state = NULL;
    return err_set(e, ERR_UNAVAILABLE, "no control %s on the %s device", name, place->name);
}

void control_end(struct control_state *s)
{
    if (!s)
        return;
    if (s->cuda_state)
        s->cuda->end(s->cuda_state);
    for (int i = 0; i < ENTRIES; i++)
        if (s->entry[i].outputs)
            s->place->release(s->entry[i].outputs);
    if (s->scratch)
        s->place->release(s->scratch);
    free(s);
}
