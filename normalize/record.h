/* The wire between stages: one canonical JSON object a line, and both ends of it.
 *
 * A stream holds, for each source file, one `snapshot` line, then records in which whatever a record cites comes before it,
 * then one `report` line. A file without its report line was cut off and must not be published.
 *
 *   {"channel":C,"commit":SHA,"config":DIGEST,"entry":E,"file":NAME,"provenance":{…},"sha256":DIGEST,"sizeBytes":N,"type":"snapshot","wire":1}
 *   {"body":{"apiVersion",…,"kind",…,"spec",…},"digest":DIGEST,"metadata":{…},"type":"object"}
 *   {"body":{…},"digest":DIGEST,"type":"case"}
 *   {"body":{"apiVersion",…,"kind":"BenchmarkRun","spec",…},"case":DIGEST,"digest":DIGEST,"labels":{…},"line":N,"type":"run"}
 *   {"report":{…},"type":"report"}
 *
 * `digest` is the SHA-256 of the body's bytes as they stand in the line. A case is our own record, not a manifest: everything
 * that all runs of one upstream key (kernel, provider, mode, metric, x_name, x_value, config string, gpu) share. Bodies of
 * runs made from upstream rows have one fixed layout, so they are written and read here without building a tree; runs of any
 * other layout travel as objects do and are read through jansson by their consumer.
 * Layout of manifests: manifests.md sections 1 to 3. */
#ifndef KI_NORMALIZE_RECORD_H
#define KI_NORMALIZE_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/digest.h"
#include "core/err.h"

#define RECORD_API_VERSION "kernelindex.dev/v1alpha1"
enum { RECORD_WIRE = 1, RECORD_LINE_MAX = 1 << 20 };

enum metric {
	METRIC_LATENCY,     /* source unit ms, stored unit ns */
	METRIC_PEAK_MEMORY, /* source unit MiB, stored unit bytes */
};
/* `latency` or `peak_memory`. */
const char *metric_name(enum metric m);
bool metric_parse(struct slice text, enum metric *out);

/* What varies between the runs of upstream rows. Slices point into memory of the caller (writer) or into the line (reader). */
struct run_parts {
	enum metric metric;
	struct digest implementation, workload, protocol, environment;
	struct slice benchmark;   /* `<first segment>/<mode>` */
	struct slice external_id; /* plain text, needs no JSON escape */
	double source_50;         /* as parsed from the CSV, ms or MiB; finite, above zero */
	double source_20, source_80; /* both NAN when the row lacks either */
	int64_t observed_ms;
};

/* Source value to stored integer: ms to ns, or MiB to bytes; to the nearest, ties upward (ECMAScript Math.round of the double
 * product). Valid when the result is at most 2^53 - 1; record_units_fit tells. */
int64_t record_units(enum metric m, double source);
bool record_units_fit(enum metric m, double source);

/* Appends the canonical identity body of a run. */
void record_run_body(const struct run_parts *run, struct buf *out);
/* Reads the time and the source values out of such a body; false when it has none. Looks at nothing else: whoever wants to know
 * whether a body has the fixed layout writes it again from what it should hold, and compares. */
bool record_run_values(struct slice body, enum metric m, struct run_parts *out);

/* A case body, flat and in this order on the wire. All slices are unescaped text on writing; after reading they point into
 * the arena given to record_case_parse. */
struct case_parts {
	struct slice benchmark;       /* `<first segment>/<mode>` */
	struct slice case_key;        /* axes sorted by name, then dtype: `hidden4096-rows2048-bf16` (and the model, if any) */
	struct slice config;          /* extra_benchmark_config_str as in the file */
	struct slice dtype;           /* bf16, fp16, fp32 */
	struct digest environment;
	struct slice external_prefix; /* external id up to and without the last `/` */
	struct slice gpu;             /* gpu_name as in the file */
	struct digest implementation;
	struct slice kernel;          /* kernel_name as in the file */
	enum metric metric;
	struct slice mode;            /* forward, backward, full, no-grad-forward */
	struct digest operation;
	struct slice operation_slug;  /* liger-rms-norm */
	struct slice operation_title; /* RMSNorm */
	struct digest project;
	struct digest protocol;
	struct slice provider;        /* after overrides */
	struct slice provider_title;
	struct slice rule;            /* which binding rule: its index in the list, for `ki config explain` */
	struct digest workload;
	struct slice workload_label;  /* manifests.md section 6: `seq = 2048 · batch = 4 · bf16` */
	struct slice x_label, x_name, x_value; /* as in the file */
};
void record_case_body(const struct case_parts *c, struct buf *out);
bool record_case_parse(struct slice body, struct arena *a, struct case_parts *out);

/* The comparison key of a case (manifests.md section 4): what its cohort is named by. `correctness` is the digest of the
 * canonical text {"correctness":<workload spec.correctness>}. */
struct digest record_comparison_key(const struct digest *operation, const struct digest *workload, const struct digest *protocol,
				    const struct digest *environment, const struct digest *correctness, enum metric metric);
/* The `correctness` digest of every workload made from upstream rows ({"comparator":"not_asserted"}). */
struct digest record_correctness_not_asserted(void);

/* Writers: append one line, newline included. `body`, `metadata`, `labels`, `report` and `provenance` are canonical JSON. */
void record_put_object(struct buf *out, struct slice body, const struct digest *digest, struct slice metadata);
void record_put_case(struct buf *out, struct slice body, const struct digest *digest);
void record_put_run(struct buf *out, struct slice body, const struct digest *digest, const struct digest *case_digest,
		    struct slice labels, unsigned line);
void record_put_report(struct buf *out, struct slice report);

struct snapshot_parts {
	struct slice channel; /* committed, cutile, cutedsl, gh-pages */
	struct slice commit;  /* 40 or 12 hex digits, or empty */
	struct slice config;  /* digest of the tables that bound the rows, `sha256:…`: the same file under other tables is news */
	struct slice entry;   /* gh-pages entry, or empty */
	struct slice file;    /* base name */
	struct slice provenance; /* canonical JSON object, or empty */
	struct digest sha256; /* of the file's bytes */
	int64_t size_bytes;
};
void record_put_snapshot(struct buf *out, const struct snapshot_parts *s);

/* Reader. Slices in the result point into the line; those of objects, cases, labels and reports are found by their braces and quotes, so
 * that whoever keeps them has to load them. ERR_DATA for anything that is not one of the lines above, with the column
 * where it went wrong. Digests are not recomputed here: the store does that. */
enum record_type { RECORD_SNAPSHOT, RECORD_OBJECT, RECORD_CASE, RECORD_RUN, RECORD_REPORT };
struct record {
	enum record_type type;
	struct slice body;     /* object, case, run: identity bytes; report: the report */
	struct digest digest;  /* object, case, run */
	struct slice metadata; /* object; `{}` when there is none */
	struct digest case_digest; /* run */
	struct slice labels;   /* run: canonical JSON object */
	unsigned line;         /* run: line in the source file */
	struct snapshot_parts snapshot;
};
int record_read(struct slice line, struct record *out, const char *name, unsigned number, struct err *e);

#endif
