#include "store/cohort.h"

#include <stdlib.h>
#include <string.h>

#include "store/correction.h"

const char *unranked_code(enum unranked u)
{
	static const char *const codes[] = {NULL, "STATUS_FAILED", "RETRACTED", "SUPERSEDED", "MISSING_PRIMARY_METRIC"};
	return codes[u];
}

/* A run of the case at hand, in a channel that carried it. */
struct hit {
	uint32_t run;
	uint8_t slot;
};
struct hits {
	struct hit *items;
	size_t count, room;
	uint8_t slot;
};

static void add_hit(uint32_t run, void *context)
{
	struct hits *h = context;
	if (h->count == h->room) {
		h->room = h->room ? h->room * 2 : 16;
		h->items = xrealloc(h->items, h->room * sizeof *h->items);
	}
	h->items[h->count++] = (struct hit){run, h->slot};
}

static int compare_hits(const void *a, const void *b)
{
	const struct hit *x = a, *y = b;
	if (x->run != y->run)
		return x->run < y->run ? -1 : 1;
	return (x->slot > y->slot) - (x->slot < y->slot);
}

/* The interval that a controlled run's body states. */
static int read_interval(struct catalog *c, struct member *m)
{
	json_t *body = catalog_load(c, &m->row.digest);
	const json_t *latency = json_object_get(json_object_get(json_object_get(body, "spec"), "timing"), "latencyNs");
	const json_t *interval = json_object_get(latency, "confidence95");
	if (json_array_size(interval) == 2) {
		m->low95 = json_integer_value(json_array_get(interval, 0));
		m->high95 = json_integer_value(json_array_get(interval, 1));
	}
	json_decref(body);
	return body ? 0 : -1;
}

static int add_member(struct catalog *c, struct cohort *k, const struct catalog_case *of, uint32_t run)
{
	struct member m = {.run = run, .c = of, .low95 = -1, .high95 = -1};
	if (catalog_run(c, run, &m.row) || ((m.row.flags & RUN_WHOLE) && read_interval(c, &m)))
		return -1;
	m.primary = run_units(&m.row, of->parts.metric, m.row.value_50);
	if (m.row.flags & RUN_FAILED)
		m.unranked = UNRANKED_STATUS;
	else if (correction_retraction(c, &m.row.digest))
		m.unranked = UNRANKED_RETRACTED;
	else if (m.primary < 0)
		m.unranked = UNRANKED_MISSING_METRIC;
	if ((k->count & (k->count - 1)) == 0)
		k->members = xrealloc(k->members, (k->count ? k->count * 2 : 1) * sizeof *k->members);
	k->members[k->count++] = m;
	return 0;
}

static int by_time(const void *a, const void *b)
{
	const struct member *x = *(struct member *const *)a, *y = *(struct member *const *)b;
	if (x->row.observed_ms != y->row.observed_ms)
		return x->row.observed_ms < y->row.observed_ms ? -1 : 1;
	return digest_cmp(&x->row.digest, &y->row.digest);
}

/* In a file channel a run is superseded by the run of the same case with the next later time (manifests.md section 7); of
 * several at that time, by the least digest. `line` holds the case's members that the channel carried. */
static void supersede(struct member **line, size_t count)
{
	size_t next = count; /* first member that is later than the one at hand */
	if (count < 2)
		return;
	qsort(line, count, sizeof *line, by_time);
	for (size_t i = count - 1; i-- > 0;) {
		if (line[i]->row.observed_ms < line[i + 1]->row.observed_ms)
			next = i + 1;
		if (next == count || line[i]->superseded)
			continue;
		line[i]->superseded = true;
		if (line[i]->unranked != UNRANKED_RETRACTED)
			line[i]->unranked = UNRANKED_SUPERSEDED;
		line[i]->successor = line[next]->run;
	}
}

/* Members of one case: every run once, whichever channels carried it. */
static int add_case(struct catalog *c, struct cohort *k, uint32_t id)
{
	const struct catalog_case *of = catalog_case(c, id);
	struct hits hits = {0};
	size_t first = k->count;
	if (!of)
		return -1;
	for (size_t slot = 0; slot < c->channels.count; slot++) {
		hits.slot = (uint8_t)slot;
		if (catalog_case_runs(c, (uint8_t)slot, id, add_hit, &hits))
			break;
	}
	if (hits.count)
		qsort(hits.items, hits.count, sizeof *hits.items, compare_hits);
	for (size_t i = 0; i < hits.count && !c->err->code; i++)
		if (i == 0 || hits.items[i].run != hits.items[i - 1].run)
			add_member(c, k, of, hits.items[i].run);
	struct member **line = xmalloc((hits.count + 1) * sizeof *line);
	for (size_t slot = 0; slot < c->channels.count && !c->err->code; slot++) {
		size_t count = 0, at = first;
		for (size_t i = 0; i < hits.count && !c->channels.items[slot].entries; i++) {
			at += i > 0 && hits.items[i].run != hits.items[i - 1].run;
			if (hits.items[i].slot == slot)
				line[count++] = &k->members[at];
		}
		supersede(line, count);
	}
	free(line);
	free(hits.items);
	return c->err->code ? -1 : 0;
}

/* Ranked before unranked; ascending median; inside a tie newer first, then by digest. */
static int compare(const void *a, const void *b)
{
	const struct member *x = a, *y = b;
	if ((x->unranked != RANKED) != (y->unranked != RANKED))
		return x->unranked != RANKED ? 1 : -1;
	if (x->unranked != RANKED)
		return (x->run > y->run) - (x->run < y->run);
	if (x->primary != y->primary)
		return x->primary < y->primary ? -1 : 1;
	if (x->row.observed_ms != y->row.observed_ms)
		return x->row.observed_ms > y->row.observed_ms ? -1 : 1;
	return digest_cmp(&x->row.digest, &y->row.digest);
}

static bool same_kernel(const struct member *a, const struct member *b)
{
	return slice_same(a->c->parts.operation_slug, b->c->parts.operation_slug);
}

/* Whether a run shares the rank of the one before it: equal medians, or, of controlled runs, overlapping 95% intervals. */
static bool level(const struct member *before, const struct member *m)
{
	if (before->low95 >= 0 && m->low95 >= 0)
		return m->low95 <= before->high95;
	return before->primary == m->primary;
}

enum { KERNELS_MAX = 16 }; /* of one cohort; more are not told apart */

/* Dense ranks: one more than the number of distinct smaller medians, in all and within the kernel. */
static void rank(struct cohort *k)
{
	const struct member *last[KERNELS_MAX]; /* of each kernel seen so far */
	k->ranked = k->kernels = 0;
	for (size_t i = 0; i < k->count; i++) {
		struct member *m = &k->members[i], *before = i ? m - 1 : NULL;
		size_t kernel = 0;
		m->rank = m->kernel_rank = 0;
		m->tied = false;
		while (kernel < k->kernels && kernel < KERNELS_MAX - 1 && !same_kernel(last[kernel], m))
			kernel++;
		bool first = kernel == k->kernels;
		k->kernels += first;
		if (m->unranked == RANKED) {
			k->ranked++;
			m->tied = before && level(before, m);
			m->rank = before ? before->rank + !m->tied : 1;
			m->kernel_rank = first ? 1 : last[kernel]->kernel_rank + !level(last[kernel], m);
		}
		last[kernel] = m;
	}
}

void cohort_rank(struct cohort *k)
{
	if (k->count)
		qsort(k->members, k->count, sizeof *k->members, compare);
	rank(k);
}

int cohort_load(struct catalog *c, const struct digest *key, struct cohort *out)
{
	struct key at;
	MDB_val value;
	*out = (struct cohort){.key = *key};
	key_digest_u32(&at, key, 0);
	for (uint32_t id = 0; txn_next(&c->t, TABLE_COHORTS, &at, &value) == 1; key_digest_u32(&at, key, id + 1)) {
		if (memcmp(at.bytes, key->bytes, DIGEST_SIZE) != 0)
			break;
		id = key_read_u32(&at.val, DIGEST_SIZE);
		if (id < c->counts.cases && add_case(c, out, id))
			break;
	}
	cohort_rank(out);
	return c->err->code ? -1 : 0;
}

void cohort_fini(struct cohort *k)
{
	free(k->members);
	*k = (struct cohort){0};
}

const struct member *cohort_member(const struct cohort *k, uint32_t run)
{
	for (size_t i = 0; i < k->count; i++)
		if (k->members[i].run == run)
			return &k->members[i];
	return NULL;
}

/* The first comparison key at or after `at`: 1 found, 0 none, -1 failed. */
static int next_key(struct catalog *c, struct digest *at)
{
	struct key key;
	MDB_val value;
	key_digest_u32(&key, at, 0);
	int found = txn_next(&c->t, TABLE_COHORTS, &key, &value);
	if (found == 1)
		memcpy(at->bytes, key.bytes, DIGEST_SIZE);
	return found;
}

static bool increment(struct digest *d)
{
	for (int i = DIGEST_SIZE - 1; i >= 0; i--)
		if (++d->bytes[i])
			return true;
	return false;
}

int cohort_each(struct catalog *c, int (*visit)(const struct cohort *k, void *context), void *context)
{
	struct digest at = {{0}};
	int found, rc = 0;
	while (rc == 0 && (found = next_key(c, &at)) == 1) {
		struct cohort k;
		rc = cohort_load(c, &at, &k);
		if (rc == 0 && k.count)
			rc = visit(&k, context);
		cohort_fini(&k);
		if (!increment(&at))
			break;
	}
	return c->err->code ? -1 : rc;
}

int cohort_find(struct catalog *c, const char *text, struct digest *key)
{
	const char *hex = strncmp(text, "sha256:", 7) == 0 ? text + 7 : text;
	size_t digits = strspn(hex, "0123456789abcdef"), matches = 0;
	char padded[DIGEST_HEX + 1], held[DIGEST_HEX + 1];
	struct digest at;
	if (digits < 8 || digits > DIGEST_HEX || hex[digits])
		return err_set(c->err, ERR_USAGE, "%s: not a comparison key (want 8 or more hex digits)", text);
	memset(padded, '0', DIGEST_HEX);
	memcpy(padded, hex, digits);
	digest_parse_hex(padded, DIGEST_HEX, &at);
	while (next_key(c, &at) == 1) {
		digest_hex(&at, held);
		if (memcmp(held, hex, digits) != 0)
			break;
		*key = at;
		matches++;
		if (!increment(&at))
			break;
	}
	if (c->err->code)
		return -1;
	if (matches == 0)
		return err_set(c->err, ERR_NOTFOUND, "%s: no such comparison key", text);
	return matches > 1 ? err_set(c->err, ERR_USAGE, "%s: means %zu comparison keys; give more digits", text, matches) : 0;
}
