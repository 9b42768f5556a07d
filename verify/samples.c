#include "verify/samples.h"

#include <zstd.h>

#include "core/file.h"
#include "core/json.h"

static void put_array(struct buf *out, const char *name, const double *v, int64_t n)
{
    buf_printf(out, "\"%s\":[", name);
    for (int64_t i = 0; i < n; i++) {
        if (i)
            buf_char(out, ',');
        buf_i64(out, (int64_t)v[i]);
    }
    buf_char(out, ']');
}

static void put_text(const struct samples *s, struct buf *out)
{
    buf_str(out, "{\"blocks\":[");
    for (int b = 0; b < s->blocks; b++) {
        buf_str(out, b ? ",{" : "{");
        put_array(out, "cycles", s->cycles[b], s->count[b]);
        buf_char(out, ',');
        put_array(out, "ns", s->ns[b], s->count[b]);
        buf_char(out, '}');
    }
    buf_str(out, "]}");
}

static const char *path_of(const char *dir, const struct digest *d, struct arena *a)
{
    char hex[DIGEST_HEX + 1];
    digest_hex(d, hex);
    return arena_printf(a, "%s/samples/%s.json.zst", dir, hex);
}

int samples_write(const char *dir, const struct samples *s, struct digest *out, struct err *e)
{
    struct buf text = { 0 }, packed = { 0 };
    struct arena a = { 0 };
    put_text(s, &text);
    *out = digest_of(text.data, text.len);
    buf_reserve(&packed, ZSTD_compressBound(text.len));
    size_t n = ZSTD_compress(packed.data, packed.cap, text.data, text.len, 9);
    int rc = ZSTD_isError(n) ? err_set(e, ERR_BUG, "zstd: %s", ZSTD_getErrorName(n)) : file_make_dirs(arena_printf(&a, "%s/samples", dir), e);
    if (rc == 0)
        rc = file_write(path_of(dir, out, &a), packed.data, n, 0644, e);
    buf_fini(&text);
    buf_fini(&packed);
    arena_fini(&a);
    return rc;
}

static int unpack(const char *path, struct buf *out, struct err *e)
{
    struct buf packed = { 0 };
    int rc = file_read(path, SAMPLES_TEXT_MAX, &packed, e);
    unsigned long long size = rc == 0 ? ZSTD_getFrameContentSize(packed.data, packed.len) : 0;
    if (rc == 0 && (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN || size > SAMPLES_TEXT_MAX))
        rc = err_at(e, ERR_DATA, path, 0, 0, "not a zstd frame of a sensible size");
    if (rc == 0) {
        buf_reserve(out, (size_t)size + 1);
        size_t n = ZSTD_decompress(out->data, out->cap, packed.data, packed.len);
        out->len = ZSTD_isError(n) ? 0 : n;
        rc = ZSTD_isError(n) ? err_at(e, ERR_DATA, path, 0, 0, "zstd: %s", ZSTD_getErrorName(n)) : 0;
    }
    buf_fini(&packed);
    return rc;
}

static const double *read_array(json_t *array, int64_t n, struct arena *a)
{
    double *out = arena_alloc(a, (size_t)(n + 1) * sizeof *out);
    size_t i;
    json_t *v;
    if (!json_is_array(array) || (int64_t)json_array_size(array) != n)
        return NULL;
    json_array_foreach(array, i, v) {
        int64_t whole;
        if (!json_whole(v, &whole) || whole < 0)
            return NULL;
        out[i] = (double)whole;
    }
    return out;
}

static int read_blocks(json_t *document, struct arena *a, struct samples *s)
{
    size_t i;
    json_t *block, *blocks = json_object_get(document, "blocks");
    if (!json_is_array(blocks) || json_array_size(blocks) > SAMPLES_BLOCKS_MAX)
        return -1;
    json_array_foreach(blocks, i, block) {
        json_t *ns = json_object_get(block, "ns");
        s->count[i] = (int64_t)json_array_size(ns);
        s->ns[i] = read_array(ns, s->count[i], a);
        s->cycles[i] = read_array(json_object_get(block, "cycles"), s->count[i], a);
        s->blocks++;
        if (!s->ns[i] || !s->cycles[i])
            return -1;
    }
    return 0;
}

int samples_read(const char *dir, const struct digest *d, struct arena *a, struct samples *s, struct err *e)
{
    struct buf text = { 0 };
    const char *path = path_of(dir, d, a);
    json_t *document = NULL;
    *s = (struct samples){ 0 };
    int rc = unpack(path, &text, e);
    if (rc == 0) {
        struct digest actual = digest_of(text.data, text.len);
        if (digest_cmp(&actual, d) != 0)
            rc = err_at(e, ERR_DATA, path, 0, 0, "its bytes are not what its name says");
    }
    if (rc == 0 && (!(document = json_load_text(text.data, text.len, path, e)) || read_blocks(document, a, s) != 0))
        rc = err_at(e, ERR_DATA, path, 0, 0, "not samples");
    json_decref(document);
    buf_fini(&text);
    return rc;
}

uint64_t samples_seed(const struct digest *d)
{
    uint64_t seed = 0;
    for (int i = 0; i < 8; i++)
        seed = seed << 8 | d->bytes[i];
    return seed;
}
