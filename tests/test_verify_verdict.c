/* The verdict function: worked examples with literal values, and the rates that its policy promises, in a seeded simulation. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "verify/light.h"
#include "verify/stats.h"
#include "verify/verdict.h"

static const struct verdict_input honest = {
    .median_ns = 100000, .p20_ns = 99500, .p80_ns = 100500, .samples = 500, .same_product = true, .same_code = true, .timed = true,
    .gate = true, .blocks = 5, .block_ns = { 100000, 100000, 100000, 100000, 100000 }, .t_dev_ns = 100000, .t_src_ns = 101000, .h_ns = 12000, .flush_ns = 82000,
};

static struct verdict_input scaled(double factor)
{
    struct verdict_input in = honest;
    for (int i = 0; i < in.blocks; i++)
        in.block_ns[i] *= factor;
    in.t_dev_ns *= factor;
    in.t_src_ns *= factor;
    return in;
}

/* s_R = ln(100500/99500)/1.683 = 0.00594182; SE = 1.2533 s_R / sqrt(20) = 0.00166517; U95 = 1.645 SE; U99 adds 2.576 x 0.025. */
static void a_record_that_agrees_is_confirmed(void **state)
{
    (void)state;
    struct verdict v = verdict_of(&honest);
    assert_int_equal(v.code, VERDICT_CONFIRMED);
    assert_int_equal(v.class, CLASS_DEVICE);
    assert_true(fabs(v.d) < 1e-12);
    assert_true(fabs(v.s_record - 0.00594182) < 1e-8);
    assert_true(fabs(v.u95 - 0.0027392) < 1e-6);
    assert_true(fabs(v.u99 - 0.0645427) < 1e-6);
    assert_true(fabs(v.rho - 12000.0 / 182000.0) < 1e-12);
}

static void the_bounds_are_five_and_ten_percent(void **state)
{
    (void)state;
    const struct { double factor; enum verdict_code code; } cases[] = {
        { 1.04, VERDICT_CONFIRMED }, { 1.06, VERDICT_INCONCLUSIVE }, { 1.09, VERDICT_INCONCLUSIVE }, { 1.12, VERDICT_REFUTED },
        { 0.97, VERDICT_CONFIRMED }, { 0.92, VERDICT_INCONCLUSIVE }, { 0.90, VERDICT_SLOWER_THAN_RERUN },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct verdict_input in = scaled(cases[i].factor);
        struct verdict v = verdict_of(&in);
        assert_string_equal(verdict_text(v.code), verdict_text(cases[i].code));
        assert_true(fabs(v.d - log(cases[i].factor)) < 1e-12);
    }
}

static void a_framework_of_unknown_version_is_never_refuted(void **state)
{
    (void)state;
    struct verdict_input in = scaled(1.5);
    in.framework = true;
    assert_int_equal(verdict_of(&in).code, VERDICT_INCONCLUSIVE);
    in = scaled(0.5);
    in.framework = true;
    assert_int_equal(verdict_of(&in).code, VERDICT_INCONCLUSIVE);
    in = scaled(1);
    in.framework = true;
    assert_int_equal(verdict_of(&in).code, VERDICT_CONFIRMED);
}

static void code_that_is_not_shown_to_be_the_records_settles_nothing_but_light(void **state)
{
    (void)state;
    const double factors[] = { 0.5, 1, 1.5 };
    for (size_t i = 0; i < sizeof factors / sizeof factors[0]; i++) {
        struct verdict_input in = scaled(factors[i]);
        in.same_code = false;
        assert_int_equal(verdict_of(&in).code, VERDICT_INCONCLUSIVE);
        in.light_ns = in.median_ns + 1;
        assert_int_equal(verdict_of(&in).code, VERDICT_REFUTED);
    }
}

static void a_launch_bound_record_depends_on_the_host_unless_it_beats_the_device(void **state)
{
    (void)state;
    struct verdict_input in = honest;
    in.h_ns = 300000;
    in.t_src_ns = 310000;
    in.median_ns = 290000;
    struct verdict v = verdict_of(&in);
    assert_int_equal(v.class, CLASS_LAUNCH);
    assert_int_equal(v.code, VERDICT_HOST_DEPENDENT);
    in.median_ns = 85000;
    assert_int_equal(verdict_of(&in).code, VERDICT_REFUTED);
    in.median_ns = 95000;
    assert_int_equal(verdict_of(&in).code, VERDICT_HOST_DEPENDENT);
}

static void classes_follow_rho_and_the_sources_excess(void **state)
{
    (void)state;
    double rho;
    assert_int_equal(rerun_class_of(100000, 103000, 91000, 82000, &rho), CLASS_DEVICE);
    assert_true(rho == 0.5);
    assert_int_equal(rerun_class_of(100000, 103001, 91000, 82000, &rho), CLASS_MIXED);
    assert_int_equal(rerun_class_of(100000, 103000, 91001, 82000, &rho), CLASS_MIXED);
    assert_int_equal(rerun_class_of(100000, 103000, 254800, 82000, &rho), CLASS_LAUNCH);
    assert_int_equal(rerun_class_of(6700, 8200, 12000, 82000, &rho), CLASS_DEVICE); /* 1.5 us of a short call */
    assert_int_equal(rerun_class_of(6700, 8201, 12000, 82000, &rho), CLASS_MIXED);
}

static void nothing_is_said_behind_a_shut_gate(void **state)
{
    (void)state;
    struct verdict_input in = honest;
    in.gate = false;
    assert_int_equal(verdict_of(&in).code, VERDICT_INVALID_RUN);
    in = honest;
    in.timed = false;
    assert_int_equal(verdict_of(&in).code, VERDICT_NOT_TIMED);
    in = honest;
    in.blocks = 1;
    assert_int_equal(verdict_of(&in).code, VERDICT_INVALID_RUN);
}

static void a_native_run_only_cross_checks(void **state)
{
    (void)state;
    struct verdict_input in = honest;
    in.native = true;
    assert_int_equal(verdict_of(&in).code, VERDICT_PLAUSIBLE);
    in.median_ns = 200001;
    assert_int_equal(verdict_of(&in).code, VERDICT_FAR);
    in.same_product = false;
    assert_int_equal(verdict_of(&in).code, VERDICT_NOT_COMPARABLE);
    in.light_ns = 200002;
    assert_int_equal(verdict_of(&in).code, VERDICT_TOO_FAST);
    assert_true(verdict_of(&in).against_light);
    in = honest;
    in.light_ns = 100001;
    assert_int_equal(verdict_of(&in).code, VERDICT_REFUTED);
}

/* 4 GB at 4800 GB/s take 833,333 ns, 793,651 with the allowance. */
static void light_binds_only_where_the_floor_is_hard_and_large(void **state)
{
    (void)state;
    const struct peak h200 = { 4800, 989, 495, 67 };
    struct ki_floor f = { .bytes = 4e9, .dense_bytes = 4e9, .hard = true };
    assert_true(fabs(light_ns(&f, &h200, 60e6) - 793650.79) < 0.01);
    f.hard = false;
    assert_true(light_ns(&f, &h200, 60e6) == 0);
    f = (struct ki_floor){ .bytes = 100e6, .dense_bytes = 100e6, .hard = true };
    assert_true(light_ns(&f, &h200, 60e6) == 0);
    f.flops = 989e9;
    f.math = KI_MATH_BF16;
    assert_true(fabs(light_ns(&f, &h200, 60e6) - 1e6 / 1.05) < 1e-3);
}

static void a_refutation_stands_when_two_batches_say_so(void **state)
{
    (void)state;
    const enum verdict_code once[] = { VERDICT_CONFIRMED, VERDICT_REFUTED }, twice[] = { VERDICT_REFUTED, VERDICT_REFUTED };
    assert_int_equal(verdict_combine(once, 2), VERDICT_INCONCLUSIVE);
    assert_int_equal(verdict_combine(twice, 2), VERDICT_REFUTED);
    assert_int_equal(verdict_combine(twice, 1), VERDICT_INCONCLUSIVE);
    assert_int_equal(verdict_combine(once, 1), VERDICT_CONFIRMED);
}

static void codes_read_back(void **state)
{
    (void)state;
    for (int c = VERDICT_INVALID_RUN; c <= VERDICT_PLAUSIBLE; c++) {
        enum verdict_code back;
        assert_true(verdict_parse(verdict_text((enum verdict_code)c), &back));
        assert_int_equal(back, c);
    }
    enum verdict_code none;
    assert_false(verdict_parse("proven", &none));
}

/* ---- the rates of the policy ---- */

static uint64_t generator;

static double uniform(void)
{
    uint64_t z = generator += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

static double normal(void)
{
    double u = 1 - uniform();
    return sqrt(-2 * log(u)) * cos(6.283185307179586 * uniform());
}

/* Student's t with 3 degrees of freedom, scaled to deviation 1. */
static double heavy(void)
{
    double a = normal(), b = normal(), c = normal(), d = normal();
    return a / sqrt(b * b + c * c + d * d);
}

/* A sample: its run's spread, and one in 33 slowed. */
static double sample(double median, double spread)
{
    double v = median * (1 + spread * normal());
    return uniform() < 0.03 ? v * (1 + fabs(0.15 * normal())) : v;
}

/* A record of a true median, claimed `factor` times as long, and a rerun of it. Budget 10 ms; its timer steps by 32 ns. */
static struct verdict_input simulate(double factor, bool heavy_tails)
{
    static const double spreads[] = { 0.002, 0.004, 0.008, 0.015 };
    static double v[4096];
    double truth = 0.08e6 * pow(250, uniform()), spread = spreads[(int)(uniform() * 4)];
    int n = (int)(10e6 / (truth + 82e3));
    double host = 0.025 * (heavy_tails ? heavy() : normal()), process = 0.006 * normal(), mean = 0;
    n = n < 1 ? 1 : n;
    for (int i = 0; i < n; i++)
        v[i] = round(sample(truth * exp(host + process), spread) / 32) * 32;
    struct verdict_input in = honest;
    in.median_ns = stats_quantile(v, n, 0.5) * factor;
    in.p20_ns = stats_quantile(v, n, 0.2) * factor;
    in.p80_ns = stats_quantile(v, n, 0.8) * factor;
    in.samples = n;
    for (int k = 0; k < in.blocks; k++) {
        double block = truth * exp(0.006 * normal());
        for (int i = 0; i < 200; i++)
            v[i] = sample(block, spread);
        in.block_ns[k] = stats_quantile(v, 200, 0.5);
        mean += in.block_ns[k] / in.blocks;
    }
    in.t_dev_ns = in.t_src_ns = mean;
    return in;
}

/* Shares of 2,500 records, in percent: confirmed, refuted. */
static void rates(double factor, bool heavy_tails, double *confirmed, double *refuted)
{
    enum { RECORDS = 2500 };
    generator = 1;
    *confirmed = *refuted = 0;
    for (int i = 0; i < RECORDS; i++) {
        struct verdict_input in = simulate(factor, heavy_tails);
        enum verdict_code c = verdict_of(&in).code;
        *confirmed += 100.0 * (c == VERDICT_CONFIRMED) / RECORDS;
        *refuted += 100.0 * (c == VERDICT_REFUTED) / RECORDS;
    }
}

/* The policy says 72 to 79% confirmed and 0.03 to 0.33% refuted, normal to t3; 2,500 records leave 0.9 and 0.12 of noise. */
static void honest_rows_are_confirmed_and_all_but_never_refuted(void **state)
{
    (void)state;
    double confirmed, refuted;
    rates(1, false, &confirmed, &refuted);
    assert_true(confirmed > 69 && confirmed < 75);
    assert_true(refuted < 0.2);
    rates(1, true, &confirmed, &refuted);
    assert_true(confirmed > 76 && confirmed < 82);
    assert_true(refuted < 0.7);
}

/* 98% and 20 to 25%. */
static void a_claim_15_percent_too_fast_is_refuted_and_one_of_5_is_often_not(void **state)
{
    (void)state;
    double confirmed, refuted;
    rates(0.85, false, &confirmed, &refuted);
    assert_true(refuted > 97.5);
    assert_true(confirmed < 0.5);
    rates(0.85, true, &confirmed, &refuted);
    assert_true(refuted > 97);
    rates(0.95, false, &confirmed, &refuted);
    assert_true(confirmed > 22 && confirmed < 28);
    rates(0.95, true, &confirmed, &refuted);
    assert_true(confirmed > 17 && confirmed < 22);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_record_that_agrees_is_confirmed),
        cmocka_unit_test(the_bounds_are_five_and_ten_percent),
        cmocka_unit_test(a_framework_of_unknown_version_is_never_refuted),
        cmocka_unit_test(code_that_is_not_shown_to_be_the_records_settles_nothing_but_light),
        cmocka_unit_test(a_launch_bound_record_depends_on_the_host_unless_it_beats_the_device),
        cmocka_unit_test(classes_follow_rho_and_the_sources_excess),
        cmocka_unit_test(nothing_is_said_behind_a_shut_gate),
        cmocka_unit_test(a_native_run_only_cross_checks),
        cmocka_unit_test(light_binds_only_where_the_floor_is_hard_and_large),
        cmocka_unit_test(a_refutation_stands_when_two_batches_say_so),
        cmocka_unit_test(codes_read_back),
        cmocka_unit_test(honest_rows_are_confirmed_and_all_but_never_refuted),
        cmocka_unit_test(a_claim_15_percent_too_fast_is_refuted_and_one_of_5_is_often_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
