#include "finite_difference.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void gradients_equal_finite_differences(void **state)
{
    (void)state;
    static const struct ki_axis_value odd[] = { { "tokens", 3 }, { "vocab", 7 } }, one[] = { { "tokens", 1 }, { "vocab", 5 } };
    assert_true(fd_worst(ki_operation_find("jsd"), odd, 2) < 1e-7);
    assert_true(fd_worst(ki_operation_find("jsd"), one, 2) < 1e-7);
}

static void the_fp32_baseline_stays_near_fp64(void **state)
{
    (void)state;
    static const struct ki_axis_value axes[] = { { "tokens", 9 }, { "vocab", 300 } };
    for (int pass = 0; pass < KI_PASSES; pass++) {
        double error = fd_baseline(ki_operation_find("jsd"), KI_F32, (enum ki_pass)pass, axes, 2);
        assert_true(error < 2e-5);
        assert_true(error > 0);
    }
}

/* Q = (1/4, 3/4), P = (1/2, 1/2). beta 1/2: M = (3/8, 5/8); beta 1/4: M = (5/16, 11/16). */
static void two_distributions_worked_out_by_hand(void **state)
{
    (void)state;
    static const struct ki_axis_value axes[] = { { "tokens", 1 }, { "vocab", 2 } };
    struct fd f;
    fd_init(&f, ki_operation_find("jsd"), KI_F64, axes, 2);
    fd_put(&f, "student_log_probs", (const double[]){ -1.3862943611198906, -0.2876820724517809 });
    fd_put(&f, "teacher_log_probs", (const double[]){ -0.6931471805599453, -0.6931471805599453 });
    fd_put(&f, "dloss", (const double[]){ 2 });
    assert_true(fd_gives(&f, KI_FORWARD, "loss", (const double[]){ 0.033822075568605205 }, 1e-15));
    assert_true(fd_gives(&f, KI_BACKWARD, "dstudent_log_probs", (const double[]){ -0.10136627702704111, 0.13674116759546596 }, 1e-15));
    f.work.scalar[0] = 0.25;
    assert_true(fd_gives(&f, KI_FULL, "loss", (const double[]){ 0.026048220951152515 }, 1e-15));
    fd_fini(&f);
}

static void beta_beyond_its_range_is_refused(void **state)
{
    (void)state;
    static const struct ki_axis_value axes[] = { { "tokens", 1 }, { "vocab", 2 } };
    static const struct ki_scalar_value zero = { "beta", 0 }, one = { "beta", 1 }, good = { "beta", 0.9 };
    struct ki_case c;
    const char *reason = "";
    assert_int_equal(ki_case_set(&c, ki_operation_find("jsd"), KI_F32, axes, 2, &zero, 1, &reason), -1);
    assert_string_equal(reason, "beta must lie between 0 and 1");
    assert_int_equal(ki_case_set(&c, ki_operation_find("jsd"), KI_F32, axes, 2, &one, 1, &reason), -1);
    assert_int_equal(ki_case_set(&c, ki_operation_find("jsd"), KI_F32, axes, 2, &good, 1, &reason), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_equal_finite_differences),
        cmocka_unit_test(the_fp32_baseline_stays_near_fp64),
        cmocka_unit_test(two_distributions_worked_out_by_hand),
        cmocka_unit_test(beta_beyond_its_range_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
