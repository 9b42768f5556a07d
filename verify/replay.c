#include "verify/evidence.h"

#include <math.h>
#include <string.h>

#include "core/json.h"
#include "verify/samples.h"
#include "verify/stats.h"

/* A statement being replayed, for errors. */
struct reading {
    const char *name;
    unsigned line;
    struct err *e;
};

static int bad(const struct reading *r, const char *field, const char *what)
{
    return err_at(r->e, ERR_DATA, r->name, r->line, 0, "%s: %s", field, what);
}

static int read_digest(const struct reading *r, json_t *o, const char *field, struct digest *out)
{
    const char *text = json_string_value(json_object_get(o, field));
    return text && digest_parse(text, strlen(text), out) ? 0 : bad(r, field, "not a digest");
}

static int read_blocks(const struct reading *r, json_t *list, struct verdict_input *in)
{
    size_t i;
    json_t *v;
    if (!json_is_array(list) || json_array_size(list) > VERDICT_BLOCKS_MAX)
        return bad(r, "judged.block_ns", "not a list of blocks");
    json_array_foreach(list, i, v) {
        in->block_ns[i] = json_number_value(v);
        if (!(in->block_ns[i] > 0))
            return bad(r, "judged.block_ns", "not a time");
    }
    in->blocks = (int)json_array_size(list);
    return 0;
}

/* Numbers come back as integers where they were whole. */
static int read_input(const struct reading *r, json_t *o, struct verdict_input *in)
{
    const struct { const char *name; double *to; } numbers[] = {
        { "median_ns", &in->median_ns }, { "p20_ns", &in->p20_ns }, { "p80_ns", &in->p80_ns }, { "width_p90", &in->width_p90 },
        { "light_ns", &in->light_ns }, { "t_dev_ns", &in->t_dev_ns }, { "t_src_ns", &in->t_src_ns }, { "h_ns", &in->h_ns },
        { "flush_ns", &in->flush_ns },
    };
    const struct { const char *name; bool *to; } flags[] = {
        { "framework", &in->framework }, { "native", &in->native }, { "same_product", &in->same_product }, { "timed", &in->timed },
        { "gate", &in->gate },
    };
    *in = (struct verdict_input){ .samples = json_integer_value(json_object_get(o, "samples")), .same_code = json_is_true(json_object_get(o, "same_code")) };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        json_t *v = json_object_get(o, numbers[i].name);
        *numbers[i].to = json_number_value(v);
        if (!json_is_number(v) || *numbers[i].to < 0)
            return bad(r, "judged", "a number is missing or negative");
    }
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        json_t *v = json_object_get(o, flags[i].name);
        *flags[i].to = json_is_true(v);
        if (!json_is_boolean(v))
            return bad(r, "judged", "a flag is missing");
    }
    return read_blocks(r, json_object_get(o, "block_ns"), in);
}

static bool same(double a, double b)
{
    return fabs(a - b) <= 1e-9 * fmax(fabs(a), fabs(b));
}

/* What is judged must be what the rest of the line says. */
static int check_consistent(const struct reading *r, json_t *line, const struct verdict_input *in)
{
    size_t i;
    json_t *block, *blocks = json_object_get(line, "blocks");
    const char *status = json_string_value(json_object_get(line, "status")), *reason = json_string_value(json_object_get(line, "void"));
    bool passed = status && strcmp(status, "passed") == 0;
    if (!status || !reason || in->gate != passed || (passed && reason[0]))
        return bad(r, "judged.gate", "does not follow from the status and the batch");
    if (json_array_size(blocks) != (size_t)in->blocks)
        return bad(r, "judged.block_ns", "another number of blocks than the line has");
    json_array_foreach(blocks, i, block)
        if (!same(json_number_value(json_object_get(block, "median_ns")), in->block_ns[i]))
            return bad(r, "judged.block_ns", "another median than the block has");
    if (in->blocks && (!same(json_number_value(json_object_get(json_object_get(line, "t_dev_ns"), "median")), in->t_dev_ns)
            || !same(json_number_value(json_object_get(json_object_get(line, "t_src_ns"), "median")), in->t_src_ns)
            || !same(json_number_value(json_object_get(line, "h_ns")), in->h_ns)))
        return bad(r, "judged", "other times than the line has");
    return 0;
}

static int check_controls(const struct reading *r, json_t *line, bool gate)
{
    size_t i;
    json_t *v;
    json_array_foreach(json_object_get(line, "controls"), i, v)
        if (gate && !json_is_true(json_object_get(v, "refused")))
            return bad(r, "controls", "one was accepted and the batch still stands");
    return gate && json_array_size(json_object_get(line, "controls")) == 0 ? bad(r, "controls", "none was run") : 0;
}

static int compare_summary(const struct reading *r, json_t *line, const struct stats_summary *t)
{
    json_t *o = json_object_get(line, "t_dev_ns"), *interval = json_object_get(o, "confidence95");
    const struct { const char *name; double v; } all[] = {
        { "median", t->median }, { "mean", t->mean }, { "p05", t->p05 }, { "p20", t->p20 }, { "p80", t->p80 }, { "p95", t->p95 },
        { "minimum", t->minimum }, { "maximum", t->maximum }, { "mad", t->mad },
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (!same(json_number_value(json_object_get(o, all[i].name)), all[i].v))
            return bad(r, "t_dev_ns", "a statistic does not follow from the samples");
    if (!same(json_number_value(json_array_get(interval, 0)), t->low95) || !same(json_number_value(json_array_get(interval, 1)), t->high95))
        return bad(r, "t_dev_ns.confidence95", "does not follow from the samples");
    return 0;
}

/* With the windows at hand, every statistic is made again from them. */
static int check_samples(const struct reading *r, json_t *line, const char *dir, const struct verdict_input *in, struct arena *a, bool *found)
{
    struct digest d;
    struct samples s;
    struct err own = { 0 };
    struct stats_summary t;
    *found = false;
    if (!in->blocks || read_digest(r, line, "samples", &d) != 0)
        return in->blocks ? -1 : 0;
    if (!dir || samples_read(dir, &d, a, &s, &own) != 0)
        return dir && own.code != ERR_NOTFOUND ? err_at(r->e, own.code, r->name, r->line, 0, "samples: %s", own.text) : 0;
    if (s.blocks != in->blocks)
        return bad(r, "samples", "another number of blocks than the line has");
    int64_t total = 0, at = 0;
    for (int i = 0; i < s.blocks; i++)
        total += s.count[i];
    double *all = arena_alloc(a, (size_t)(total + 1) * sizeof *all);
    for (int i = 0; i < s.blocks; i++) {
        memcpy(all + at, s.ns[i], (size_t)s.count[i] * sizeof *all);
        at += s.count[i];
        if (!same(stats_median(s.ns[i], s.count[i]), in->block_ns[i]))
            return bad(r, "blocks", "a median does not follow from the samples");
    }
    stats_summarize(all, s.count, s.blocks, samples_seed(&d), &t);
    *found = true;
    return compare_summary(r, line, &t);
}

static int replay_line(const struct reading *r, json_t *line, const char *dir, struct arena *a, struct replay *out)
{
    struct verdict_input in;
    const char *title = json_string_value(json_object_get(line, "title")), *batch = json_string_value(json_object_get(line, "batch"));
    const char *external = json_string_value(json_object_get(json_object_get(line, "subject"), "externalId"));
    json_t *verdict = json_object_get(line, "verdict");
    const char *code = json_string_value(json_object_get(verdict, "code")), *policy = json_string_value(json_object_get(line, "policy"));
    if (!title || !batch || !external || !code || !policy || strcmp(policy, VERDICT_POLICY) != 0 || !verdict_parse(code, &out->said))
        return bad(r, "evidence", "not evidence of policy " VERDICT_POLICY);
    out->title = arena_strdup(a, title);
    out->batch = arena_strdup(a, batch);
    out->external_id = arena_strdup(a, external);
    if (read_digest(r, line, "job", &out->job) != 0 || read_digest(r, json_object_get(line, "subject"), "run", &out->subject) != 0
        || read_input(r, json_object_get(line, "judged"), &in) != 0 || check_consistent(r, line, &in) != 0
        || check_controls(r, line, in.gate) != 0 || check_samples(r, line, dir, &in, a, &out->from_samples) != 0)
        return -1;
    struct verdict v = verdict_of(&in);
    out->found = v.code;
    out->d = v.d;
    out->u95 = v.u95;
    out->u99 = v.u99;
    if (v.code != out->said || !same(json_number_value(json_object_get(verdict, "d")), v.d)
        || !same(json_number_value(json_object_get(verdict, "u95")), v.u95) || !same(json_number_value(json_object_get(verdict, "u99")), v.u99))
        return err_at(r->e, ERR_DATA, r->name, r->line, 0, "verdict: says %s, its inputs give %s", code, verdict_text(v.code));
    return 0;
}

int evidence_replay(struct slice payload, const char *dir, const char *name, unsigned line, struct arena *a, struct replay *out, struct err *e)
{
    struct reading r = { name, line, e };
    *out = (struct replay){ .title = "", .external_id = "", .batch = "" };
    json_t *statement = json_load_text(payload.data, payload.len, name, e);
    json_t *evidence = json_object_get(json_object_get(statement, "predicate"), "evidence");
    const char *type = json_string_value(json_object_get(evidence, "type"));
    int rc = statement && type && strcmp(type, "evidence") == 0 ? replay_line(&r, evidence, dir, a, out) : bad(&r, "statement", "holds no evidence");
    json_decref(statement);
    return rc;
}
