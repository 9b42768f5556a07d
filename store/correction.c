#include "store/correction.h"

#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "store/entry.h"

/* An entry about a run, and whether it stands. */
struct correction {
	struct digest run;
	uint32_t number; /* among all entries */
	uint32_t undoes; /* place of the correction it undoes, UINT32_MAX when it is no undo */
	bool retracts, stands;
	const json_t *entry;
};
struct correction_ref {
	struct digest run; /* first, for digest_search */
	uint32_t place; /* among the corrections */
};
struct correction_table {
	struct correction *items; /* in order */
	struct correction_ref *by_run; /* by run, then in order */
	size_t count;
	struct correction_step *steps;
	size_t step_count;
};

bool correction_is(const json_t *entry)
{
	const char *type = json_text_of(entry, "type");
	return strcmp(type, "retract") == 0 || strcmp(type, "note") == 0 || strcmp(type, "undo") == 0;
}

static uint32_t place_of(const struct correction_table *t, const char *id)
{
	for (size_t i = 0; i < t->count; i++)
		if (strcmp(json_text_of(t->items[i].entry, "id"), id) == 0)
			return (uint32_t)i;
	return UINT32_MAX;
}

static void add(struct correction_table *t, uint32_t number, const json_t *entry)
{
	const char *type = json_text_of(entry, "type"), *run = json_text_of(entry, "run");
	struct correction x = {.number = number, .undoes = UINT32_MAX, .retracts = strcmp(type, "retract") == 0, .entry = entry};
	if (!correction_is(entry) || !digest_parse(run, strlen(run), &x.run))
		return;
	if (strcmp(type, "undo") == 0)
		x.undoes = place_of(t, json_text_of(entry, "entry"));
	t->items[t->count++] = x;
}

/* What stands after the first `count` corrections: each undo that stands itself takes its target away. */
static void settle(struct correction_table *t, size_t count)
{
	for (size_t i = 0; i < count; i++)
		t->items[i].stands = true;
	for (size_t i = count; i-- > 0;)
		if (t->items[i].stands && t->items[i].undoes < i)
			t->items[t->items[i].undoes].stands = false;
}

static bool is_retracted(const struct correction_table *t, size_t count, const struct digest *run)
{
	for (size_t i = 0; i < count; i++)
		if (t->items[i].retracts && t->items[i].stands && digest_cmp(&t->items[i].run, run) == 0)
			return true;
	return false;
}

static int by_run(const void *a, const void *b)
{
	const struct correction_ref *x = a, *y = b;
	int order = digest_cmp(&x->run, &y->run);
	return order ? order : (x->place > y->place) - (x->place < y->place);
}

static int steps_by_run(const void *a, const void *b)
{
	const struct correction_step *x = a, *y = b;
	int order = digest_cmp(&x->run, &y->run);
	return order ? order : (x->at > y->at) - (x->at < y->at);
}

/* Goes through history once: people make few corrections. */
static void find_steps(struct correction_table *t)
{
	for (size_t i = 0; i < t->count; i++) {
		const struct correction *x = &t->items[i];
		settle(t, i);
		bool before = is_retracted(t, i, &x->run);
		settle(t, i + 1);
		bool after = is_retracted(t, i + 1, &x->run);
		uint64_t publications = (uint64_t)json_whole_of(x->entry, "publications");
		if (before != after)
			t->steps[t->step_count++] = (struct correction_step){
				x->run, (publications ? publications - 1 : 0) << 32 | ((uint64_t)x->number + 1), after, x->entry};
	}
	if (t->step_count)
		qsort(t->steps, t->step_count, sizeof *t->steps, steps_by_run);
}

static const struct correction_table *table_of(struct catalog *c)
{
	size_t i;
	json_t *entry;
	if (c->corrections)
		return c->corrections;
	struct correction_table *t = c->corrections = arena_alloc(&c->arena, sizeof *t);
	json_t *entries = (json_t *)entry_all(c);
	size_t room = json_array_size(entries) + 1;
	*t = (struct correction_table){.items = arena_alloc(&c->arena, room * sizeof *t->items)};
	json_array_foreach(entries, i, entry)
		add(t, (uint32_t)i, entry);
	t->by_run = arena_alloc(&c->arena, (t->count + 1) * sizeof *t->by_run);
	t->steps = arena_alloc(&c->arena, (t->count + 1) * sizeof *t->steps);
	for (i = 0; i < t->count; i++)
		t->by_run[i] = (struct correction_ref){t->items[i].run, (uint32_t)i};
	if (t->count)
		qsort(t->by_run, t->count, sizeof *t->by_run, by_run);
	find_steps(t);
	return t;
}

const json_t *correction_retraction(struct catalog *c, const struct digest *run)
{
	const struct correction_table *t = table_of(c);
	const json_t *found = NULL;
	size_t count, first = digest_search(t->by_run, t->count, sizeof *t->by_run, run, &count);
	for (size_t i = first; i < first + count; i++) {
		const struct correction *x = &t->items[t->by_run[i].place];
		if (x->retracts && x->stands)
			found = x->entry;
	}
	return found;
}

json_t *correction_of(struct catalog *c, const struct digest *run)
{
	const struct correction_table *t = table_of(c);
	json_t *out = json_array();
	size_t count, first = digest_search(t->by_run, t->count, sizeof *t->by_run, run, &count);
	for (size_t i = first; i < first + count; i++) {
		const struct correction *x = &t->items[t->by_run[i].place];
		json_t *entry = json_copy((json_t *)x->entry);
		json_object_del(entry, "envelope");
		if (!x->stands)
			json_object_set_new(entry, "undone", json_true());
		json_array_append_new(out, entry);
	}
	return out;
}

const json_t *correction_find(struct catalog *c, const char *text)
{
	const struct correction_table *t = table_of(c);
	const char *hex = strncmp(text, "sha256:", 7) == 0 ? text + 7 : text;
	size_t digits = strspn(hex, "0123456789abcdef"), matches = 0;
	const json_t *found = NULL;
	for (size_t i = 0; i < t->count && digits >= 8 && !hex[digits]; i++)
		if (strncmp(json_text_of(t->items[i].entry, "id") + 7, hex, digits) == 0) {
			found = t->items[i].entry;
			matches++;
		}
	if (c->err->code || matches == 1)
		return matches == 1 ? found : NULL;
	if (matches > 1)
		err_set(c->err, ERR_USAGE, "%s: means %zu entries; give more digits", text, matches);
	else
		err_set(c->err, ERR_NOTFOUND, "%s: no such entry (want 8 or more hex digits of its id, as `ki show` prints it)", text);
	return NULL;
}

const struct correction_step *correction_steps(struct catalog *c, size_t *count)
{
	const struct correction_table *t = table_of(c);
	*count = t->step_count;
	return t->steps;
}
