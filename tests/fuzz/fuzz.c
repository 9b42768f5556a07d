#include "fuzz.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/json.h"
#include "normalize/build.h"

void must(bool holds, const char *sentence)
{
	if (holds)
		return;
	fprintf(stderr, "fuzz: does not hold: %s\n", sentence);
	abort();
}

void must_agree(bool failed, const struct err *e)
{
	must(failed == (e->code != ERR_NONE), "a failure has an error, and a success none");
	must(!failed || e->text[0], "an error has words");
}

uint8_t feed_byte(struct feed *f)
{
	if (f->left == 0)
		return 0;
	f->left--;
	return *f->at++;
}

uint64_t feed_u64(struct feed *f)
{
	uint64_t value = 0;
	for (unsigned i = 0; i < 8; i++)
		value |= (uint64_t)feed_byte(f) << 8 * i;
	return value;
}

struct slice feed_line(struct feed *f)
{
	const uint8_t *end = f->left ? memchr(f->at, '\n', f->left) : NULL;
	struct slice line = {(const char *)f->at, end ? (size_t)(end - f->at) : f->left};
	size_t used = line.len + (end != NULL);
	f->left -= used;
	f->at = used ? f->at + used : f->at;
	return line;
}

struct slice feed_rest(struct feed *f)
{
	struct slice rest = {(const char *)f->at, f->left};
	f->left = 0;
	return rest;
}

/* Replaces the value at a place; NULL takes it out. Returns whether it was there. */
static bool replace(json_t *in, unsigned *place, json_t *by)
{
	const char *name;
	json_t *value;
	size_t i;
	void *next;
	json_object_foreach_safe(in, next, name, value) {
		if ((*place)-- == 0)
			return (by ? json_object_set(in, name, by) : json_object_del(in, name)) == 0;
		if (replace(value, place, by))
			return true;
	}
	json_array_foreach(in, i, value) {
		if ((*place)-- == 0)
			return (by ? json_array_set(in, i, by) : json_array_remove(in, i)) == 0;
		if (replace(value, place, by))
			return true;
	}
	return false;
}

char *fuzz_edit(const json_t *base, struct feed *edits)
{
	json_t *tree = json_deep_copy(base);
	while (edits->left) {
		struct err ignored = {0};
		unsigned place = (unsigned)feed_byte(edits) << 8;
		place |= feed_byte(edits);
		struct slice text = feed_line(edits);
		json_t *by = text.len ? json_load_text(text.data, text.len, "edit", &ignored) : NULL;
		if (by || text.len == 0)
			replace(tree, &place, by);
		json_decref(by);
	}
	char *text = json_dumps(tree, JSON_ENCODE_ANY);
	json_decref(tree);
	must(text != NULL, "an edited text can be written");
	return text;
}

int fuzz_file(const void *data, size_t len, char path[32])
{
	int fd = memfd_create("input", MFD_CLOEXEC);
	must(fd >= 0 && (len == 0 || write(fd, data, len) == (ssize_t)len) && lseek(fd, 0, SEEK_SET) == 0, "there is room for the input");
	snprintf(path, 32, "/proc/self/fd/%d", fd);
	return fd;
}

void fuzz_read(int fd, struct buf *out)
{
	off_t size = lseek(fd, 0, SEEK_END);
	out->len = 0;
	buf_reserve(out, (size_t)size);
	must(pread(fd, out->data, (size_t)size, 0) == size, "what was written can be read");
	out->len = (size_t)size;
}

static char directory[40];

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static void remove_directory(void)
{
	nftw(directory, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

const char *fuzz_directory(void)
{
	if (directory[0])
		return directory;
	strcpy(directory, access("/dev/shm", W_OK) == 0 ? "/dev/shm/ki-fuzz.XXXXXX" : "/tmp/ki-fuzz.XXXXXX");
	must(mkdtemp(directory) != NULL, "there is a place for files");
	atexit(remove_directory);
	return directory;
}

const struct curate *fuzz_config(void)
{
	static struct curate *c;
	struct err e = {0};
	if (!c) {
		must((c = curate_new("config", &e)) != NULL, "config/ loads (run from the top of the tree)");
		build_tables(c);
	}
	return c;
}
