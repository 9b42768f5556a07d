/* Runs one fuzz target over files: those named, and those in the directories named. For make test, with any compiler; a finding
 * ends the process. Prints how many inputs there were. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/file.h"
#include "core/log.h"
#include "fuzz.h"

enum { INPUT_MAX = 1 << 20 };

/* The target gets a copy of exactly the input's size, so that one byte too far is seen. */
static int run_file(const char *path, struct err *e)
{
	struct buf text = {0};
	if (file_read(path, INPUT_MAX, &text, e))
		return -1;
	uint8_t *copy = xmalloc(text.len);
	memcpy(copy, text.data, text.len);
	fprintf(stderr, "%s\n", path); /* the last one named is the one that failed */
	LLVMFuzzerTestOneInput(copy, text.len);
	free(copy);
	buf_fini(&text);
	return 0;
}

static int run_path(const char *path, unsigned *count, struct err *e)
{
	struct stat st;
	struct dirent **names;
	if (stat(path, &st) != 0)
		return err_errno(e, path, "cannot stat");
	if (S_ISREG(st.st_mode)) {
		++*count;
		return run_file(path, e);
	}
	int rc = 0, n = scandir(path, &names, NULL, alphasort);
	for (int i = 0; i < n; i++) {
		struct buf below = {0};
		buf_printf(&below, "%s/%s", path, names[i]->d_name);
		if (rc == 0 && names[i]->d_name[0] != '.')
			rc = run_path(below.data, count, e);
		buf_fini(&below);
		free(names[i]);
	}
	free(names);
	return rc;
}

int main(int argc, char **argv)
{
	struct err e = {0};
	unsigned count = 0;
	for (int i = 1; i < argc; i++)
		if (run_path(argv[i], &count, &e))
			return log_failure(&e);
	printf("%u\n", count);
	return 0;
}
