#include "store/index.h"

#include <stdlib.h>
#include <string.h>

enum { MERGE_WIDTH = 4, TIER_BASE = 4096, SEGMENT_MAX = 1 << 21, HEADER_SEGMENTS_MAX = 4096 };

static MDB_val *header_key(struct key *key, enum index_kind kind, uint8_t slot)
{
	char name[24] = "index ";
	name[6] = (char)('0' + (int)kind);
	name[7] = ' ';
	name[8] = (char)('0' + slot / 100);
	name[9] = (char)('0' + slot / 10 % 10);
	name[10] = (char)('0' + slot % 10);
	return key_text(key, name);
}

int index_load(struct txn *t, enum index_kind kind, uint8_t slot, struct index *out)
{
	struct key key;
	MDB_val value;
	*out = (struct index){.kind = kind, .slot = slot};
	int found = txn_get(t, TABLE_META, header_key(&key, kind, slot), &value);
	if (found <= 0)
		return found;
	if (value.mv_size % sizeof(struct segment))
		return err_at(t->err, ERR_CORRUPT, t->st->file, 0, 0, "an index header has %zu bytes", value.mv_size);
	out->segments = xmalloc(value.mv_size);
	memcpy(out->segments, value.mv_data, value.mv_size);
	out->count = out->published = value.mv_size / sizeof(struct segment);
	return 0;
}

void index_fini(struct index *x)
{
	free(x->segments);
	*x = (struct index){0};
}

int index_entry_cmp(const void *a, const void *b)
{
	const struct index_entry *x = a, *y = b;
	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return (x->run > y->run) - (x->run < y->run);
}

static uint32_t blocks_of(uint32_t count)
{
	return (count + ENTRIES_PER_BLOCK - 1) / ENTRIES_PER_BLOCK;
}

static uint32_t entries_in(const struct segment *s, uint32_t block)
{
	uint32_t rest = s->count - block * ENTRIES_PER_BLOCK;
	return rest < ENTRIES_PER_BLOCK ? rest : ENTRIES_PER_BLOCK;
}

static const struct index_entry *block_get(struct txn *t, const struct index *x, const struct segment *s, uint32_t block)
{
	struct key key;
	MDB_val value;
	int found = txn_get(t, TABLE_INDEX, key_index(&key, x->kind, x->slot, s->id, (uint16_t)block), &value);
	if (found == 1 && value.mv_size == entries_in(s, block) * sizeof(struct index_entry))
		return value.mv_data;
	if (found >= 0)
		err_at(t->err, ERR_CORRUPT, t->st->file, 0, 0, "block %u of index segment %u is missing or short", block, s->id);
	return NULL;
}

/* First position in the block whose key is not below `low`. */
static uint32_t lower_bound(const struct index_entry *entries, uint32_t count, uint64_t low)
{
	uint32_t first = 0;
	while (count > 0) {
		uint32_t half = count / 2;
		if (entries[first + half].key < low) {
			first += half + 1;
			count -= half + 1;
		} else {
			count = half;
		}
	}
	return first;
}

/* The last block whose first key is below `low`, or block 0: where the first entry not below it must be looked for. */
static int first_block(struct txn *t, const struct index *x, const struct segment *s, uint64_t low, uint32_t *out)
{
	uint32_t first = 0, count = blocks_of(s->count);
	while (count > 1) {
		uint32_t half = count / 2;
		const struct index_entry *entries = block_get(t, x, s, first + half);
		if (!entries)
			return -1;
		if (entries[0].key < low) {
			first += half;
			count -= half;
		} else {
			count = half;
		}
	}
	*out = first;
	return 0;
}

int index_range(struct txn *t, const struct index *x, uint64_t low, uint64_t high,
		void (*found)(const struct index_entry *entry, void *context), void *context)
{
	for (size_t i = 0; i < x->count; i++) {
		const struct segment *s = &x->segments[i];
		uint32_t block, at = UINT32_MAX;
		if (first_block(t, x, s, low, &block))
			return -1;
		for (bool more = true; more && block < blocks_of(s->count); block++) {
			const struct index_entry *entries = block_get(t, x, s, block);
			uint32_t count = entries_in(s, block);
			if (!entries)
				return -1;
			for (at = at == UINT32_MAX ? lower_bound(entries, count, low) : 0; at < count; at++) {
				if (entries[at].key > high) {
					more = false;
					break;
				}
				found(&entries[at], context);
			}
		}
	}
	return 0;
}

static void append_segment(struct index *x, struct segment s)
{
	x->segments = xrealloc(x->segments, (x->count + 1) * sizeof *x->segments);
	x->segments[x->count++] = s;
}

int index_add(struct txn *t, struct index *x, const struct index_entry *entries, size_t count, uint32_t *next_segment)
{
	struct segment s = {*next_segment, (uint32_t)count};
	struct key key;
	if (count == 0)
		return 0;
	++*next_segment;
	for (uint32_t block = 0; block < blocks_of(s.count); block++)
		if (txn_put(t, TABLE_INDEX, key_index(&key, x->kind, x->slot, s.id, (uint16_t)block), entries + block * ENTRIES_PER_BLOCK,
			    entries_in(&s, block) * sizeof *entries))
			return -1;
	append_segment(x, s);
	return 0;
}

/* ---- walking several segments as one ---- */

struct walk_head {
	const struct segment *segment;
	const struct index_entry *entries;
	uint32_t block, at, count;
};
struct index_walk {
	struct txn *t;
	const struct index *x;
	struct walk_head *heads;
	size_t count;
	struct index_entry current;
};

static void head_load(struct index_walk *w, struct walk_head *h)
{
	h->entries = NULL;
	if (h->block >= blocks_of(h->segment->count))
		return;
	h->entries = block_get(w->t, w->x, h->segment, h->block);
	h->count = entries_in(h->segment, h->block);
	h->at = 0;
}

struct index_walk *index_walk_new(struct txn *t, const struct index *x, size_t first_segment)
{
	struct index_walk *w = xcalloc(1, sizeof *w);
	w->t = t;
	w->x = x;
	w->heads = xcalloc(x->count + 1, sizeof *w->heads);
	for (size_t i = first_segment; i < x->count; i++) {
		w->heads[w->count].segment = &x->segments[i];
		head_load(w, &w->heads[w->count++]);
	}
	return w;
}

const struct index_entry *index_walk_next(struct index_walk *w)
{
	struct walk_head *least = NULL;
	for (size_t i = 0; i < w->count; i++) {
		struct walk_head *h = &w->heads[i];
		if (h->entries && (!least || index_entry_cmp(&h->entries[h->at], &least->entries[least->at]) < 0))
			least = h;
	}
	if (!least || w->t->err->code)
		return NULL;
	w->current = least->entries[least->at];
	if (++least->at == least->count) {
		least->block++;
		head_load(w, least);
	}
	return &w->current;
}

void index_walk_free(struct index_walk *w)
{
	free(w->heads);
	free(w);
}

/* ---- probing many keys ---- */

struct index_probe {
	struct txn *t;
	const struct index *x;
	struct walk_head *heads;
};

struct index_probe *index_probe_new(struct txn *t, const struct index *x)
{
	struct index_probe *p = xmalloc(sizeof *p);
	*p = (struct index_probe){t, x, xcalloc(x->count + 1, sizeof *p->heads)};
	for (size_t i = 0; i < x->count; i++)
		p->heads[i].segment = &x->segments[i];
	return p;
}

/* Makes the head's block the first whose last key is not below `key`; no entries are left when there is none. */
static int seek_block(struct index_probe *p, struct walk_head *h, uint64_t key)
{
	while (h->block < blocks_of(h->segment->count)) {
		if (!h->entries) {
			h->entries = block_get(p->t, p->x, h->segment, h->block);
			h->count = entries_in(h->segment, h->block);
			h->at = 0;
			if (!h->entries)
				return -1;
		}
		if (h->entries[h->count - 1].key >= key)
			return 0;
		h->block++;
		h->entries = NULL;
	}
	return 0;
}

/* Steps of growing width from the last place, then a binary search in the step that went too far. */
static void seek_entry(struct walk_head *h, uint64_t key)
{
	uint32_t width = 1, from = h->at;
	while (from + width < h->count && h->entries[from + width].key < key) {
		from += width;
		width *= 2;
	}
	uint32_t room = h->count - from < width + 1 ? h->count - from : width + 1;
	h->at = from + lower_bound(h->entries + from, room, key);
}

int index_probe_key(struct index_probe *p, uint64_t key, void (*found)(const struct index_entry *entry, void *context), void *context)
{
	for (size_t i = 0; i < p->x->count; i++) {
		struct walk_head *h = &p->heads[i];
		if (seek_block(p, h, key))
			return -1;
		if (!h->entries)
			continue;
		seek_entry(h, key);
		struct walk_head ahead = *h; /* equal keys may go on in the next block; the head stays for the next key */
		while (ahead.entries && ahead.entries[ahead.at].key == key) {
			found(&ahead.entries[ahead.at], context);
			if (++ahead.at == ahead.count) {
				ahead.block++;
				ahead.entries = NULL;
				if (seek_block(p, &ahead, key))
					return -1;
			}
		}
	}
	return 0;
}

void index_probe_free(struct index_probe *p)
{
	free(p->heads);
	free(p);
}

/* ---- merging ---- */

static unsigned tier(uint32_t count)
{
	unsigned level = 0;
	for (uint32_t room = TIER_BASE; room < count && level < 15; room *= MERGE_WIDTH)
		level++;
	return level;
}

/* Entries of a view are read while the merged segment is written; LMDB moves pages only on commit, but a dirty page of this
 * transaction may be reused, so a block is copied before it is put. */
static int write_merged(struct txn *t, struct index *x, const struct index *part, struct segment *merged)
{
	struct index_entry *block = xmalloc(ENTRIES_PER_BLOCK * sizeof *block);
	struct index_walk *w = index_walk_new(t, part, 0);
	const struct index_entry *entry;
	struct key key;
	uint32_t filled = 0, number = 0;
	int rc = 0;
	do {
		entry = index_walk_next(w);
		if (entry)
			block[filled++] = *entry;
		if (filled == ENTRIES_PER_BLOCK || (!entry && filled)) {
			rc = txn_put(t, TABLE_INDEX, key_index(&key, x->kind, x->slot, merged->id, (uint16_t)number++), block, filled * sizeof *block);
			merged->count += filled;
			filled = 0;
			for (size_t i = 0; i < w->count; i++) /* a put may have moved what the heads look at */
				if (w->heads[i].entries)
					w->heads[i].entries = block_get(t, part, w->heads[i].segment, w->heads[i].block);
		}
	} while (entry && rc == 0);
	index_walk_free(w);
	free(block);
	return rc || t->err->code ? -1 : 0;
}

static int delete_segment(struct txn *t, const struct index *x, const struct segment *s)
{
	struct key key;
	for (uint32_t block = 0; block < blocks_of(s->count); block++)
		if (txn_delete(t, TABLE_INDEX, key_index(&key, x->kind, x->slot, s->id, (uint16_t)block)))
			return -1;
	return 0;
}

/* Merges the members (ascending positions) into one segment, which takes the place of the first. */
static int merge(struct txn *t, struct index *x, const size_t *members, size_t count, uint32_t *next_segment)
{
	struct segment merged = {(*next_segment)++, 0}, parts[MERGE_WIDTH];
	struct index part = {x->kind, x->slot, parts, count, count};
	for (size_t i = 0; i < count; i++)
		parts[i] = x->segments[members[i]];
	if (write_merged(t, x, &part, &merged))
		return -1;
	for (size_t i = 0; i < count; i++)
		if (delete_segment(t, x, &parts[i]))
			return -1;
	x->segments[members[0]] = merged;
	for (size_t i = count - 1; i > 0; i--) {
		memmove(x->segments + members[i], x->segments + members[i] + 1, (x->count - members[i] - 1) * sizeof *x->segments);
		x->count--;
	}
	return 0;
}

/* Merges four segments of one tier, lowest tier first, until no tier has four. Only segments from `first` on take part. */
static int merge_tiers(struct txn *t, struct index *x, size_t first, uint32_t *next_segment)
{
	for (unsigned level = 0; level < 16; level++) {
		size_t members[MERGE_WIDTH], count = 0;
		uint64_t total = 0;
		for (size_t i = first; i < x->count && count < MERGE_WIDTH; i++)
			if (tier(x->segments[i].count) == level) {
				members[count++] = i;
				total += x->segments[i].count;
			}
		if (count < MERGE_WIDTH || total > SEGMENT_MAX)
			continue;
		if (merge(t, x, members, count, next_segment))
			return -1;
		level = (unsigned)-1; /* start over: the merged segment may complete a tier */
	}
	return 0;
}

int index_compact(struct txn *t, struct index *x, uint32_t *next_segment)
{
	return merge_tiers(t, x, x->published, next_segment);
}

int index_publish(struct txn *t, struct index *x, uint32_t *next_segment)
{
	struct key key;
	if (merge_tiers(t, x, 0, next_segment))
		return -1;
	x->published = x->count;
	if (x->count > HEADER_SEGMENTS_MAX)
		return err_set(t->err, ERR_BUG, "an index has %zu segments", x->count);
	return x->count ? txn_put(t, TABLE_META, header_key(&key, x->kind, x->slot), x->segments, x->count * sizeof *x->segments) : 0;
}
