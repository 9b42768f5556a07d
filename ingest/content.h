/* Bytes on their way to a snapshot: a fetched body in memory, or a local file that is read in blocks, so that memory does not
 * grow with the file. */
#ifndef KI_INGEST_CONTENT_H
#define KI_INGEST_CONTENT_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/digest.h"
#include "core/err.h"

struct content {
	const char *path;    /* a file, or NULL */
	struct slice memory; /* used when `path` is NULL */
};

enum { CONTENT_BLOCK = 256 * 1024 };

/* Reading: open, then blocks of at most `max` bytes until one of length 0, then close. A block is valid until the next call. */
struct content_reader {
	int fd; /* -1 for memory */
	const char *path;
	struct slice rest;
	struct buf block;
};
int content_open(struct content_reader *r, const struct content *c, struct err *e);
int content_next(struct content_reader *r, size_t max, struct slice *block, struct err *e);
void content_close(struct content_reader *r);

/* Digest and size of the whole. ERR_NOTFOUND, ERR_NOPERM, ERR_IO as the system says; ERR_DATA when the path is no regular file. */
int content_digest(const struct content *c, struct digest *digest, int64_t *size_bytes, struct err *e);
/* True when the file at `path` holds exactly these bytes; false also when it is absent or unreadable. */
bool content_same_as(const struct content *c, int64_t size_bytes, const char *path);

#endif
