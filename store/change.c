#include "store/change.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "core/json.h"
#include "store/threshold.h"

/* ---- thresholds ---- */

static int read_rules(const json_t *root, const char *file, struct step_rules *out, struct err *e)
{
	double points, side, permutations, pool;
	const struct threshold wanted[] = {
		{"falseDiscoveryRate", &out->q_max, 1e-9, 1}, {"effectMin", &out->effect_min, 0, 100}, {"scaleFloor", &out->scale_floor, 1e-6, 1},
		{"pointsMin", &points, 4, 1e6},		      {"sideMin", &side, 1, 1e6},	       {"permutations", &permutations, 1, 1e6},
		{"poolMin", &pool, 1, 1e8},
	};
	const json_t *table = json_object_get(root, "thresholds");
	if (thresholds_read(table, wanted, sizeof wanted / sizeof *wanted, file, "thresholds.", e))
		return -1;
	if (json_object_size(table) != sizeof wanted / sizeof *wanted)
		return err_at(e, ERR_CONFIG, file, 0, 0, "thresholds: an unknown name is in it");
	if (points < 2 * side || points < 3)
		return err_at(e, ERR_CONFIG, file, 0, 0, "thresholds.pointsMin: wants at least twice sideMin");
	out->points_min = (size_t)points;
	out->side_min = (size_t)side;
	out->permutations = (size_t)permutations;
	out->pool_min = (size_t)pool;
	return 0;
}

int change_rules_load(const char *config_directory, struct step_rules *out, struct err *e)
{
	struct buf path = {0};
	buf_printf(&path, "%s/trend.json", config_directory);
	json_t *root = json_load_config(path.data, e);
	int rc = root ? read_rules(root, path.data, out, e) : -1;
	json_decref(root);
	buf_fini(&path);
	return rc;
}

/* ---- series as numbers ---- */

struct numbers {
	struct step_series *items;
	size_t count;
};

/* FNV-1a: the channel's part of a seed. */
static uint64_t hash_name(const char *name)
{
	uint64_t hash = 0xcbf29ce484222325u;
	for (; *name; name++)
		hash = (hash ^ (uint8_t)*name) * 0x100000001b3u;
	return hash;
}

static struct numbers numbers_of(struct catalog *c, const struct series_set *set, const struct step_rules *rules)
{
	struct numbers out = {xcalloc(set->count + 1, sizeof *out.items), set->count};
	for (size_t i = 0; i < set->count; i++) {
		const struct series *s = &set->items[i];
		double spread = series_spread(s);
		out.items[i] = (struct step_series){
			.values = series_logs(s),
			.count = s->count,
			.floor = spread > rules->scale_floor ? spread : rules->scale_floor,
			.seed = key_of_digest(&s->of->digest) ^ hash_name(c->channels.items[s->slot].name),
		};
	}
	return out;
}

static void numbers_fini(struct numbers *n)
{
	for (size_t i = 0; i < n->count; i++)
		free((double *)n->items[i].values);
	free(n->items);
}

/* ---- the list ---- */

static bool wanted(const struct catalog *c, const struct series *s, const struct series_point *first, const struct filter *f)
{
	struct member m = {.c = s->of, .row = {.observed_ms = first->observed_ms}};
	return !f || (filter_match(f, &m) && (!f->channel || strcmp(f->channel, c->channels.items[s->slot].name) == 0));
}

static void add_change(struct change_list *l, const struct step *s)
{
	const struct series *of = &l->series.items[s->series];
	const struct series_point *before = &of->points[s->split - 1], *after = &of->points[s->split];
	struct buf text = {0};
	series_explain(before, after, &text);
	if ((l->count & (l->count - 1)) == 0)
		l->items = xrealloc(l->items, (l->count ? l->count * 2 : 1) * sizeof *l->items);
	l->items[l->count++] = (struct change){
		.series = of,
		.begin = s->begin,
		.split = s->split,
		.end = s->end,
		.ratio = s->ratio,
		.p = s->p,
		.q = s->q,
		.last_before = before,
		.first_after = after,
		.explained = arena_strndup(&l->arena, text.data ? text.data : "", text.len),
	};
	buf_fini(&text);
}

int change_points(struct catalog *c, const struct change_options *options, struct change_list *out)
{
	const struct filter all = {.latency = true};
	struct step_rules rules;
	struct step *steps;
	*out = (struct change_list){.policy = "trend-v1"};
	if (change_rules_load(options->config, &rules, c->err) ||
	    series_load(c, &all, options->publications ? options->publications : UINT32_MAX, &out->series))
		return -1;
	out->points_min = rules.points_min;
	struct numbers numbers = numbers_of(c, &out->series, &rules);
	size_t count = step_find(numbers.items, numbers.count, &rules, &steps, &out->tested);
	for (size_t i = 0; i < count; i++) {
		const struct series *of = &out->series.items[steps[i].series];
		if (wanted(c, of, &of->points[steps[i].split], options->filter))
			add_change(out, &steps[i]);
	}
	free(steps);
	numbers_fini(&numbers);
	return c->err->code ? -1 : 0;
}

void change_list_fini(struct change_list *l)
{
	free(l->items);
	series_fini(&l->series);
	arena_fini(&l->arena);
	*l = (struct change_list){0};
}

/* ---- reading it ---- */

/* Changes of a series are neighbours in the list. */
const struct change *change_of(const struct change_list *l, const struct series *s, size_t *count)
{
	const struct change *first = NULL;
	*count = 0;
	for (size_t i = 0; i < l->count; i++)
		if (l->items[i].series == s) {
			first = *count ? first : &l->items[i];
			++*count;
		}
	return first;
}

void change_words(const struct change *h, struct buf *out)
{
	const struct series_point *p = h->first_after;
	buf_printf(out, "%+.1f %% since %.*s (%.*s)", (h->ratio - 1) * 100, release_name_length(p->release), p->release->identity, (int)p->version.len,
		   p->version.data);
	if (*h->explained)
		buf_printf(out, " [%s]", h->explained);
}

/* ---- measuring the method ---- */

static size_t series_with_step(const struct step *steps, size_t count)
{
	size_t out = 0;
	for (size_t i = 0; i < count; i++)
		out += i == 0 || steps[i].series != steps[i - 1].series;
	return out;
}

static void measure_shuffled(const struct numbers *n, const struct step_rules *rules, const bool *stepped, uint64_t *seed,
			     struct change_measure *out)
{
	struct step *steps;
	for (size_t i = 0; i < n->count; i++)
		step_shuffle((double *)n->items[i].values, n->items[i].count, seed);
	size_t count = step_find(n->items, n->count, rules, &steps, NULL), alarms = series_with_step(steps, count);
	out->false_alarms += alarms;
	out->nights_with_alarm += alarms > 0;
	for (size_t i = 0; i < count; i++)
		out->steady_alarms += !stepped[steps[i].series] && (i == 0 || steps[i].series != steps[i - 1].series);
	free(steps);
}

/* True when the points stray by under 2 % from the levels on both sides of their largest step. */
static bool is_quiet(const struct step_series *s, size_t side_min)
{
	size_t split;
	double squares = 0;
	step_largest(s->values, s->count, s->floor, side_min, &split);
	for (size_t i = 0; i < s->count; i++) {
		size_t begin = i < split ? 0 : split, end = i < split ? split : s->count;
		double level = 0;
		for (size_t k = begin; k < end; k++)
			level += s->values[k] / (double)(end - begin);
		squares += (s->values[i] - level) * (s->values[i] - level);
	}
	return sqrt(squares / (double)(s->count - 2)) < 0.02;
}

static bool found_at(const struct step *steps, size_t count, size_t series, size_t split)
{
	for (size_t i = 0; i < count; i++)
		if (steps[i].series == series && steps[i].ratio > 1 && steps[i].split + 1 >= split && steps[i].split <= split + 1)
			return true;
	return false;
}

static void measure_planted(const struct numbers *n, const struct step_rules *rules, double planted, uint64_t *seed, struct change_measure *out)
{
	size_t *splits = xcalloc(n->count + 1, sizeof *splits), eligible = 0;
	struct step *steps;
	bool *quiet = xcalloc(n->count + 1, sizeof *quiet);
	for (size_t i = 0; i < n->count; i++) {
		const struct step_series *s = &n->items[i];
		if (s->count < rules->points_min || eligible++ % 10)
			continue;
		*seed += s->seed;
		quiet[i] = is_quiet(s, rules->side_min);
		splits[i] = rules->side_min + (size_t)(*seed >> 33) % (s->count - 2 * rules->side_min + 1);
		for (size_t k = splits[i]; k < s->count; k++)
			((double *)s->values)[k] += log(planted);
	}
	size_t count = step_find(n->items, n->count, rules, &steps, NULL);
	for (size_t i = 0; i < n->count; i++) {
		bool found = splits[i] && found_at(steps, count, i, splits[i]);
		out->planted += splits[i] > 0;
		out->found += found;
		out->quiet_planted += splits[i] > 0 && quiet[i];
		out->quiet_found += found && quiet[i];
	}
	free(steps);
	free(splits);
	free(quiet);
}

/* Which series have a step as they are. */
static bool *find_stepped(const struct numbers *n, const struct step_rules *rules)
{
	bool *out = xcalloc(n->count + 1, sizeof *out);
	struct step *steps;
	size_t count = step_find(n->items, n->count, rules, &steps, NULL);
	for (size_t i = 0; i < count; i++)
		out[steps[i].series] = true;
	free(steps);
	return out;
}

int change_measure(struct catalog *c, const char *config_directory, size_t times, double planted, struct change_measure *out)
{
	const struct filter all = {.latency = true};
	struct series_set set = {0};
	struct step_rules rules;
	uint64_t seed = 1;
	*out = (struct change_measure){.shuffles = times};
	int rc = change_rules_load(config_directory, &rules, c->err);
	if (rc == 0)
		rc = series_load(c, &all, UINT32_MAX, &set);
	if (rc == 0) {
		struct numbers numbers = numbers_of(c, &set, &rules);
		for (size_t i = 0; i < numbers.count; i++)
			out->series += numbers.items[i].count >= rules.points_min;
		bool *stepped = find_stepped(&numbers, &rules);
		measure_planted(&numbers, &rules, planted, &seed, out);
		for (size_t i = 0; i < times; i++)
			measure_shuffled(&numbers, &rules, stepped, &seed, out);
		free(stepped);
		numbers_fini(&numbers);
	}
	series_fini(&set);
	return rc;
}
