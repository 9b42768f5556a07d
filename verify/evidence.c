#include "verify/evidence.h"

#include <math.h>
#include <string.h>

#include "core/home.h"
#include "core/json.h"
#include "normalize/record.h"
#include "verify/manifest.h"
#include "verify/samples.h"
#include "verify/stats.h"

/* What one statement is made of. */
struct making {
    struct batch *batch;
    const struct outcome *outcome;
    const struct job *job;
    struct evidence *out;
    struct verdict_input input;
    struct digest samples, implementation, protocol; /* the controlled protocol */
    bool has_samples;
    double flush_ns, copy_gbps;
    struct ki_floor floor;
};

static json_t *number_or_null(double v)
{
    return isfinite(v) ? json_real(v) : json_null();
}

static json_t *digest_json(const struct digest *d)
{
    char text[DIGEST_TEXT + 1];
    digest_text(d, text);
    return json_string(text);
}

/* The tree of canonical text that this program made. */
static json_t *tree(struct slice text)
{
    return json_loadb(text.data, text.len, 0, NULL);
}

static double median_over_blocks(const struct outcome *o, double (*of)(const struct block *))
{
    double v[VERDICT_BLOCKS_MAX];
    for (int i = 0; i < o->blocks; i++)
        v[i] = of(&o->block[i]);
    return stats_quantile(v, o->blocks, 0.5);
}

static double source_median(const struct block *b) { return b->source.median_ns; }
static double source_p20(const struct block *b) { return b->source.p20_ns; }
static double source_p80(const struct block *b) { return b->source.p80_ns; }
static double source_host(const struct block *b) { return b->source.host_ns; }
static double source_flush(const struct block *b) { return b->source.flush_ns; }

/* ---- from an outcome to the inputs of its verdict ---- */

static int write_samples(struct making *m, const char *dir, struct err *e)
{
    struct samples s = { .blocks = m->outcome->blocks };
    for (int i = 0; i < s.blocks; i++) {
        s.count[i] = m->outcome->block[i].samples;
        s.ns[i] = m->outcome->block[i].ns;
        s.cycles[i] = m->outcome->block[i].cycles;
    }
    return samples_write(dir, &s, &m->samples, e);
}

static int summarize(struct making *m, const char *dir, struct err *e)
{
    int64_t count[VERDICT_BLOCKS_MAX], total;
    m->out->t_src_ns = m->out->h_ns = m->out->gbps = m->out->copy_share = m->flush_ns = NAN;
    m->copy_gbps = m->batch->sentinels ? m->batch->sentinel[0].copy_gbps : NAN;
    m->floor = m->job->work.operation->floor(&m->job->work, m->job->pass);
    m->has_samples = m->outcome->blocks > 0;
    if (!m->has_samples)
        return 0;
    if (write_samples(m, dir, e) != 0)
        return -1;
    const double *all = batch_pool(m->outcome, &m->batch->arena, count, &total);
    stats_summarize(all, count, m->outcome->blocks, samples_seed(&m->samples), &m->out->timing);
    m->out->t_src_ns = median_over_blocks(m->outcome, source_median);
    m->out->h_ns = median_over_blocks(m->outcome, source_host);
    m->flush_ns = median_over_blocks(m->outcome, source_flush);
    if (m->job->bundle && !m->job->by_child) { /* upstream's own callable, not this program's replay of it */
        m->out->t_src_ns = m->job->bundle->source.median_ns;
        m->out->h_ns = m->job->bundle->source.host_ns;
        m->flush_ns = m->job->bundle->source.flush_ns;
    }
    m->out->gbps = m->floor.dense_bytes / m->out->timing.median;
    m->out->copy_share = m->out->gbps / m->copy_gbps;
    return 0;
}

/* A status of the run: what became of the job, unless the batch as a whole is worth nothing. */
static const char *status_of(const struct making *m)
{
    const struct outcome *o = m->outcome;
    if (strcmp(o->status, "passed") != 0)
        return o->status;
    if (m->batch->void_reason[0] || (m->batch->timed && o->blocks < 5))
        return "incomplete_evidence";
    return "passed";
}

static void fill_input(struct making *m)
{
    const struct job *j = m->job;
    const struct hardware *h = &m->batch->hardware;
    struct verdict_input *in = &m->input;
    const struct equivalence *q = &m->batch->equivalence;
    struct gpu_facts record = { j->product, j->form_factor, j->gpu_memory_bytes }, here = { h->product, h->form_factor, m->batch->cuda.memory_bytes };
    bool same = m->batch->timed && equivalence_same_gpu(q, &record, &here);
    double l2 = same ? (double)m->batch->cuda.l2_bytes : LIGHT_L2_BYTES_UNKNOWN;
    *in = (struct verdict_input){
        .median_ns = j->reported.median_ns, .p20_ns = j->reported.p20_ns, .p80_ns = j->reported.p80_ns, .samples = j->reported.samples,
        .width_p90 = j->reported.width_p90, .framework = equivalence_is_framework(q, j->provider),
        .same_code = j->bundle && equivalence_same_code(q, j->commit, j->version, j->bundle),
        .light_ns = light_ns(&m->floor, &j->peak, l2), .native = j->native, .same_product = same, .timed = m->batch->timed,
        .gate = strcmp(m->out->status, "passed") == 0, .blocks = m->outcome->blocks,
    };
    for (int i = 0; i < in->blocks; i++)
        in->block_ns[i] = m->outcome->block[i].median_ns;
    if (m->has_samples) {
        in->t_dev_ns = m->out->timing.median;
        in->t_src_ns = m->out->t_src_ns;
        in->h_ns = m->out->h_ns;
        in->flush_ns = m->flush_ns;
    }
}

/* ---- the parts of a line ---- */

static json_t *put_summary(const struct stats_summary *t)
{
    return json_pack("{s:I,s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:[ff],s:I}", "samples", (json_int_t)t->samples, "median", t->median, "mean", t->mean,
        "p05", t->p05, "p20", t->p20, "p80", t->p80, "p95", t->p95, "minimum", t->minimum, "maximum", t->maximum, "mad", t->mad, "confidence95",
        t->low95, t->high95, "outliers", (json_int_t)t->outliers);
}

static json_t *put_blocks(const struct outcome *o)
{
    json_t *list = json_array();
    for (int i = 0; i < o->blocks; i++) {
        const struct block *b = &o->block[i];
        json_array_append_new(list, json_pack("{s:f,s:I,s:I,s:I,s:o,s:f,s:f,s:f,s:f,s:b,s:i,s:i}", "median_ns", b->median_ns, "samples",
            (json_int_t)b->samples, "throttled", (json_int_t)b->throttled, "compared", (json_int_t)b->compared, "half_width",
            number_or_null(b->half_width), "clock_mhz", b->clock_mhz, "t_src_ns", b->source.median_ns, "h_ns", b->source.host_ns, "flush_ns",
            b->source.flush_ns, "power_capped", b->power_capped, "temperature_c", b->temperature_c, "power_mw", b->power_mw));
    }
    return list;
}

static json_t *put_sentinels(const struct batch *b)
{
    json_t *list = json_array();
    for (int i = 0; i < b->sentinels; i++) {
        const struct sentinels *s = &b->sentinel[i];
        json_t *spins = json_array();
        for (int k = 0; k < WIRE_SPINS; k++)
            json_array_append_new(spins, number_or_null(s->spin_ns[k]));
        json_array_append_new(list, json_pack("{s:o,s:o,s:o,s:o,s:o,s:o}", "empty_ns", number_or_null(s->empty_ns), "copy_gbps",
            number_or_null(s->copy_gbps), "matmul_tflops", number_or_null(s->matmul_tflops), "spin_ns", spins, "slope",
            number_or_null(s->slope), "clock_mhz", number_or_null(s->clock_mhz)));
    }
    return list;
}

static json_t *put_controls(const struct batch *b)
{
    json_t *list = json_array();
    for (int i = 0; i < b->controls; i++)
        json_array_append_new(list, json_pack("{s:i,s:s,s:b,s:b,s:s}", "number", b->control[i].control->number, "name",
            b->control[i].control->name, "ran", b->control[i].ran, "refused", b->control[i].refused, "how", b->control[i].how));
    return list;
}

static json_t *put_correctness(const struct outcome *o)
{
    json_t *tensors = json_array();
    for (int i = 0; i < o->check.tensors; i++) {
        const struct compare_tensor *t = &o->check.tensor[i];
        json_array_append_new(tensors, json_pack("{s:s,s:I,s:I,s:f,s:f,s:f,s:f,s:f,s:f,s:b,s:b}", "name", t->name, "elements",
            (json_int_t)t->elements, "nonfinite", (json_int_t)t->nonfinite, "max_error", t->largest_error, "max_allowed", t->max_allowed,
            "rms_error", t->rms_error, "rms_allowed", t->rms_allowed, "baseline_max", t->baseline_max, "baseline_rms", t->baseline_rms, "passed",
            t->passed, "vacuous", t->vacuous));
    }
    return json_pack("{s:s,s:s,s:b,s:b,s:I,s:o}", "reference", "fp64", "comparator", "error_budget", "checked", o->checked, "vacuous",
        o->check.vacuous, "timed_calls_compared", (json_int_t)o->compared, "tensors", tensors);
}

static json_t *put_health(const struct device_health *h)
{
    return json_pack("{s:I,s:I,s:I,s:I}", "ecc_corrected", (json_int_t)h->ecc_corrected, "ecc_uncorrected", (json_int_t)h->ecc_uncorrected, "xid",
        (json_int_t)h->xid, "last_xid", (json_int_t)h->last_xid);
}

/* What is true of this board and machine, and not of its product. */
static json_t *put_host(const struct batch *b)
{
    char uuid[DIGEST_TEXT + 1] = "";
    struct digest d = digest_of(b->cuda.uuid, strlen(b->cuda.uuid));
    digest_text(&d, uuid);
    const struct device_nvml *n = &b->nvml;
    json_t *o = json_pack("{s:s,s:s,s:s}", "cpu", b->host.cpu, "kernel", b->host.kernel, "machine", b->host.machine);
    if (b->timed)
        json_object_update_new(o, json_pack("{s:s,s:s,s:s,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:I,s:i,s:s}", "device", b->cuda.name, "uuid", uuid, "vbios",
            n->vbios, "mig", n->mig, "sm_mhz", n->sm_mhz, "sm_max_mhz", n->sm_max_mhz, "memory_mhz", n->memory_mhz, "memory_max_mhz",
            n->memory_max_mhz, "temperature_c", n->temperature_c, "power_mw", n->power_mw, "power_limit_mw", n->power_limit_mw, "l2_bytes",
            (json_int_t)b->cuda.l2_bytes, "multiprocessors", b->cuda.multiprocessors, "cuda_visible_devices",
            getenv("CUDA_VISIBLE_DEVICES") ? getenv("CUDA_VISIBLE_DEVICES") : ""));
    return o;
}

static json_t *put_input(const struct verdict_input *in)
{
    json_t *blocks = json_array();
    for (int i = 0; i < in->blocks; i++)
        json_array_append_new(blocks, json_real(in->block_ns[i]));
    return json_pack("{s:f,s:f,s:f,s:I,s:f,s:b,s:f,s:b,s:b,s:b,s:b,s:b,s:o,s:f,s:f,s:f,s:f}", "median_ns", in->median_ns, "p20_ns", in->p20_ns, "p80_ns",
        in->p80_ns, "samples", (json_int_t)in->samples, "width_p90", in->width_p90, "framework", in->framework, "light_ns", in->light_ns, "native",
        in->native, "same_product", in->same_product, "same_code", in->same_code, "timed", in->timed, "gate", in->gate, "block_ns", blocks, "t_dev_ns", in->t_dev_ns,
        "t_src_ns", in->t_src_ns, "h_ns", in->h_ns, "flush_ns", in->flush_ns);
}

static json_t *put_verdict(const struct verdict *v)
{
    return json_pack("{s:s,s:f,s:f,s:f,s:b}", "code", verdict_text(v->code), "d", v->d, "u95", v->u95, "u99", v->u99, "against_light",
        v->against_light);
}

static json_t *put_floor(const struct making *m)
{
    double here = light_ns(&m->floor, &m->batch->hardware.peak, (double)m->batch->cuda.l2_bytes);
    return json_pack("{s:f,s:f,s:f,s:b,s:f,s:o,s:o}", "bytes", m->floor.bytes, "dense_bytes", m->floor.dense_bytes, "flops", m->floor.flops, "hard",
        m->floor.hard, "light_ns", m->batch->timed ? here : 0.0, "gbps", number_or_null(m->out->gbps), "copy_share",
        number_or_null(m->out->copy_share));
}

/* ---- the records to publish ---- */

static void append_record(json_t *list, const struct object *o)
{
    struct buf line = { 0 };
    record_put_object(&line, o->body, &o->digest, o->metadata);
    json_array_append_new(list, tree((struct slice){ line.data, line.len }));
    buf_fini(&line);
}

static int put_records(struct making *m, json_t *list, struct err *e)
{
    struct arena *a = &m->batch->arena;
    struct object project, implementation, protocol, run;
    if (!m->batch->timed)
        return 0;
    bool native = m->job->native;
    if (native ? manifest_project(a, &project, e) != 0 || manifest_implementation(m->job, a, &implementation, e) != 0
               : manifest_upstream(m->job, &m->batch->hardware, m->input.same_code, a, &implementation, e) != 0)
        return -1;
    if (manifest_protocol(m->job->pass, m->job->by_child, a, &protocol, e) != 0)
        return -1;
    struct manifest_run spec = {
        .job = m->job, .implementation = implementation.digest, .protocol = protocol.digest, .environment = m->batch->environment.digest,
        .samples = m->samples, .status = m->out->status, .max_error = NAN, .timing = strcmp(m->out->status, "passed") == 0 ? &m->out->timing : NULL,
        .t_src_ns = m->out->t_src_ns, .h_ns = m->out->h_ns, .bytes = m->floor.dense_bytes, .flops = m->floor.flops, .copy_gbps = m->copy_gbps,
        .observed_ms = m->outcome->observed_ms, .batch = m->batch->id,
    };
    for (int i = 0; i < m->outcome->check.tensors; i++)
        spec.max_error = fmax(spec.max_error, m->outcome->check.tensor[i].largest_error);
    if (manifest_run(&spec, a, &run, e) != 0)
        return -1;
    m->out->run = run.digest;
    m->implementation = implementation.digest;
    m->protocol = protocol.digest;
    if (native) /* the record's own project is in the store already */
        append_record(list, &project);
    append_record(list, &implementation);
    append_record(list, &protocol);
    append_record(list, &m->batch->environment);
    append_record(list, &run);
    return 0;
}

/* ---- the line and the statement ---- */

static void put_times(struct making *m, json_t *o)
{
    const struct outcome *k = m->outcome;
    if (isfinite(k->methods.graph_ns))
        json_object_set_new(o, "second_method", json_pack("{s:s,s:f,s:f,s:i}", "name", m->job->by_child ? "clock_outside" : "graph", "median_ns", k->methods.graph_ns, "stream_ns",
            k->methods.stream_ns, "nodes", k->methods.nodes));
    if (!m->has_samples)
        return;
    json_object_set_new(o, "class", json_string(rerun_class_text(m->out->verdict.class)));
    json_object_set_new(o, "rho", json_real(m->out->verdict.rho));
    json_object_set_new(o, "t_dev_ns", put_summary(&m->out->timing));
    const struct bundle *bundle = m->job->by_child ? NULL : m->job->bundle;
    json_object_set_new(o, "t_src_ns", json_pack("{s:f,s:f,s:f,s:I}", "median", m->out->t_src_ns, "p20", bundle ? bundle->source.p20_ns
        : median_over_blocks(k, source_p20), "p80", bundle ? bundle->source.p80_ns : median_over_blocks(k, source_p80), "samples",
        (json_int_t)(bundle ? bundle->source.samples : k->block[0].source.samples)));
    json_object_set_new(o, "h_ns", json_real(m->out->h_ns));
    json_object_set_new(o, "flush_ns", json_real(m->flush_ns));
    json_object_set_new(o, "samples", digest_json(&m->samples));
}

/* What was replayed, and why it counts as the record's code or not. */
static json_t *put_code(const struct making *m)
{
    const struct bundle *b = m->job->bundle;
    int launches = 0;
    for (int i = 0; i < b->timed.count; i++)
        launches += b->timed.op[i].kind == BUNDLE_LAUNCH;
    return json_pack("{s:s,s:s,s:o,s:s,s:s,s:o,s:i,s:i,s:s,s:s,s:s,s:b,s:s}", "package", b->package, "version", b->version, "files", digest_json(&b->files),
        "triton", b->triton, "torch", b->torch, "bundle", digest_json(&b->digest), "launches", launches, "operations", b->timed.count, "record_commit",
        m->job->commit, "record_version", m->job->version, "policy", m->batch->equivalence.policy, "same", m->input.same_code, "by", m->job->by_child ? "child" : "replay");
}

static int make_line(struct making *m, json_t **out, struct err *e)
{
    const struct batch *b = m->batch;
    const struct job *j = m->job;
    json_t *records = json_array();
    if (put_records(m, records, e) != 0) {
        json_decref(records);
        return -1;
    }
    json_t *o = json_pack("{s:s,s:i,s:s,s:s,s:o,s:s,s:{s:o,s:s},s:s,s:s,s:s}", "type", "evidence", "version", 1, "batch", b->id, "device",
        b->options.device, "job", digest_json(&j->digest), "nonce", j->nonce, "subject", "run", digest_json(&j->subject), "externalId",
        j->external_id, "quantity", "latency", "runner", j->native ? "native" : "upstream", "policy", VERDICT_POLICY);
    json_object_update_new(o, json_pack("{s:s,s:s,s:s,s:s,s:s,s:o,s:o,s:o,s:o,s:o}", "kernel", j->kernel, "pass", ki_pass_name(j->pass), "title",
        job_title(j, &m->batch->arena), "status", m->out->status, "text", m->outcome->text, "workload", digest_json(&j->workload), "operation",
        digest_json(&j->operation), "environment", tree(b->environment.body), "host", put_host(b), "blocks", put_blocks(m->outcome)));
    json_object_update_new(o, json_pack("{s:o,s:o,s:o,s:{s:o,s:o},s:o,s:o,s:o,s:s,s:{s:s,s:s,s:s,s:i}}", "sentinels", put_sentinels(b), "controls",
        put_controls(b), "correctness", put_correctness(m->outcome), "health", "before", put_health(&b->before), "after", put_health(&b->after),
        "floor", put_floor(m), "judged", put_input(&m->input), "verdict", put_verdict(&m->out->verdict), "void", b->void_reason, "tool", "name",
        "ki-verify", "version", KI_VERSION, "compiler", b->cuda.compiler, "processes", b->processes));
    put_times(m, o);
    if (j->bundle)
        json_object_set_new(o, "code", put_code(m));
    if (b->timed) {
        json_object_set_new(o, "rerun", digest_json(&m->out->run));
        json_object_set_new(o, "implementation", digest_json(&m->implementation));
        json_object_set_new(o, "protocol", digest_json(&m->protocol));
    }
    json_object_set_new(o, "records", records);
    *out = o;
    return 0;
}

static json_t *wrap(const struct making *m, json_t *line)
{
    char run[DIGEST_HEX + 1], job[DIGEST_HEX + 1];
    digest_hex(m->batch->timed ? &m->out->run : &m->job->digest, run);
    digest_hex(&m->job->digest, job);
    const char *result = strcmp(m->out->status, "passed") == 0 ? "PASSED" : "FAILED";
    return json_pack("{s:s,s:[{s:s,s:{s:s}}],s:s,s:{s:s,s:[{s:s,s:{s:s}}],s:o}}", "_type", "https://in-toto.io/Statement/v1", "subject", "name",
        m->batch->timed ? "run" : "job", "digest", "sha256", run, "predicateType", "https://in-toto.io/attestation/test-result/v0.1", "predicate",
        "result", result, "configuration", "name", "job", "digest", "sha256", job, "evidence", line);
}

int evidence_statement(struct batch *b, int i, const char *dir, struct buf *payload, struct evidence *out, struct err *e)
{
    struct making m = { .batch = b, .outcome = &b->outcome[i], .job = b->outcome[i].job, .out = out };
    struct buf canonical = { 0 };
    json_t *line;
    *out = (struct evidence){ 0 };
    if (summarize(&m, dir, e) != 0)
        return -1;
    out->status = status_of(&m);
    fill_input(&m);
    out->verdict = verdict_of(&m.input);
    if (make_line(&m, &line, e) != 0)
        return -1;
    int rc = json_canonical(line, &canonical, e);
    out->digest = digest_of(canonical.data, canonical.len);
    buf_fini(&canonical);
    json_t *statement = wrap(&m, line);
    if (rc == 0)
        rc = statement ? json_canonical(statement, payload, e) : err_set(e, ERR_BUG, "a statement could not be built");
    json_decref(statement);
    return rc;
}
