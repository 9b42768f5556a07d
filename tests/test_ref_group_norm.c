#include "finite_difference.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct ki_axis_value small[] = { { "batch", 2 }, { "channels", 6 }, { "hidden", 3 }, { "channels_per_group", 2 } };

static void gradients_equal_finite_differences(void **state)
{
    (void)state;
    assert_true(fd_worst(ki_operation_find("group_norm"), small, 4) < 1e-7);
}

static void the_fp32_baseline_stays_near_fp64(void **state)
{
    (void)state;
    static const struct ki_axis_value axes[] = { { "batch", 3 }, { "channels", 4 }, { "hidden", 75 }, { "channels_per_group", 4 } };
    for (int pass = 0; pass < KI_PASSES; pass++) {
        double error = fd_baseline(ki_operation_find("group_norm"), KI_F32, (enum ki_pass)pass, axes, 4);
        assert_true(error > 0 && error < 2e-6);
    }
}

/* Two groups of two channels of one element, eps = 3. Group 0 has x = (1, 3), w = (2, 3), b = (10, 20): mean 2, variance 1,
 * rs 1/2; group 1 has x = (5, 7), mean 6, and w = b = 1. dy = 1. */
static void two_groups_worked_out_by_hand(void **state)
{
    (void)state;
    static const struct ki_axis_value axes[] = { { "batch", 1 }, { "channels", 4 }, { "hidden", 1 }, { "channels_per_group", 2 } };
    const char *const inputs[] = { "x", "weight", "bias", "dy" }, *const outputs[] = { "y", "dx", "dweight", "dbias" };
    const double set[4][4] = { { 1, 3, 5, 7 }, { 2, 3, 1, 1 }, { 10, 20, 1, 1 }, { 1, 1, 1, 1 } };
    const double expected[4][4] = { { 9, 21.5, 0.5, 1.5 }, { -0.1875, 0.1875, 0, 0 }, { -0.5, 0.5, -0.5, 0.5 }, { 1, 1, 1, 1 } };
    struct fd f;
    fd_init(&f, ki_operation_find("group_norm"), KI_F64, axes, 4);
    f.work.scalar[0] = 3;
    for (int t = 0; t < 4; t++)
        for (int i = 0; i < 4; i++)
            ki_put(&f.tensor[ki_tensor_find(f.work.operation, inputs[t])], i, set[t][i]);
    for (int t = 0; t < 4; t++) {
        double *v = fd_values(&f, KI_FULL, KI_EXACT, ki_tensor_find(f.work.operation, outputs[t]));
        for (int i = 0; i < 4; i++)
            assert_true(fabs(v[i] - expected[t][i]) < 1e-14);
        free(v);
    }
    fd_fini(&f);
}

static void groups_are_derived_and_floors_follow_the_axes(void **state)
{
    (void)state;
    static const struct ki_axis_value axes[] = { { "batch", 128 }, { "channels", 1024 }, { "hidden", 512 }, { "channels_per_group", 4 } };
    const struct ki_operation *op = ki_operation_find("group_norm");
    const char *reason = NULL;
    struct ki_case c;
    assert_int_equal(ki_case_set(&c, op, KI_F32, axes, 4, NULL, 0, &reason), 0);
    assert_int_equal(ki_tensor_count(&c, ki_tensor_find(op, "mean")), 32768);
    assert_true(op->floor(&c, KI_FORWARD).bytes == 536879104);
    assert_true(op->floor(&c, KI_BACKWARD).bytes == 805318656);
    assert_true(op->floor(&c, KI_FULL).bytes == 1073758208);
    assert_int_equal(op->workspace_bytes(&c, KI_NO_GRAD), 0);
    assert_int_equal(op->workspace_bytes(&c, KI_FULL), 1048576);
}

static void channels_that_do_not_divide_into_groups_are_refused(void **state)
{
    (void)state;
    static const struct ki_axis_value odd[] = { { "batch", 1 }, { "channels", 6 }, { "hidden", 3 }, { "channels_per_group", 4 } };
    static const struct ki_axis_value large[] = { { "batch", 1 }, { "channels", 4 }, { "hidden", 1 << 30 }, { "channels_per_group", 4 } };
    const char *reason = NULL;
    struct ki_case c;
    assert_int_equal(ki_case_set(&c, ki_operation_find("group_norm"), KI_F32, odd, 4, NULL, 0, &reason), -1);
    assert_string_equal(reason, "channels do not divide into groups");
    assert_int_equal(ki_case_set(&c, ki_operation_find("group_norm"), KI_F32, large, 4, NULL, 0, &reason), -1);
    assert_string_equal(reason, "an axis is too large");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_equal_finite_differences),
        cmocka_unit_test(the_fp32_baseline_stays_near_fp64),
        cmocka_unit_test(two_groups_worked_out_by_hand),
        cmocka_unit_test(groups_are_derived_and_floors_follow_the_axes),
        cmocka_unit_test(channels_that_do_not_divide_into_groups_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
