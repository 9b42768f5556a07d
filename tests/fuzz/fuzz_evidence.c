/* Evidence as an auditor reads it: a statement is replayed, or refused in words. Also what it says, signed, brought into a store. */
#include <string.h>

#include "fuzz.h"
#include "verify/evidence.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena a = {0};
	struct replay r = {0};
	struct err e = {0};
	int rc = evidence_replay((struct slice){(const char *)data, size}, NULL, "input", 1, &a, &r, &e);
	must_agree(rc != 0, &e);
	must(rc == 0 || e.code == ERR_DATA, "evidence that does not hold is refused as input");
	if (rc == 0) {
		must(r.title && r.external_id && r.batch, "a replay is told whole");
		must(r.said == r.found, "evidence says the verdict that its inputs give");
		must(!r.from_samples, "without samples nothing is recomputed from them");
	}
	arena_fini(&a);
	return 0;
}
