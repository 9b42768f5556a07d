#include "store/step.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"

/* ---- the statistic ---- */

/* Compares squares, and by products: this runs some ten million times a night. */
double step_largest(const double *values, size_t n, double floor, size_t side_min, size_t *split)
{
	double sum = 0, squares = 0, before = 0, top = 0, under = 1, center = n ? values[0] : 0, all = (double)n;
	*split = 0;
	for (size_t i = 0; i < n; i++) {
		double x = values[i] - center; /* small numbers, so that the sum of squares loses nothing */
		sum += x;
		squares += x * x;
	}
	for (size_t k = 1; k + side_min <= n; k++) {
		before += values[k - 1] - center;
		if (k < side_min)
			continue;
		/* With a and b points on the sides, d = (a * sum - n * before) / (a b) is the difference of means, a b d^2 / n the
		 * sum of squares between them, and t^2 = (a b d^2 / n) / variance. */
		double a = (double)k, b = all - a, gap = a * sum - all * before, between = gap * gap / (a * b * all);
		double within = squares - sum * sum / all - between;
		double variance = (within > 0 ? within : 0) / (all - 2) + floor * floor;
		if (between * under > top * variance) {
			top = between;
			under = variance;
			*split = k;
		}
	}
	return sqrt(top / under);
}

/* splitmix64 (Steele, Lea, Flood 2014). */
static uint64_t next_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

void step_shuffle(double *values, size_t n, uint64_t *seed)
{
	for (size_t i = n; i > 1; i--) {
		size_t at = (size_t)((next_random(seed) >> 32) * i >> 32);
		double held = values[i - 1];
		values[i - 1] = values[at];
		values[at] = held;
	}
}

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

double step_median(const double *values, size_t n)
{
	double *sorted = xmalloc(n * sizeof *sorted);
	memcpy(sorted, values, n * sizeof *sorted);
	qsort(sorted, n, sizeof *sorted, compare_doubles);
	double median = n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
	free(sorted);
	return median;
}

/* ---- what chance gives ---- */

enum { TIMES_MAX = 10000 }; /* shuffles of one series: a length that few series have must not take all night */

/* The statistics of a family's stretches of one length, ascending, and how many shuffled series reach each of them but not the
 * next. */
struct pool {
	size_t length, count, shuffles;
	size_t times; /* shuffles of each series that is long enough */
	double *reached;
	size_t *hits;
};

struct search {
	const struct step_series *series;
	size_t count;
	const struct step_rules *rules;
	struct step *family;    /* the stretches of this round */
	size_t family_count;
	struct pool *pools;     /* one a length that occurs in it */
	size_t pool_count;
	struct step *found;
	size_t found_count, found_room;
};

static double mean(const double *values, size_t n)
{
	double sum = 0;
	for (size_t i = 0; i < n; i++)
		sum += values[i];
	return sum / (double)n;
}

/* The series without its best step. */
static void take_step_out(const struct step_series *s, size_t side_min, double *out)
{
	size_t split;
	step_largest(s->values, s->count, s->floor, side_min, &split);
	double before = split ? mean(s->values, split) : 0, after = mean(s->values + split, s->count - split);
	for (size_t i = 0; i < s->count; i++)
		out[i] = s->values[i] - (i < split ? before : after);
}

static struct pool *pool_of(struct search *f, size_t length)
{
	for (size_t i = 0; i < f->pool_count; i++)
		if (f->pools[i].length == length)
			return &f->pools[i];
	return NULL;
}

static void add_pools(struct search *f)
{
	for (size_t i = 0; i < f->family_count; i++) {
		size_t length = f->family[i].end - f->family[i].begin;
		struct pool *p = pool_of(f, length);
		if (!p) {
			f->pools = xrealloc(f->pools, (f->pool_count + 1) * sizeof *f->pools);
			p = &f->pools[f->pool_count++];
			*p = (struct pool){.length = length};
		}
		if ((p->count & (p->count - 1)) == 0)
			p->reached = xrealloc(p->reached, (p->count ? p->count * 2 : 1) * sizeof *p->reached);
		p->reached[p->count++] = f->family[i].t;
	}
	for (size_t i = 0; i < f->pool_count; i++) {
		qsort(f->pools[i].reached, f->pools[i].count, sizeof(double), compare_doubles);
		f->pools[i].hits = xcalloc(f->pools[i].count + 1, sizeof *f->pools[i].hits);
	}
}

static void drop_pools(struct search *f)
{
	for (size_t i = 0; i < f->pool_count; i++) {
		free(f->pools[i].reached);
		free(f->pools[i].hits);
	}
	f->pool_count = 0;
}

/* How many of the statistics are at most t, or below t. */
static size_t pool_rank(const struct pool *p, double t, bool below)
{
	size_t low = 0, high = p->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (p->reached[middle] < t || (!below && p->reached[middle] == t))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void shuffle_series(struct search *f, const struct step_series *s, double *values)
{
	uint64_t seed = s->seed;
	size_t split, times = 0;
	for (size_t k = 0; k < f->pool_count; k++)
		if (f->pools[k].length <= s->count && f->pools[k].times > times)
			times = f->pools[k].times;
	take_step_out(s, f->rules->side_min, values);
	for (size_t i = 0; i < times; i++) {
		step_shuffle(values, s->count, &seed);
		for (size_t k = 0; k < f->pool_count; k++) {
			struct pool *p = &f->pools[k];
			if (p->length > s->count || i >= p->times)
				continue;
			p->hits[pool_rank(p, step_largest(values, p->length, s->floor, f->rules->side_min, &split), false)]++;
			p->shuffles++;
		}
	}
}

/* Enough shuffles of each series that the pool can tell the smallest p that matters. */
static void plan_pool(const struct search *f, struct pool *p)
{
	size_t wanted = f->family_count * f->rules->permutations, long_enough = 0;
	wanted = wanted > f->rules->pool_min ? wanted : f->rules->pool_min;
	for (size_t i = 0; i < f->count; i++)
		long_enough += f->series[i].count >= p->length;
	p->times = (wanted + long_enough - 1) / long_enough;
	if (p->times > TIMES_MAX)
		p->times = TIMES_MAX;
}

/* Afterwards hits[i] is the number of shuffles that reach statistic i - 1 or more. */
static void fill_pools(struct search *f)
{
	size_t longest = 0;
	for (size_t i = 0; i < f->count; i++)
		longest = f->series[i].count > longest ? f->series[i].count : longest;
	for (size_t k = 0; k < f->pool_count; k++)
		plan_pool(f, &f->pools[k]);
	double *values = xmalloc((longest + 1) * sizeof *values);
	for (size_t i = 0; i < f->count; i++)
		if (f->series[i].count >= f->rules->points_min)
			shuffle_series(f, &f->series[i], values);
	for (size_t k = 0; k < f->pool_count; k++)
		for (size_t i = f->pools[k].count; i-- > 0;)
			f->pools[k].hits[i] += f->pools[k].hits[i + 1];
	free(values);
}

/* The share of shuffles with a statistic of at least t; never 0. */
static double pool_p(const struct pool *p, double t)
{
	return (1 + (double)p->hits[pool_rank(p, t, true) + 1]) / (1 + (double)p->shuffles);
}

/* ---- one family after the other ---- */

static int by_p(const void *a, const void *b)
{
	const struct step *x = a, *y = b;
	if (x->p != y->p)
		return x->p < y->p ? -1 : 1;
	if (x->series != y->series)
		return x->series < y->series ? -1 : 1;
	return (x->begin > y->begin) - (x->begin < y->begin);
}

static int by_place(const void *a, const void *b)
{
	const struct step *x = a, *y = b;
	if (x->series != y->series)
		return x->series < y->series ? -1 : 1;
	return (x->split > y->split) - (x->split < y->split);
}

static void cut_family(struct search *f)
{
	for (size_t i = 0; i < f->family_count; i++) {
		struct step *s = &f->family[i];
		const struct step_series *of = &f->series[s->series];
		s->t = step_largest(of->values + s->begin, s->end - s->begin, of->floor, f->rules->side_min, &s->split);
		s->split += s->begin;
	}
}

static void test_family(struct search *f)
{
	for (size_t i = 0; i < f->family_count; i++)
		f->family[i].p = pool_p(pool_of(f, f->family[i].end - f->family[i].begin), f->family[i].t);
	qsort(f->family, f->family_count, sizeof *f->family, by_p);
	double q = 1, m = (double)f->family_count;
	for (size_t i = f->family_count; i-- > 0;) {
		double own = f->family[i].p * m / (double)(i + 1);
		q = own < q ? own : q;
		f->family[i].q = q;
	}
}

static void add_stretch(struct search *f, struct step **family, size_t *count, size_t series, size_t begin, size_t end)
{
	if (end - begin < f->rules->points_min)
		return;
	if ((*count & (*count - 1)) == 0)
		*family = xrealloc(*family, (*count ? *count * 2 : 1) * sizeof **family);
	(*family)[(*count)++] = (struct step){.series = series, .begin = begin, .end = end};
}

static void keep_step(struct search *f, const struct step *s)
{
	if (f->found_count == f->found_room) {
		f->found_room = f->found_room ? f->found_room * 2 : 64;
		f->found = xrealloc(f->found, f->found_room * sizeof *f->found);
	}
	f->found[f->found_count++] = *s;
}

/* Bounds each step by its neighbours, small ones too, and drops the small ones. Returns how many stay. */
static size_t bound_steps(const struct search *f)
{
	struct step *steps = f->found;
	size_t kept = 0, last_split = 0;
	for (size_t i = 0; i < f->found_count; i++) {
		struct step s = steps[i];
		const struct step_series *of = &f->series[s.series];
		s.begin = i > 0 && steps[i - 1].series == s.series ? last_split : 0;
		s.end = i + 1 < f->found_count && steps[i + 1].series == s.series ? steps[i + 1].split : of->count;
		last_split = s.split;
		double change = step_median(of->values + s.split, s.end - s.split) - step_median(of->values + s.begin, s.split - s.begin);
		s.ratio = exp(change);
		if (fabs(change) >= log1p(f->rules->effect_min))
			steps[kept++] = s;
	}
	return kept;
}

/* Tests a family, keeps its steps, and makes the next family of the stretches beside them. */
static void search_round(struct search *f)
{
	struct step *next = NULL;
	size_t next_count = 0;
	cut_family(f);
	add_pools(f);
	fill_pools(f);
	test_family(f);
	drop_pools(f);
	for (size_t i = 0; i < f->family_count && f->family[i].q <= f->rules->q_max; i++) {
		struct step *s = &f->family[i];
		keep_step(f, s);
		add_stretch(f, &next, &next_count, s->series, s->begin, s->split);
		add_stretch(f, &next, &next_count, s->series, s->split, s->end);
	}
	free(f->family);
	f->family = next;
	f->family_count = next_count;
}

size_t step_find(const struct step_series *series, size_t count, const struct step_rules *rules, struct step **out, size_t *tested)
{
	struct search f = {.series = series, .count = count, .rules = rules};
	for (size_t i = 0; i < count; i++)
		add_stretch(&f, &f.family, &f.family_count, i, 0, series[i].count);
	if (tested)
		*tested = f.family_count;
	while (f.family_count)
		search_round(&f);
	if (f.found_count)
		qsort(f.found, f.found_count, sizeof *f.found, by_place);
	free(f.family);
	free(f.pools);
	*out = f.found;
	return bound_steps(&f);
}
