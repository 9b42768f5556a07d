/* Steps in series, the claims that spreads allow, and the drawings. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/file.h"
#include "store/change.h"
#include "store/pair.h"
#include "store/plot.h"

static const struct step_rules rules = {
	.q_max = 0.01, .effect_min = 0.05, .scale_floor = 0.005, .points_min = 6, .side_min = 2, .permutations = 200, .pool_min = 20000};

enum { SERIES = 40, POINTS = 12 };
struct night {
	double values[SERIES][POINTS];
	struct step_series series[SERIES];
};

/* Noise of about 1 %, from a linear congruence: the same on every machine. */
static void fill_noise(struct night *t)
{
	uint32_t state = 12345;
	for (size_t i = 0; i < SERIES; i++) {
		for (size_t k = 0; k < POINTS; k++) {
			state = state * 1664525 + 1013904223;
			t->values[i][k] = ((double)(state >> 8) / 16777216 - 0.5) * 0.035;
		}
		t->series[i] = (struct step_series){t->values[i], POINTS, 0.005, 1000 + i};
	}
}

static void plant(struct night *t, size_t series, size_t from, double ratio)
{
	for (size_t k = from; k < POINTS; k++)
		t->values[series][k] += log(ratio);
}

static bool near(double a, double b, double within)
{
	return fabs(a - b) <= within;
}

/* ---- the statistic ---- */

static void largest_t_is_at_the_step(void **state)
{
	const double values[] = {0, 0, 0, 1, 1, 1};
	size_t split;
	(void)state;
	/* difference 1, nothing within, so the scale is the floor: 1 / sqrt(1/3 + 1/3) */
	assert_true(near(step_largest(values, 6, 1, 2, &split), 1.224744871391589, 1e-12));
	assert_int_equal(split, 3);
}

static void t_is_that_of_two_samples(void **state)
{
	const double values[] = {1, 2, 3, 11, 12, 13};
	size_t split;
	(void)state;
	/* difference 10; sums of squares 2 + 2 over 4 degrees of freedom; 10 / sqrt(2/3); the floor adds 1e-12 */
	assert_true(near(step_largest(values, 6, 1e-6, 2, &split), 12.24744871391589, 1e-9));
}

static void a_side_has_two_points(void **state)
{
	const double values[] = {9, 0, 0, 0, 0, 0};
	size_t split;
	(void)state;
	step_largest(values, 6, 0.1, 1, &split);
	assert_int_equal(split, 1);
	step_largest(values, 6, 0.1, 2, &split);
	assert_int_equal(split, 2);
	assert_true(step_largest(values, 3, 0.1, 2, &split) == 0);
}

static void median_of_even_and_odd(void **state)
{
	const double values[] = {4, 1, 3, 2};
	(void)state;
	assert_true(step_median(values, 3) == 3);
	assert_true(step_median(values, 4) == 2.5);
}

static void a_shuffle_is_seeded(void **state)
{
	double a[] = {1, 2, 3, 4, 5, 6, 7, 8}, b[] = {1, 2, 3, 4, 5, 6, 7, 8}, sum = 0;
	uint64_t first = 7, second = 7;
	(void)state;
	step_shuffle(a, 8, &first);
	step_shuffle(b, 8, &second);
	assert_memory_equal(a, b, sizeof a);
	step_shuffle(b, 8, &second);
	assert_memory_not_equal(a, b, sizeof a);
	for (size_t i = 0; i < 8; i++)
		sum += b[i];
	assert_true(sum == 36);
}

/* ---- the search ---- */

static void noise_has_no_step(void **state)
{
	struct night t;
	struct step *steps;
	size_t tested;
	(void)state;
	fill_noise(&t);
	assert_int_equal(step_find(t.series, SERIES, &rules, &steps, &tested), 0);
	assert_int_equal(tested, SERIES);
	free(steps);
}

static void fifteen_per_cent_are_found_where_they_are(void **state)
{
	struct night t;
	struct step *steps;
	(void)state;
	fill_noise(&t);
	plant(&t, 17, 7, 1.15);
	assert_int_equal(step_find(t.series, SERIES, &rules, &steps, NULL), 1);
	assert_int_equal(steps[0].series, 17);
	assert_int_equal(steps[0].begin, 0);
	assert_int_equal(steps[0].split, 7);
	assert_int_equal(steps[0].end, POINTS);
	assert_true(steps[0].ratio > 1.13 && steps[0].ratio < 1.17);
	assert_true(steps[0].q <= 0.01);
	free(steps);
}

static void the_last_two_points_are_enough(void **state)
{
	struct night t;
	struct step *steps;
	(void)state;
	fill_noise(&t);
	plant(&t, 3, 10, 1.15);
	assert_int_equal(step_find(t.series, SERIES, &rules, &steps, NULL), 1);
	assert_int_equal(steps[0].split, 10);
	free(steps);
}

static void one_point_is_not(void **state)
{
	struct night t;
	struct step *steps;
	(void)state;
	fill_noise(&t);
	plant(&t, 3, 11, 1.15);
	assert_int_equal(step_find(t.series, SERIES, &rules, &steps, NULL), 0);
	free(steps);
}

static void a_step_under_the_least_effect_is_not_reported(void **state)
{
	struct night t;
	struct step *steps;
	(void)state;
	fill_noise(&t);
	for (size_t k = 0; k < POINTS; k++)
		t.values[5][k] = k < 6 ? 0 : 0.04; /* as sure as can be, but 4 % */
	assert_int_equal(step_find(t.series, SERIES, &rules, &steps, NULL), 0);
	free(steps);
}

static void two_steps_bound_each_other(void **state)
{
	struct night t;
	struct step *steps;
	double joined[2 * POINTS]; /* long enough that both sides can be searched again */
	(void)state;
	fill_noise(&t);
	for (size_t k = 0; k < 2 * POINTS; k++)
		joined[k] = t.values[k / POINTS][k % POINTS] + (k >= 8 ? log(1.3) : 0) + (k >= 16 ? log(1.2) : 0);
	t.series[8] = (struct step_series){joined, 2 * POINTS, 0.005, 8};
	assert_int_equal(step_find(t.series, SERIES, &rules, &steps, NULL), 2);
	assert_int_equal(steps[0].split, 8);
	assert_int_equal(steps[0].end, 16);
	assert_int_equal(steps[1].begin, 8);
	assert_int_equal(steps[1].split, 16);
	assert_true(steps[0].ratio > 1.27 && steps[0].ratio < 1.33);
	assert_true(steps[1].ratio > 1.17 && steps[1].ratio < 1.23);
	free(steps);
}

static void five_points_claim_nothing(void **state)
{
	const double values[] = {0, 0, 0, 1, 1};
	const struct step_series one = {values, 5, 0.005, 1};
	struct step *steps;
	size_t tested;
	(void)state;
	assert_int_equal(step_find(&one, 1, &rules, &steps, &tested), 0);
	assert_int_equal(tested, 0);
	free(steps);
}

static void the_order_of_series_does_not_matter(void **state)
{
	struct night t;
	struct step_series reversed[SERIES];
	struct step *first, *second;
	(void)state;
	fill_noise(&t);
	plant(&t, 17, 7, 1.15);
	for (size_t i = 0; i < SERIES; i++)
		reversed[i] = t.series[SERIES - 1 - i];
	assert_int_equal(step_find(t.series, SERIES, &rules, &first, NULL), 1);
	assert_int_equal(step_find(reversed, SERIES, &rules, &second, NULL), 1);
	assert_int_equal(second[0].series, SERIES - 1 - 17);
	assert_true(first[0].p == second[0].p && first[0].q == second[0].q && first[0].t == second[0].t);
	free(first);
	free(second);
}

static void no_series_is_fine(void **state)
{
	struct step *steps;
	(void)state;
	assert_int_equal(step_find(NULL, 0, &rules, &steps, NULL), 0);
	assert_null(steps);
}

/* ---- claims ---- */

static void spreads_decide_what_is_claimed(void **state)
{
	const struct series_point a = {.median_ns = 100, .p20_ns = 95, .p80_ns = 105}, touching = {.median_ns = 110, .p20_ns = 105, .p80_ns = 115},
				  slower = {.median_ns = 112, .p20_ns = 106, .p80_ns = 118}, bare = {.median_ns = 200, .p20_ns = -1, .p80_ns = -1};
	(void)state;
	assert_int_equal(pair_claim(&a, &touching), CLAIM_OVERLAP);
	assert_int_equal(pair_claim(&a, &slower), CLAIM_SLOWER);
	assert_int_equal(pair_claim(&slower, &a), CLAIM_FASTER);
	assert_int_equal(pair_claim(&a, &bare), CLAIM_NO_SPREAD);
	assert_int_equal(pair_claim(&a, NULL), CLAIM_ONLY_FROM);
	assert_int_equal(pair_claim(NULL, &a), CLAIM_ONLY_TO);
}

static void a_release_is_a_version_an_entry_or_a_commit(void **state)
{
	const struct release first = {.identity = "aaaaaaa", .commit = "aaaaaaa111"}, second = {.identity = "bbbbbbb-v1.0", .commit = "bbbbbbb222"};
	const struct series_point points[] = {{.run = 1, .release = &first, .version = {"0.9", 3}}, {.run = 2, .release = &second, .version = {"1.0", 3}},
					      {.run = 3, .release = &second, .version = {"1.0", 3}}};
	const struct series s = {.points = points, .count = 3};
	(void)state;
	assert_int_equal(pair_find(&s, "0.9")->run, 1);
	assert_int_equal(pair_find(&s, "1.0")->run, 3);
	assert_int_equal(pair_find(&s, "bbbbbbb-v1.0")->run, 3);
	assert_int_equal(pair_find(&s, "aaaaaaa11")->run, 1);
	assert_null(pair_find(&s, "aaa"));
	assert_null(pair_find(&s, "1"));
}

static void caveats_that_differ_are_named(void **state)
{
	const struct series_point a = {.caveats = {"init-timed,params-fp32", 22}}, b = {.caveats = {"params-fp32,softmax-in-graph", 28}};
	struct buf text = {0};
	(void)state;
	series_explain(&a, &b, &text);
	assert_string_equal(text.data, "-init-timed,+softmax-in-graph");
	buf_clear(&text);
	series_explain(&a, &a, &text);
	assert_int_equal(text.len, 0);
	buf_fini(&text);
}

static void the_spread_is_the_median_of_all(void **state)
{
	const struct series_point points[] = {{.p20_ns = 100, .p80_ns = 110}, {.p20_ns = -1, .p80_ns = -1}, {.p20_ns = 100, .p80_ns = 120}};
	const struct series s = {.points = points, .count = 3};
	(void)state;
	assert_true(near(series_spread(&s), log(1.1) / 1.683, 1e-12));
}

/* ---- drawings ---- */

static void sparks_span_the_range_but_leave_noise_flat(void **state)
{
	const double steps[] = {0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7}, noise[] = {0, 0.002, 0.001, 0.003};
	struct buf text = {0};
	(void)state;
	plot_spark(steps, 8, true, &text);
	assert_string_equal(text.data, "_.:-=+*#");
	buf_clear(&text);
	plot_spark(steps, 8, false, &text);
	assert_string_equal(text.data, "▁▂▃▄▅▆▇█");
	buf_clear(&text);
	plot_spark(noise, 4, true, &text);
	assert_string_equal(text.data, "____");
	buf_fini(&text);
}

static void padding_counts_characters(void **state)
{
	struct buf text = {0};
	(void)state;
	plot_pad(&text, "1 µs", -6);
	plot_pad(&text, "|", 3);
	assert_string_equal(text.data, "  1 µs|  ");
	buf_fini(&text);
}

static void label_value(double value, struct buf *out)
{
	buf_printf(out, "%.1f", value);
}

static void a_chart_shows_medians_spreads_and_steps(void **state)
{
	const double values[] = {0, 0, 9, 9}, low[] = {NAN, 0, 7, 9}, high[] = {NAN, 2, 9, 9};
	const bool marks[] = {false, false, true, false};
	const struct plot_chart chart = {values, low, high, 4, marks, label_value, {true, 40}};
	struct buf text = {0};
	(void)state;
	plot_chart(&chart, &text);
	assert_string_equal(text.data, "       9.0 |          :*   *\n"
				       "           |          :|\n"
				       "           |          :|\n"
				       "       6.0 |          :\n"
				       "           |          :\n"
				       "           |          :\n"
				       "       3.0 |          :\n"
				       "           |       |  :\n"
				       "           |       |  :\n"
				       "       0.0 |   *   *  :\n");
	buf_fini(&text);
}

/* ---- thresholds ---- */

static void refused(const char *text, const char *message)
{
	char directory[] = "/tmp/ki-trend-XXXXXX", path[64];
	struct err e = {0}, ignored = {0};
	struct step_rules out;
	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof path, "%s/trend.json", directory);
	assert_int_equal(file_write(path, text, strlen(text), 0644, &ignored), 0);
	assert_int_equal(change_rules_load(directory, &out, &e), -1);
	assert_int_equal(e.code, ERR_CONFIG);
	assert_non_null(strstr(e.text, message));
	unlink(path);
	rmdir(directory);
}

static void thresholds_are_checked_whole(void **state)
{
	struct err e = {0};
	struct step_rules out;
	(void)state;
	assert_int_equal(change_rules_load("config", &out, &e), 0);
	assert_true(out.q_max == 0.01 && out.effect_min == 0.05 && out.points_min == 6 && out.side_min == 2);
	assert_int_equal(change_rules_load("no-such-directory", &out, &e), -1);
	assert_int_equal(e.code, ERR_CONFIG);
	refused("{\"thresholds\": {}}", "thresholds.falseDiscoveryRate: wants");
	refused("{\"thresholds\": {\"falseDiscoveryRate\": {\"value\": 2, \"reason\": \"\"}}}", "a number from 1e-09 to below 1");
	refused("{", "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(largest_t_is_at_the_step),
		cmocka_unit_test(t_is_that_of_two_samples),
		cmocka_unit_test(a_side_has_two_points),
		cmocka_unit_test(median_of_even_and_odd),
		cmocka_unit_test(a_shuffle_is_seeded),
		cmocka_unit_test(noise_has_no_step),
		cmocka_unit_test(fifteen_per_cent_are_found_where_they_are),
		cmocka_unit_test(the_last_two_points_are_enough),
		cmocka_unit_test(one_point_is_not),
		cmocka_unit_test(a_step_under_the_least_effect_is_not_reported),
		cmocka_unit_test(two_steps_bound_each_other),
		cmocka_unit_test(five_points_claim_nothing),
		cmocka_unit_test(the_order_of_series_does_not_matter),
		cmocka_unit_test(no_series_is_fine),
		cmocka_unit_test(spreads_decide_what_is_claimed),
		cmocka_unit_test(a_release_is_a_version_an_entry_or_a_commit),
		cmocka_unit_test(caveats_that_differ_are_named),
		cmocka_unit_test(the_spread_is_the_median_of_all),
		cmocka_unit_test(sparks_span_the_range_but_leave_noise_flat),
		cmocka_unit_test(padding_counts_characters),
		cmocka_unit_test(a_chart_shows_medians_spreads_and_steps),
		cmocka_unit_test(thresholds_are_checked_whole),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
