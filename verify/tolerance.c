#include "verify/tolerance.h"

#include <string.h>

#include "core/json.h"

struct tolerances {
    json_t *classes, *operations, *document;
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

static int check(const struct tolerances *t, struct err *e)
{
    const char *key, *tensor;
    json_t *v, *entry;
    struct tolerance unused = { 0 };
    json_object_foreach(t->document, key, v)
        if (strcmp(key, "version") != 0 && strcmp(key, "about") != 0 && strcmp(key, "classes") != 0 && strcmp(key, "operations") != 0)
            return bad(t, e, key, "unknown field");
    if (json_integer_value(json_object_get(t->document, "version")) != 1)
        return bad(t, e, "version", "not 1");
    if (!json_is_object(t->classes) || !json_is_object(t->operations))
        return bad(t, e, "classes, operations", "not objects");
    json_object_foreach(t->classes, key, v)
        if (read_one(t, key, v, true, &unused, e) != 0)
            return -1;
    json_object_foreach(t->operations, key, v) {
        if (!json_is_object(v))
            return bad(t, e, key, "not an object");
        json_object_foreach(v, tensor, entry)
            if (read_one(t, key, entry, false, &unused, e) != 0)
                return -1;
    }
    return 0;
}

struct tolerances *tolerances_load(const char *path, struct err *e)
{
    struct tolerances *t = xcalloc(1, sizeof *t);
    snprintf(t->path, sizeof t->path, "%s", path);
    t->document = json_load_config(path, e);
    t->classes = json_object_get(t->document, "classes");
    t->operations = json_object_get(t->document, "operations");
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

int tolerances_of(const struct tolerances *t, const struct ki_operation *op, struct tolerance out[KI_MAX_TENSORS], struct err *e)
{
    struct tolerance class = { 0 };
    json_t *entry = json_object_get(t->classes, op->tolerance), *own = json_object_get(t->operations, op->name);
    if (!entry)
        return bad(t, e, op->tolerance, "no such class");
    if (read_one(t, op->tolerance, entry, true, &class, e) != 0)
        return -1;
    for (int i = 0; i < ki_tensor_total(op); i++) {
        json_t *override = json_object_get(own, op->tensor[i].name);
        out[i] = class;
        if (!override)
            override = json_object_get(own, "*");
        if (override && read_one(t, op->name, override, false, &out[i], e) != 0)
            return -1;
    }
    return 0;
}
