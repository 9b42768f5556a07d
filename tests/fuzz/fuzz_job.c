/* Job lines, as a GPU host reads them: what is accepted lies within what the kernels take. */
#include <math.h>
#include <string.h>

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
	must(manifest_implementation(j, a, &o, &e) == 0 && manifest_protocol(j->pass, a, &o, &e) == 0, "a job has an implementation and a protocol");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena a = {0};
	struct job j = {0};
	struct err e = {0};
	int rc = job_read((struct slice){(const char *)data, size}, "input", 1, &a, &j, &e);
	must_agree(rc != 0, &e);
	must(rc == 0 || e.code == ERR_DATA || e.code == ERR_UNAVAILABLE, "a line is refused as input, or as not for this program");
	if (rc == 0)
		check_job(&j, &a);
	arena_fini(&a);
	return 0;
}
