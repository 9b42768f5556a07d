/* Lines from a descriptor, read in blocks. */
#ifndef KI_STORE_LINES_H
#define KI_STORE_LINES_H

#include <stdbool.h>

#include "core/arena.h"
#include "core/err.h"

struct lines {
	int fd;
	const char *name; /* for messages */
	struct buf buf;
	size_t at;       /* where the next line starts in buf */
	unsigned number; /* of the line last returned, from 1 */
	bool ended, may_be_packed;
	struct unpacker *unpacker; /* of a packed stream */
};
void lines_init(struct lines *l, int fd);
/* The same for a stream that may be packed with zstd, which its first bytes tell. `name` outlives it. */
void lines_init_packed(struct lines *l, int fd, const char *name);
void lines_fini(struct lines *l);
/* 1 and a line without its newline (valid until the next call), 0 at the end, -1 with ERR_IO, or ERR_DATA for a line longer
 * than `max` or a last line without newline. */
int lines_next(struct lines *l, size_t max, struct slice *out, struct err *e);

#endif
