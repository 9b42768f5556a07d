#include "verify/equivalence.h"

#include <stdlib.h>
#include <string.h>

#include "core/json.h"

static int bad(const char *path, const char *field, const char *what, struct err *e)
{
    return err_at(e, ERR_CONFIG, path, 0, 0, "%s: %s", field, what);
}

static int read_same(const char *path, json_t *list, struct equivalence *q, struct err *e)
{
    const struct { const char *name; bool *to; } known[] = { { "product", &q->product }, { "formFactor", &q->form_factor }, { "memoryBytes", &q->memory } };
    size_t i;
    json_t *v;
    json_array_foreach(list, i, v) {
        bool found = false;
        for (size_t k = 0; k < sizeof known / sizeof known[0]; k++)
            if (json_is_string(v) && strcmp(json_string_value(v), known[k].name) == 0)
                found = *known[k].to = true;
        if (!found)
            return bad(path, "same", "an unknown name", e);
    }
    return 0;
}

static int read_code(const char *path, json_t *list, struct arena *a, struct equivalence *q, struct err *e)
{
    size_t i;
    json_t *v;
    q->code = arena_alloc(a, sizeof *q->code * (json_array_size(list) + 1));
    json_array_foreach(list, i, v) {
        const char *files = json_text_of(v, "files");
        q->code[i].package = arena_strdup(a, json_text_of(v, "package"));
        q->code[i].commit = arena_strdup(a, json_text_of(v, "commit"));
        q->code[i].version = arena_strdup(a, json_text_of(v, "version"));
        if (json_object_size(v) != 3 || !q->code[i].package[0] || !q->code[i].commit[0] == !q->code[i].version[0]
            || !digest_parse(files, strlen(files), &q->code[i].files))
            return bad(path, "code", "each entry has package, files and one of commit and version", e);
    }
    q->codes = (int)json_array_size(list);
    return 0;
}

int equivalence_load(const char *path, struct arena *a, struct equivalence *q, struct err *e)
{
    json_t *o = json_load_config(path, e), *v;
    size_t i;
    *q = (struct equivalence){ 0 };
    if (!o)
        return -1;
    json_t *same = json_object_get(o, "same"), *frameworks = json_object_get(o, "frameworks"), *code = json_object_get(o, "code");
    q->policy = arena_strdup(a, json_text_of(o, "policy"));
    int rc = 0;
    if (json_object_size(o) != 6 || json_whole_of(o, "version") != 1 || !q->policy[0] || !json_object_get(o, "about") || !json_is_array(same)
        || !json_is_array(frameworks) || !json_is_array(code))
        rc = bad(path, "top level", "has version 1, about, policy, same, frameworks and code, and nothing else", e);
    q->framework = arena_alloc(a, sizeof *q->framework * (json_array_size(frameworks) + 1));
    if (rc == 0)
        json_array_foreach(frameworks, i, v)
            q->framework[q->frameworks++] = arena_strdup(a, json_is_string(v) ? json_string_value(v) : "");
    if (rc == 0)
        rc = read_same(path, same, q, e) != 0 || read_code(path, code, a, q, e) != 0 ? -1 : 0;
    json_decref(o);
    return rc;
}

/* Memory as a driver reports it varies by what the driver keeps for itself: one part in a hundred is the same board. */
static bool same_memory(int64_t a, int64_t b)
{
    return llabs(a - b) <= a / 100;
}

bool equivalence_same_gpu(const struct equivalence *q, const struct gpu_facts *record, const struct gpu_facts *here)
{
    return (!q->product || strcmp(record->product, here->product) == 0)
        && (!q->form_factor || strcmp(record->form_factor, here->form_factor) == 0)
        && (!q->memory || record->memory_bytes == 0 || same_memory(record->memory_bytes, here->memory_bytes));
}

bool equivalence_is_framework(const struct equivalence *q, const char *provider)
{
    for (int i = 0; i < q->frameworks; i++)
        if (strncmp(provider, q->framework[i], strlen(q->framework[i])) == 0)
            return true;
    return false;
}

bool equivalence_same_code(const struct equivalence *q, const char *commit, const char *version, const struct bundle *b)
{
    for (int i = 0; i < q->codes; i++) {
        bool named = commit[0] ? strcmp(q->code[i].commit, commit) == 0 : version[0] && strcmp(q->code[i].version, version) == 0;
        if (named && strcmp(q->code[i].package, b->package) == 0 && digest_cmp(&q->code[i].files, &b->files) == 0)
            return true;
    }
    return false;
}
