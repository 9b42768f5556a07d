#include "store/backup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/file.h"

enum { FILE_MAX = 1 << 30, DEPTH_MAX = 4 };

static int copy_file(const char *from, const char *to, mode_t mode, struct err *e)
{
	struct buf bytes = {0};
	int rc = file_read(from, FILE_MAX, &bytes, e);
	if (rc == 0)
		rc = file_write(to, bytes.data, bytes.len, mode, e);
	buf_fini(&bytes);
	return rc;
}

static int copy_tree(const char *from, const char *to, int depth, struct err *e)
{
	DIR *d = opendir(from);
	struct dirent *item;
	int rc = d ? file_make_dirs(to, e) : 0; /* not every store has every folder */
	while (d && rc == 0 && (item = readdir(d))) {
		struct buf source = {0}, target = {0};
		struct stat info;
		buf_printf(&source, "%s/%s", from, item->d_name);
		buf_printf(&target, "%s/%s", to, item->d_name);
		if (item->d_name[0] != '.' && !strstr(item->d_name, ".tmp.") && stat(source.data, &info) == 0) {
			if (S_ISDIR(info.st_mode) && depth < DEPTH_MAX)
				rc = copy_tree(source.data, target.data, depth + 1, e);
			else if (S_ISREG(info.st_mode))
				rc = copy_file(source.data, target.data, info.st_mode & 0777, e);
		}
		buf_fini(&source);
		buf_fini(&target);
	}
	if (d)
		closedir(d);
	return rc;
}

static int copy_catalog(struct store *st, const char *directory, struct err *e)
{
	struct buf path = {0};
	buf_printf(&path, "%s/data.mdb", directory);
	int fd = open(path.data, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644), rc = 0;
	if (fd < 0)
		rc = err_errno(e, path.data, "cannot create");
	int copied = rc == 0 ? mdb_env_copyfd2(st->env, fd, MDB_CP_COMPACT) : 0;
	if (copied)
		rc = store_error(st, copied, "cannot copy", e);
	if (rc == 0 && fsync(fd) != 0)
		rc = err_errno(e, path.data, "cannot sync");
	if (fd >= 0)
		close(fd);
	buf_fini(&path);
	return rc;
}

/* Removes what a backup that failed has made. */
static void remove_tree(const char *path, int depth)
{
	DIR *d = opendir(path);
	struct dirent *item;
	while (d && depth < DEPTH_MAX + 2 && (item = readdir(d))) {
		struct buf child = {0};
		if (strcmp(item->d_name, ".") == 0 || strcmp(item->d_name, "..") == 0)
			continue;
		buf_printf(&child, "%s/%s", path, item->d_name);
		if (unlink(child.data) != 0)
			remove_tree(child.data, depth + 1);
		buf_fini(&child);
	}
	if (d)
		closedir(d);
	rmdir(path);
}

static int sync_directory(const char *path, struct err *e)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rc = fd < 0 || fsync(fd) != 0 ? err_errno(e, path, "cannot sync directory") : 0;
	if (fd >= 0)
		close(fd);
	return rc;
}

/* Files that are kept for good: fetched bytes, and what reruns were imported from (rerun.c). */
static int copy_kept(struct store *st, const char *directory, struct err *e)
{
	static const char *const folders[] = {"snapshots", "evidence", "samples"};
	int rc = 0;
	for (size_t i = 0; i < sizeof folders / sizeof *folders && rc == 0; i++) {
		struct buf from = {0}, to = {0};
		buf_printf(&from, "%s/%s", st->directory, folders[i]);
		buf_printf(&to, "%s/%s", directory, folders[i]);
		rc = copy_tree(from.data, to.data, 0, e);
		buf_fini(&from);
		buf_fini(&to);
	}
	return rc;
}

int backup_store(struct store *st, const char *to, struct err *e)
{
	struct buf temporary = {0};
	if (file_exists(to))
		return err_at(e, ERR_USAGE, to, 0, 0, "exists already; a backup wants a new name");
	buf_printf(&temporary, "%s.tmp.%ld", to, (long)getpid());
	int rc = file_make_dirs(temporary.data, e);
	if (rc == 0)
		rc = copy_catalog(st, temporary.data, e);
	if (rc == 0)
		rc = copy_kept(st, temporary.data, e);
	if (rc == 0)
		rc = sync_directory(temporary.data, e);
	if (rc == 0 && rename(temporary.data, to) != 0)
		rc = err_errno(e, to, "cannot rename into place");
	if (rc)
		remove_tree(temporary.data, 0);
	buf_fini(&temporary);
	return rc;
}
