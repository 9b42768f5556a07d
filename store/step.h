/* Finds steps in many short series at once, and says how sure it is. Numbers in, numbers out: no catalog, no files, no clock.
 *
 * A step cuts a series into two stretches of `side_min` points or more. Its statistic is the largest two-sample t over all cuts,
 * with `floor` added in quadrature to the scale. What chance alone gives is learned from the series themselves: from each the
 * best step is taken out, and what remains is shuffled; a cut of a stretch of n points is held against
 * the statistics of all shuffled series of n points or more (their first n). All stretches of a round are one family: q is
 * Benjamini and Hochberg's (1995). Where a step is found both stretches are searched again, as the next round's family.
 * Shuffles are seeded by `seed`, so the same series give the same answer, in any order and on any machine. */
#ifndef KI_STORE_STEP_H
#define KI_STORE_STEP_H

#include <stddef.h>
#include <stdint.h>

struct step_series {
	const double *values; /* `count` of them, in order; logarithms, so that a step is a ratio */
	size_t count;
	double floor;         /* least scale, in the same unit; above 0 */
	uint64_t seed;
};

struct step_rules {
	double q_max;                  /* false discovery rate of a family */
	double effect_min;             /* least change of the median, as a share: 0.05 is 5 % up, or down by 1 - 1/1.05 */
	double scale_floor;            /* least `floor` a caller should give */
	size_t points_min, side_min;   /* shortest stretch that is searched; shortest side of a cut */
	size_t permutations, pool_min; /* shuffles for each stretch of a round; least number for each length */
};

struct step {
	size_t series;            /* index into the series given */
	size_t begin, split, end; /* points [begin, split) lie before the step, [split, end) after it; other steps bound them */
	double ratio;             /* exp(median after - median before) */
	double t, p, q;
};

/* Finds all steps of all series; *out is on the heap, by series, then by split. Returns their number; *tested (may be NULL) is
 * that of the series long enough to be searched. */
size_t step_find(const struct step_series *series, size_t count, const struct step_rules *rules, struct step **out, size_t *tested);

/* The largest t over the cuts of n values, and where; 0 when n < 2 * side_min. O(n). */
double step_largest(const double *values, size_t n, double floor, size_t side_min, size_t *split);

/* Puts values in another order; *seed moves on. */
void step_shuffle(double *values, size_t n, uint64_t *seed);

double step_median(const double *values, size_t n); /* n >= 1 */

#endif
