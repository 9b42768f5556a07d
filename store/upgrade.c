#include "store/upgrade.h"

#include <string.h>

#include "core/log.h"
#include "store/seal.h"

enum { CHUNKS_A_COMMIT = 16384 /* 64 MB, well within the headroom of the map */ };

/* Seals the value under a cursor, which then stands at the new one. */
static int seal_here(struct txn *t, enum table table, MDB_cursor *cursor, MDB_val *key, const MDB_val *value)
{
	struct buf sealed = {0};
	struct key held = {.val = {key->mv_size, held.bytes}};
	memcpy(held.bytes, key->mv_data, key->mv_size);
	buf_add(&sealed, value->mv_data, value->mv_size);
	buf_reserve(&sealed, SEAL_SIZE);
	seal_make(table, &held.val, (struct slice){sealed.data, value->mv_size}, (uint8_t *)sealed.data + value->mv_size);
	MDB_val with_seal = {value->mv_size + SEAL_SIZE, sealed.data};
	t->changed = true;
	int rc = mdb_cursor_put(cursor, &held.val, &with_seal, MDB_CURRENT);
	buf_fini(&sealed);
	return rc ? store_error(t->st, rc, table_names[table], t->err) : 0;
}

/* A chunk is whole rows, or whole rows and a seal. */
static bool chunk_is_sealed(const MDB_val *value)
{
	return value->mv_size % sizeof(struct run_row) == SEAL_SIZE;
}

/* One transaction of chunks from run `*first` on; *first becomes UINT32_MAX after the last. */
static int seal_chunks(struct store *st, uint32_t *first, struct err *e)
{
	struct txn t;
	struct key from;
	MDB_val key, value;
	int found = -1;
	if (txn_begin(&t, st, STORE_WRITE, e))
		return -1;
	MDB_cursor *cursor = txn_cursor(&t, TABLE_RUNS);
	key = *key_u32(&from, *first);
	if (cursor)
		found = txn_move(&t, TABLE_RUNS, cursor, MDB_SET_RANGE, &key, &value);
	for (int n = 0; found == 1 && n < CHUNKS_A_COMMIT; n++) {
		*first = key_read_u32(&key, 0) + 1;
		if (!chunk_is_sealed(&value) && seal_here(&t, TABLE_RUNS, cursor, &key, &value))
			break;
		found = txn_move(&t, TABLE_RUNS, cursor, MDB_NEXT, &key, &value);
	}
	if (found == 0)
		*first = UINT32_MAX;
	if (cursor)
		mdb_cursor_close(cursor);
	return txn_commit(&t);
}

static int seal_table(struct txn *t, enum table table)
{
	MDB_cursor *cursor = txn_cursor(t, table);
	MDB_val key, value;
	int found = -1;
	while (cursor && (found = txn_move(t, table, cursor, MDB_NEXT, &key, &value)) == 1)
		if (seal_here(t, table, cursor, &key, &value))
			break;
	if (cursor)
		mdb_cursor_close(cursor);
	return t->err->code ? -1 : found;
}

static int seal_the_rest(struct store *st, struct err *e)
{
	struct txn t;
	struct meta_counts counts;
	if (txn_begin(&t, st, STORE_WRITE, e))
		return -1;
	int rc = txn_counts(&t, &counts);
	for (int table = 0; table < TABLES && rc == 0; table++)
		if (seal_wanted((enum table)table) && table != TABLE_RUNS)
			rc = seal_table(&t, (enum table)table);
	t.sealed = true;
	counts.schema = 2;
	if (rc == 0 && txn_put_counts(&t, &counts) == 0)
		return txn_commit(&t);
	txn_abort(&t);
	return -1;
}

int upgrade_store(struct store *st, struct err *e)
{
	uint32_t next = 0;
	while (next != UINT32_MAX)
		if (seal_chunks(st, &next, e))
			return -1;
	if (seal_the_rest(st, e))
		return -1;
	log_info("%s: upgraded from schema 1 to 2: labels, runs, publications and entries now carry checksums", st->directory);
	return 0;
}
