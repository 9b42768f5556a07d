/* Lines on the wire, as the store reads them: what is read is written again as the same bytes, and bodies too. Also the source
 * lines that ki-ingest hands to ki-normalize. */
#include <math.h>
#include <string.h>

#include "core/json.h"
#include "fuzz.h"
#include "normalize/record.h"
#include "normalize/source.h"

static void write_again(const struct record *r, struct buf *out)
{
	switch (r->type) {
	case RECORD_SNAPSHOT: record_put_snapshot(out, &r->snapshot); break;
	case RECORD_OBJECT: record_put_object(out, r->body, &r->digest, r->metadata); break;
	case RECORD_CASE: record_put_case(out, r->body, &r->digest); break;
	case RECORD_RUN: record_put_run(out, r->body, &r->digest, &r->case_digest, r->labels, r->line); break;
	case RECORD_REPORT: record_put_report(out, r->body); break;
	}
}

static void check_case(struct slice body)
{
	struct arena a = {0};
	struct buf out = {0};
	struct case_parts parts;
	if (record_case_parse(body, &a, &parts)) {
		record_case_body(&parts, &out);
		struct case_parts again;
		must(record_case_parse((struct slice){out.data, out.len}, &a, &again), "a case that is written reads back");
		must(slice_same(parts.config, again.config) && slice_same(parts.x_value, again.x_value) &&
			     digest_cmp(&parts.workload, &again.workload) == 0, "a case reads back as it was");
	}
	buf_fini(&out);
	arena_fini(&a);
}

static void check_run(struct slice body)
{
	struct run_parts parts = {0};
	for (int m = METRIC_LATENCY; m <= METRIC_PEAK_MEMORY; m++)
		if (record_run_values(body, (enum metric)m, &parts) && record_units_fit((enum metric)m, parts.source_50))
			must(record_units((enum metric)m, parts.source_50) <= INT64_C(9007199254740991), "units that fit do");
}

static void check_source(struct slice line)
{
	struct arena a = {0};
	struct source s;
	struct err e = {0};
	int rc = source_parse(line, &a, &s, "input", 1, &e);
	must_agree(rc != 0, &e);
	if (rc == 0)
		must(s.path && s.file && s.channel && s.commit && s.entry && s.has_digest, "a source line is read whole");
	arena_fini(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice line = {(const char *)data, size};
	struct record r = {0};
	struct err e = {0};
	struct buf out = {0};
	int rc = record_read(line, &r, "input", 1, &e);
	must_agree(rc != 0, &e);
	if (rc == 0) {
		write_again(&r, &out);
		struct record again = {0};
		must(out.len > 0 && record_read((struct slice){out.data, out.len - 1}, &again, "again", 1, &e) == 0, "a line that is written reads back");
		must(again.type == r.type && slice_same(again.body, r.body) && again.line == r.line, "a line reads back as it was");
		if (r.type == RECORD_CASE)
			check_case(r.body);
		if (r.type == RECORD_RUN)
			check_run(r.body);
	}
	buf_fini(&out);
	check_source(line);
	check_case(line);
	check_run(line);
	return 0;
}
