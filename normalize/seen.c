#include "normalize/seen.h"

#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "normalize/hash.h"

enum { SLOTS_FIRST = 1 << 12, SLOTS_MAX = SEEN_MAX * 2 };

void seen_fini(struct seen *s)
{
	free(s->now);
	free(s->before);
	*s = (struct seen){0};
}

void seen_clear(struct seen *s)
{
	free(s->before);
	s->before = NULL;
	s->used = 0;
	if (s->now)
		memset(s->now, 0, s->slots * sizeof *s->now);
}

/* The slot that holds the run, or the free one where it belongs; `*id_there` when its id is met on the way. */
static struct seen_run *find(struct seen_run *table, size_t slots, struct seen_run run, int *id_there)
{
	size_t i = run.id & (slots - 1);
	for (; table[i].id; i = (i + 1) & (slots - 1)) {
		if (table[i].id != run.id)
			continue;
		if (table[i].digest == run.digest)
			break;
		*id_there = 1;
	}
	return &table[i];
}

static void make_room(struct seen *s)
{
	if (s->slots == SLOTS_MAX) {
		struct seen_run *oldest = s->before ? s->before : xmalloc(s->slots * sizeof *oldest);
		s->before = s->now;
		s->now = memset(oldest, 0, s->slots * sizeof *oldest);
		s->used = 0;
		return;
	}
	size_t slots = s->slots ? s->slots * 2 : SLOTS_FIRST;
	struct seen_run *grown = xcalloc(slots, sizeof *grown);
	int ignored = 0;
	for (size_t i = 0; i < s->slots; i++)
		if (s->now[i].id)
			*find(grown, slots, s->now[i], &ignored) = s->now[i];
	free(s->now);
	s->now = grown;
	s->slots = slots;
}

enum seen_result seen_add(struct seen *s, const char *external_id, size_t len, const struct digest *digest)
{
	struct seen_run run = {.id = hash_bytes(external_id, len) | 1};
	int id_there = 0;
	memcpy(&run.digest, digest->bytes, sizeof run.digest);
	if (s->used * 2 >= s->slots)
		make_room(s);
	if (s->before && find(s->before, s->slots, run, &id_there)->id)
		return SEEN_DUPLICATE;
	struct seen_run *slot = find(s->now, s->slots, run, &id_there);
	if (slot->id)
		return SEEN_DUPLICATE;
	*slot = run;
	s->used++;
	return id_there ? SEEN_CONFLICT : SEEN_NEW;
}
