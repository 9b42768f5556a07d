/* JSON documents: what loads has one canonical text, which loads again and is its own canonical text. */
#include <string.h>

#include "core/json.h"
#include "fuzz.h"

typedef json_t *load(const char *text, size_t len, const char *file, struct err *e);

static void canonical(const char *text, size_t len, load *loader)
{
	struct err e = {0};
	struct buf first = {0}, second = {0};
	json_t *value = loader(text, len, "input", &e), *again;
	must_agree(!value, &e);
	if (!value)
		return;
	must(json_canonical(value, &first, &e) == 0, "what the loader accepts has a canonical text");
	must(json_is_utf8(first.data, first.len), "canonical text is UTF-8");
	again = loader(first.data, first.len, "canonical", &e);
	must(again != NULL, "canonical text loads");
	must(json_canonical(again, &second, &e) == 0 && first.len == second.len && memcmp(first.data, second.data, first.len) == 0,
	     "canonical text is its own canonical text");
	json_decref(value);
	json_decref(again);
	buf_fini(&first);
	buf_fini(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	canonical((const char *)data, size, json_load_text);
	canonical((const char *)data, size, json_load_numbers_as_double);
	return 0;
}
