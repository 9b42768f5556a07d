#include "verify/upstream.h"

#include <stdlib.h>
#include <string.h>

enum { SHARED_WITHOUT_ASKING = 48 << 10, SCRATCH_ARGS = 2 }; /* Triton's launches end with two pointers to scratch, null here */

struct upstream {
    const struct bundle *bundle;
    const struct place *place;
    const struct driver *driver;
    struct ki_case work;
    void *module[BUNDLE_KERNELS_MAX], *function[BUNDLE_KERNELS_MAX];
    void *memory[BUNDLE_BUFFERS_MAX]; /* NULL where the call's tensor is used */
};

static int tensor_of(const struct bundle_buffer *b)
{
    return b->reads >= 0 ? b->reads : b->writes;
}

/* The tensor itself cannot serve: it has no such buffer, an input would change, the type is another, or a backward pass needs an
 * output that the contract does not keep for it. */
static bool is_own(const struct upstream *u, const struct bundle_buffer *b)
{
    const struct ki_operation *op = u->work.operation;
    int t = tensor_of(b);
    if (t < 0 || (b->reads >= 0 && b->writes >= 0) || b->dtype != ki_tensor_dtype(&u->work, t))
        return true;
    return u->bundle->pass == KI_BACKWARD && op->tensor[t].role == KI_OUTPUT && !op->tensor[t].kept;
}

static struct ki_tensor own_tensor(const struct upstream *u, int buffer)
{
    const struct bundle_buffer *b = &u->bundle->buffer[buffer];
    return (struct ki_tensor){ .data = u->memory[buffer], .dtype = b->dtype, .count = b->size_bytes / (int64_t)ki_dtype_bytes(b->dtype) };
}

static int move(const struct upstream *u, const struct ki_tensor *to, const struct ki_tensor *from, void *stream)
{
    if (to->dtype == from->dtype)
        return u->place->copy(to->data, from->data, (size_t)(to->count * (int64_t)ki_dtype_bytes(to->dtype)), stream);
    return u->place->convert(to, from, stream);
}

/* Is it for this buffer to hand a result over, in this call? */
static bool hands_over(const struct upstream *u, const struct ki_call *call, int buffer)
{
    int t = u->bundle->buffer[buffer].writes;
    return u->memory[buffer] && t >= 0 && ki_tensor_use(u->work.operation, call->pass, t) == KI_WRITE;
}

/* Values into memory of its own; what only takes a result is poisoned, as the tensor itself is. */
static int before(void *state, const struct ki_call *call)
{
    const struct upstream *u = state;
    int rc = 0;
    for (int i = 0; i < u->bundle->buffers && rc == 0; i++) {
        int t = u->bundle->buffer[i].reads;
        if (u->memory[i] && t >= 0 && call->tensor[t].data) {
            struct ki_tensor own = own_tensor(u, i);
            rc = move(u, &own, &call->tensor[t], call->stream);
        } else if (hands_over(u, call, i)) {
            rc = u->place->fill(u->memory[i], (size_t)u->bundle->buffer[i].size_bytes, poison_nan, call->stream);
        }
    }
    return rc;
}

static int after(void *state, const struct ki_call *call)
{
    const struct upstream *u = state;
    int rc = 0;
    for (int i = 0; i < u->bundle->buffers && rc == 0; i++) {
        if (!hands_over(u, call, i))
            continue;
        struct ki_tensor own = own_tensor(u, i);
        rc = move(u, &call->tensor[u->bundle->buffer[i].writes], &own, call->stream);
    }
    return rc;
}

static char *address(const struct upstream *u, const struct ki_call *call, const struct bundle_place *at)
{
    char *base = u->memory[at->buffer];
    if (!base)
        base = call->tensor[tensor_of(&u->bundle->buffer[at->buffer])].data;
    return base ? base + at->offset : NULL;
}

static int run_launch(const struct upstream *u, const struct ki_call *call, const struct bundle_op *op)
{
    const struct bundle_kernel *k = &u->bundle->kernels[op->kernel];
    uint64_t value[BUNDLE_ARGS_MAX + SCRATCH_ARGS] = { 0 };
    void *arg[BUNDLE_ARGS_MAX + SCRATCH_ARGS];
    for (int i = 0; i < op->args + SCRATCH_ARGS; i++) {
        arg[i] = &value[i];
        if (i >= op->args)
            continue;
        const char *at = op->arg[i].pointer ? address(u, call, &op->arg[i].at) : NULL;
        value[i] = op->arg[i].pointer ? (uint64_t)(uintptr_t)at : op->arg[i].value;
    }
    return u->driver->launch(u->function[op->kernel], op->grid, k->threads, k->shared_bytes, call->stream, arg);
}

static int run_ops(const struct upstream *u, const struct ki_call *call, const struct bundle_ops *ops)
{
    int rc = 0;
    for (int i = 0; i < ops->count && rc == 0; i++) {
        const struct bundle_op *op = &ops->op[i];
        if (op->kind == BUNDLE_LAUNCH)
            rc = run_launch(u, call, op);
        else if (op->kind == BUNDLE_FILL)
            rc = u->driver->zero(address(u, call, &op->to), (size_t)op->size_bytes, call->stream);
        else
            rc = u->driver->copy(address(u, call, &op->to), address(u, call, &op->from), (size_t)op->size_bytes, call->stream);
    }
    return rc;
}

/* The forward call that comes before a backward one. */
static int run_setup(struct upstream *u, const struct ki_call *call)
{
    if (u->bundle->setup.count == 0)
        return u->place->launch(call);
    int rc = before(u, call);
    if (rc == 0)
        rc = run_ops(u, call, &u->bundle->setup);
    return rc == 0 ? after(u, call) : rc;
}

static int launch(void *state, const struct ki_call *call)
{
    struct upstream *u = state;
    return call->pass == u->bundle->pass ? run_ops(u, call, &u->bundle->timed) : run_setup(u, call);
}

/* ---- loading ---- */

static int load_kernel(struct upstream *u, const char *folder, int i, struct err *e)
{
    const struct bundle_kernel *k = &u->bundle->kernels[i];
    struct buf image = { 0 };
    if (bundle_blob(folder, &k->cubin, &image, e) != 0)
        return -1;
    int rc = u->driver->load(&u->module[i], image.data);
    buf_fini(&image);
    if (rc == 0)
        rc = u->driver->function(&u->function[i], u->module[i], k->name);
    if (rc == 0 && k->shared_bytes > SHARED_WITHOUT_ASKING)
        rc = u->driver->allow_shared(u->function[i], k->shared_bytes);
    return rc == 0 ? 0 : err_set(e, ERR_DATA, "loading %s: %s", k->name, u->driver->text(rc));
}

static int fill_constant(struct upstream *u, const char *folder, int i, struct err *e)
{
    const struct bundle_buffer *b = &u->bundle->buffer[i];
    struct buf bytes = { 0 };
    int rc = bundle_blob(folder, &b->blob, &bytes, e);
    if (rc == 0 && (int64_t)bytes.len != b->size_bytes)
        rc = err_set(e, ERR_DATA, "a constant of %zu bytes for a buffer of %lld", bytes.len, (long long)b->size_bytes);
    if (rc == 0)
        rc = tensors_error(u->place, u->place->copy(u->memory[i], bytes.data, bytes.len, NULL), "copying a constant", e);
    if (rc == 0)
        rc = tensors_error(u->place, u->place->sync(NULL), "copying a constant", e);
    buf_fini(&bytes);
    return rc;
}

/* Memory of its own begins as poison: what upstream reads without having written it shows. */
static int allocate(struct upstream *u, const char *folder, int i, struct err *e)
{
    const struct bundle_buffer *b = &u->bundle->buffer[i];
    if (tensors_error(u->place, u->place->alloc(&u->memory[i], (size_t)b->size_bytes), "allocating", e) != 0)
        return -1;
    if (!u->memory[i])
        return err_set(e, ERR_TEMP, "no memory for %lld bytes of scratch", (long long)b->size_bytes);
    if (tensors_error(u->place, u->place->fill(u->memory[i], (size_t)b->size_bytes, poison_nan, NULL), "filling", e) != 0)
        return -1;
    return b->constant ? fill_constant(u, folder, i, e) : 0;
}

struct upstream *upstream_open(const char *folder, const struct bundle *b, const struct place *place, const struct driver *driver,
    const struct ki_case *work, struct err *e)
{
    struct upstream *u = xcalloc(1, sizeof *u);
    *u = (struct upstream){ .bundle = b, .place = place, .driver = driver, .work = *work };
    int rc = 0;
    for (int i = 0; i < b->buffers && rc == 0; i++)
        if (is_own(u, &b->buffer[i]))
            rc = allocate(u, folder, i, e);
    for (int i = 0; i < b->kernel_count && rc == 0; i++)
        rc = load_kernel(u, folder, i, e);
    if (rc == 0)
        rc = tensors_error(place, place->sync(NULL), "preparing a bundle", e);
    if (rc == 0)
        return u;
    upstream_close(u);
    return NULL;
}

void upstream_close(struct upstream *u)
{
    if (!u)
        return;
    for (int i = 0; i < BUNDLE_KERNELS_MAX; i++)
        if (u->module[i])
            u->driver->unload(u->module[i]);
    for (int i = 0; i < BUNDLE_BUFFERS_MAX; i++)
        if (u->memory[i])
            u->place->release(u->memory[i]);
    free(u);
}

struct implementation upstream_implementation(struct upstream *u)
{
    return (struct implementation){ launch, u, before, after };
}
