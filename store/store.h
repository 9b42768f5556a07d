/* The LMDB environment: opening it safely, its tables, transactions, growth of the map, and the first error of a transaction.
 *
 * One writer and many readers, in any number of processes. DIR holds data.mdb and lock.mdb (this module) and snapshots/
 * (ki-ingest's). There is no update and no delete of anything published: tables only grow, except for the blocks of index
 * segments, which are merged, and for what a writer left unpublished. */
#ifndef KI_STORE_STORE_H
#define KI_STORE_STORE_H

#include <lmdb.h>
#include <stdbool.h>

#include "core/arena.h"
#include "core/err.h"
#include "store/key.h"

enum store_mode {
	STORE_READ,
	STORE_WRITE,
	STORE_TRY,  /* as STORE_WRITE, to commit nothing: a store of an older schema stays what it is */
	STORE_BARE, /* to read the file by its pages: no table is looked at */
};

struct store {
	MDB_env *env;
	MDB_dbi tables[TABLES];
	char *directory, *file; /* file: DIR/data.mdb */
	int lock;               /* of DIR/write.lock while open for writing */
	bool writable;
	struct timespec changed; /* the file's time of last change before it was opened: what is read is of then or later */
};

/* Opens DIR, for STORE_WRITE and STORE_TRY making it when it is missing. Errors: ERR_NOTFOUND no store there, ERR_CORRUPT file shorter than
 * its own account or not ours, ERR_CONFIG made by a newer version, ERR_NOPERM, ERR_TEMP another
 * writer has been at work for half a minute. A store of an older schema is read as it is, and upgraded (upgrade.h) when it is
 * opened for STORE_WRITE. Close it also when opening failed. */
int store_open(struct store *st, const char *directory, enum store_mode mode, struct err *e);
void store_close(struct store *st);

/* A transaction; the first failure sticks and later calls do nothing but return it. */
struct txn {
	struct store *st;
	MDB_txn *mdb;
	struct err *err;
	bool changed; /* something was put or deleted */
	bool sealed;  /* values carry seals: schema 2 or later */
};
int txn_begin(struct txn *t, struct store *st, enum store_mode mode, struct err *e);
int txn_commit(struct txn *t); /* durable when it returns 0 */
void txn_abort(struct txn *t); /* fine after commit and on a zeroed txn */

/* 1 found, 0 absent, -1 failed. The value is valid until the transaction ends or writes. Seals are put and taken off here; that of
 * `meta` is checked, the others are for check.h. */
int txn_get(struct txn *t, enum table table, MDB_val *key, MDB_val *value);
int txn_put(struct txn *t, enum table table, MDB_val *key, const void *data, size_t len);
int txn_delete(struct txn *t, enum table table, MDB_val *key); /* absent is fine */
int txn_delete_at(struct txn *t, MDB_cursor *cursor); /* the entry under a cursor of t */
/* First key at or after `key` (which is replaced): 1 found, 0 none, -1 failed. */
int txn_next(struct txn *t, enum table table, struct key *key, MDB_val *value);
MDB_cursor *txn_cursor(struct txn *t, enum table table); /* NULL when failed; close with mdb_cursor_close */
/* Moves a cursor of `table`: 1 and an entry, 0 at the end, -1 failed. */
int txn_move(struct txn *t, enum table table, MDB_cursor *cursor, MDB_cursor_op op, MDB_val *key, MDB_val *value);
int txn_counts(struct txn *t, struct meta_counts *out);
int txn_put_counts(struct txn *t, const struct meta_counts *counts);

/* Turns an LMDB result into an error of ours. */
int store_error(struct store *st, int rc, const char *what, struct err *e);

#endif
