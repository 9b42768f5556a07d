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
#include "core/home.h"
#include "core/json.h"
#include "core/when.h"
#include "store/check.h"
#include "store/dump.h"
#include "store/pages.h"

enum { FILE_MAX = 1 << 30, DEPTH_MAX = 4, CLAIM_MAX = 1 << 16 };

static int copy_tree(const char *from, const char *to, int depth, struct err *e);

static int copy_file(const char *from, const char *to, mode_t mode, struct err *e)
{
	struct buf bytes = {0};
	int rc = file_read(from, FILE_MAX, &bytes, e);
	if (rc == 0)
		rc = file_write(to, bytes.data, bytes.len, mode, e);
	buf_fini(&bytes);
	return rc;
}

static int copy_item(const char *from, const char *to, int depth, struct err *e)
{
	struct stat info;
	if (stat(from, &info) != 0)
		return err_errno(e, from, "cannot stat");
	if (S_ISDIR(info.st_mode))
		return depth < DEPTH_MAX ? copy_tree(from, to, depth + 1, e) : 0;
	return S_ISREG(info.st_mode) ? copy_file(from, to, info.st_mode & 0777, e) : 0;
}

static int copy_tree(const char *from, const char *to, int depth, struct err *e)
{
	DIR *d = opendir(from);
	struct dirent *item;
	if (!d)
		return errno == ENOENT ? 0 : err_errno(e, from, "cannot read directory"); /* not every store has every folder */
	int rc = file_make_dirs(to, e);
	while (rc == 0 && (errno = 0, item = readdir(d))) {
		struct buf source = {0}, target = {0};
		buf_printf(&source, "%s/%s", from, item->d_name);
		buf_printf(&target, "%s/%s", to, item->d_name);
		if (item->d_name[0] != '.' && !strstr(item->d_name, ".tmp."))
			rc = copy_item(source.data, target.data, depth, e);
		buf_fini(&source);
		buf_fini(&target);
	}
	if (rc == 0 && errno)
		rc = err_errno(e, from, "cannot read directory");
	if (rc == 0)
		rc = file_sync_directory(to, e);
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

/* Files that are kept for good: fetched bytes, and what reruns were imported from (rerun.c). */
static const char *const kept_folders[] = {"snapshots", "evidence", "samples"};
enum { KEPT_FOLDERS = sizeof kept_folders / sizeof *kept_folders };

static int copy_kept(struct store *st, const char *directory, struct err *e)
{
	int rc = 0;
	for (size_t i = 0; i < KEPT_FOLDERS && rc == 0; i++) {
		struct buf from = {0}, to = {0};
		buf_printf(&from, "%s/%s", st->directory, kept_folders[i]);
		buf_printf(&to, "%s/%s", directory, kept_folders[i]);
		rc = copy_tree(from.data, to.data, 0, e);
		buf_fini(&from);
		buf_fini(&to);
	}
	return rc;
}

/* ---- what a backup claims to hold ---- */

struct kept_count {
	json_int_t files, size_bytes;
};

static int count_tree(const char *path, int depth, struct kept_count *count, struct err *e);

static int count_item(const char *path, int depth, struct kept_count *count, struct err *e)
{
	struct stat info;
	if (stat(path, &info) != 0)
		return err_errno(e, path, "cannot stat");
	if (S_ISDIR(info.st_mode))
		return depth < DEPTH_MAX ? count_tree(path, depth + 1, count, e) : 0;
	count->files += S_ISREG(info.st_mode);
	count->size_bytes += S_ISREG(info.st_mode) ? (json_int_t)info.st_size : 0;
	return 0;
}

static int count_tree(const char *path, int depth, struct kept_count *count, struct err *e)
{
	DIR *d = opendir(path);
	struct dirent *item;
	int rc = 0;
	if (!d)
		return errno == ENOENT ? 0 : err_errno(e, path, "cannot read directory");
	while (rc == 0 && (errno = 0, item = readdir(d))) {
		struct buf child = {0};
		buf_printf(&child, "%s/%s", path, item->d_name);
		if (item->d_name[0] != '.')
			rc = count_item(child.data, depth, count, e);
		buf_fini(&child);
	}
	if (rc == 0 && errno)
		rc = err_errno(e, path, "cannot read directory");
	closedir(d);
	return rc;
}

/* Works out what a copy holds: counts, the digest of its dump, its kept files. NULL when it cannot be read. The caller owns it. */
static json_t *claim_of(struct catalog *c)
{
	char text[DIGEST_TEXT + 1];
	struct digest d;
	uint64_t lines;
	struct kept_count kept = {0};
	int rc = dump_digest(c, &d, &lines);
	for (size_t i = 0; i < KEPT_FOLDERS && rc == 0; i++) {
		struct buf path = {0};
		buf_printf(&path, "%s/%s", c->st.directory, kept_folders[i]);
		rc = count_tree(path.data, 0, &kept, c->err);
		buf_fini(&path);
	}
	if (rc)
		return NULL;
	digest_text(&d, text);
	return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "dump", text, "dumpLines", (json_int_t)lines, "runs", (json_int_t)c->counts.runs,
			 "publications", (json_int_t)c->counts.publications, "entries", (json_int_t)c->counts.events, "schema", (json_int_t)c->counts.schema,
			 "keptFiles", kept.files, "keptBytes", kept.size_bytes);
}

static void claim_path(const char *directory, struct buf *out)
{
	buf_printf(out, "%s/backup.json", directory);
}

static int write_claim(const char *directory, struct err *e)
{
	struct catalog c;
	struct buf path = {0}, text = {0};
	char now[WHEN_TEXT + 1];
	int rc = catalog_open(&c, directory, e);
	json_t *claim = rc == 0 ? claim_of(&c) : NULL;
	catalog_close(&c);
	json_t *whole = claim ? json_pack("{s:s, s:s, s:s, s:o}", "type", "backup", "madeAt", (when_text(when_now_ms(), now), now), "program", KI_VERSION, "holds", claim)
			      : NULL;
	claim_path(directory, &path);
	rc = whole ? json_canonical(whole, &text, e) : -1;
	buf_char(&text, '\n');
	if (rc == 0)
		rc = file_write(path.data, text.data, text.len, 0644, e);
	buf_clear(&path);
	buf_printf(&path, "%s/lock.mdb", directory);
	unlink(path.data);
	json_decref(whole);
	buf_fini(&path);
	buf_fini(&text);
	return rc;
}

/* ---- rehearsing ---- */

static json_t *read_claim(const char *directory, struct err *e)
{
	struct buf path = {0}, text = {0};
	json_t *claim = NULL;
	claim_path(directory, &path);
	if (!file_exists(path.data))
		err_at(e, ERR_NOTFOUND, directory, 0, 0, "no backup.json: not a backup, or one of an older program; `ki check --store %s` proves what is there", directory);
	else if (file_read(path.data, CLAIM_MAX, &text, e) == 0)
		claim = json_load_text(text.data, text.len, path.data, e);
	buf_fini(&path);
	buf_fini(&text);
	return claim;
}

/* Says each difference between what is claimed and what is there. */
static unsigned compare_claims(const json_t *claimed, const json_t *there, FILE *out)
{
	const char *name;
	json_t *value;
	unsigned differ = json_is_object(claimed) ? 0 : 1;
	json_object_foreach((json_t *)there, name, value) {
		const json_t *wanted = json_object_get(claimed, name);
		if (wanted && json_equal((json_t *)wanted, value))
			continue;
		char *a = json_dumps(wanted, JSON_ENCODE_ANY), *b = json_dumps(value, JSON_ENCODE_ANY);
		fprintf(out, "rehearse: %s is %s, the backup claims %s\n", name, b, a ? a : "nothing of it");
		free(a);
		free(b);
		differ++;
	}
	return differ;
}

static int rehearse_catalog(struct catalog *c, const json_t *claim, FILE *out, struct check_totals *totals)
{
	if (check_catalog(c, out, totals))
		return -1;
	if (totals->problems)
		return err_at(c->err, ERR_CORRUPT, c->st.directory, 0, 0, "%llu problems", (unsigned long long)totals->problems);
	json_t *there = claim_of(c);
	unsigned differ = there ? compare_claims(json_object_get(claim, "holds"), there, out) : 0;
	json_decref(there);
	return differ ? err_at(c->err, ERR_CORRUPT, c->st.directory, 0, 0, "not what the backup claims to hold") : c->err->code ? -1 : 0;
}

int backup_rehearse(const char *directory, FILE *out, struct check_totals *totals, struct err *e)
{
	struct pages_totals pages;
	struct catalog c;
	json_t *claim = read_claim(directory, e);
	int rc = claim ? pages_check(directory, out, &pages, NULL, e) : -1;
	if (rc == 0 && pages.problems)
		rc = err_at(e, ERR_CORRUPT, directory, 0, 0, "data.mdb is damaged in %llu places", (unsigned long long)pages.problems);
	if (rc == 0) {
		rc = catalog_open(&c, directory, e);
		if (rc == 0)
			rc = rehearse_catalog(&c, claim, out, totals);
		catalog_close(&c);
	}
	json_decref(claim);
	return rc;
}

/* ---- making one ---- */

int backup_store(struct store *st, const char *to, struct err *e)
{
	if (access(to, F_OK) == 0) /* what cannot be looked at fails below */
		return err_at(e, ERR_USAGE, to, 0, 0, "exists already; a backup wants a new name");
	struct buf temporary = {0};
	file_sweep(to);
	int held = file_begin_directory(to, &temporary, e), rc = held < 0 ? -1 : 0;
	if (rc == 0)
		rc = copy_catalog(st, temporary.data, e);
	if (rc == 0)
		rc = copy_kept(st, temporary.data, e);
	if (rc == 0)
		rc = write_claim(temporary.data, e);
	return file_end_directory(held, &temporary, to, rc, e);
}
