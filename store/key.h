/* Every key and value layout of the catalog. Nothing else in the store builds or reads a key.
 *
 * Table        key                                          value
 * meta         text                                         see struct meta_counts; channel list; index headers
 * objects      id (u32)                                     digest, packed canonical body
 * object_ids   digest                                       id (u32)
 * metadata     object id (u32), digest of the text          canonical JSON: name, title, …
 * cases        id (u32)                                     digest, comparison key, packed canonical case body
 * case_ids     digest                                       id (u32)
 * cohorts      comparison key, case id (u32)                empty
 * prefixes     hash of the external prefix (u64), case id   empty
 * labels       id (u32)                                     canonical JSON object
 * runs         number of the chunk's first run (u32)        up to RUNS_PER_CHUNK struct run_row
 * index        kind (u8), slot (u8), segment (u32), block (u16)  sorted struct index_entry
 * publications id (u32)                                     canonical JSON
 * carried      publication id (u32)                         runs it carried, as ranges of run numbers (varints)
 * snapshots    snapshot digest, publication id (u32)        empty
 * events       id (u32)                                     canonical JSON
 *
 * From schema 2 on, values of the tables that nothing else proves end in a seal (seal.h): meta, metadata, labels, runs,
 * publications, carried and events. Objects and cases are proved by their digests; the other tables follow from these.
 *
 * Integers in keys are big-endian, so that byte order is value order. Ids and run numbers count from 0 and are handed out in
 * order. What lies at or beyond the counts in `meta` is not published: readers do not see it and the next writer drops it. */
#ifndef KI_STORE_KEY_H
#define KI_STORE_KEY_H

#include <lmdb.h>
#include <stdint.h>

#include "core/digest.h"

enum table {
	TABLE_META,
	TABLE_OBJECTS,
	TABLE_OBJECT_IDS,
	TABLE_METADATA,
	TABLE_CASES,
	TABLE_CASE_IDS,
	TABLE_COHORTS,
	TABLE_PREFIXES,
	TABLE_LABELS,
	TABLE_RUNS,
	TABLE_INDEX,
	TABLE_PUBLICATIONS,
	TABLE_CARRIED,
	TABLE_SNAPSHOTS,
	TABLE_EVENTS,
	TABLES
};
extern const char *const table_names[TABLES];

enum { SCHEMA_VERSION = 2 };

/* One run. Values are the source's doubles; RUN_UNITS says they are stored units (ns, bytes) instead. NAN where absent. */
struct run_row {
	struct digest digest;
	double value_50, value_20, value_80;
	int64_t observed_ms;
	uint32_t case_id;
	uint32_t labels : 24, flags : 8;
};
_Static_assert(sizeof(struct run_row) == 72, "run rows are 72 bytes on disk");
enum run_flags {
	RUN_WHOLE = 1, /* the body is kept whole among the objects, because it cannot be rebuilt from the row */
	RUN_UNITS = 2,
	RUN_FAILED = 4, /* status is not `passed` */
};
/* 56 rows fill one page (4,096 bytes less the header of an overflow page). */
enum { RUNS_PER_CHUNK = 56 };

/* Counts of what is published; value of meta key "counts". */
struct meta_counts {
	uint32_t schema, objects, cases, labels, runs, publications, events, next_segment;
};

/* An entry of a sorted index segment. */
struct index_entry {
	uint64_t key;
	uint32_t run;
} __attribute__((packed));
enum index_kind {
	INDEX_DIGEST = 1, /* key: first 8 bytes of the run digest; slot 0 */
	INDEX_CASE = 2,   /* key: case id << 32 | observed seconds; slot: channel */
};
/* 15.9 pages: a block and the header of an overflow page fill 16 pages. */
enum { ENTRIES_PER_BLOCK = (16 * 4096 - 16) / sizeof(struct index_entry) };

/* Keys live in the caller's struct. */
struct key {
	uint8_t bytes[48];
	MDB_val val;
};
MDB_val *key_u32(struct key *k, uint32_t id);
MDB_val *key_text(struct key *k, const char *text); /* at most 48 bytes */
MDB_val *key_digest(struct key *k, const struct digest *d);
MDB_val *key_digest_u32(struct key *k, const struct digest *d, uint32_t id);
MDB_val *key_u64_u32(struct key *k, uint64_t hash, uint32_t id);
MDB_val *key_u32_digest(struct key *k, uint32_t id, const struct digest *d);
MDB_val *key_index(struct key *k, enum index_kind kind, uint8_t slot, uint32_t segment, uint16_t block);
/* Reads a big-endian u32 at an offset of a key. */
uint32_t key_read_u32(const MDB_val *v, size_t offset);

uint64_t key_of_digest(const struct digest *d);
uint64_t key_of_case(uint32_t case_id, int64_t observed_ms);

#endif
