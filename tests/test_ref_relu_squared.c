#include "finite_difference.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct ki_axis_value rows3[] = { { "rows", 3 }, { "hidden", 5 } };

static void gradients_equal_finite_differences(void **state)
{
    (void)state;
    assert_true(fd_worst(ki_operation_find("relu_squared"), rows3, 2) < 1e-7);
}

static void the_fp32_baseline_stays_near_fp64(void **state)
{
    (void)state;
    for (int pass = 0; pass < KI_PASSES; pass++) {
        double error = fd_baseline(ki_operation_find("relu_squared"), KI_F32, (enum ki_pass)pass, rows3, 2);
        assert_true(error > 0 && error < 2e-7);
    }
}

/* x = (-2, 0, 3), dy = (5, 5, 5). */
static void a_row_worked_out_by_hand(void **state)
{
    (void)state;
    static const struct ki_axis_value axes[] = { { "rows", 1 }, { "hidden", 3 } };
    const double x[3] = { -2, 0, 3 }, expected_y[3] = { 0, 0, 9 }, expected_dx[3] = { 0, 0, 30 };
    struct fd f;
    fd_init(&f, ki_operation_find("relu_squared"), KI_F64, axes, 2);
    for (int i = 0; i < 3; i++) {
        ki_put(&f.tensor[ki_tensor_find(f.work.operation, "x")], i, x[i]);
        ki_put(&f.tensor[ki_tensor_find(f.work.operation, "dy")], i, 5);
    }
    double *y = fd_values(&f, KI_FORWARD, KI_EXACT, ki_tensor_find(f.work.operation, "y"));
    double *dx = fd_values(&f, KI_BACKWARD, KI_EXACT, ki_tensor_find(f.work.operation, "dx"));
    for (int i = 0; i < 3; i++) {
        assert_true(y[i] == expected_y[i]);
        assert_true(dx[i] == expected_dx[i]);
    }
    free(y);
    free(dx);
    fd_fini(&f);
}

static void floors_are_those_of_the_axes(void **state)
{
    (void)state;
    static const struct ki_axis_value axes[] = { { "rows", 4096 }, { "hidden", 16384 } };
    const struct ki_operation *op = ki_operation_find("relu_squared");
    const char *reason = NULL;
    struct ki_case c;
    assert_int_equal(ki_case_set(&c, op, KI_BF16, axes, 2, NULL, 0, &reason), 0);
    assert_true(op->floor(&c, KI_FORWARD).bytes == 268435456);
    assert_true(op->floor(&c, KI_BACKWARD).bytes == 402653184);
    assert_true(op->floor(&c, KI_FULL).bytes == 536870912);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_equal_finite_differences),
        cmocka_unit_test(the_fp32_baseline_stays_near_fp64),
        cmocka_unit_test(a_row_worked_out_by_hand),
        cmocka_unit_test(floors_are_those_of_the_axes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
