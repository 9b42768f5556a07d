#include "store/batch.h"

#include <stdlib.h>
#include <string.h>

/* Buffers of one flush, allocated once. */
struct batch_scratch {
	struct index_entry order[BATCH_RUNS];   /* key: digest prefix, run: position in the batch */
	struct index_entry by_case[BATCH_RUNS]; /* entries for the channel's index */
	uint32_t run_of[BATCH_RUNS];            /* the run number of each position */
	uint32_t same_as[BATCH_RUNS];           /* position of the first row with this digest */
	bool fresh[BATCH_RUNS];                 /* not in the catalog before this batch; set for first rows only */
};

void batch_init(struct batch *b)
{
	*b = (struct batch){xmalloc(BATCH_RUNS * sizeof *b->rows), 0, xmalloc(sizeof *b->scratch)};
}

void batch_fini(struct batch *b)
{
	free(b->rows);
	free(b->scratch);
	*b = (struct batch){0};
}

/* A search for one row among indexed runs: by digest, by case and time, or for membership in a channel. */
struct probe {
	struct txn *t;
	const struct run_row *row;
	uint32_t wanted, run; /* run: the one found, UINT32_MAX when none */
	struct run_row found;
	bool conflict, member;
};

static void match_digest(const struct index_entry *entry, void *context)
{
	struct probe *p = context;
	struct run_row held;
	if (p->run == UINT32_MAX && run_get(p->t, entry->run, &held) == 0 && digest_cmp(&held.digest, &p->row->digest) == 0) {
		p->run = entry->run;
		p->found = held;
	}
}

static void match_time(const struct index_entry *entry, void *context)
{
	struct probe *p = context;
	struct run_row held;
	if (run_get(p->t, entry->run, &held) == 0 && held.observed_ms == p->row->observed_ms &&
	    digest_cmp(&held.digest, &p->row->digest) != 0)
		p->conflict = true;
}

static void match_run(const struct index_entry *entry, void *context)
{
	struct probe *p = context;
	p->member = p->member || entry->run == p->wanted;
}

static int by_digest(const void *a, const void *b, void *rows)
{
	const struct index_entry *x = a, *y = b;
	const struct run_row *held = rows;
	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	int order = digest_cmp(&held[x->run].digest, &held[y->run].digest);
	return order ? order : (x->run > y->run) - (x->run < y->run);
}

/* Sorts positions by digest, and finds for each its first twin in the batch, and if the catalog has it its run number and row: a run
 * stays in the case that first brought it, though upstream may spell the case another way later. */
static int find_known(struct batch *b, struct txn *t, struct batch_target *target)
{
	struct batch_scratch *s = b->scratch;
	struct index_probe *digests = index_probe_new(t, &target->digests);
	int rc = 0;
	for (uint32_t i = 0; i < b->count; i++)
		s->order[i] = (struct index_entry){key_of_digest(&b->rows[i].digest), i};
	qsort_r(s->order, b->count, sizeof *s->order, by_digest, b->rows);
	for (size_t k = 0; k < b->count && rc == 0; k++) {
		uint32_t i = s->order[k].run, twin = k ? s->same_as[s->order[k - 1].run] : i;
		s->same_as[i] = digest_cmp(&b->rows[twin].digest, &b->rows[i].digest) == 0 ? twin : i;
		s->fresh[i] = false;
		if (s->same_as[i] != i)
			continue;
		struct probe p = {.t = t, .row = &b->rows[i], .run = UINT32_MAX};
		rc = index_probe_key(digests, s->order[k].key, match_digest, &p);
		s->run_of[i] = p.run;
		s->fresh[i] = p.run == UINT32_MAX;
		if (!s->fresh[i])
			b->rows[i] = p.found;
	}
	index_probe_free(digests);
	return rc;
}

/* Numbers fresh rows in file order, and notes every row's number. Returns how many are fresh. */
static size_t number_rows(struct batch *b, struct batch_target *target)
{
	struct batch_scratch *s = b->scratch;
	size_t fresh = 0;
	for (size_t i = 0; i < b->count; i++) {
		s->run_of[i] = s->fresh[i] ? target->runs + (uint32_t)fresh : s->run_of[s->same_as[i]];
		fresh += s->fresh[i];
		ranges_add(&target->carried, s->run_of[i]);
	}
	return fresh;
}

/* Looks each row up by case and time, in every channel: a fresh row that contradicts an older one (same case, same time, other
 * content) is counted; a known row that this channel has carried before needs no entry, and its key is left out. */
static int probe_cases(struct batch *b, struct txn *t, struct batch_target *target, size_t *count)
{
	struct batch_scratch *s = b->scratch;
	struct index_probe *channels[CHANNELS_MAX];
	size_t kept = 0;
	int rc = 0;
	for (size_t slot = 0; slot < target->channel_count; slot++)
		channels[slot] = index_probe_new(t, &target->channels[slot]);
	for (size_t k = 0; k < *count && rc == 0; k++) {
		uint32_t i = s->by_case[k].run;
		struct probe p = {.t = t, .row = &b->rows[i], .wanted = s->run_of[i]};
		if (s->fresh[i])
			for (size_t slot = 0; slot < target->channel_count && rc == 0 && !p.conflict; slot++)
				rc = index_probe_key(channels[slot], s->by_case[k].key, match_time, &p);
		else
			rc = index_probe_key(channels[target->slot], s->by_case[k].key, match_run, &p);
		target->conflicts += p.conflict;
		if (!p.member)
			s->by_case[kept++] = (struct index_entry){s->by_case[k].key, s->run_of[i]};
	}
	for (size_t slot = 0; slot < target->channel_count; slot++)
		index_probe_free(channels[slot]);
	*count = kept;
	return rc;
}

/* Writes the channel's entries: fresh rows, and known rows that the channel had not carried before. */
static int index_channel(struct batch *b, struct txn *t, struct batch_target *target)
{
	struct batch_scratch *s = b->scratch;
	size_t count = 0;
	for (uint32_t i = 0; i < b->count; i++)
		if (s->same_as[i] == i)
			s->by_case[count++] = (struct index_entry){key_of_case(b->rows[i].case_id, b->rows[i].observed_ms), i};
	qsort(s->by_case, count, sizeof *s->by_case, index_entry_cmp);
	if (probe_cases(b, t, target, &count))
		return -1;
	qsort(s->by_case, count, sizeof *s->by_case, index_entry_cmp);
	for (size_t i = 1; i < count; i++) /* two fresh rows of one case and second contradict each other */
		if (s->by_case[i].key == s->by_case[i - 1].key && s->by_case[i].run >= target->runs && s->by_case[i - 1].run >= target->runs)
			target->conflicts++;
	return index_add(t, &target->channels[target->slot], s->by_case, count, &target->next_segment);
}

static int index_digests(struct batch *b, struct txn *t, struct batch_target *target)
{
	struct batch_scratch *s = b->scratch;
	size_t count = 0;
	for (size_t k = 0; k < b->count; k++) {
		uint32_t i = s->order[k].run;
		if (s->fresh[i])
			s->order[count++] = (struct index_entry){s->order[k].key, s->run_of[i]};
	}
	qsort(s->order, count, sizeof *s->order, index_entry_cmp);
	return index_add(t, &target->digests, s->order, count, &target->next_segment);
}

static void keep_fresh(struct batch *b)
{
	size_t kept = 0;
	for (size_t i = 0; i < b->count; i++)
		if (b->scratch->fresh[i])
			b->rows[kept++] = b->rows[i];
}

int batch_flush(struct batch *b, struct txn *t, struct batch_target *target)
{
	if (b->count == 0)
		return 0;
	if (find_known(b, t, target))
		return -1;
	size_t fresh = number_rows(b, target);
	if (index_channel(b, t, target) || index_digests(b, t, target))
		return -1;
	keep_fresh(b);
	if (run_append(t, target->runs, b->rows, fresh))
		return -1;
	target->runs += (uint32_t)fresh;
	target->runs_new += fresh;
	b->count = 0;
	return index_compact(t, &target->digests, &target->next_segment) ||
			       index_compact(t, &target->channels[target->slot], &target->next_segment)
		       ? -1
		       : 0;
}
