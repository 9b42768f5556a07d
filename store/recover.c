#include "store/recover.h"

#include <string.h>

static int drop_table(struct txn *t, enum table table, enum table ids, uint32_t count)
{
	struct key key, id_key;
	MDB_val value;
	int found;
	while (key_u32(&key, count), (found = txn_next(t, table, &key, &value)) == 1) {
		struct digest d;
		memcpy(d.bytes, value.mv_data, DIGEST_SIZE);
		if (txn_delete(t, ids, key_digest(&id_key, &d)) || txn_delete(t, table, &key.val))
			return -1;
	}
	return found;
}

/* Cohorts and prefixes of dropped cases: their keys end in the case id. */
static int drop_case_keys(struct txn *t, enum table table, size_t id_at, uint32_t count)
{
	MDB_cursor *cursor = txn_cursor(t, table);
	MDB_val key, value;
	int rc = cursor ? 0 : -1;
	while (rc == 0 && mdb_cursor_get(cursor, &key, &value, MDB_NEXT) == 0)
		if (key_read_u32(&key, id_at) >= count)
			rc = txn_delete_at(t, cursor);
	if (cursor)
		mdb_cursor_close(cursor);
	return rc;
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

static int drop_segments(struct txn *t, uint32_t next_segment)
{
	MDB_cursor *cursor = txn_cursor(t, TABLE_INDEX);
	MDB_val key, value;
	int rc = cursor ? 0 : -1;
	while (rc == 0 && mdb_cursor_get(cursor, &key, &value, MDB_NEXT) == 0)
		if (key_read_u32(&key, 2) >= next_segment)
			rc = txn_delete_at(t, cursor);
	if (cursor)
		mdb_cursor_close(cursor);
	return rc;
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
	    drop_case_keys(&t, TABLE_COHORTS, DIGEST_SIZE, c.cases) || drop_case_keys(&t, TABLE_PREFIXES, 8, c.cases) ||
	    drop_table(&t, TABLE_CASES, TABLE_CASE_IDS, c.cases) || drop_from(&t, TABLE_LABELS, c.labels) ||
	    drop_from(&t, TABLE_METADATA, c.objects) || drop_from(&t, TABLE_RUNS, chunk_after(c.runs)) || drop_segments(&t, c.next_segment)) {
		txn_abort(&t);
		return -1;
	}
	return txn_commit(&t);
}
