/* A dump of a store into a new one. What is taken gives the very dump that it came from, and a store that is whole; what is not leaves
 * nothing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/file.h"
#include "fuzz.h"
#include "store/check.h"
#include "store/dump.h"
#include "store/load.h"

static void read_store(const char *path, const uint8_t *data, size_t size)
{
	struct catalog c;
	struct check_totals totals;
	struct err e = {0};
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);
	must(catalog_open(&c, path, &e) == 0, "a store opens after an import");
	must(check_catalog(&c, stderr, &totals) == 0 && totals.problems == 0, "a store is whole after an import");
	must(dump_write(&c, out) == 0 && fclose(out) == 0, "an imported store can be dumped");
	must(len == size && memcmp(text, data, len) == 0, "the dump of an imported store is the dump it came from");
	catalog_close(&c);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct load_totals totals = {0};
	struct err e = {0};
	char path[64], input[32];
	bool packed = size >= 4 && memcmp(data, "\x28\xb5\x2f\xfd", 4) == 0;
	snprintf(path, sizeof path, "%s/loaded", fuzz_directory());
	int fd = fuzz_file(data, size, input);
	int rc = load_dump(path, fd, "input", &totals, &e);
	must_agree(rc != 0, &e);
	must(rc == 0 || e.code == ERR_DATA, "a bad dump is refused as input");
	must((rc == 0) == file_exists(path), "what is refused leaves nothing");
	if (rc == 0 && !packed)
		read_store(path, data, size);
	file_remove_tree(path);
	close(fd);
	return 0;
}
