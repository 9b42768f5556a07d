#include "verify/tolerance.h"

#include <string.h>

#include "core/json.h"

struct tolerances {
    json_t *classes, *operations, *upstream, *document;
    char path[256];
};

static int bad(const struct tolerances *t, struct err *e, const char *where, const char *what)
{
    return err_at(e, ERR_CONFIG, t->path, 0, 0, "%s: %s", where, what);
}

static int read_number(const struct tolerances *t, const char *where, const json_t *v, double *out, struct err *e)
{
    double d = json_number_value(v);
    if (!json_is_number(v) || !(d >= 0) || d > 1e9)
        return bad(t, e, where, "not a number between 0 and 1e9");
    *out = d;
    return 0;
}

/* One {factor, floorUlps, fewElements, fewFloorUlps, reason}; what is absent leaves `out` as it is. */
static int read_one(const struct tolerances *t, const char *where, json_t *entry, bool whole, struct tolerance *out, struct err *e)
{
    const struct { const char *name; double *to; } known[] = {
        { "factor", &out->factor }, { "floorUlps", &out->floor_ulps }, { "fewElements", &out->few_elements }, { "fewFloorUlps", &out->few_floor_ulps },
    };
    const char *key;
    json_t *v, *reason = json_object_get(entry, "reason");
    size_t n = sizeof known / sizeof known[0], found = 0;
    if (!json_is_object(entry))
        return bad(t, e, where, "not an object");
    json_object_foreach(entry, key, v) {
        size_t i = 0;
        while (i < n && strcmp(key, known[i].name) != 0)
            i++;
        if (i == n && v != reason)
            return bad(t, e, where, "unknown field");
        if (i < n && read_number(t, where, v, known[i].to, e) != 0)
            return -1;
        found += i < n;
    }
    if (!json_is_string(reason) || json_string_length(reason) == 0)
        return bad(t, e, where, "has no reason");
    return whole && found != n ? bad(t, e, where, "needs factor, floorUlps, fewElements and fewFloorUlps") : 0;
}

/* {name: {tensor or *: exception}} */
static int check_exceptions(const struct tolerances *t, json_t *all, struct err *e)
{
    const char *key, *tensor;
    json_t *v, *entry;
    struct tolerance unused = { 0 };
    json_object_foreach(all, key, v) {
        if (!json_is_object(v))
            return bad(t, e, key, "not an object");
        json_object_foreach(v, tensor, entry)
            if (read_one(t, key, entry, false, &unused, e) != 0)
                return -1;
    }
    return 0;
}

static int check(const struct tolerances *t, struct err *e)
{
    const char *key;
    json_t *v;
    struct tolerance unused = { 0 };
    json_object_foreach(t->document, key, v)
        if (strcmp(key, "version") != 0 && strcmp(key, "about") != 0 && strcmp(key, "classes") != 0 && strcmp(key, "operations") != 0
            && strcmp(key, "upstream") != 0)
            return bad(t, e, key, "unknown field");
    if (json_integer_value(json_object_get(t->document, "version")) != 1)
        return bad(t, e, "version", "not 1");
    if (!json_is_object(t->classes) || !json_is_object(t->operations) || !json_is_object(t->upstream))
        return bad(t, e, "classes, operations, upstream", "not objects");
    json_object_foreach(t->classes, key, v)
        if (read_one(t, key, v, true, &unused, e) != 0)
            return -1;
    return check_exceptions(t, t->operations, e) != 0 || check_exceptions(t, t->upstream, e) != 0 ? -1 : 0;
}

struct tolerances *tolerances_load(const char *path, struct err *e)
{
    struct tolerances *t = xcalloc(1, sizeof *t);
    snprintf(t->path, sizeof t->path, "%s", path);
    t->document = json_load_config(path, e);
    t->classes = json_object_get(t->document, "classes");
    t->operations = json_object_get(t->document, "operations");
    t->upstream = json_object_get(t->document, "upstream");
    if (!t->document || check(t, e) != 0) {
        tolerances_free(t);
        return NULL;
    }
    return t;
}

void tolerances_free(struct tolerances *t)
{
    if (!t)
        return;
    json_decref(t->document);
    free(t);
}

/* The exception for a tensor, where `of` has one. */
static int apply(const struct tolerances *t, json_t *of, const char *name, const char *tensor, struct tolerance *out, struct err *e)
{
    json_t *exception = json_object_get(of, tensor);
    if (!exception)
        exception = json_object_get(of, "*");
    return exception ? read_one(t, name, exception, false, out, e) : 0;
}

int tolerances_of(const struct tolerances *t, const struct ki_case *c, bool upstream, struct tolerance out[KI_MAX_TENSORS], struct err *e)
{
    const struct ki_operation *op = c->operation;
    struct tolerance class = { 0 };
    char typed[128];
    json_t *entry = json_object_get(t->classes, op->tolerance), *own = json_object_get(t->operations, op->name);
    snprintf(typed, sizeof typed, "%s %s", op->name, ki_dtype_name(c->dtype));
    json_t *theirs = upstream ? json_object_get(t->upstream, typed) : NULL;
    if (!entry)
        return bad(t, e, op->tolerance, "no such class");
    if (read_one(t, op->tolerance, entry, true, &class, e) != 0)
        return -1;
    for (int i = 0; i < ki_tensor_total(op); i++) {
        out[i] = class;
        if (apply(t, own, op->name, op->tensor[i].name, &out[i], e) != 0 || apply(t, theirs, typed, op->tensor[i].name, &out[i], e) != 0)
            return -1;
    }
    return 0;
}
