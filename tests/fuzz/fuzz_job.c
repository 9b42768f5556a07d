/* Job lines, as a GPU host reads them: what is accepted lies within what the kernels take. When the first byte is odd the rest is a
 * line, else edits of the first one in the corpus. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "core/json.h"
#include "fuzz.h"
#include "verify/job.h"
#include "verify/light.h"
#include "verify/manifest.h"

static void check_job(const struct job *j, struct arena *a)
{
	struct object o;
	struct err e = {0};
	must(j->id && j->nonce && j->policy && j->external_id && j->kernel && j->provider && j->product, "a job is read whole");
	must(j->reported.median_ns > 0 && isfinite(j->reported.median_ns), "a job says what the record reports");
	must(j->wall_seconds > 0 && j->memory_bytes >= 0, "a job has limits");
	must(job_title(j, a)[0] != '\0', "a job has a title");
	must(manifest_implementation(j, a, &o, &e) == 0 && manifest_protocol(j->pass, j->by_child, a, &o, &e) == 0, "a job has an implementation and a protocol");
}

static json_t *usual(void)
{
	static json_t *base;
	struct buf text = {0};
	struct err e = {0};
	if (!base)
		must(file_read("tests/fuzz/corpus/job/usual", 1 << 20, &text, &e) == 0 &&
			     (base = json_load_text(text.data + 1, text.len - 1, "job", &e)) != NULL,
		     "the corpus has a job (run from the top of the tree)");
	buf_fini(&text);
	return base;
}

static void read_job(struct slice line)
{
	struct arena a = {0};
	struct job j = {0};
	struct err e = {0};
	int rc = job_read(line, "input", 1, &a, &j, &e);
	must_agree(rc != 0, &e);
	must(rc == 0 || e.code == ERR_DATA || e.code == ERR_UNAVAILABLE, "a line is refused as input, or as not for this program");
	if (rc == 0)
		check_job(&j, &a);
	arena_fini(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct feed feed = {data, size};
	if (feed_byte(&feed) % 2) {
		read_job(feed_rest(&feed));
		return 0;
	}
	char *text = fuzz_edit(usual(), &feed);
	read_job(slice_of(text));
	free(text);
	return 0;
}
