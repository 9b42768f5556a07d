/* What fuzz targets share. A target is one file: LLVMFuzzerTestOneInput() hands the bytes to the real code and says with must()
 * what has to hold whatever they are. libFuzzer drives it (make fuzz); drive.c runs it over the committed inputs (make test). */
#ifndef KI_TESTS_FUZZ_H
#define KI_TESTS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "core/arena.h"
#include "core/err.h"
#include "normalize/curate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Ends the process, with the sentence on stderr, when it does not hold. */
void must(bool holds, const char *sentence);
/* An error was reported exactly when there was one: `failed` says what the function returned, `e` what it filled. */
void must_agree(bool failed, const struct err *e);

/* The input bit by bit. Past its end come zeros and empty slices. */
struct feed {
	const uint8_t *at;
	size_t left;
};
uint8_t feed_byte(struct feed *f);
uint64_t feed_u64(struct feed *f); /* 8 bytes, little-endian */
struct slice feed_line(struct feed *f); /* up to the next newline, which is dropped */
struct slice feed_rest(struct feed *f);

/* Edits of a JSON text: a line each, two bytes for a place and JSON that is put there, or nothing to take out what is there. Places
 * count the values of the text in its order. The result is on the heap. */
char *fuzz_edit(const json_t *base, struct feed *edits);

/* A file without a name that holds these bytes, at its start; its path, for code that opens what it reads. Close the descriptor. */
int fuzz_file(const void *data, size_t len, char path[32]);
/* All that a descriptor holds, from its start. Replaces `out`. */
void fuzz_read(int fd, struct buf *out);
/* config/ with its tables, loaded once. */
const struct curate *fuzz_config(void);
/* A directory in memory that lives until the process ends normally; libFuzzer's ends leave it under /dev/shm. */
const char *fuzz_directory(void);

#endif
