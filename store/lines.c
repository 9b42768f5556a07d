#include "store/lines.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK = 256 * 1024 };

void lines_init(struct lines *l, int fd)
{
	*l = (struct lines){.fd = fd};
	buf_reserve(&l->buf, BLOCK);
}

void lines_fini(struct lines *l)
{
	buf_fini(&l->buf);
}

/* Moves the unread part to the front and reads another block behind it. */
static int fill(struct lines *l, struct err *e)
{
	ssize_t got;
	memmove(l->buf.data, l->buf.data + l->at, l->buf.len - l->at);
	l->buf.len -= l->at;
	l->at = 0;
	buf_reserve(&l->buf, BLOCK);
	do
		got = read(l->fd, l->buf.data + l->buf.len, BLOCK);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return err_errno(e, "standard input", "cannot read");
	l->ended = got == 0;
	l->buf.len += (size_t)got;
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
			return err_at(e, ERR_DATA, "standard input", l->number + 1, 0, "a line longer than %zu bytes", max);
		if (end) {
			*out = (struct slice){start, (size_t)(end - start)};
			l->at += out->len + 1;
			l->number++;
			return 1;
		}
		if (l->ended && held == 0)
			return 0;
		if (l->ended)
			return err_at(e, ERR_DATA, "standard input", l->number + 1, 0, "the last line was cut off");
		seen = held;
		if (fill(l, e))
			return -1;
	}
}
