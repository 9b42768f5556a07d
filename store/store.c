#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "core/file.h"
#include "core/log.h"
#include "store/guard.h"
#include "store/seal.h"
#include "store/upgrade.h"

enum { READERS_MAX = 510, LOCK_TRIES = 300 /* of 0.1 s each */ };
static const size_t MAP_MIN = (size_t)1 << 30, MAP_HEADROOM = (size_t)256 << 20;

/* The part of LMDB 0.9's meta page that says how long the file must be (lmdb: mdb.c, struct MDB_meta). */
struct meta_page {
	uint8_t page_header[16];
	uint32_t magic, version;
	uint64_t address, map_size;
	struct {
		uint32_t page_size; /* of the free-list tree: the page size of the file */
		uint8_t rest[44];
	} trees[2];
	uint64_t last_page, transaction;
};
static const uint32_t LMDB_MAGIC = 0xBEEFC0DE, LMDB_VERSION = 1;

int store_error(struct store *st, int rc, const char *what, struct err *e)
{
	enum err_code code = rc > 0 ? err_code_of(rc) : ERR_IO; /* LMDB's own numbers are below zero */
	if (rc == MDB_CORRUPTED || rc == MDB_PAGE_NOTFOUND || rc == MDB_INVALID || rc == MDB_VERSION_MISMATCH || rc == MDB_PANIC)
		code = ERR_CORRUPT;
	else if (rc == MDB_READERS_FULL)
		code = ERR_TEMP;
	return err_at(e, code, st->file, 0, 0, "%s: %s", what, mdb_strerror(rc));
}

/* 1 when there is a page of account at `at`, 0 when there is something else, -1 when it cannot be read. */
static int read_meta(struct store *st, int fd, off_t at, struct meta_page *m, struct err *e)
{
	ssize_t got = pread(fd, m, sizeof *m, at);
	if (got < 0)
		return err_errno(e, st->file, "cannot read");
	return got == (ssize_t)sizeof *m && m->magic == LMDB_MAGIC && m->version == LMDB_VERSION;
}

/* Reading a map beyond the end of its file is a bus error, so a file is measured against its own account before it is mapped:
 * the account first, since a writer lengthens the file before it accounts for more. */
static int check_length(struct store *st, struct err *e)
{
	struct meta_page first, second;
	struct stat info;
	int fd = open(st->file, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_errno(e, st->file, "cannot open");
	int one = read_meta(st, fd, 0, &first, e), two = one == 1 ? read_meta(st, fd, first.trees[0].page_size, &second, e) : one;
	int rc = one < 0 || two < 0 ? -1 : fstat(fd, &info) ? err_errno(e, st->file, "cannot stat") : 0;
	close(fd);
	if (rc)
		return rc;
	uint32_t page_size = first.trees[0].page_size;
	if (info.st_size == 0)
		return err_at(e, ERR_CORRUPT, st->file, 0, 0, "damaged: an empty file; restore a backup, or remove it if nothing was ever published");
	if (one == 0 || two == 0 || page_size < 512 || page_size > 65536 || page_size != second.trees[0].page_size)
		return err_at(e, ERR_CORRUPT, st->file, 0, 0, "not a catalog, or damaged: its first pages are unreadable; restore a backup");
	const struct meta_page *newest = first.transaction >= second.transaction ? &first : &second;
	if (newest->last_page >= (uint64_t)info.st_size / page_size)
		return err_at(e, ERR_CORRUPT, st->file, 0, 0, "damaged: %lld bytes long, but its own account says %llu; restore a backup",
			      (long long)info.st_size, (unsigned long long)((newest->last_page + 1) * page_size));
	return 0;
}

/* LMDB needs a shared map and locks that work. */
static int check_file_system(struct store *st, struct err *e)
{
	static const struct {
		unsigned long magic;
		const char *name;
	} remote[] = {{0x6969, "NFS"}, {0x517B, "SMB"}, {0xFF534D42, "CIFS"}, {0xFE534D42, "SMB2"}, {0x01021997, "9P"}, {0x65735546, "FUSE"}};
	struct statfs info;
	if (statfs(st->directory, &info) != 0)
		return err_errno(e, st->directory, "cannot stat file system");
	for (size_t i = 0; i < sizeof remote / sizeof *remote; i++)
		if ((unsigned long)info.f_type == remote[i].magic)
			log_warn("%s: is on %s, where locks and shared maps may fail; keep the store on a local disk", st->directory, remote[i].name);
	return 0;
}

static size_t map_size_for(size_t used)
{
	size_t size = MAP_MIN;
	while (size < used + MAP_HEADROOM)
		size *= 2;
	return size;
}

/* The environment at `path`, in a map of `map_size` bytes (0: as long as the file). Returns what LMDB does. */
static int open_map(struct store *st, const char *path, unsigned flags, size_t map_size)
{
	int rc = mdb_env_create(&st->env);
	if (rc == 0)
		rc = mdb_env_set_maxdbs(st->env, TABLES);
	if (rc == 0)
		rc = mdb_env_set_maxreaders(st->env, READERS_MAX);
	if (rc == 0 && map_size)
		rc = mdb_env_set_mapsize(st->env, map_size);
	return rc ? rc : mdb_env_open(st->env, path, MDB_NOTLS | flags, 0644);
}

static char *join(const char *a, const char *b)
{
	struct buf text = {0};
	buf_printf(&text, "%s/%s", a, b);
	return text.data;
}

/* LMDB lengthens its lock file sparsely and writes to it through a map: on a full disk that is a bus error. So its blocks are asked for
 * first. Whatever else is wrong with the file LMDB will say. */
static int reserve_locks(struct store *st, struct err *e)
{
	const off_t size_bytes = (READERS_MAX + 2) * 64; /* a cache line a reader, and LMDB's own account */
	struct stat info;
	char *path = join(st->directory, "lock.mdb");
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644), rc = 0;
	if (fd >= 0 && fstat(fd, &info) == 0 && info.st_blocks * 512 < size_bytes && fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, size_bytes) != 0 &&
	    (errno == ENOSPC || errno == EDQUOT))
		rc = err_errno(e, path, "cannot make room for locks");
	if (fd >= 0)
		close(fd);
	free(path);
	return rc;
}

static int open_environment(struct store *st, struct err *e)
{
	struct stat info;
	unsigned flags = st->writable ? 0 : MDB_RDONLY;
	if (stat(st->file, &info) != 0)
		return err_errno(e, st->file, "cannot stat");
	st->changed = info.st_mtim;
	if (reserve_locks(st, e))
		return -1;
	int rc = open_map(st, st->directory, flags, map_size_for((size_t)info.st_size));
	if (!st->writable && rc == EROFS) { /* nobody can write there, so nothing needs a lock */
		mdb_env_close(st->env);
		st->env = NULL;
		rc = open_map(st, st->directory, flags | MDB_NOLOCK, 0);
	}
	return rc ? store_error(st, rc, "cannot open catalog", e) : 0;
}

static uint32_t schema_in(struct store *st, MDB_txn *txn)
{
	struct key key;
	MDB_val value;
	uint32_t schema = 0; /* first of struct meta_counts in every schema */
	if (mdb_get(txn, st->tables[TABLE_META], key_text(&key, "counts"), &value) == 0 && value.mv_size >= sizeof schema)
		memcpy(&schema, value.mv_data, sizeof schema);
	return schema;
}

/* The account of the store, its schema first, is looked at before anything else: in a newer store the rest may lie in another way. Its
 * checksum (not yet in schema 1) lies at its end whatever the schema. */
static int check_account(struct store *st, MDB_txn *txn, struct err *e)
{
	struct key key;
	MDB_val value;
	uint32_t schema = schema_in(st, txn);
	int rc = mdb_get(txn, st->tables[TABLE_META], key_text(&key, "counts"), &value);
	if (rc == MDB_NOTFOUND)
		return 0; /* a writer was interrupted before its first publication */
	if (rc || (schema == 1 ? value.mv_size != sizeof(struct meta_counts) : schema == 0 || !seal_holds(TABLE_META, &key.val, &value)))
		return err_at(e, ERR_CORRUPT, st->file, 0, 0, "damaged: the checksum of the store's own account does not hold; restore a backup");
	if (schema <= SCHEMA_VERSION)
		return 0;
	return err_at(e, ERR_CONFIG, st->file, 0, 0, "schema version %u is newer than this program's %d: upgrade kernelindex", schema, SCHEMA_VERSION);
}

/* Opens the tables of a store that has them all, or, empty yet, makes them. */
static int open_tables_in(struct store *st, MDB_txn *txn, enum store_mode mode, struct err *e)
{
	MDB_stat names;
	MDB_dbi all;
	int rc = mdb_dbi_open(txn, NULL, 0, &all);
	if (rc == 0)
		rc = mdb_stat(txn, all, &names);
	bool empty = rc == 0 && names.ms_entries == 0;
	if (empty && mode == STORE_READ)
		return err_at(e, ERR_NOTFOUND, st->directory, 0, 0, "an empty store: nothing was ever published into it");
	for (int i = 0; i < TABLES && rc == 0; i++) {
		rc = mdb_dbi_open(txn, table_names[i], empty ? MDB_CREATE : 0, &st->tables[i]);
		if (rc == MDB_NOTFOUND)
			return err_at(e, ERR_CORRUPT, st->file, 0, 0, "damaged: table %s is missing; restore a backup", table_names[i]);
		if (rc == 0 && i == TABLE_META && check_account(st, txn, e))
			return -1;
	}
	return rc ? store_error(st, rc, "cannot open tables", e) : 0;
}

static int open_tables(struct store *st, enum store_mode mode, struct err *e)
{
	MDB_txn *txn;
	int rc = mdb_txn_begin(st->env, NULL, mode == STORE_READ ? MDB_RDONLY : 0, &txn);
	if (rc)
		return store_error(st, rc, "cannot begin", e);
	if (open_tables_in(st, txn, mode, e)) {
		mdb_txn_abort(txn);
		return -1;
	}
	rc = mdb_txn_commit(txn); /* keeps the handles; writes nothing when nothing was made */
	return rc ? store_error(st, rc, "cannot open tables", e) : 0;
}

static int check_schema(struct store *st, enum store_mode mode, struct err *e)
{
	const struct meta_counts none = {.schema = SCHEMA_VERSION};
	struct txn t;
	if (mode == STORE_READ)
		return 0;
	if (txn_begin(&t, st, mode, e))
		return -1;
	uint32_t schema = schema_in(st, t.mdb);
	if (schema == 0 && txn_put_counts(&t, &none) == 0)
		return txn_commit(&t);
	txn_abort(&t);
	if (e->code)
		return -1;
	return schema < SCHEMA_VERSION && mode == STORE_WRITE ? upgrade_store(st, e) : 0;
}

/* A batch takes several transactions, so LMDB's own write lock is not enough. The lock dies with the process. */
static int lock_for_writing(struct store *st, struct err *e)
{
	char *path = join(st->directory, "write.lock");
	for (int tries = 0; tries < LOCK_TRIES; tries++) {
		*e = (struct err){0};
		st->lock = file_lock(path, e);
		if (st->lock >= 0 || e->code != ERR_TEMP)
			break;
		usleep(100 * 1000);
	}
	free(path);
	return st->lock < 0 ? -1 : 0;
}

/* A new catalog gets its name when it is whole, so that a disk that is full meanwhile, or a kill, leaves none. */
static int make_catalog(struct store *st, struct err *e)
{
	struct buf directory = {0};
	int held = file_begin_directory(st->file, &directory, e);
	if (held < 0) {
		buf_fini(&directory);
		return -1;
	}
	struct store made = {.directory = directory.data, .file = join(directory.data, "data.mdb"), .lock = -1, .writable = true};
	int rc = open_map(&made, made.directory, MDB_NOLOCK, MAP_MIN);
	rc = rc ? store_error(&made, rc, "cannot make catalog", e) : 0;
	if (rc == 0)
		rc = open_tables(&made, STORE_WRITE, e) || check_schema(&made, STORE_WRITE, e) ? -1 : 0;
	mdb_env_close(made.env);
	if (rc == 0 && rename(made.file, st->file) != 0)
		rc = err_errno(e, st->file, "cannot rename into place");
	if (rc == 0)
		rc = file_sync_parent(st->file, e);
	file_remove_tree(directory.data);
	close(held);
	free(made.file);
	buf_fini(&directory);
	return rc;
}

int store_open(struct store *st, const char *directory, enum store_mode mode, struct err *e)
{
	int dead;
	*st = (struct store){.directory = xstrdup(directory), .file = join(directory, "data.mdb"), .lock = -1, .writable = mode == STORE_WRITE || mode == STORE_TRY};
	if (st->writable && (file_make_dirs(directory, e) || lock_for_writing(st, e)))
		return -1;
	if (st->writable)
		file_sweep(st->file);
	bool there = access(st->file, F_OK) == 0;
	if (!there && err_code_of(errno) != ERR_NOTFOUND)
		return err_errno(e, st->file, "cannot reach");
	if (!there && !st->writable)
		return err_at(e, ERR_NOTFOUND, directory, 0, 0, "no store here (%s): run `ki nightly` first or give --store DIR", strerror(errno));
	if (!there && make_catalog(st, e))
		return -1;
	if (check_length(st, e) || check_file_system(st, e) || open_environment(st, e))
		return -1;
	guard(st->env, st->file);
	mdb_reader_check(st->env, &dead);
	if (mode == STORE_BARE)
		return 0;
	return open_tables(st, mode, e) || check_schema(st, mode, e) ? -1 : 0;
}

void store_close(struct store *st)
{
	if (st->env)
		mdb_env_close(st->env);
	if (st->lock >= 0)
		close(st->lock);
	free(st->directory);
	free(st->file);
	*st = (struct store){0};
}

/* Keeps MAP_HEADROOM free above what is used, which is more than one transaction of ours writes. */
static int grow_map(struct store *st)
{
	MDB_envinfo info;
	MDB_stat stat;
	mdb_env_info(st->env, &info);
	mdb_env_stat(st->env, &stat);
	size_t want = map_size_for((info.me_last_pgno + 1) * stat.ms_psize);
	return want > info.me_mapsize ? mdb_env_set_mapsize(st->env, want) : 0;
}

int txn_begin(struct txn *t, struct store *st, enum store_mode mode, struct err *e)
{
	*t = (struct txn){.st = st, .err = e};
	if (e->code)
		return -1;
	int rc = mode == STORE_WRITE ? grow_map(st) : 0;
	if (rc == 0)
		rc = mdb_txn_begin(st->env, NULL, mode == STORE_READ ? MDB_RDONLY : 0, &t->mdb);
	if (rc == MDB_MAP_RESIZED) { /* another process has grown the file */
		rc = mdb_env_set_mapsize(st->env, 0);
		if (rc == 0)
			rc = mdb_txn_begin(st->env, NULL, mode == STORE_READ ? MDB_RDONLY : 0, &t->mdb);
	}
	if (rc) {
		t->mdb = NULL;
		return store_error(st, rc, "cannot begin", e);
	}
	t->sealed = schema_in(st, t->mdb) != 1;
	return 0;
}

/* The length check above wants every page of the account to exist, but a commit does not write the last pages that it took
 * when it freed them again. So the file is lengthened, sparsely, before a commit by more than one transaction takes, and cut to
 * its account afterwards: a crash in between leaves a file that is too long, never one that is too short. */
static int set_length(struct store *st, size_t room, struct err *e)
{
	MDB_envinfo info;
	MDB_stat stat;
	int fd, rc = mdb_env_get_fd(st->env, &fd);
	mdb_env_info(st->env, &info);
	mdb_env_stat(st->env, &stat);
	if (rc == 0 && ftruncate(fd, (off_t)((info.me_last_pgno + 1) * stat.ms_psize + room)) != 0)
		rc = errno;
	return rc ? store_error(st, rc, "cannot set length", e) : 0;
}

int txn_commit(struct txn *t)
{
	struct err ignored = {0}; /* a file that stays too long is none */
	if (t->err->code || (t->changed && set_length(t->st, MAP_HEADROOM, t->err))) {
		txn_abort(t);
		return -1;
	}
	int rc = mdb_txn_commit(t->mdb);
	t->mdb = NULL;
	if (t->changed)
		set_length(t->st, 0, &ignored);
	return rc ? store_error(t->st, rc, "cannot commit", t->err) : 0;
}

void txn_abort(struct txn *t)
{
	if (t->mdb)
		mdb_txn_abort(t->mdb);
	t->mdb = NULL;
}

/* Leaves a value without its seal. */
static int take_seal_off(struct txn *t, enum table table, MDB_val *value)
{
	if (!t->sealed || !seal_wanted(table))
		return 1;
	if (value->mv_size < SEAL_SIZE)
		return err_at(t->err, ERR_CORRUPT, t->st->file, 0, 0, "a value of table %s is too short; run `ki check`", table_names[table]);
	value->mv_size -= SEAL_SIZE;
	return 1;
}

int txn_get(struct txn *t, enum table table, MDB_val *key, MDB_val *value)
{
	if (t->err->code)
		return -1;
	int rc = mdb_get(t->mdb, t->st->tables[table], key, value);
	if (rc == MDB_NOTFOUND)
		return 0;
	if (rc)
		return store_error(t->st, rc, table_names[table], t->err);
	if (table == TABLE_META && t->sealed && !seal_holds(table, key, value))
		return err_at(t->err, ERR_CORRUPT, t->st->file, 0, 0, "damaged: the checksum of the store's own account (%.*s) does not hold; restore a backup",
			      (int)key->mv_size, (const char *)key->mv_data);
	return take_seal_off(t, table, value);
}

int txn_put(struct txn *t, enum table table, MDB_val *key, const void *data, size_t len)
{
	bool sealed = t->sealed && seal_wanted(table);
	MDB_val value = {len + (sealed ? SEAL_SIZE : 0), (void *)data};
	if (t->err->code)
		return -1;
	t->changed = true;
	int rc = mdb_put(t->mdb, t->st->tables[table], key, &value, sealed ? MDB_RESERVE : 0);
	if (rc == 0 && sealed) {
		if (len)
			memcpy(value.mv_data, data, len);
		seal_make(table, key, (struct slice){data, len}, (uint8_t *)value.mv_data + len);
	}
	return rc ? store_error(t->st, rc, table_names[table], t->err) : 0;
}

int txn_delete(struct txn *t, enum table table, MDB_val *key)
{
	if (t->err->code)
		return -1;
	t->changed = true;
	int rc = mdb_del(t->mdb, t->st->tables[table], key, NULL);
	return rc && rc != MDB_NOTFOUND ? store_error(t->st, rc, table_names[table], t->err) : 0;
}

int txn_delete_at(struct txn *t, MDB_cursor *cursor)
{
	t->changed = true;
	int rc = mdb_cursor_del(cursor, 0);
	return rc ? store_error(t->st, rc, "cannot delete", t->err) : 0;
}

MDB_cursor *txn_cursor(struct txn *t, enum table table)
{
	MDB_cursor *cursor;
	if (t->err->code)
		return NULL;
	int rc = mdb_cursor_open(t->mdb, t->st->tables[table], &cursor);
	if (rc == 0)
		return cursor;
	store_error(t->st, rc, table_names[table], t->err);
	return NULL;
}

int txn_next(struct txn *t, enum table table, struct key *key, MDB_val *value)
{
	MDB_cursor *cursor = txn_cursor(t, table);
	if (!cursor)
		return -1;
	MDB_val found = key->val;
	int rc = mdb_cursor_get(cursor, &found, value, MDB_SET_RANGE);
	if (rc == 0 && (found.mv_size > sizeof key->bytes || mdb_cmp(t->mdb, t->st->tables[table], &found, &key->val) < 0))
		rc = MDB_CORRUPTED; /* no key of ours is as long; and who asks for one key after the other must come to an end */
	if (rc == 0) {
		memcpy(key->bytes, found.mv_data, found.mv_size);
		key->val = (MDB_val){found.mv_size, key->bytes};
	}
	mdb_cursor_close(cursor);
	if (rc == MDB_NOTFOUND)
		return 0;
	return rc ? store_error(t->st, rc, table_names[table], t->err) : take_seal_off(t, table, value);
}

int txn_move(struct txn *t, enum table table, MDB_cursor *cursor, MDB_cursor_op op, MDB_val *key, MDB_val *value)
{
	if (t->err->code)
		return -1;
	int rc = mdb_cursor_get(cursor, key, value, op);
	if (rc == MDB_NOTFOUND)
		return 0;
	return rc ? store_error(t->st, rc, table_names[table], t->err) : take_seal_off(t, table, value);
}

int txn_counts(struct txn *t, struct meta_counts *out)
{
	struct key key;
	MDB_val value;
	*out = (struct meta_counts){0};
	int found = txn_get(t, TABLE_META, key_text(&key, "counts"), &value);
	if (found == 1 && value.mv_size == sizeof *out)
		memcpy(out, value.mv_data, sizeof *out);
	else if (found == 1)
		return err_at(t->err, ERR_CORRUPT, t->st->file, 0, 0, "meta counts have %zu bytes, not %zu", value.mv_size, sizeof *out);
	return found < 0 ? -1 : 0;
}

int txn_put_counts(struct txn *t, const struct meta_counts *counts)
{
	struct key key;
	return txn_put(t, TABLE_META, key_text(&key, "counts"), counts, sizeof *counts);
}
