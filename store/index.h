/* Sorted index segments: maps a 64-bit key to run numbers, several runs a key allowed.
 *
 * A batch adds one segment a (kind, slot), sorted by (key, run). Segments are merged by size, four at a time, up to
 * SEGMENT_MAX entries, so that a lookup probes few and an entry is rewritten a logarithmic number of times. Unlike a B-tree
 * under random keys, a batch touches no page of earlier batches. The list of published segments is the header, in meta. */
#ifndef KI_STORE_INDEX_H
#define KI_STORE_INDEX_H

#include "store/store.h"

struct segment {
	uint32_t id, count;
};
struct index {
	enum index_kind kind;
	uint8_t slot;
	struct segment *segments;
	size_t count, published; /* segments in all, and those that the header lists (they come first) */
};

/* Reads the header; an index that was never written is empty. Free with index_fini. */
int index_load(struct txn *t, enum index_kind kind, uint8_t slot, struct index *out);
void index_fini(struct index *x);

/* Calls `found` for every entry with low <= key <= high, segment by segment, each in order; `found` may write into `context`
 * only. Returns -1 when reading failed. */
int index_range(struct txn *t, const struct index *x, uint64_t low, uint64_t high,
		void (*found)(const struct index_entry *entry, void *context), void *context);

/* The same for many single keys in ascending order: each segment is walked forward once. Nothing may be written in between. */
struct index_probe;
struct index_probe *index_probe_new(struct txn *t, const struct index *x);
int index_probe_key(struct index_probe *p, uint64_t key, void (*found)(const struct index_entry *entry, void *context), void *context);
void index_probe_free(struct index_probe *p);

/* Writes `count` entries, sorted by (key, run), as a new unpublished segment; ids are taken from *next_segment. */
int index_add(struct txn *t, struct index *x, const struct index_entry *entries, size_t count, uint32_t *next_segment);
/* Merges what wants merging, and writes the header: all segments are published when the transaction commits. */
int index_publish(struct txn *t, struct index *x, uint32_t *next_segment);
/* Merges unpublished segments among themselves only. */
int index_compact(struct txn *t, struct index *x, uint32_t *next_segment);

/* Walks all entries of all segments in (key, run) order. */
struct index_walk;
struct index_walk *index_walk_new(struct txn *t, const struct index *x, size_t first_segment);
const struct index_entry *index_walk_next(struct index_walk *w); /* NULL at the end or after a failure; valid until the next call */
void index_walk_free(struct index_walk *w);

int index_entry_cmp(const void *a, const void *b);

#endif
