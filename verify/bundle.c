#include "verify/bundle.h"

#include <math.h>
#include <string.h>

#include "core/file.h"
#include "core/json.h"

enum { BLOB_MAX = 1 << 30, GRID_YZ_MAX = 65535, THREADS_MAX = 1024, SHARED_MAX = 256 << 10 };
static const int64_t buffer_max = (int64_t)1 << 40;

/* The manifest being read, for errors. */
struct reading {
    const char *name;
    const struct ki_operation *operation;
    struct arena *arena;
    struct bundle *bundle;
    struct err *e;
};

static int bad(const struct reading *r, const char *field, const char *what)
{
    return err_at(r->e, ERR_DATA, r->name, 0, 0, "%s: %s", field, what);
}

static int read_text(const struct reading *r, json_t *o, const char *field, const char **out)
{
    const char *text = json_string_value(json_object_get(o, field));
    if (!text || strlen(text) > 200)
        return bad(r, field, text ? "too long" : "missing");
    *out = arena_strdup(r->arena, text);
    return 0;
}

static int read_digest(const struct reading *r, json_t *o, const char *field, struct digest *out)
{
    const char *text = json_string_value(json_object_get(o, field));
    return text && digest_parse(text, strlen(text), out) ? 0 : bad(r, field, "not a digest");
}

static int read_whole(const struct reading *r, json_t *o, const char *field, int64_t least, int64_t most, int64_t *out)
{
    json_t *v = json_object_get(o, field);
    if (!v || !json_whole(v, out))
        return bad(r, field, "missing, or not a whole number");
    return *out >= least && *out <= most ? 0 : bad(r, field, "out of range");
}

/* A list of at most `most` members, as its length. */
static int read_list(const struct reading *r, json_t *o, const char *field, int most, json_t **list)
{
    *list = json_object_get(o, field);
    if (!json_is_array(*list) || json_array_size(*list) > (size_t)most)
        return bad(r, field, "not a list, or too long");
    return 0;
}

static int read_tensor(const struct reading *r, json_t *o, const char *field, int *out)
{
    json_t *v = json_object_get(o, field);
    *out = -1;
    if (!v)
        return 0;
    if (json_is_string(v))
        *out = ki_tensor_find(r->operation, json_string_value(v));
    return *out >= 0 ? 0 : bad(r, field, "not a tensor of the operation");
}

static int read_buffer(const struct reading *r, json_t *o, struct bundle_buffer *b)
{
    const char *dtype = json_string_value(json_object_get(o, "dtype"));
    if (read_whole(r, o, "bytes", 1, buffer_max, &b->size_bytes) != 0 || read_tensor(r, o, "reads", &b->reads) != 0
        || read_tensor(r, o, "writes", &b->writes) != 0)
        return -1;
    b->constant = json_object_get(o, "constant") != NULL;
    if (b->constant && (b->reads >= 0 || b->writes >= 0))
        return bad(r, "buffers", "a constant that is a tensor too");
    if (b->constant && read_digest(r, o, "constant", &b->blob) != 0)
        return -1;
    b->dtype = dtype ? ki_dtype_find(dtype) : KI_CASE_DTYPE;
    if ((b->reads >= 0 || b->writes >= 0) && b->dtype == KI_CASE_DTYPE)
        return bad(r, "buffers", "a tensor of an unknown type");
    return 0;
}

static int read_buffers(const struct reading *r, json_t *o)
{
    json_t *list, *v;
    size_t i;
    if (read_list(r, o, "buffers", BUNDLE_BUFFERS_MAX, &list) != 0)
        return -1;
    json_array_foreach(list, i, v)
        if (read_buffer(r, v, &r->bundle->buffer[i]) != 0)
            return -1;
    r->bundle->buffers = (int)json_array_size(list);
    return 0;
}

static int read_kernels(const struct reading *r, json_t *o)
{
    json_t *list, *v;
    size_t i;
    if (read_list(r, o, "kernels", BUNDLE_KERNELS_MAX, &list) != 0)
        return -1;
    json_array_foreach(list, i, v) {
        struct bundle_kernel *k = &r->bundle->kernels[i];
        int64_t threads, shared;
        if (read_text(r, v, "name", &k->name) != 0 || read_digest(r, v, "cubin", &k->cubin) != 0
            || read_whole(r, v, "threads", 1, THREADS_MAX, &threads) != 0 || read_whole(r, v, "shared", 0, SHARED_MAX, &shared) != 0)
            return -1;
        k->threads = (unsigned)threads;
        k->shared_bytes = (unsigned)shared;
    }
    r->bundle->kernel_count = (int)json_array_size(list);
    return 0;
}

/* `size_bytes` at a place must lie in its buffer. */
static int read_place(const struct reading *r, json_t *o, int64_t size_bytes, struct bundle_place *at)
{
    int64_t buffer;
    if (read_whole(r, o, "buffer", 0, r->bundle->buffers - 1, &buffer) != 0
        || read_whole(r, o, "offset", 0, r->bundle->buffer[buffer].size_bytes - 1, &at->offset) != 0)
        return -1;
    at->buffer = (int)buffer;
    return size_bytes <= r->bundle->buffer[buffer].size_bytes - at->offset ? 0 : bad(r, "offset", "beyond the end of its buffer");
}

static int read_arg(const struct reading *r, json_t *o, struct bundle_arg *a)
{
    int64_t width, value;
    a->pointer = json_object_get(o, "buffer") != NULL;
    if (a->pointer)
        return read_place(r, o, 1, &a->at);
    if (read_whole(r, o, "bytes", 1, 8, &width) != 0 || read_whole(r, o, "value", 0, (int64_t)1 << 53, &value) != 0)
        return -1;
    a->value = (uint64_t)value;
    return width < 8 && value >> 8 * width ? bad(r, "value", "wider than its argument") : 0;
}

static int read_launch(const struct reading *r, json_t *o, struct bundle_op *op)
{
    json_t *grid, *args, *v;
    size_t i;
    int64_t kernel, n;
    if (read_whole(r, o, "kernel", 0, r->bundle->kernel_count - 1, &kernel) != 0 || read_list(r, o, "grid", 3, &grid) != 0
        || read_list(r, o, "args", BUNDLE_ARGS_MAX, &args) != 0)
        return -1;
    if (json_array_size(grid) != 3)
        return bad(r, "grid", "not three numbers");
    json_array_foreach(grid, i, v) {
        if (!json_whole(v, &n) || n < 1 || n > (i == 0 ? INT32_MAX : GRID_YZ_MAX))
            return bad(r, "grid", "out of range");
        op->grid[i] = (unsigned)n;
    }
    op->kernel = (int)kernel;
    op->args = (int)json_array_size(args);
    op->arg = arena_alloc(r->arena, sizeof *op->arg * (size_t)(op->args + 1));
    json_array_foreach(args, i, v)
        if (read_arg(r, v, &op->arg[i]) != 0)
            return -1;
    return 0;
}

static int read_op(const struct reading *r, json_t *o, struct bundle_op *op)
{
    const char *kind = json_string_value(json_object_get(o, "op"));
    if (kind && strcmp(kind, "launch") == 0)
        return read_launch(r, o, op);
    if (!kind || (strcmp(kind, "fill") != 0 && strcmp(kind, "copy") != 0))
        return bad(r, "op", "neither launch, fill nor copy");
    op->kind = kind[0] == 'f' ? BUNDLE_FILL : BUNDLE_COPY;
    if (read_whole(r, o, "bytes", 1, buffer_max, &op->size_bytes) != 0 || read_place(r, json_object_get(o, "to"), op->size_bytes, &op->to) != 0)
        return -1;
    return op->kind == BUNDLE_COPY ? read_place(r, json_object_get(o, "from"), op->size_bytes, &op->from) : 0;
}

static int read_ops(const struct reading *r, json_t *o, const char *field, struct bundle_ops *ops)
{
    json_t *list, *v;
    size_t i;
    if (read_list(r, o, field, BUNDLE_OPS_MAX, &list) != 0)
        return -1;
    ops->count = (int)json_array_size(list);
    ops->op = arena_alloc(r->arena, sizeof *ops->op * (size_t)(ops->count + 1));
    json_array_foreach(list, i, v)
        if (read_op(r, v, &ops->op[i]) != 0)
            return -1;
    return 0;
}

static int read_source(const struct reading *r, json_t *o)
{
    struct { const char *name; double *to; } times[] = {
        { "median_ns", &r->bundle->source.median_ns }, { "p20_ns", &r->bundle->source.p20_ns }, { "p80_ns", &r->bundle->source.p80_ns },
        { "host_ns", &r->bundle->source.host_ns }, { "flush_ns", &r->bundle->source.flush_ns },
    };
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        int64_t ns;
        if (read_whole(r, o, times[i].name, 1, (int64_t)1 << 50, &ns) != 0)
            return -1;
        *times[i].to = (double)ns;
    }
    return read_whole(r, o, "samples", 1, (int64_t)1 << 31, &r->bundle->source.samples);
}

static int read_identity(const struct reading *r, json_t *o)
{
    struct bundle *b = r->bundle;
    const char *type = json_string_value(json_object_get(o, "type")), *pass;
    json_t *code = json_object_get(o, "code"), *foreign;
    int64_t version;
    if (!type || strcmp(type, "bundle") != 0)
        return bad(r, "type", "not a bundle");
    if (read_whole(r, o, "version", 1, 1, &version) != 0 || read_text(r, o, "kernel", &b->kernel) != 0
        || read_text(r, o, "provider", &b->provider) != 0 || read_text(r, o, "pass", &pass) != 0
        || read_digest(r, o, "workload", &b->workload) != 0 || read_text(r, code, "package", &b->package) != 0
        || read_text(r, code, "version", &b->version) != 0 || read_text(r, code, "triton", &b->triton) != 0
        || read_text(r, code, "torch", &b->torch) != 0 || read_digest(r, code, "files", &b->files) != 0
        || read_text(r, json_object_get(o, "gpu"), "product", &b->product) != 0 || read_list(r, o, "foreign", 10000, &foreign) != 0)
        return -1;
    if (strcmp(b->kernel, r->operation->name) != 0 || ki_pass_find(pass) < 0)
        return bad(r, "kernel", "of another operation, or no such pass");
    b->pass = (enum ki_pass)ki_pass_find(pass);
    const char *first = json_string_value(json_array_get(foreign, 0));
    b->foreign = json_array_size(foreign) == 0 ? "" : arena_strdup(r->arena, first && *first ? first : "work without a name");
    return 0;
}

int bundle_read(struct slice text, const char *name, const struct ki_operation *op, struct arena *a, struct bundle *b, struct err *e)
{
    struct reading r = { name, op, a, b, e };
    *b = (struct bundle){ 0 };
    if (text.len > BUNDLE_TEXT_MAX)
        return bad(&r, "manifest", "too long");
    json_t *o = json_load_text(text.data, text.len, name, e);
    int rc = o ? 0 : -1;
    b->digest = digest_of(text.data, text.len);
    if (rc == 0)
        rc = read_identity(&r, o) != 0 || read_buffers(&r, o) != 0 || read_kernels(&r, o) != 0 || read_ops(&r, o, "setup", &b->setup) != 0
                || read_ops(&r, o, "timed", &b->timed) != 0 || read_source(&r, json_object_get(o, "source")) != 0
            ? -1
            : 0;
    json_decref(o);
    return rc;
}

/* ---- against a case ---- */

static bool right_size(const struct bundle_buffer *b, const struct ki_case *c, int tensor)
{
    return tensor < 0 || b->size_bytes == ki_tensor_count(c, tensor) * (int64_t)ki_dtype_bytes(b->dtype);
}

static bool delivers(const struct bundle *b, int tensor)
{
    for (int i = 0; i < b->buffers; i++)
        if (b->buffer[i].writes == tensor)
            return true;
    return false;
}

/* A tensor with values before the call: an input, or for backward what forward left there. */
static bool may_read(const struct ki_operation *op, enum ki_pass pass, int tensor)
{
    enum ki_role role = op->tensor[tensor].role;
    return role == KI_INPUT || role == KI_PARAM || (role == KI_UPSTREAM && ki_tensor_use(op, pass, tensor) == KI_READ);
}

const char *bundle_unfit(const struct bundle *b, const struct ki_case *c, enum ki_pass pass)
{
    const struct ki_operation *op = c->operation;
    int launches = 0;
    if (b->foreign[0])
        return "it does more than Triton launches, fills and copies";
    if (b->pass != pass)
        return "of another pass";
    for (int i = 0; i < b->timed.count; i++)
        launches += b->timed.op[i].kind == BUNDLE_LAUNCH;
    if (launches == 0)
        return "it launches nothing";
    for (int i = 0; i < b->buffers; i++) {
        const struct bundle_buffer *f = &b->buffer[i];
        if (!right_size(f, c, f->reads) || !right_size(f, c, f->writes))
            return "a tensor of another size";
        if (f->reads >= 0 && !may_read(op, pass, f->reads))
            return "it reads a tensor that the pass does not give";
        if (f->writes >= 0 && op->tensor[f->writes].role != KI_OUTPUT && op->tensor[f->writes].role != KI_GRADIENT)
            return "it writes a tensor that is no result";
    }
    for (int i = 0; i < ki_tensor_total(op); i++)
        if (ki_tensor_use(op, pass, i) == KI_WRITE && op->tensor[i].role != KI_SAVED && !delivers(b, i))
            return "a result that it does not deliver";
    return NULL;
}

/* ---- folders ---- */

struct digest bundle_key_digest(const struct bundle_key *k)
{
    struct buf text = { 0 };
    char workload[DIGEST_TEXT + 1];
    digest_text(&k->workload, workload);
    const char *const fields[][2] = { { k->commit[0] ? "{\"code\":{\"commit\":" : "{\"code\":{\"version\":", k->commit[0] ? k->commit : k->version },
        { "},\"kernel\":", k->kernel }, { ",\"pass\":", ki_pass_name(k->pass) }, { ",\"provider\":", k->provider }, { ",\"workload\":", workload } };
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        buf_str(&text, fields[i][0]);
        json_put_str(&text, fields[i][1]);
    }
    buf_char(&text, '}');
    struct digest d = digest_of(text.data, text.len);
    buf_fini(&text);
    return d;
}

static const char *path_of(const char *folder, const char *kind, const struct digest *d, const char *suffix, struct arena *a)
{
    char hex[DIGEST_HEX + 1];
    digest_hex(d, hex);
    return arena_printf(a, "%s/%s/%s%s", folder, kind, hex, suffix);
}

/* Reads a file that is named by the digest of its bytes. */
static int read_named(const char *path, size_t most, const struct digest *d, struct buf *out, struct err *e)
{
    if (file_read(path, most, out, e) != 0)
        return -1;
    struct digest found = digest_of(out->data, out->len);
    return digest_cmp(&found, d) == 0 ? 0 : err_at(e, ERR_DATA, path, 0, 0, "other bytes than its name says");
}

int bundle_open(const char *folder, const struct digest *d, const struct ki_operation *op, struct arena *a, struct bundle *b, struct err *e)
{
    struct buf text = { 0 };
    const char *path = path_of(folder, "bundles", d, ".json", a);
    int rc = read_named(path, BUNDLE_TEXT_MAX, d, &text, e);
    if (rc == 0)
        rc = bundle_read((struct slice){ text.data, text.len }, path, op, a, b, e);
    buf_fini(&text);
    return rc;
}

int bundle_find(const char *folder, const struct bundle_key *key, const struct ki_operation *op, struct arena *a, struct bundle *b, struct err *e)
{
    struct digest k = bundle_key_digest(key), d;
    struct buf text = { 0 };
    const char *path = path_of(folder, "cases", &k, "", a);
    int rc = file_exists(path) ? file_read(path, 200, &text, e)
                               : err_set(e, ERR_NOTFOUND, "no bundle of %s %s by %s in %s: verify/capture.py makes them", key->kernel,
                                     ki_pass_name(key->pass), key->provider, folder);
    if (rc == 0 && (text.len < DIGEST_TEXT || !digest_parse(text.data, DIGEST_TEXT, &d)))
        rc = err_at(e, ERR_DATA, path, 0, 0, "names no bundle");
    buf_fini(&text);
    if (rc == 0)
        rc = bundle_open(folder, &d, op, a, b, e);
    if (rc == 0 && (digest_cmp(&b->workload, &key->workload) != 0 || b->pass != key->pass || strcmp(b->provider, key->provider) != 0))
        rc = err_at(e, ERR_DATA, path, 0, 0, "names the bundle of another case");
    return rc;
}

int bundle_blob(const char *folder, const struct digest *d, struct buf *out, struct err *e)
{
    struct arena a = { 0 };
    int rc = read_named(path_of(folder, "blobs", d, "", &a), BLOB_MAX, d, out, e);
    arena_fini(&a);
    return rc;
}
