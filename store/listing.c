#include "store/listing.h"

#include <stdlib.h>
#include <string.h>

struct listing_item {
	uint32_t run, head, rank, kernel_rank, successor;
	uint8_t tied, unranked, superseded;
	union {
		int64_t observed_ms;
		struct slice version;
		uint64_t digest; /* its first bytes */
		char *id;        /* on the heap, SORT_ID only */
	} by;
};

bool sort_parse(const char *text, enum sort *out)
{
	static const char *const names[] = {"store", "time", "version", "rank", "id", "digest"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strcmp(names[i], text) == 0) {
			*out = (enum sort)i;
			return true;
		}
	return false;
}

static int set_order(struct listing *l, struct listing_item *item, const struct member *m, struct view *v)
{
	switch (l->sort) {
	case SORT_STORE:
	case SORT_RANK:
		break;
	case SORT_TIME:
		item->by.observed_ms = m->row.observed_ms;
		break;
	case SORT_VERSION:
		v->labels = catalog_labels(l->c, m->row.labels);
		item->by.version = view_label(v, "liger_version");
		break;
	case SORT_ID:
		if (catalog_external_id(l->c, &m->row, &v->external_id))
			return -1;
		item->by.id = xstrdup(v->external_id.data);
		break;
	case SORT_DIGEST:
		item->by.digest = key_of_digest(&m->row.digest);
		break;
	}
	return 0;
}

static int add_cohort(const struct cohort *k, void *context)
{
	struct listing *l = context;
	struct view v = {0};
	bool used = false;
	int rc = 0;
	for (size_t i = 0; i < k->count && rc == 0; i++) {
		const struct member *m = &k->members[i];
		if (!filter_match(l->filter, m))
			continue;
		if (l->count == l->room) {
			l->room = l->room ? l->room * 2 : 256;
			l->items = xrealloc(l->items, l->room * sizeof *l->items);
		}
		l->items[l->count] = (struct listing_item){m->run, (uint32_t)l->head_count, m->rank, m->kernel_rank, m->successor, m->tied, (uint8_t)m->unranked, m->superseded, {0}};
		rc = set_order(l, &l->items[l->count++], m, &v);
		used = true;
	}
	view_fini(&v);
	if (used) {
		if ((l->head_count & (l->head_count - 1)) == 0)
			l->heads = xrealloc(l->heads, (l->head_count ? l->head_count * 2 : 1) * sizeof *l->heads);
		l->heads[l->head_count++] = (struct cohort){.key = k->key, .ranked = k->ranked, .kernels = k->kernels};
	}
	return rc;
}

/* Digests that begin alike are read whole. */
static int compare_digests(struct listing *l, const struct listing_item *x, const struct listing_item *y)
{
	struct run_row a, b;
	if (x->by.digest != y->by.digest)
		return x->by.digest < y->by.digest ? -1 : 1;
	return catalog_run(l->c, x->run, &a) || catalog_run(l->c, y->run, &b) ? 0 : digest_cmp(&a.digest, &b.digest);
}

static int compare(const void *a, const void *b, void *context)
{
	const struct listing_item *x = a, *y = b;
	struct listing *l = context;
	int order = 0;
	switch (l->sort) {
	case SORT_STORE:
		break;
	case SORT_TIME:
		order = (x->by.observed_ms > y->by.observed_ms) - (x->by.observed_ms < y->by.observed_ms);
		break;
	case SORT_VERSION:
		order = view_compare_versions(x->by.version, y->by.version);
		break;
	case SORT_RANK: /* 0, unranked, becomes the largest */
		order = (x->rank - 1 > y->rank - 1) - (x->rank - 1 < y->rank - 1);
		break;
	case SORT_ID:
		order = strcmp(x->by.id, y->by.id);
		break;
	case SORT_DIGEST:
		order = compare_digests(l, x, y);
		break;
	}
	return order ? order : (x->run > y->run) - (x->run < y->run);
}

int listing_load(struct catalog *c, const struct filter *filter, enum sort sort, struct listing *out)
{
	*out = (struct listing){.c = c, .filter = filter, .sort = sort};
	if (cohort_each(c, add_cohort, out))
		return -1;
	if (out->count)
		qsort_r(out->items, out->count, sizeof *out->items, compare, out);
	return c->err->code ? -1 : 0;
}

void listing_fini(struct listing *l)
{
	for (size_t i = 0; i < l->count && l->sort == SORT_ID; i++)
		free(l->items[i].by.id);
	free(l->items);
	free(l->heads);
	*l = (struct listing){0};
}

int listing_view(struct listing *l, size_t i, struct view *v)
{
	const struct listing_item *item = &l->items[i];
	struct member *m = &l->current;
	*m = (struct member){.run = item->run, .rank = item->rank, .kernel_rank = item->kernel_rank, .successor = item->successor, .tied = item->tied,
			     .unranked = (enum unranked)item->unranked, .superseded = item->superseded};
	if (catalog_run(l->c, item->run, &m->row) || !(m->c = catalog_case(l->c, m->row.case_id)))
		return -1;
	m->primary = run_units(&m->row, m->c->parts.metric, m->row.value_50);
	return view_fill(v, l->c, &l->heads[item->head], m);
}
