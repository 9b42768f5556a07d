#include "store/event.h"

#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "store/correction.h"
#include "store/lineage.h"

/* A place in the log: of publication p it is p << 32, of a correction that of the publication before it and the number of its entry. */
static uint64_t place_of(uint32_t publication)
{
	return (uint64_t)publication << 32;
}

struct event {
	uint64_t at;
	struct digest cohort;
	uint32_t before, after; /* leaders; of a correction's own event: ranks, 0 for none */
	uint32_t moved;         /* of a correction's own event: others whose rank changed */
	bool superseded;        /* the old leader was overwritten upstream; otherwise it was beaten, or `step` says what else */
	bool own;               /* the correction itself, not the change of leader that it brought */
	const struct correction_step *step; /* NULL: a publication brought it */
};
struct events {
	struct lineage l;
	const struct correction_step *steps; /* by run, then in order */
	size_t step_count;
	struct event *items;
	size_t count, room;
};

static uint32_t later(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

static int latest_first(const void *a, const void *b, void *members)
{
	const struct member *x = (const struct member *)members + *(const size_t *)a, *y = (const struct member *)members + *(const size_t *)b;
	if (x->c != y->c)
		return x->c->id < y->c->id ? -1 : 1;
	return (x->row.observed_ms < y->row.observed_ms) - (x->row.observed_ms > y->row.observed_ms);
}

/* By member: the publication from which a later run of the same case stood in the same file; LINEAGE_NEVER for one that was not
 * superseded. The caller frees. */
static uint32_t *superseded_from(const struct lineage *l, const struct cohort *k)
{
	uint32_t *out = xmalloc((k->count + 1) * sizeof *out);
	size_t *order = xmalloc((k->count + 1) * sizeof *order);
	for (size_t i = 0; i < k->count; i++) {
		out[i] = LINEAGE_NEVER;
		order[i] = i;
	}
	qsort_r(order, k->count, sizeof *order, latest_first, k->members);
	for (size_t slot = 0; slot < l->c->channels.count; slot++) {
		const uint32_t *first = l->first_in[slot];
		uint32_t later_runs = LINEAGE_NEVER, same_time = LINEAGE_NEVER; /* the first publication that carried one of them */
		for (size_t i = 0; first && i < k->count; i++) {
			const struct member *m = &k->members[order[i]], *before = i ? &k->members[order[i - 1]] : NULL;
			if (!before || before->c != m->c)
				later_runs = same_time = LINEAGE_NEVER;
			else if (before->row.observed_ms != m->row.observed_ms && same_time < later_runs)
				later_runs = same_time;
			uint32_t both = later(first[m->run], later_runs);
			if (m->superseded && both < out[order[i]])
				out[order[i]] = both;
			if (first[m->run] < same_time)
				same_time = first[m->run];
		}
	}
	free(order);
	return out;
}

/* The first correction of a run, and how many there are. */
static const struct correction_step *steps_of_run(const struct events *e, const struct digest *run, size_t *count)
{
	return e->steps + digest_search(e->steps, e->step_count, sizeof *e->steps, run, count);
}

static bool retracted_at(const struct events *e, const struct member *m, uint64_t at)
{
	size_t count;
	bool retracted = false;
	const struct correction_step *steps = steps_of_run(e, &m->row.digest, &count);
	for (size_t i = 0; i < count && steps[i].at <= at; i++)
		retracted = steps[i].retracted;
	return retracted;
}

/* Whether a member was ranked as of a place in the log. */
static bool ranked_at(const struct events *e, const struct cohort *k, const uint32_t *superseded, size_t i, uint64_t at)
{
	const struct member *m = &k->members[i];
	uint32_t id = (uint32_t)(at >> 32);
	return e->l.first[m->run] <= id && m->primary >= 0 && !(m->row.flags & RUN_FAILED) && superseded[i] > id && !retracted_at(e, m, at);
}

/* The leader as of a place in the log, by its place among the members; k->count when there is none. */
static size_t leader_at(const struct events *e, const struct cohort *k, const uint32_t *superseded, uint64_t at)
{
	size_t best = k->count;
	for (size_t i = 0; i < k->count; i++) {
		const struct member *m = &k->members[i], *held = best < k->count ? &k->members[best] : NULL;
		if (!ranked_at(e, k, superseded, i, at))
			continue;
		if (!held || m->primary < held->primary || (m->primary == held->primary && m->row.observed_ms > held->row.observed_ms))
			best = i;
	}
	return best;
}

/* A place at which a cohort's standing can have changed, and the correction that did it. */
struct turn {
	uint64_t at;
	const struct correction_step *step; /* NULL: a publication */
};

static int compare_turns(const void *a, const void *b)
{
	const struct turn *x = a, *y = b;
	return (x->at > y->at) - (x->at < y->at);
}

/* Those of a cohort, in order. */
static size_t turns_of(const struct events *e, const struct cohort *k, struct turn **out)
{
	const struct lineage *l = &e->l;
	size_t count = 0, kept = 0;
	struct turn *turns = xmalloc((k->count * (l->c->channels.count + 1) + e->step_count + 1) * sizeof *turns);
	for (size_t i = 0; i < k->count; i++) {
		const struct member *m = &k->members[i];
		size_t corrections;
		const struct correction_step *steps = steps_of_run(e, &m->row.digest, &corrections);
		turns[count++] = (struct turn){place_of(l->first[m->run]), NULL};
		for (size_t slot = 0; slot < l->c->channels.count; slot++)
			if (l->first_in[slot] && l->first_in[slot][m->run] != LINEAGE_NEVER)
				turns[count++] = (struct turn){place_of(l->first_in[slot][m->run]), NULL};
		for (size_t n = 0; n < corrections; n++)
			turns[count++] = (struct turn){steps[n].at, &steps[n]};
	}
	qsort(turns, count, sizeof *turns, compare_turns);
	for (size_t i = 0; i < count; i++)
		if (i == 0 || turns[i].at != turns[kept - 1].at)
			turns[kept++] = turns[i];
	*out = turns;
	return kept;
}

/* The cohort as it was ranked at a place in the log. The caller frees the members. */
static struct cohort cohort_at(const struct events *e, const struct cohort *k, const uint32_t *superseded, uint64_t at)
{
	struct cohort then = {.key = k->key, .count = k->count, .members = xmalloc(k->count * sizeof *then.members)};
	for (size_t i = 0; i < k->count; i++) {
		then.members[i] = k->members[i];
		then.members[i].unranked = ranked_at(e, k, superseded, i, at) ? RANKED : UNRANKED_RETRACTED;
	}
	cohort_rank(&then);
	return then;
}

static void add_event(struct events *e, struct event x)
{
	if (e->count == e->room) {
		e->room = e->room ? e->room * 2 : 64;
		e->items = xrealloc(e->items, e->room * sizeof *e->items);
	}
	e->items[e->count++] = x;
}

/* What a retraction, or its undoing, did to the ranks of a cohort. */
static void add_correction(struct events *e, const struct cohort *k, const uint32_t *superseded, const struct turn *turn)
{
	struct cohort before = cohort_at(e, k, superseded, turn->at - 1), after = cohort_at(e, k, superseded, turn->at);
	struct event x = {.at = turn->at, .cohort = k->key, .own = true, .step = turn->step};
	for (size_t i = 0; i < before.count; i++) {
		const struct member *was = &before.members[i], *is = cohort_member(&after, was->run);
		if (digest_cmp(&was->row.digest, &turn->step->run) != 0) {
			x.moved += was->rank != is->rank;
			continue;
		}
		x.before = was->rank;
		x.after = is->rank;
	}
	add_event(e, x);
	cohort_fini(&before);
	cohort_fini(&after);
}

static int add_events(const struct cohort *k, void *context)
{
	struct events *e = context;
	size_t leader = k->count;
	struct turn *turns;
	if (k->count < 2 && e->step_count == 0)
		return 0;
	size_t count = turns_of(e, k, &turns);
	uint32_t *superseded = superseded_from(&e->l, k);
	for (size_t i = 0; i < count; i++) {
		const struct turn *turn = &turns[i];
		size_t now = leader_at(e, k, superseded, turn->at);
		if (turn->step)
			add_correction(e, k, superseded, turn);
		if (leader < k->count && now < k->count && now != leader)
			add_event(e, (struct event){.at = turn->at, .cohort = k->key, .before = k->members[leader].run, .after = k->members[now].run,
						    .superseded = superseded[leader] <= turn->at >> 32, .step = turn->step});
		leader = now;
	}
	free(superseded);
	free(turns);
	return 0;
}

static int newest_first(const void *a, const void *b)
{
	const struct event *x = a, *y = b;
	if (x->at != y->at)
		return x->at > y->at ? -1 : 1;
	int order = digest_cmp(&x->cohort, &y->cohort);
	return order ? order : x->own - y->own;
}

static json_t *leader_json(struct catalog *c, uint32_t run, struct buf *id)
{
	struct member m = {.run = run};
	if (catalog_run(c, run, &m.row) || !(m.c = catalog_case(c, m.row.case_id)) || catalog_external_id(c, &m.row, id))
		return json_null();
	m.primary = run_units(&m.row, m.c->parts.metric, m.row.value_50);
	return lineage_run_json(c, &m);
}

static const char *step_word(const struct correction_step *s)
{
	return s->retracted ? "retracted" : "restored";
}

/* Why something changed: what was published, or which entry. */
static json_t *cause_json(const struct event *x, const json_t *publication)
{
	if (!x->step)
		return json_pack("{s:s, s:s, s:s}", "reason", x->superseded ? "superseded" : "beaten", "channel", json_text_of(publication, "channel"),
				 "identity", catalog_identity(publication));
	const json_t *entry = x->step->entry;
	return json_pack("{s:s, s:s, s:s, s:O*, s:O*}", "reason", step_word(x->step), "entry", json_text_of(entry, "id"), "key", json_text_of(entry, "key"),
			 "code", json_object_get(entry, "code"), "words", json_object_get(entry, "reason"));
}

static json_t *rank_json(uint32_t rank)
{
	return rank ? json_integer(rank) : json_null();
}

static json_t *event_json(struct catalog *c, const struct event *x, const json_t *publication)
{
	struct buf id = {0};
	char key[DIGEST_TEXT + 1], run[DIGEST_TEXT + 1];
	const char *at = x->step ? json_text_of(x->step->entry, "at") : json_text_of(publication, "publishedAt");
	json_t *event = NULL;
	size_t count;
	digest_text(&x->cohort, key);
	if (!x->own) {
		event = json_pack("{s:s, s:s, s:s, s:o, s:o, s:o}", "type", "leader", "at", at, "comparisonKey", key, "cause", cause_json(x, publication),
				  "old", leader_json(c, x->before, &id), "new", leader_json(c, x->after, &id));
	} else {
		digest_text(&x->step->run, run);
		uint32_t *runs = catalog_find(c, run, &count);
		if (count == 1)
			event = json_pack("{s:s, s:s, s:s, s:o, s:o, s:{s:o, s:o}, s:i}", "type", step_word(x->step), "at", at, "comparisonKey", key, "cause",
					  cause_json(x, publication), "run", leader_json(c, runs[0], &id), "rank", "before", rank_json(x->before),
					  "after", rank_json(x->after), "moved", (int)x->moved);
		free(runs);
	}
	buf_fini(&id);
	return event;
}

static void put_event(const struct event *x, const json_t *event, FILE *out)
{
	const json_t *cause = json_object_get(event, "cause"), *run = json_object_get(event, x->own ? "run" : "new");
	fprintf(out, "%.10s  ", json_text_of(event, "at"));
	if (x->step)
		fprintf(out, "%-9s %-12.12s  ", "entry", json_text_of(cause, "entry") + strlen("sha256:"));
	else
		fprintf(out, "%-9s %-12.12s  ", json_text_of(cause, "channel"), json_text_of(cause, "identity"));
	if (x->own)
		fprintf(out, "%s, rank %u before, %u after (0: none), %u others moved: %s\n", step_word(x->step), x->before, x->after, x->moved,
			json_text_of(run, "externalId"));
	else
		fprintf(out, "%s, %lld after %lld: %s\n", x->step ? x->step->retracted ? "old first retracted" : "first restored"
								 : x->superseded ? "old first overwritten" : "new first",
			json_whole_of(run, "value"), json_whole_of(json_object_get(event, "old"), "value"), json_text_of(run, "externalId"));
}

static int print_event(struct events *e, const struct event *x, bool json, FILE *out)
{
	struct catalog *c = e->l.c;
	json_t *p = catalog_publication(c, (uint32_t)(x->at >> 32)), *event = event_json(c, x, p);
	int rc = event && p ? 0 : -1;
	if (rc == 0 && json)
		rc = json_put_line(event, out, c->err);
	else if (rc == 0)
		put_event(x, event, out);
	json_decref(event);
	json_decref(p);
	return rc;
}

int event_print(struct catalog *c, uint64_t limit, bool json, FILE *out)
{
	struct events e = {0};
	e.steps = correction_steps(c, &e.step_count);
	int rc = lineage_load(c, &e.l) || cohort_each(c, add_events, &e) ? -1 : 0;
	if (e.count)
		qsort(e.items, e.count, sizeof *e.items, newest_first);
	for (size_t i = 0; i < e.count && rc == 0 && (limit == 0 || i < limit); i++)
		rc = print_event(&e, &e.items[i], json, out);
	free(e.items);
	lineage_fini(&e.l);
	return rc;
}
