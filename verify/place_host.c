#include "verify/place.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "verify/errors.h"

enum { HOST_OK, HOST_ARGUMENT };

static int host_alloc(void **out, size_t size_bytes)
{
    *out = aligned_alloc(256, (size_bytes + 255) / 256 * 256);
    return HOST_OK;
}

/* Shared memory has a name in /dev/shm as long as it lives. A page before it, which nobody else sees, says what it is. */
enum { SHARED_HEAD = 4096 };
struct shared_head {
    size_t size_bytes; /* with the page */
    char name[48];
};

static struct shared_head *head_of(void *at)
{
    return (struct shared_head *)(void *)((char *)at - SHARED_HEAD);
}

static int shared_alloc(void **out, size_t size_bytes)
{
    static unsigned count;
    struct shared_head head = { .size_bytes = size_bytes + SHARED_HEAD };
    snprintf(head.name, sizeof head.name, "/ki-%d-%u", (int)getpid(), count++);
    *out = NULL;
    int fd = shm_open(head.name, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (fd < 0)
        return HOST_OK;
    char *base = mmap(NULL, head.size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bool there = base != MAP_FAILED && posix_fallocate(fd, 0, (off_t)size_bytes) == 0
        && mmap(base + SHARED_HEAD, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED;
    close(fd);
    if (there) {
        *out = base + SHARED_HEAD;
        *head_of(*out) = head;
        return HOST_OK;
    }
    if (base != MAP_FAILED)
        munmap(base, head.size_bytes);
    shm_unlink(head.name);
    return HOST_OK;
}

static void shared_release(void *at)
{
    if (!at)
        return;
    struct shared_head head = *head_of(at);
    shm_unlink(head.name);
    munmap(head_of(at), head.size_bytes);
}

static int shared_share(void *at, struct place_share *out)
{
    *out = (struct place_share){ .offset = 0 };
    memcpy(out->handle, head_of(at)->name, sizeof head_of(at)->name);
    return HOST_OK;
}

static const char *host_text(int error)
{
    return error == HOST_OK ? "no error" : "invalid argument";
}

static bool host_is_memory(int error)
{
    (void)error;
    return false;
}

static int host_fill(void *at, size_t size_bytes, uint32_t word, void *stream)
{
    unsigned char *to = at, from[4];
    memcpy(from, &word, sizeof from);
    for (size_t i = 0; i < size_bytes; i++)
        to[i] = from[i % 4];
    (void)stream;
    return HOST_OK;
}

/* One row of the softmax of N(0,1), or its logarithm; the values are small enough to do without a maximum. */
static void draw_softmax_row(const struct ki_tensor *t, const struct draw *d, int64_t first)
{
    double sum = 0;
    for (int64_t i = first; i < first + d->columns; i++)
        sum += exp(draw_element(d, i));
    for (int64_t i = first; i < first + d->columns; i++) {
        double v = draw_element(d, i) - log(sum);
        ki_put(t, i, d->fill == KI_FILL_SOFTMAX ? exp(v) : v);
    }
}

static int host_draw(const struct ki_tensor *t, const struct draw *d, int64_t first, int64_t n, void *stream)
{
    (void)stream;
    if (draw_is_softmax(d)) {
        if (first % d->columns != 0 || n % d->columns != 0)
            return HOST_ARGUMENT;
        for (int64_t i = first; i < first + n; i += d->columns)
            draw_softmax_row(t, d, i);
        return HOST_OK;
    }
    for (int64_t i = first; i < first + n; i++)
        ki_put(t, i, draw_element(d, i));
    return HOST_OK;
}

static int host_hash(const void *at, size_t size_bytes, uint64_t *slot, void *stream)
{
    (void)stream;
    for (size_t word = 0; word * 8 < size_bytes; word++)
        *slot += errors_hash_word(at, size_bytes, word);
    return HOST_OK;
}

static int host_count(const void *at, size_t size_bytes, int width, uint32_t word, bool differ, uint64_t *slot, void *stream)
{
    const unsigned char *from = at;
    (void)stream;
    for (size_t i = 0; i + (size_t)width <= size_bytes; i += (size_t)width)
        *slot += errors_is_word(from + i, width, word) != differ;
    return HOST_OK;
}

static int host_measure(const struct ki_tensor *t, int64_t first, int64_t n, const double *exact, const double *baseline,
    double floor_ulps, struct error_sums *sums, void *stream)
{
    (void)stream;
    for (int64_t i = 0; i < n; i++)
        errors_add(sums, t->dtype, ki_get(t, first + i), exact[i], baseline[i], floor_ulps, first + i);
    return HOST_OK;
}

static int host_read(void *to_host, const void *from, size_t size_bytes, void *stream)
{
    (void)stream;
    memcpy(to_host, from, size_bytes);
    return HOST_OK;
}

static int host_copy(void *to, const void *from, size_t size_bytes, void *stream)
{
    return host_read(to, from, size_bytes, stream);
}

static int host_convert(const struct ki_tensor *to, const struct ki_tensor *from, void *stream)
{
    (void)stream;
    for (int64_t i = 0; i < to->count; i++)
        ki_put(to, i, ki_get(from, i));
    return HOST_OK;
}

static int host_sync(void *stream)
{
    (void)stream;
    return HOST_OK;
}

static bool host_has(const struct ki_operation *op)
{
    return op->reference != NULL;
}

static int host_setup(const struct ki_case *c, const char **reason)
{
    (void)c;
    (void)reason;
    return 0;
}

static int store_baseline(const struct ki_call *c, const struct ki_reference *reference, int tensor)
{
    enum { CHUNK = 1 << 12 };
    static _Thread_local double values[CHUNK];
    const struct ki_tensor *t = &c->tensor[tensor];
    for (int64_t first = 0; first < t->count; first += CHUNK) {
        int64_t n = t->count - first < CHUNK ? t->count - first : CHUNK;
        int rc = reference->values(c, KI_BASELINE, tensor, first, n, values);
        if (rc != 0)
            return rc;
        for (int64_t i = 0; i < n; i++)
            ki_put(t, first + i, values[i]);
    }
    return HOST_OK;
}

/* The plain fp32 implementation: what the reference says, rounded to the type of each tensor. */
static int host_launch(const struct ki_call *call)
{
    const struct ki_operation *op = call->work.operation;
    struct ki_call c = *call;
    c.scratch = calloc((size_t)op->reference->scratch_count(&c) + 1, sizeof *c.scratch);
    if (!c.scratch)
        return HOST_ARGUMENT;
    int rc = op->reference->prepare(&c, KI_BASELINE);
    for (int i = 0; i < ki_tensor_total(op) && rc == 0; i++)
        if (ki_tensor_use(op, c.pass, i) == KI_WRITE && op->tensor[i].role != KI_SAVED)
            rc = store_baseline(&c, op->reference, i);
    free(c.scratch);
    return rc;
}

static const struct ki_reference *host_reference(const struct ki_operation *op)
{
    return op->reference;
}

const struct place place_host = {
    .name = "cpu",
    .alloc = host_alloc,
    .release = free,
    .text = host_text,
    .is_memory = host_is_memory,
    .fill = host_fill,
    .draw = host_draw,
    .hash = host_hash,
    .count = host_count,
    .measure = host_measure,
    .read = host_read,
    .copy = host_copy,
    .convert = host_convert,
    .alloc_host = host_alloc,
    .release_host = free,
    .sync = host_sync,
    .has = host_has,
    .setup = host_setup,
    .launch = host_launch,
    .reference = host_reference,
};

const struct place *place_shared(const struct place *p)
{
    static struct place host; /* the host's, in memory that can be shared */
    if (p != &place_host)
        return p;
    host = place_host;
    host.alloc = shared_alloc;
    host.release = shared_release;
    host.share = shared_share;
    return &host;
}

const struct place *place_find(const char *name)
{
    if (strcmp(name, place_host.name) == 0)
        return &place_host;
    if (&place_cuda != NULL && strcmp(name, place_cuda.name) == 0)
        return &place_cuda;
    return NULL;
}
