#include "core/file.h"

#include <dirent.h>
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

/* ---- temporaries ---- */

/* A path without slashes at its end, on the heap. */
static char *without_slashes(const char *path)
{
	char *out = xstrdup(path);
	for (size_t len = strlen(out); len > 1 && out[len - 1] == '/';)
		out[--len] = '\0';
	return out;
}

static const char TEMPORARY[] = ".tmp.";

static char *temporary_of(const char *path)
{
	struct buf b = {0};
	char *plain = without_slashes(path);
	buf_printf(&b, "%s%s%ld", plain, TEMPORARY, (long)getpid());
	free(plain);
	return b.data;
}

/* `<base>.tmp.<digits>`; any base when it is "". */
static bool is_temporary(const char *name, const char *base)
{
	const char *mark = NULL;
	for (const char *p = name; (p = strstr(p, TEMPORARY)); p++)
		mark = p;
	if (!mark || (*base && (strlen(base) != (size_t)(mark - name) || memcmp(base, name, strlen(base)) != 0)))
		return false;
	const char *digits = mark + sizeof TEMPORARY - 1;
	size_t len = strspn(digits, "0123456789");
	return len > 0 && digits[len] == '\0';
}

/* Locks what a sweep might take for nobody's. False when a sweep was quicker and it is gone. Where locks do not work, sweeps cannot
 * lock either. */
static bool hold(int fd)
{
	struct stat st;
	flock(fd, LOCK_EX);
	return fstat(fd, &st) == 0 && st.st_nlink > 0;
}

static void sweep_one(const char *path)
{
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
		file_remove_tree(path);
	if (fd >= 0)
		close(fd);
}

/* `base`: see is_temporary. */
static void sweep(const char *directory, const char *base)
{
	struct buf child = {0};
	DIR *d = opendir(directory);
	for (struct dirent *item; d && (item = readdir(d));) {
		buf_clear(&child);
		buf_printf(&child, "%s/%s", directory, item->d_name);
		if (is_temporary(item->d_name, base))
			sweep_one(child.data);
	}
	if (d)
		closedir(d);
	buf_fini(&child);
}

void file_sweep_directory(const char *directory)
{
	sweep(directory, "");
}

void file_sweep(const char *path)
{
	char *directory = without_slashes(path), *slash = strrchr(directory, '/');
	if (slash)
		*slash = '\0';
	sweep(!slash ? "." : *directory ? directory : "/", slash ? slash + 1 : directory);
	free(directory);
}

int file_begin_directory(const char *path, struct buf *out, struct err *e)
{
	char *temporary = temporary_of(path);
	buf_clear(out);
	buf_str(out, temporary);
	free(temporary);
	for (;;) {
		if (file_make_dirs(out->data, e))
			return -1;
		int fd = open(out->data, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd >= 0 && hold(fd))
			return fd;
		if (fd < 0 && errno != ENOENT) {
			err_errno(e, out->data, "cannot open");
			file_remove_tree(out->data);
			return -1;
		}
		if (fd >= 0)
			close(fd);
	}
}

static int open_temporary(const char *path, mode_t mode)
{
	int fd;
	while ((fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode)) >= 0 && !hold(fd))
		close(fd);
	return fd;
}

struct file_out *file_begin(const char *path, mode_t mode, struct err *e)
{
	struct file_out *f = xmalloc(sizeof *f);
	f->path = xstrdup(path);
	f->temporary = temporary_of(path);
	f->fd = open_temporary(f->temporary, mode);
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

int file_sync_directory(const char *path, struct err *e)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rc = fd < 0 || fsync(fd) != 0 ? err_errno(e, path, "cannot sync directory") : 0;
	if (fd >= 0)
		close(fd);
	return rc;
}

int file_sync_parent(const char *path, struct err *e)
{
	char *directory = without_slashes(path), *slash = strrchr(directory, '/');
	if (slash)
		slash[slash == directory] = '\0';
	int rc = file_sync_directory(slash ? directory : ".", e);
	free(directory);
	return rc;
}

/* Renames, then closes: until it has its name the lock must hold. */
static int put_in_place(struct file_out *f, struct err *e)
{
	if (rename(f->temporary, f->path) != 0)
		return err_errno(e, f->path, "cannot rename into place");
	free(f->temporary);
	f->temporary = NULL; /* renamed: nothing to remove */
	int rc = close(f->fd) == 0 ? 0 : err_errno(e, f->path, "cannot close");
	f->fd = -1;
	return rc;
}

int file_commit(struct file_out *f, struct err *e)
{
	int rc = 0;
	if (fsync(f->fd) != 0)
		rc = err_errno(e, f->temporary, "cannot sync");
	if (rc == 0)
		rc = put_in_place(f, e);
	if (rc == 0)
		rc = file_sync_parent(f->path, e);
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
	if (rc == 0)
		rc = put_in_place(f, e);
	*written = rc == 0;
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
	return access(path, F_OK) == 0 || err_code_of(errno) != ERR_NOTFOUND;
}

int file_move_new(const char *from, const char *to, struct err *e)
{
	int rc = renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE);
	if (rc != 0 && errno == EINVAL && !file_exists(to)) /* a file system that cannot promise it */
		rc = rename(from, to);
	if (rc != 0 && errno == EEXIST)
		return err_at(e, ERR_USAGE, to, 0, 0, "exists already; give a new name");
	if (rc != 0)
		return err_errno(e, to, "cannot rename into place");
	if (file_sync_parent(to, e) == 0)
		return 0;
	rename(to, from); /* what may not last is not there */
	return -1;
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

int file_end_directory(int held, struct buf *temporary, const char *path, int rc, struct err *e)
{
	if (rc == 0)
		rc = file_sync_directory(temporary->data, e);
	if (rc == 0)
		rc = file_move_new(temporary->data, path, e);
	if (rc && held >= 0)
		file_remove_tree(temporary->data);
	if (held >= 0)
		close(held);
	buf_fini(temporary);
	return rc ? -1 : 0;
}

bool file_same_time(const char *path, const char *other)
{
	struct stat a, b;
	return stat(path, &a) == 0 && stat(other, &b) == 0 && a.st_mtim.tv_sec == b.st_mtim.tv_sec && a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
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
