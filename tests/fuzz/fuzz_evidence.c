/* Evidence as an auditor reads it: a statement is replayed, or refused in words. When the first byte is odd the rest is a statement,
 * else edits of the first one in the corpus. Samples are not at hand: to recompute from them takes long. */
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "core/json.h"
#include "fuzz.h"
#include "verify/evidence.h"

static json_t *statement(void)
{
	static json_t *base;
	struct buf text = {0};
	struct err e = {0};
	if (!base)
		must(file_read("tests/fuzz/corpus/evidence/statement", 1 << 20, &text, &e) == 0 &&
			     (base = json_load_text(text.data + 1, text.len - 1, "statement", &e)) != NULL,
		     "the corpus has a statement (run from the top of the tree)");
	buf_fini(&text);
	return base;
}

static void replay(struct slice payload)
{
	struct arena a = {0};
	struct replay r = {0};
	struct err e = {0};
	int rc = evidence_replay(payload, NULL, "input", 1, &a, &r, &e);
	must_agree(rc != 0, &e);
	must(rc == 0 || e.code == ERR_DATA, "evidence that does not hold is refused as input");
	if (rc == 0) {
		must(r.title && r.external_id && r.batch, "a replay is told whole");
		must(r.said == r.found, "evidence says the verdict that its inputs give");
		must(!r.from_samples, "without samples nothing is recomputed from them");
	}
	arena_fini(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct feed feed = {data, size};
	if (feed_byte(&feed) % 2) {
		replay(feed_rest(&feed));
		return 0;
	}
	char *text = fuzz_edit(statement(), &feed);
	replay(slice_of(text));
	free(text);
	return 0;
}
