/* Order statistics and the bootstrap: small samples with known answers, and that the same seed gives the same bits. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "verify/stats.h"

static void quantiles_lie_between_neighbours(void **state)
{
    (void)state;
    double v[] = { 4, 1, 3, 2 };
    assert_true(stats_quantile(v, 4, 0.5) == 2.5);
    assert_true(stats_quantile(v, 4, 0.2) == 1.6);
    assert_true(stats_quantile(v, 4, 0) == 1);
    assert_true(stats_quantile(v, 4, 1) == 4);
    double one[] = { 7 };
    assert_true(stats_quantile(one, 1, 0.8) == 7);
    assert_true(isnan(stats_quantile(one, 0, 0.5)));
}

static void a_summary_of_eleven_numbers(void **state)
{
    (void)state;
    const double v[] = { 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 200 };
    const int64_t count[] = { 5, 6 };
    struct stats_summary s;
    stats_summarize(v, count, 2, 1, &s);
    assert_int_equal(s.samples, 11);
    assert_true(s.median == 15);
    assert_true(fabs(s.mean - 345.0 / 11) < 1e-12);
    assert_true(s.p05 == 10.5);
    assert_true(s.p20 == 12);
    assert_true(s.p80 == 18);
    assert_true(s.p95 == 109.5);
    assert_true(s.minimum == 10 && s.maximum == 200);
    assert_true(s.mad == 3);
    assert_int_equal(s.outliers, 1); /* labelled, and still the maximum */
    assert_true(s.low95 <= 15 && s.high95 >= 15);
}

static void the_bootstrap_depends_on_its_seed_alone(void **state)
{
    (void)state;
    double v[400];
    const int64_t count[] = { 100, 100, 100, 100 };
    struct stats_summary a, b, c;
    for (int i = 0; i < 400; i++)
        v[i] = 1000 + (i * 7919 % 401) * 0.25;
    stats_summarize(v, count, 4, 5, &a);
    stats_summarize(v, count, 4, 5, &b);
    stats_summarize(v, count, 4, 6, &c);
    assert_memory_equal(&a, &b, sizeof a);
    assert_true(a.low95 != c.low95 || a.high95 != c.high95);
}

/* 400 samples, uniform over 100: the median's deviation is 100 / (2 sqrt(400)) = 2.5, its 95% interval 4.9 either way. */
static void the_interval_has_the_width_that_theory_gives(void **state)
{
    (void)state;
    double v[400];
    const int64_t count[] = { 400 };
    struct stats_summary s;
    for (int i = 0; i < 400; i++)
        v[i] = 1000 + (i * 211 % 400) * 0.25;
    stats_summarize(v, count, 1, 9, &s);
    assert_true(s.high95 - s.low95 > 7.5 && s.high95 - s.low95 < 12);
    double half = stats_median_half_width(v, 400);
    assert_true(fabs(half - 4.9 / 1050) < 0.0006);
    assert_true(isinf(stats_median_half_width(v, 5)));
}

static void blocks_that_differ_widen_the_interval(void **state)
{
    (void)state;
    double same[400], differ[400];
    const int64_t count[] = { 100, 100, 100, 100 };
    struct stats_summary a, b;
    for (int i = 0; i < 400; i++) {
        same[i] = 1000 + (i * 211 % 400) * 0.01;
        differ[i] = same[i] + i / 100 * 20;
    }
    stats_summarize(same, count, 4, 3, &a);
    stats_summarize(differ, count, 4, 3, &b);
    assert_true(b.high95 - b.low95 > 5 * (a.high95 - a.low95));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantiles_lie_between_neighbours),
        cmocka_unit_test(a_summary_of_eleven_numbers),
        cmocka_unit_test(the_bootstrap_depends_on_its_seed_alone),
        cmocka_unit_test(the_interval_has_the_width_that_theory_gives),
        cmocka_unit_test(blocks_that_differ_widen_the_interval),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
