#include "store/lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

enum { BLOCK = 256 * 1024 };

static const unsigned char magic[4] = {0x28, 0xb5, 0x2f, 0xfd}; /* RFC 8878 section 3.1.1 */

/* A packed stream: what was read of it, and how much of that is unpacked. */
struct unpacker {
	ZSTD_DCtx *zstd;
	ZSTD_inBuffer in;
	size_t hint; /* 0 at the end of a frame */
	char bytes[BLOCK];
};

void lines_init(struct lines *l, int fd)
{
	*l = (struct lines){.fd = fd, .name = "standard input"};
	buf_reserve(&l->buf, BLOCK);
}

void lines_init_packed(struct lines *l, int fd, const char *name)
{
	lines_init(l, fd);
	l->name = name;
	l->may_be_packed = true;
}

void lines_fini(struct lines *l)
{
	buf_fini(&l->buf);
	if (l->unpacker)
		ZSTD_freeDCtx(l->unpacker->zstd);
	free(l->unpacker);
}

static ssize_t read_block(struct lines *l, char *to, struct err *e)
{
	ssize_t got;
	do
		got = read(l->fd, to, BLOCK);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		err_errno(e, l->name, "cannot read");
	return got;
}

/* Unpacks another block to the end of the buffer. */
static int unpack_block(struct lines *l, struct err *e)
{
	struct unpacker *u = l->unpacker;
	ZSTD_outBuffer out = {l->buf.data + l->buf.len, BLOCK, 0};
	while (out.pos == 0 && !l->ended) {
		if (u->in.pos == u->in.size) {
			ssize_t got = read_block(l, u->bytes, e);
			if (got < 0)
				return -1;
			u->in = (ZSTD_inBuffer){u->bytes, (size_t)got, 0};
			l->ended = got == 0;
			if (l->ended && u->hint != 0)
				return err_at(e, ERR_DATA, l->name, 0, 0, "the packed file was cut off");
		}
		u->hint = l->ended ? 0 : ZSTD_decompressStream(u->zstd, &out, &u->in);
		if (ZSTD_isError(u->hint))
			return err_at(e, ERR_DATA, l->name, 0, 0, "the packed file is damaged: %s", ZSTD_getErrorName(u->hint));
	}
	l->buf.len += out.pos;
	return 0;
}

/* The first block tells whether the stream is packed. */
static void look_for_magic(struct lines *l)
{
	l->may_be_packed = false;
	if (memcmp(l->buf.data, magic, sizeof magic) != 0)
		return;
	l->unpacker = xcalloc(1, sizeof *l->unpacker);
	if (!(l->unpacker->zstd = ZSTD_createDCtx()))
		out_of_memory();
	memcpy(l->unpacker->bytes, l->buf.data, l->buf.len);
	l->unpacker->in = (ZSTD_inBuffer){l->unpacker->bytes, l->buf.len, 0};
	buf_clear(&l->buf);
}

/* Moves the unread part to the front and reads another block behind it. */
static int fill(struct lines *l, struct err *e)
{
	if (l->at)
		memmove(l->buf.data, l->buf.data + l->at, l->buf.len - l->at);
	l->buf.len -= l->at;
	l->at = 0;
	buf_reserve(&l->buf, BLOCK);
	if (l->unpacker)
		return unpack_block(l, e);
	ssize_t got = read_block(l, l->buf.data + l->buf.len, e);
	if (got < 0)
		return -1;
	l->ended = got == 0;
	l->buf.len += (size_t)got;
	if (l->may_be_packed && l->buf.len >= sizeof magic)
		look_for_magic(l);
	return 0;
}

int lines_next(struct lines *l, size_t max, struct slice *out, struct err *e)
{
	size_t seen = 0;
	for (;;) {
		const char *start = l->buf.data + l->at;
		size_t held = l->buf.len - l->at;
		const char *end = memchr(start + seen, '\n', held - seen);
		if ((end ? (size_t)(end - start) : held) > max)
			return err_at(e, ERR_DATA, l->name, l->number + 1, 0, "a line longer than %zu bytes", max);
		if (end) {
			*out = (struct slice){start, (size_t)(end - start)};
			l->at += out->len + 1;
			l->number++;
			return 1;
		}
		if (l->ended && held == 0)
			return 0;
		if (l->ended)
			return err_at(e, ERR_DATA, l->name, l->number + 1, 0, "the last line was cut off");
		seen = held;
		if (fill(l, e))
			return -1;
	}
}
