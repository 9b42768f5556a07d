#include "store/key.h"

#include <string.h>

const char *const table_names[TABLES] = {
	[TABLE_META] = "meta",
	[TABLE_OBJECTS] = "objects",
	[TABLE_OBJECT_IDS] = "object_ids",
	[TABLE_METADATA] = "metadata",
	[TABLE_CASES] = "cases",
	[TABLE_CASE_IDS] = "case_ids",
	[TABLE_COHORTS] = "cohorts",
	[TABLE_PREFIXES] = "prefixes",
	[TABLE_LABELS] = "labels",
	[TABLE_RUNS] = "runs",
	[TABLE_INDEX] = "index",
	[TABLE_PUBLICATIONS] = "publications",
	[TABLE_CARRIED] = "carried",
	[TABLE_SNAPSHOTS] = "snapshots",
	[TABLE_EVENTS] = "events",
};

static void start(struct key *k)
{
	k->val = (MDB_val){0, k->bytes};
}

static void add(struct key *k, const void *data, size_t len)
{
	memcpy(k->bytes + k->val.mv_size, data, len);
	k->val.mv_size += len;
}

static void add_number(struct key *k, uint64_t value, int width)
{
	for (int i = width - 1; i >= 0; i--)
		k->bytes[k->val.mv_size++] = (uint8_t)(value >> (8 * i));
}

MDB_val *key_u32(struct key *k, uint32_t id)
{
	start(k);
	add_number(k, id, 4);
	return &k->val;
}

MDB_val *key_text(struct key *k, const char *text)
{
	start(k);
	add(k, text, strlen(text));
	return &k->val;
}

MDB_val *key_digest(struct key *k, const struct digest *d)
{
	start(k);
	add(k, d->bytes, DIGEST_SIZE);
	return &k->val;
}

MDB_val *key_digest_u32(struct key *k, const struct digest *d, uint32_t id)
{
	key_digest(k, d);
	add_number(k, id, 4);
	return &k->val;
}

MDB_val *key_u64_u32(struct key *k, uint64_t hash, uint32_t id)
{
	start(k);
	add_number(k, hash, 8);
	add_number(k, id, 4);
	return &k->val;
}

MDB_val *key_u32_digest(struct key *k, uint32_t id, const struct digest *d)
{
	key_u32(k, id);
	add(k, d->bytes, DIGEST_SIZE);
	return &k->val;
}

MDB_val *key_index(struct key *k, enum index_kind kind, uint8_t slot, uint32_t segment, uint16_t block)
{
	start(k);
	add_number(k, (uint64_t)kind, 1);
	add_number(k, slot, 1);
	add_number(k, segment, 4);
	add_number(k, block, 2);
	return &k->val;
}

uint32_t key_read_u32(const MDB_val *v, size_t offset)
{
	const uint8_t *p = (const uint8_t *)v->mv_data + offset;
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

uint64_t key_of_digest(const struct digest *d)
{
	uint64_t key = 0;
	for (int i = 0; i < 8; i++)
		key = key << 8 | d->bytes[i];
	return key;
}

uint64_t key_of_case(uint32_t case_id, int64_t observed_ms)
{
	return (uint64_t)case_id << 32 | (uint32_t)(observed_ms / 1000);
}
