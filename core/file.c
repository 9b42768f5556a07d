#include "core/file.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

struct file_out {
	int fd;
	char *path, *temporary;
};

int file_read(const char *path, size_t max, struct buf *out, struct err *e)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_errno(e, path, "cannot open");
	size_t start = out->len;
	for (;;) {
		buf_reserve(out, 64 * 1024);
		ssize_t got = read(fd, out->data + out->len, 64 * 1024);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0) {
			out->data[out->len] = '\0';
			int rc = got < 0 ? err_errno(e, path, "cannot read") : 0;
			close(fd);
			return rc;
		}
		out->len += (size_t)got;
		if (out->len - start > max) {
			close(fd);
			return err_at(e, ERR_DATA, path, 0, 0, "larger than the limit of %zu bytes", max);
		}
	}
}

int file_write_all(int fd, const void *data, size_t len, const char *name, struct err *e)
{
	const char *p = data;
	while (len > 0) {
		ssize_t put = write(fd, p, len);
		if (put < 0 && errno == EINTR)
			continue;
		if (put < 0)
			return err_errno(e, name, "cannot write");
		p += put;
		len -= (size_t)put;
	}
	return 0;
}

static char *text_of(const char *format, const char *path)
{
	struct buf b = {0};
	buf_printf(&b, "%s%s%ld", path, format, (long)getpid());
	return b.data;
}

struct file_out *file_begin(const char *path, mode_t mode, struct err *e)
{
	struct file_out *f = xmalloc(sizeof *f);
	f->path = xstrdup(path);
	f->temporary = text_of(".tmp.", path);
	f->fd = open(f->temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
	if (f->fd >= 0 && fchmod(f->fd, mode) == 0)
		return f;
	err_errno(e, f->temporary, "cannot create");
	file_abort(f);
	return NULL;
}

int file_add(struct file_out *f, const void *data, size_t len, struct err *e)
{
	return file_write_all(f->fd, data, len, f->temporary, e);
}

/* A path without slashes at its end, on the heap. */
static char *without_slashes(const char *path)
{
	char *out = xstrdup(path);
	for (size_t len = strlen(out); len > 1 && out[len - 1] == '/';)
		out[--len] = '\0';
	return out;
}

int file_sync_directory(const char *path, struct err *e)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rc = fd < 0 || fsync(fd) != 0 ? err_errno(e, path, "cannot sync directory") : 0;
	if (fd >= 0)
		close(fd);
	return rc;
}

static int sync_directory_of(const char *path, struct err *e)
{
	char *directory = without_slashes(path), *slash = strrchr(directory, '/');
	if (slash)
		slash[slash == directory] = '\0';
	int rc = file_sync_directory(slash ? directory : ".", e);
	free(directory);
	return rc;
}

int file_commit(struct file_out *f, struct err *e)
{
	int rc = 0;
	if (fsync(f->fd) != 0)
		rc = err_errno(e, f->temporary, "cannot sync");
	if (close(f->fd) != 0 && rc == 0)
		rc = err_errno(e, f->temporary, "cannot close");
	f->fd = -1;
	if (rc == 0 && rename(f->temporary, f->path) != 0)
		rc = err_errno(e, f->path, "cannot rename into place");
	if (rc == 0) {
		rc = sync_directory_of(f->path, e);
		free(f->temporary);
		f->temporary = NULL; /* renamed: nothing to remove */
	}
	file_abort(f);
	return rc;
}

int file_commit_as(struct file_out *f, const char *path, struct err *e)
{
	free(f->path);
	f->path = xstrdup(path);
	return file_commit(f, e);
}

void file_abort(struct file_out *f)
{
	if (!f)
		return;
	if (f->fd >= 0)
		close(f->fd);
	if (f->temporary)
		unlink(f->temporary);
	free(f->temporary);
	free(f->path);
	free(f);
}

int file_write(const char *path, const void *data, size_t len, mode_t mode, struct err *e)
{
	struct file_out *f = file_begin(path, mode, e);
	if (!f)
		return -1;
	if (file_add(f, data, len, e)) {
		file_abort(f);
		return -1;
	}
	return file_commit(f, e);
}

/* Whether a file holds exactly these bytes; one that cannot be read does not. */
static bool holds(const char *path, const void *data, size_t len)
{
	struct stat st;
	struct buf held = {0};
	struct err ignored = {0};
	bool same = stat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == (off_t)len && file_read(path, len, &held, &ignored) == 0 &&
		    held.len == len && (len == 0 || memcmp(held.data, data, len) == 0);
	buf_fini(&held);
	return same;
}

int file_refresh(const char *path, const void *data, size_t len, mode_t mode, bool *written, struct err *e)
{
	*written = false;
	if (holds(path, data, len))
		return 0;
	struct file_out *f = file_begin(path, mode, e);
	if (!f)
		return -1;
	int rc = file_add(f, data, len, e);
	if (close(f->fd) != 0 && rc == 0)
		rc = err_errno(e, f->temporary, "cannot close");
	f->fd = -1;
	if (rc == 0 && rename(f->temporary, f->path) != 0)
		rc = err_errno(e, f->path, "cannot rename into place");
	if (rc == 0) {
		free(f->temporary);
		f->temporary = NULL; /* renamed: nothing to remove */
		*written = true;
	}
	file_abort(f);
	return rc;
}

static int make_dir(const char *path, struct err *e)
{
	if (mkdir(path, 0755) == 0)
		return chmod(path, 0755) == 0 ? 0 : err_errno(e, path, "cannot set mode of directory");
	return errno == EEXIST ? 0 : err_errno(e, path, "cannot make directory");
}

int file_make_dirs(const char *path, struct err *e)
{
	char *copy = xstrdup(path);
	int rc = 0;
	for (char *p = copy + 1; rc == 0 && *p; p++)
		if (*p == '/') {
			*p = '\0';
			rc = make_dir(copy, e);
			*p = '/';
		}
	if (rc == 0)
		rc = make_dir(copy, e);
	free(copy);
	return rc;
}

bool file_exists(const char *path)
{
	return access(path, F_OK) == 0;
}

char *file_beside(const char *path)
{
	struct buf out = {0};
	char *plain = without_slashes(path);
	buf_printf(&out, "%s.tmp.%ld", plain, (long)getpid());
	free(plain);
	return out.data;
}

int file_move_new(const char *from, const char *to, struct err *e)
{
	int rc = renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE);
	if (rc != 0 && errno == EINVAL && !file_exists(to)) /* a file system that cannot promise it */
		rc = rename(from, to);
	if (rc != 0 && errno == EEXIST)
		return err_at(e, ERR_USAGE, to, 0, 0, "exists already; give a new name");
	return rc != 0 ? err_errno(e, to, "cannot rename into place") : sync_directory_of(to, e);
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *ftw)
{
	(void)info;
	(void)type;
	(void)ftw;
	remove(path);
	return 0;
}

void file_remove_tree(const char *path)
{
	nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

bool file_newer(const char *path, const char *other)
{
	struct stat a, b;
	if (stat(path, &a) != 0)
		return false;
	if (stat(other, &b) != 0 || a.st_mtim.tv_sec > b.st_mtim.tv_sec)
		return true;
	return a.st_mtim.tv_sec == b.st_mtim.tv_sec && a.st_mtim.tv_nsec > b.st_mtim.tv_nsec;
}

int file_lock(const char *path, struct err *e)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0)
		return err_errno(e, path, "cannot open lock");
	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		return fd;
	if (errno == EWOULDBLOCK)
		err_at(e, ERR_TEMP, path, 0, 0, "another run holds the lock; try again when it has ended");
	else
		err_errno(e, path, "cannot lock");
	close(fd);
	return -1;
}

void file_hold_streams(void)
{
	int fd;
	do
		fd = open("/dev/null", O_RDONLY);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

int file_flush_stdout(struct err *e)
{
	errno = 0;
	if (fflush(stdout) == 0 && !ferror(stdout))
		return 0;
	if (errno == EPIPE)
		_exit(128 + SIGPIPE);
	return err_set(e, ERR_IO, "cannot write to standard output: %s", errno ? strerror(errno) : "write failed");
}
