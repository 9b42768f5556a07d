#include "finite_difference.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct ki_axis_value rows[] = { { "tokens", 4 }, { "features", 7 } };

static void gradients_equal_finite_differences(void **state)
{
    (void)state;
    assert_true(fd_worst(ki_operation_find("sparsemax"), rows, 2) < 1e-7);
}

static void the_fp32_baseline_stays_near_fp64(void **state)
{
    (void)state;
    static const struct ki_axis_value axes[] = { { "tokens", 5 }, { "features", 300 } };
    for (int pass = 0; pass < KI_PASSES; pass++) {
        double error = fd_baseline(ki_operation_find("sparsemax"), KI_F32, (enum ki_pass)pass, axes, 2);
        assert_true(error > 0 && error < 2e-6);
    }
}

/* x = (2, 1.5, -1): tau = (2 + 1.5 - 1) / 2 = 1.25, support the first two, dy = (1, 3, 5) has mean 2 there.
 * x = (5, 0, 3): the first alone. x = (1, 1, 1): all, a third each. */
static void rows_worked_out_by_hand(void **state)
{
    (void)state;
    static const struct ki_axis_value axes[] = { { "tokens", 3 }, { "features", 3 } };
    const double x[9] = { 2, 1.5, -1, 5, 0, 3, 1, 1, 1 }, dy[9] = { 1, 3, 5, 1, 3, 5, 1, 3, 5 };
    const double y[9] = { 0.75, 0.25, 0, 1, 0, 0, 1.0 / 3, 1.0 / 3, 1.0 / 3 }, dx[9] = { -1, 1, 0, 0, 0, 0, -2, 0, 2 };
    struct fd f;
    fd_init(&f, ki_operation_find("sparsemax"), KI_F64, axes, 2);
    for (int i = 0; i < 9; i++) {
        ki_put(&f.tensor[ki_tensor_find(f.work.operation, "x")], i, x[i]);
        ki_put(&f.tensor[ki_tensor_find(f.work.operation, "dy")], i, dy[i]);
    }
    assert_true(fd_gives(&f, KI_FORWARD, "y", y, 1e-14));
    assert_true(fd_gives(&f, KI_FULL, "y", y, 1e-14));
    assert_true(fd_gives(&f, KI_FULL, "dx", dx, 1e-14));
    fd_keep(&f);
    assert_true(fd_gives(&f, KI_BACKWARD, "dx", dx, 1e-14));
    fd_fini(&f);
}

static void the_support_in_backward_is_that_of_the_y_that_was_kept(void **state)
{
    (void)state;
    static const struct ki_axis_value axes[] = { { "tokens", 1 }, { "features", 3 } };
    const double y[3] = { 0.5, 0, 0.5 }, dy[3] = { 1, 3, 5 }, dx[3] = { -2, 0, 2 };
    struct fd f;
    fd_init(&f, ki_operation_find("sparsemax"), KI_F64, axes, 2);
    for (int i = 0; i < 3; i++) {
        ki_put(&f.tensor[ki_tensor_find(f.work.operation, "y")], i, y[i]);
        ki_put(&f.tensor[ki_tensor_find(f.work.operation, "dy")], i, dy[i]);
    }
    assert_true(fd_gives(&f, KI_BACKWARD, "dx", dx, 1e-14));
    fd_fini(&f);
}

static void floors_are_strict_where_only_dx_is_dense(void **state)
{
    (void)state;
    static const struct ki_axis_value axes[] = { { "tokens", 2048 }, { "features", 32768 } };
    const struct ki_operation *op = ki_operation_find("sparsemax");
    const char *reason = NULL;
    struct ki_case c;
    assert_int_equal(ki_case_set(&c, op, KI_F32, axes, 2, NULL, 0, &reason), 0);
    assert_true(op->floor(&c, KI_FORWARD).bytes == 536870912);
    assert_true(op->floor(&c, KI_BACKWARD).bytes == 268435456);
    assert_true(op->floor(&c, KI_BACKWARD).dense_bytes == 805306368);
    assert_true(op->floor(&c, KI_FULL).bytes == 805306368);
    assert_true(op->floor(&c, KI_FULL).dense_bytes == 1073741824);
}

static void more_features_than_a_sum_can_hold_are_refused(void **state)
{
    (void)state;
    static const struct ki_axis_value axes[] = { { "tokens", 1 }, { "features", (1 << 22) + 1 } };
    const char *reason = NULL;
    struct ki_case c;
    assert_int_equal(ki_case_set(&c, ki_operation_find("sparsemax"), KI_F32, axes, 2, NULL, 0, &reason), -1);
    assert_string_equal(reason, "features are too many");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_equal_finite_differences),
        cmocka_unit_test(the_fp32_baseline_stays_near_fp64),
        cmocka_unit_test(rows_worked_out_by_hand),
        cmocka_unit_test(the_support_in_backward_is_that_of_the_y_that_was_kept),
        cmocka_unit_test(floors_are_strict_where_only_dx_is_dense),
        cmocka_unit_test(more_features_than_a_sum_can_hold_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
