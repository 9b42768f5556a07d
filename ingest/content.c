#include "ingest/content.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int content_open(struct content_reader *r, const struct content *c, struct err *e)
{
	struct stat st;
	*r = (struct content_reader){.fd = -1, .path = c->path, .rest = c->memory};
	if (!c->path)
		return 0;
	r->fd = open(c->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (r->fd < 0)
		return err_errno(e, c->path, "cannot open");
	int rc = fstat(r->fd, &st) != 0 ? err_errno(e, c->path, "cannot stat")
	       : S_ISREG(st.st_mode)    ? 0
					: err_at(e, ERR_DATA, c->path, 0, 0, "not a regular file");
	if (rc) {
		content_close(r);
		return rc;
	}
	buf_reserve(&r->block, CONTENT_BLOCK);
	return 0;
}

int content_next(struct content_reader *r, size_t max, struct slice *block, struct err *e)
{
	if (r->fd < 0) {
		*block = (struct slice){r->rest.data, r->rest.len < max ? r->rest.len : max};
		r->rest.data += block->len;
		r->rest.len -= block->len;
		return 0;
	}
	ssize_t got;
	do
		got = read(r->fd, r->block.data, max < CONTENT_BLOCK ? max : CONTENT_BLOCK);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return err_errno(e, r->path, "cannot read");
	*block = (struct slice){r->block.data, (size_t)got};
	return 0;
}

void content_close(struct content_reader *r)
{
	if (r->fd >= 0)
		close(r->fd);
	r->fd = -1;
	buf_fini(&r->block);
}

int content_digest(const struct content *c, struct digest *digest, int64_t *size_bytes, struct err *e)
{
	struct content_reader r;
	struct slice block;
	if (content_open(&r, c, e))
		return -1;
	struct digest_stream *stream = digest_stream_new();
	int rc;
	*size_bytes = 0;
	while ((rc = content_next(&r, CONTENT_BLOCK, &block, e)) == 0 && block.len > 0) {
		digest_stream_add(stream, block.data, block.len);
		*size_bytes += (int64_t)block.len;
	}
	*digest = digest_stream_end(stream);
	content_close(&r);
	return rc;
}

static bool compare(struct content_reader *ours, struct content_reader *theirs)
{
	struct slice wanted, part;
	struct err ignored = {0};
	for (;;) {
		if (content_next(theirs, CONTENT_BLOCK, &wanted, &ignored))
			return false;
		if (wanted.len == 0)
			return content_next(ours, 1, &part, &ignored) == 0 && part.len == 0;
		for (; wanted.len > 0; wanted.data += part.len, wanted.len -= part.len)
			if (content_next(ours, wanted.len, &part, &ignored) || part.len == 0 ||
			    memcmp(part.data, wanted.data, part.len) != 0)
				return false;
	}
}

bool content_same_as(const struct content *c, int64_t size_bytes, const char *path)
{
	struct content_reader ours, theirs;
	struct content other = {.path = path};
	struct err ignored = {0};
	struct stat st;
	if (stat(path, &st) != 0 || st.st_size != size_bytes || content_open(&theirs, &other, &ignored))
		return false;
	bool same = false;
	if (content_open(&ours, c, &ignored) == 0) {
		same = compare(&ours, &theirs);
		content_close(&ours);
	}
	content_close(&theirs);
	return same;
}
