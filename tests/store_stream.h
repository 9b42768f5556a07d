/* A store in a directory of its own, and wire streams to put into it: the smallest objects that cite each other as they must. */
#ifndef KI_TESTS_STORE_STREAM_H
#define KI_TESTS_STORE_STREAM_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <ftw.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/when.h"
#include "normalize/record.h"
#include "store/put.h"

struct place {
	char root[64];
	struct buf wire;       /* the stream being made */
	struct digest project, operation, workload, implementation, protocol, environment;
	struct digest one;     /* the case that stream_begin makes */
	unsigned line;
};

static inline int place_setup(void **state)
{
	struct place *p = calloc(1, sizeof *p);
	strcpy(p->root, "/tmp/test_store.XXXXXX");
	assert_non_null(mkdtemp(p->root));
	*state = p;
	return 0;
}

static int place_remove(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static inline int place_teardown(void **state)
{
	struct place *p = *state;
	nftw(p->root, place_remove, 8, FTW_DEPTH | FTW_PHYS);
	buf_fini(&p->wire);
	free(p);
	return 0;
}

static inline struct slice words(const char *text)
{
	return (struct slice){text, strlen(text)};
}

/* ---- records ---- */

static inline struct digest stream_object(struct place *p, const char *body, const char *metadata)
{
	struct digest d = digest_of(body, strlen(body));
	record_put_object(&p->wire, words(body), &d, words(metadata));
	return d;
}

static inline struct digest stream_kind(struct place *p, const char *kind, const char *spec)
{
	struct buf body = {0};
	buf_printf(&body, "{\"apiVersion\":\"kernelindex.dev/v1alpha1\",\"kind\":\"%s\",\"spec\":%s}", kind, spec);
	struct digest d = stream_object(p, body.data, "{\"name\":\"x\"}");
	buf_fini(&body);
	return d;
}

static inline struct digest stream_citing(struct place *p, const char *kind, const char *format, const struct digest *cited)
{
	struct buf spec = {0};
	char text[DIGEST_TEXT + 1];
	digest_text(cited, text);
	buf_str(&spec, format);
	char *at = strstr(spec.data, "DIGEST");
	assert_non_null(at);
	size_t head = (size_t)(at - spec.data);
	struct buf whole = {0};
	buf_add(&whole, spec.data, head);
	buf_str(&whole, text);
	buf_str(&whole, at + 6);
	struct digest d = stream_kind(p, kind, whole.data);
	buf_fini(&spec);
	buf_fini(&whole);
	return d;
}

/* What two cases of one cohort may differ in. */
struct stream_case {
	const char *kernel, *slug, *provider, *x_value;
};

static inline struct case_parts stream_parts(const struct place *p, const struct stream_case *c, char prefix[128])
{
	snprintf(prefix, 128, "%s/forward/%s/gpu/hidden%s-bf16", c->kernel, c->provider, c->x_value);
	return (struct case_parts){
		.benchmark = words("rms_norm/forward"), .case_key = words("hidden1-bf16"), .config = words("{}"), .dtype = words("bf16"),
		.environment = p->environment, .external_prefix = words(prefix), .gpu = words("GPU"), .implementation = p->implementation,
		.kernel = words(c->kernel), .metric = METRIC_LATENCY, .mode = words("forward"), .operation = p->operation,
		.operation_slug = words(c->slug), .operation_title = words("RMSNorm"), .project = p->project, .protocol = p->protocol,
		.provider = words(c->provider), .provider_title = words(c->provider), .rule = words("0"), .workload = p->workload,
		.workload_label = words("hidden = 1"), .x_label = words("x"), .x_name = words("H"), .x_value = words(c->x_value)};
}

static inline struct digest stream_case(struct place *p, const struct stream_case *c)
{
	char prefix[128];
	struct buf body = {0};
	struct case_parts parts = stream_parts(p, c, prefix);
	record_case_body(&parts, &body);
	struct digest d = digest_of(body.data, body.len);
	record_put_case(&p->wire, (struct slice){body.data, body.len}, &d);
	buf_fini(&body);
	return d;
}

static const struct stream_case liger = {"rms_norm", "liger-rms-norm", "liger", "1"};

static inline void stream_run_body(struct place *p, const struct stream_case *c, double ms, int64_t observed_ms, struct buf *body)
{
	char prefix[128], when[WHEN_TEXT + 1];
	struct buf id = {0};
	struct case_parts parts = stream_parts(p, c, prefix);
	when_text(observed_ms, when);
	when[10] = when[13] = when[16] = '-';
	buf_printf(&id, "%s/%.19s", prefix, when);
	struct run_parts run = {.metric = METRIC_LATENCY, .implementation = p->implementation, .workload = p->workload, .protocol = p->protocol,
				.environment = p->environment, .benchmark = parts.benchmark, .external_id = {id.data, id.len}, .source_50 = ms,
				.source_20 = NAN, .source_80 = NAN, .observed_ms = observed_ms};
	record_run_body(&run, body);
	buf_fini(&id);
}

static inline void stream_run_labelled(struct place *p, const struct stream_case *c, double ms, int64_t observed_ms, const char *labels)
{
	char prefix[128];
	struct buf body = {0}, case_body = {0};
	struct case_parts parts = stream_parts(p, c, prefix);
	record_case_body(&parts, &case_body);
	struct digest of = digest_of(case_body.data, case_body.len);
	stream_run_body(p, c, ms, observed_ms, &body);
	struct digest d = digest_of(body.data, body.len);
	record_put_run(&p->wire, (struct slice){body.data, body.len}, &d, &of, words(labels), ++p->line);
	buf_fini(&body);
	buf_fini(&case_body);
}

/* `second` counts from 2025-01-01T00:00:00Z. */
enum { SECOND = 1000 };
static const int64_t EPOCH = 1735689600000;
static inline void stream_run(struct place *p, const struct stream_case *c, double ms, int second)
{
	stream_run_labelled(p, c, ms, EPOCH + (int64_t)second * SECOND, "{}");
}

/* The snapshot line alone. */
static inline void stream_snapshot(struct place *p, const char *channel, const char *commit, const char *entry)
{
	struct buf name = {0};
	buf_printf(&name, "%s %s %s", channel, commit, entry);
	struct snapshot_parts s = {.channel = words(channel), .commit = words(commit), .entry = words(entry), .file = words("a.csv"),
				   .config = words(""), .sha256 = digest_of(name.data, name.len), .size_bytes = 10};
	record_put_snapshot(&p->wire, &s);
	buf_fini(&name);
}

static inline void stream_objects(struct place *p)
{
	p->project = stream_kind(p, "SoftwareProject", "{\"kind\":\"library\",\"name\":\"P\"}");
	p->operation = stream_kind(p, "OperationSpec", "{\"family\":\"rms_norm\"}");
	p->workload = stream_citing(p, "WorkloadCase",
				    "{\"axes\":{\"hidden\":1},\"correctness\":{\"comparator\":\"not_asserted\"},\"operationSpecDigest\":\"DIGEST\"}", &p->operation);
	p->implementation = stream_citing(p, "ImplementationRevision", "{\"operation\":{\"specDigest\":\"DIGEST\"}}", &p->operation);
	p->protocol = stream_kind(p, "BenchmarkProtocol", "{\"measurement\":{\"timer\":\"cuda_events\"}}");
	p->environment = stream_kind(p, "ExecutionEnvironment", "{\"hardware\":{\"product\":\"GPU\"}}");
}

/* A new stream: the snapshot line of a file channel, all objects, and the case `liger`. */
static inline void stream_begin(struct place *p, const char *commit)
{
	buf_clear(&p->wire);
	p->line = 1;
	stream_snapshot(p, "committed", commit, "");
	stream_objects(p);
	p->one = stream_case(p, &liger);
}

static inline void stream_end(struct place *p)
{
	record_put_report(&p->wire, words("{\"rejected\":{},\"rows\":1,\"skipped\":{}}"));
}

/* ---- putting ---- */

static inline int put_wire(struct place *p, bool dry_run, struct put_totals *totals, struct err *e)
{
	struct store st;
	struct put_options options = {.dry_run = dry_run};
	int fd = memfd_create("wire", MFD_CLOEXEC);
	*totals = (struct put_totals){0};
	*e = (struct err){0};
	assert_true(fd >= 0);
	assert_int_equal(write(fd, p->wire.data, p->wire.len), (ssize_t)p->wire.len);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	int rc = store_open(&st, p->root, STORE_WRITE, e);
	if (rc == 0)
		rc = put_stream(&st, fd, &options, totals, e);
	store_close(&st);
	close(fd);
	return rc;
}

static inline struct put_totals put_well(struct place *p)
{
	struct put_totals totals;
	struct err e;
	if (put_wire(p, false, &totals, &e))
		fail_msg("%s:%u: %s", e.file, e.line, e.text);
	return totals;
}

#endif
