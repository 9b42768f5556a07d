#include "verify/tensors.h"

#include <string.h>

static const uint32_t guard_word = 0xa5c3a5c3u; /* halves equal: the band after the data may begin at an odd half-word */

int tensors_error(const struct place *place, int rc, const char *what, struct err *e)
{
    if (rc == 0)
        return 0;
    return err_set(e, place->is_memory(rc) ? ERR_TEMP : ERR_IO, "%s: %s", what, place->text(rc));
}

static bool needed(const struct ki_case *c, unsigned passes, int tensor)
{
    if (passes & KI_BIT(KI_BACKWARD))
        passes |= KI_BIT(KI_FORWARD);
    for (int pass = 0; pass < KI_PASSES; pass++)
        if (passes & KI_BIT(pass) && ki_tensor_use(c->operation, (enum ki_pass)pass, tensor) != KI_UNUSED)
            return true;
    return false;
}

static size_t data_bytes(const struct ki_case *c, int tensor)
{
    return (size_t)(ki_tensor_count(c, tensor) * ki_dtype_bytes(ki_tensor_dtype(c, tensor)));
}

static size_t workspace_bytes(const struct ki_case *c, unsigned passes)
{
    size_t most = 0;
    if (passes & KI_BIT(KI_BACKWARD))
        passes |= KI_BIT(KI_FORWARD);
    for (int pass = 0; pass < KI_PASSES; pass++)
        if (passes & KI_BIT(pass) && c->operation->workspace_bytes) {
            size_t size = c->operation->workspace_bytes(c, (enum ki_pass)pass);
            most = size > most ? size : most;
        }
    return most;
}

static size_t guarded(size_t size_bytes)
{
    return (size_bytes + 255) / 256 * 256 + 2 * TENSORS_GUARD_BYTES;
}

size_t tensors_size_bytes(const struct ki_case *c, unsigned passes)
{
    size_t sum = 256, work = workspace_bytes(c, passes);
    for (int i = 0; i < ki_tensor_total(c->operation); i++)
        if (needed(c, passes, i))
            sum += guarded(data_bytes(c, i));
    return sum + (work ? guarded(work) : 0);
}

static int take(struct tensors *t, size_t size_bytes, void **out, struct err *e)
{
    int rc = t->place->alloc(out, size_bytes);
    if (rc != 0)
        return tensors_error(t->place, rc, "allocating", e);
    if (!*out)
        return err_set(e, ERR_TEMP, "out of memory: %zu bytes more than the %zu at hand", size_bytes, t->size_bytes);
    t->memory[t->allocations++] = *out;
    t->size_bytes += size_bytes;
    return 0;
}

/* `size_bytes` of data between two guard bands; the second begins right after the data. */
static int take_guarded(struct tensors *t, size_t size_bytes, void **data, struct err *e)
{
    void *base;
    if (take(t, guarded(size_bytes), &base, e) != 0)
        return -1;
    *data = (char *)base + TENSORS_GUARD_BYTES;
    int rc = t->place->fill(base, TENSORS_GUARD_BYTES, guard_word, NULL);
    if (rc == 0)
        rc = t->place->fill((char *)*data + size_bytes, TENSORS_GUARD_BYTES, guard_word, NULL);
    return tensors_error(t->place, rc, "filling guard bands", e);
}

int tensors_init(struct tensors *t, const struct place *place, const struct ki_case *c, unsigned passes, struct err *e)
{
    *t = (struct tensors){ .place = place, .work = *c, .total = ki_tensor_total(c->operation) };
    void *slot;
    if (take(t, 256, &slot, e) != 0)
        return -1;
    t->slot = slot;
    for (int i = 0; i < t->total; i++) {
        t->tensor[i] = (struct ki_tensor){ .count = ki_tensor_count(c, i), .dtype = ki_tensor_dtype(c, i) };
        if (needed(c, passes, i) && take_guarded(t, data_bytes(c, i), &t->tensor[i].data, e) != 0)
            goto fail;
    }
    t->workspace_bytes = workspace_bytes(c, passes);
    if (t->workspace_bytes && take_guarded(t, t->workspace_bytes, &t->workspace, e) != 0)
        goto fail;
    if (tensors_error(place, place->sync(NULL), "filling guard bands", e) != 0)
        goto fail;
    return 0;
fail:
    tensors_fini(t);
    return -1;
}

void tensors_fini(struct tensors *t)
{
    for (int i = 0; i < t->allocations; i++)
        t->place->release(t->memory[i]);
    *t = (struct tensors){ 0 };
}

static struct draw draw_of(const struct tensors *t, int tensor, uint64_t seed)
{
    const struct ki_tensor_spec *spec = &t->work.operation->tensor[tensor];
    int64_t shape[KI_MAX_RANK];
    int rank = ki_tensor_shape(&t->work, tensor, shape);
    return (struct draw){
        .fill = spec->fill,
        .mean = (float)spec->mean,
        .deviation = spec->deviation == 0 ? 1.0f : (float)spec->deviation,
        .range = spec->fill == KI_FILL_INDEX ? t->work.axis[spec->range] : 0,
        .columns = shape[rank - 1],
        .seed = draw_bits(seed, (uint64_t)tensor),
    };
}

static bool is_drawn(const struct tensors *t, int tensor)
{
    enum ki_role role = t->work.operation->tensor[tensor].role;
    return t->tensor[tensor].data && (role == KI_INPUT || role == KI_PARAM || role == KI_UPSTREAM);
}

int tensors_draw(const struct tensors *t, uint64_t seed, void *stream, struct err *e)
{
    for (int i = 0; i < t->total; i++) {
        struct draw d = draw_of(t, i, seed);
        if (is_drawn(t, i) && tensors_error(t->place, t->place->draw(&t->tensor[i], &d, 0, t->tensor[i].count, stream), "drawing inputs", e) != 0)
            return -1;
    }
    return 0;
}

static int redraw(const struct tensors *t, bool upstream_only, uint64_t seed, void *stream, struct err *e)
{
    for (int i = 0; i < t->total; i++) {
        if (!is_drawn(t, i) || (upstream_only && t->work.operation->tensor[i].role != KI_UPSTREAM))
            continue;
        struct draw d = draw_of(t, i, seed);
        int64_t unit = draw_is_softmax(&d) ? d.columns : 1, units = t->tensor[i].count / unit;
        int64_t n = (units + 63) / 64, first = (int64_t)(draw_bits(seed, 1000u + (uint64_t)i) % (uint64_t)(units - n + 1));
        if (tensors_error(t->place, t->place->draw(&t->tensor[i], &d, first * unit, n * unit, stream), "drawing inputs", e) != 0)
            return -1;
    }
    return 0;
}

int tensors_redraw(const struct tensors *t, uint64_t seed, void *stream, struct err *e)
{
    return redraw(t, false, seed, stream, e);
}

int tensors_renew(const struct tensors *t, enum ki_pass pass, uint64_t seed, void *stream, struct err *e)
{
    return redraw(t, pass == KI_BACKWARD, seed, stream, e);
}

int tensors_share(const struct tensors *t, int tensor, struct place_share *out, struct err *e)
{
    void *allocation = (char *)t->tensor[tensor].data - TENSORS_GUARD_BYTES;
    if (!t->place->share)
        return err_set(e, ERR_UNAVAILABLE, "memory of the %s device cannot be shared with another process", t->place->name);
    if (tensors_error(t->place, t->place->share(allocation, out), "sharing a tensor", e) != 0)
        return -1;
    out->offset += TENSORS_GUARD_BYTES;
    return 0;
}

void tensors_call(const struct tensors *t, enum ki_pass pass, void *stream, struct ki_call *call)
{
    *call = (struct ki_call){ .work = t->work, .pass = pass, .workspace = t->workspace, .stream = stream };
    for (int i = 0; i < t->total; i++) {
        call->tensor[i] = t->tensor[i];
        if (ki_tensor_use(t->work.operation, pass, i) == KI_UNUSED)
            call->tensor[i].data = NULL;
    }
}

static size_t bytes_of(const struct ki_tensor *t)
{
    return (size_t)(t->count * ki_dtype_bytes(t->dtype));
}

int tensors_poison(const struct tensors *t, enum ki_pass pass, uint32_t word, void *stream, struct err *e)
{
    int rc = t->workspace ? t->place->fill(t->workspace, t->workspace_bytes, word, stream) : 0;
    for (int i = 0; i < t->total && rc == 0; i++)
        if (ki_tensor_use(t->work.operation, pass, i) == KI_WRITE)
            rc = t->place->fill(t->tensor[i].data, bytes_of(&t->tensor[i]), word, stream);
    return tensors_error(t->place, rc, "poisoning outputs", e);
}

static bool is_delivered(const struct tensors *t, enum ki_pass pass, int tensor)
{
    return ki_tensor_use(t->work.operation, pass, tensor) == KI_WRITE && t->work.operation->tensor[tensor].role != KI_SAVED;
}

int64_t tensors_delivered(const struct tensors *t, enum ki_pass pass)
{
    int64_t n = 0;
    for (int i = 0; i < t->total; i++)
        if (is_delivered(t, pass, i))
            n += t->tensor[i].count;
    return n;
}

static int clear_slot(const struct tensors *t, int slot, void *stream)
{
    return t->place->fill(&t->slot[slot], sizeof *t->slot, 0, stream);
}

static int read_slot(const struct tensors *t, void *stream, uint64_t *out)
{
    return t->place->read(out, &t->slot[0], sizeof *out, stream);
}

static int count_delivered(const struct tensors *t, enum ki_pass pass, uint32_t word, bool differ, int slot, void *stream)
{
    int rc = clear_slot(t, slot, stream);
    for (int i = 0; i < t->total && rc == 0; i++)
        if (is_delivered(t, pass, i))
            rc = t->place->count(t->tensor[i].data, bytes_of(&t->tensor[i]), (int)ki_dtype_bytes(t->tensor[i].dtype), word, differ,
                &t->slot[slot], stream);
    return rc;
}

static int hash_tensors(const struct tensors *t, enum ki_pass pass, bool writes, int slot, void *stream)
{
    int rc = clear_slot(t, slot, stream);
    for (int i = 0; i < t->total && rc == 0; i++)
        if (writes ? is_delivered(t, pass, i) : ki_tensor_use(t->work.operation, pass, i) == KI_READ)
            rc = t->place->hash(t->tensor[i].data, bytes_of(&t->tensor[i]), &t->slot[slot], stream);
    return rc;
}

int tensors_count_async(const struct tensors *t, enum ki_pass pass, uint32_t word, bool differ, int slot, void *stream, uint64_t *to)
{
    int rc = count_delivered(t, pass, word, differ, slot, stream);
    return rc ? rc : t->place->copy(to, &t->slot[slot], sizeof *to, stream);
}

int tensors_hash_async(const struct tensors *t, enum ki_pass pass, bool writes, int slot, void *stream, uint64_t *to)
{
    int rc = hash_tensors(t, pass, writes, slot, stream);
    return rc ? rc : t->place->copy(to, &t->slot[slot], sizeof *to, stream);
}

int tensors_unwritten(const struct tensors *t, enum ki_pass pass, uint32_t word, void *stream, uint64_t *elements, struct err *e)
{
    int rc = count_delivered(t, pass, word, false, 0, stream);
    if (rc == 0)
        rc = read_slot(t, stream, elements);
    return tensors_error(t->place, rc, "looking for poison", e);
}

int tensors_hash(const struct tensors *t, enum ki_pass pass, bool writes, void *stream, uint64_t *hash, struct err *e)
{
    int rc = hash_tensors(t, pass, writes, 0, stream);
    if (rc == 0)
        rc = read_slot(t, stream, hash);
    return tensors_error(t->place, rc, writes ? "hashing outputs" : "hashing inputs", e);
}

static int count_guards(const struct tensors *t, char *data, size_t size_bytes, void *stream)
{
    int rc = t->place->count(data - TENSORS_GUARD_BYTES, TENSORS_GUARD_BYTES, 2, guard_word, true, t->slot, stream);
    return rc ? rc : t->place->count(data + size_bytes, TENSORS_GUARD_BYTES, 2, guard_word, true, t->slot, stream);
}

int tensors_guards(const struct tensors *t, void *stream, uint64_t *changed, struct err *e)
{
    int rc = clear_slot(t, 0, stream);
    for (int i = 0; i < t->total && rc == 0; i++)
        if (t->tensor[i].data)
            rc = count_guards(t, t->tensor[i].data, bytes_of(&t->tensor[i]), stream);
    if (rc == 0 && t->workspace)
        rc = count_guards(t, t->workspace, t->workspace_bytes, stream);
    if (rc == 0)
        rc = read_slot(t, stream, changed);
    return tensors_error(t->place, rc, "looking at guard bands", e);
}
