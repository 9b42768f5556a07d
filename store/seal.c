#include "store/seal.h"

#include <string.h>

bool seal_wanted(enum table table)
{
	static const bool wanted[TABLES] = {[TABLE_META] = true, [TABLE_METADATA] = true, [TABLE_LABELS] = true, [TABLE_RUNS] = true,
					    [TABLE_PUBLICATIONS] = true, [TABLE_CARRIED] = true, [TABLE_EVENTS] = true};
	return wanted[table];
}

void seal_make(enum table table, const MDB_val *key, struct slice value, uint8_t out[SEAL_SIZE])
{
	struct digest_stream *s = digest_stream_new();
	digest_stream_add(s, table_names[table], strlen(table_names[table]) + 1);
	digest_stream_add(s, key->mv_data, key->mv_size);
	digest_stream_add(s, value.data, value.len);
	struct digest d = digest_stream_end(s);
	memcpy(out, d.bytes, SEAL_SIZE);
}

bool seal_holds(enum table table, const MDB_val *key, const MDB_val *sealed)
{
	uint8_t made[SEAL_SIZE];
	if (sealed->mv_size < SEAL_SIZE)
		return false;
	size_t len = sealed->mv_size - SEAL_SIZE;
	seal_make(table, key, (struct slice){sealed->mv_data, len}, made);
	return memcmp((const char *)sealed->mv_data + len, made, SEAL_SIZE) == 0;
}
