#include "store/link.h"

#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "store/entry.h"

const char *level_name(enum level l)
{
	static const char *const names[] = {"reported", "reproducible", "verified", "replicated"};
	return names[l];
}

/* Links by the runs they name, sorted; built once a catalog, in its arena. */
struct link_ref {
	struct digest run; /* first, for digest_search */
	uint32_t entry; /* position in `entries` */
};
struct link_table {
	const json_t *entries;
	struct link_ref *refs;
	size_t count;
};

static int compare(const void *a, const void *b)
{
	const struct link_ref *x = a, *y = b;
	int order = digest_cmp(&x->run, &y->run);
	return order ? order : (x->entry > y->entry) - (x->entry < y->entry);
}

static void add(struct link_table *t, const char *run, size_t entry)
{
	struct link_ref *r = &t->refs[t->count];
	if (digest_parse(run, strlen(run), &r->run)) {
		r->entry = (uint32_t)entry;
		t->count++;
	}
}

static struct link_table *table_of(struct catalog *c)
{
	size_t i;
	json_t *entry;
	if (c->links)
		return c->links;
	struct link_table *t = c->links = arena_alloc(&c->arena, sizeof *t);
	t->entries = entry_all(c);
	t->refs = arena_alloc(&c->arena, (2 * json_array_size(t->entries) + 1) * sizeof *t->refs);
	json_array_foreach((json_t *)t->entries, i, entry)
		if (strcmp(json_text_of(entry, "type"), "link") == 0) {
			add(t, json_text_of(entry, "subject"), i);
			add(t, json_text_of(entry, "rerun"), i);
		}
	if (t->count)
		qsort(t->refs, t->count, sizeof *t->refs, compare);
	return t;
}

json_t *link_of(struct catalog *c, const struct digest *run)
{
	const struct link_table *t = table_of(c);
	json_t *out = json_array();
	size_t count, first = digest_search(t->refs, t->count, sizeof *t->refs, run, &count);
	for (size_t i = first; i < first + count; i++)
		json_array_append(out, json_array_get(t->entries, t->refs[i].entry));
	return out;
}

static bool differ(const json_t *a, const json_t *b, const char *name)
{
	const char *x = json_text_of(a, name), *y = json_text_of(b, name);
	return *x && *y && strcmp(x, y) != 0;
}

static bool confirms(const json_t *link, const char *subject)
{
	return strcmp(json_text_of(link, "subject"), subject) == 0 && strcmp(json_text_of(link, "runner"), "upstream") == 0 &&
	       strcmp(json_text_of(link, "verdict"), "confirmed") == 0 && strcmp(json_text_of(link, "status"), "passed") == 0;
}

enum level link_level(struct catalog *c, const struct digest *run)
{
	const struct link_table *t = table_of(c);
	char name[DIGEST_TEXT + 1];
	enum level level = LEVEL_REPORTED;
	size_t count, first = digest_search(t->refs, t->count, sizeof *t->refs, run, &count);
	digest_text(run, name);
	for (size_t i = first; i < first + count; i++) {
		const json_t *a = json_array_get(t->entries, t->refs[i].entry);
		if (strcmp(json_text_of(a, "rerun"), name) == 0 && strcmp(json_text_of(a, "runner"), "native") == 0 &&
		    strcmp(json_text_of(a, "status"), "passed") == 0 && strcmp(json_text_of(a, "verdict"), "invalid_run") != 0)
			level = level > LEVEL_VERIFIED ? level : LEVEL_VERIFIED;
		if (!confirms(a, name))
			continue;
		level = level > LEVEL_VERIFIED ? level : LEVEL_VERIFIED;
		for (size_t k = first; k < i; k++) {
			const json_t *b = json_array_get(t->entries, t->refs[k].entry);
			if (confirms(b, name) && differ(a, b, "key") && differ(a, b, "gpu") && differ(a, b, "machine"))
				level = LEVEL_REPLICATED;
		}
	}
	return level;
}

const char *link_verdict(const json_t *links, const char *subject)
{
	const char *last = NULL, *refuted_in = NULL;
	size_t i;
	json_t *link;
	json_array_foreach((json_t *)links, i, link) {
		if (strcmp(json_text_of(link, "subject"), subject) != 0)
			continue;
		const char *verdict = json_text_of(link, "verdict"), *batch = json_text_of(link, "batch");
		if (strcmp(verdict, "invalid_run") == 0)
			continue;
		last = verdict;
		if (strcmp(verdict, "refuted") != 0)
			continue;
		if (refuted_in && strcmp(refuted_in, batch) != 0)
			return "refuted";
		refuted_in = batch;
	}
	return last && strcmp(last, "refuted") == 0 ? "inconclusive" : last;
}
