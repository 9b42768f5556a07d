/* Job lines for tests of verify/: rms_norm forward on a made-up record of an H200, with what a test wants to change. */
#ifndef VERIFY_JOBS_H
#define VERIFY_JOBS_H

#include <stdio.h>
#include <string.h>

#include "core/digest.h"
#include "core/json.h"
#include "verify/job.h"

#define JOB_OPERATION \
    "{\"apiVersion\":\"kernelindex.dev/v1alpha1\",\"kind\":\"OperationSpec\",\"spec\":{\"axes\":{\"hidden\":{\"role\":\"variable\",\"type\":\"integer\"}," \
    "\"rows\":{\"role\":\"variable\",\"type\":\"integer\"}},\"family\":\"rmsnorm\",\"inputs\":[{\"name\":\"x\",\"tensor\":{\"dtype\":\"float\",\"shape\":[" \
    "\"rows\",\"hidden\"]}},{\"name\":\"weight\",\"tensor\":{\"dtype\":\"float\",\"shape\":[\"hidden\"]}}],\"outputs\":[{\"name\":\"y\",\"tensor\":{" \
    "\"dtype\":\"float\",\"shape\":[\"rows\",\"hidden\"]}}],\"semantics\":{\"determinism\":\"unspecified\",\"mutation\":\"none\"}}}"

struct job_text {
    const char *id, *pass, *runner, *provider, *product, *dtype, *extra; /* extra: more members, ending in a comma */
    int rows, hidden;
    double median_ns;
    long long memory_bytes;
    double wall_seconds;
};

static const struct job_text job_usual = { "job-1", "forward", "native", "liger", "NVIDIA H200", "bf16", "", 4, 64, 20000, 0, 60 };

/* One line, no newline, into `out`. */
static inline void job_write(const struct job_text *t, struct buf *out)
{
    char operation[DIGEST_TEXT + 1];
    struct digest d = digest_of(JOB_OPERATION, strlen(JOB_OPERATION));
    digest_text(&d, operation);
    buf_printf(out, "{%s\"type\":\"job\",\"id\":\"%s\",\"nonce\":\"00112233\",\"policy\":\"verify-v1\",\"quantity\":\"latency\",\"runner\":\"%s\","
        "\"kernel\":\"rms_norm\",\"provider\":\"%s\",\"pass\":\"%s\",", t->extra, t->id, t->runner, t->provider, t->pass);
    buf_printf(out, "\"subject\":{\"run\":\"sha256:%064d\",\"externalId\":\"rms_norm/%s/%s/nvidia-h200/x/2026-01-01-00-00-00\"},", 7, t->pass, t->provider);
    buf_printf(out, "\"gpu\":{\"product\":\"%s\",\"peak\":{\"GBps\":4800}},\"reported\":{\"median_ns\":%.17g,\"samples_estimate\":100},", t->product, t->median_ns);
    buf_printf(out, "\"limits\":{\"wall_seconds\":%.17g,\"memory_bytes\":%lld},\"protocol\":{\"kind\":\"BenchmarkProtocol\"},\"operation\":%s,", t->wall_seconds,
        t->memory_bytes, JOB_OPERATION);
    buf_printf(out, "\"workload\":{\"apiVersion\":\"kernelindex.dev/v1alpha1\",\"kind\":\"WorkloadCase\",\"spec\":{\"operationSpecDigest\":\"%s\",\"axes\":{"
        "\"rows\":%d,\"hidden\":%d},\"tensors\":{\"x\":{\"shape\":[%d,%d],\"dtype\":\"%s\"},\"weight\":{\"shape\":[%d],\"dtype\":\"%s\"}},"
        "\"correctness\":{\"comparator\":\"not_asserted\"}}}}", operation, t->rows, t->hidden, t->rows, t->hidden, t->dtype, t->hidden, t->dtype);
}

#endif
