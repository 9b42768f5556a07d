#include "store/recover.h"

#include <string.h>

static int drop_table(struct txn *t, enum table table, enum table ids, uint32_t count)
{
	struct key key, id_key;
	MDB_val value;
	int found;
	while (key_u32(&key, count), (found = txn_next(t, table, &key, &value)) == 1) {
		struct digest d;
		if (value.mv_size < DIGEST_SIZE)
			return store_error(t->st, MDB_CORRUPTED, table_names[table], t->err);
		memcpy(d.bytes, value.mv_data, DIGEST_SIZE);
		if (txn_delete(t, ids, key_digest(&id_key, &d)) || txn_delete(t, table, &key.val))
			return -1;
	}
	return found;
}

/* Entries whose keys have an id of at least `first` at `id_at`. A key of another length is damage: nothing goes for what it says. */
static int drop_keys(struct txn *t, enum table table, size_t length, size_t id_at, uint32_t first)
{
	MDB_cursor *cursor = txn_cursor(t, table);
	MDB_val key, value;
	int found = cursor ? 1 : -1;
	while (found == 1 && (found = txn_move(t, table, cursor, MDB_NEXT, &key, &value)) == 1)
		if (key.mv_size != length)
			found = store_error(t->st, MDB_CORRUPTED, table_names[table], t->err);
		else if (key_read_u32(&key, id_at) >= first && txn_delete_at(t, cursor))
			found = -1;
	if (cursor)
		mdb_cursor_close(cursor);
	return found;
}

static int drop_from(struct txn *t, enum table table, uint32_t first)
{
	struct key key;
	MDB_val value;
	int found;
	while (key_u32(&key, first), (found = txn_next(t, table, &key, &value)) == 1)
		if (txn_delete(t, table, &key.val))
			return -1;
	return found;
}

static uint32_t chunk_after(uint32_t runs)
{
	return (runs + RUNS_PER_CHUNK - 1) / RUNS_PER_CHUNK * RUNS_PER_CHUNK;
}

int recover_store(struct store *st, struct err *e)
{
	struct txn t;
	struct meta_counts c;
	if (txn_begin(&t, st, STORE_WRITE, e))
		return -1;
	if (txn_counts(&t, &c) || drop_table(&t, TABLE_OBJECTS, TABLE_OBJECT_IDS, c.objects) ||
	    drop_keys(&t, TABLE_COHORTS, DIGEST_SIZE + 4, DIGEST_SIZE, c.cases) || drop_keys(&t, TABLE_PREFIXES, 12, 8, c.cases) ||
	    drop_table(&t, TABLE_CASES, TABLE_CASE_IDS, c.cases) || drop_from(&t, TABLE_LABELS, c.labels) ||
	    drop_from(&t, TABLE_METADATA, c.objects) || drop_from(&t, TABLE_RUNS, chunk_after(c.runs)) || drop_keys(&t, TABLE_INDEX, 8, 2, c.next_segment)) {
		txn_abort(&t);
		return -1;
	}
	return txn_commit(&t);
}
