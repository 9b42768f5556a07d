#include "finite_difference.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct ki_axis_value rows3[] = { { "rows", 3 }, { "hidden", 5 } };

static void gradients_equal_finite_differences(void **state)
{
    (void)state;
    assert_true(fd_worst(ki_operation_find("softmax"), rows3, 2) < 1e-7);
}

static void the_fp32_baseline_stays_near_fp64(void **state)
{
    (void)state;
    static const struct ki_axis_value axes[] = { { "rows", 7 }, { "hidden", 300 } };
    for (int pass = 0; pass < KI_PASSES; pass++) {
        double error = fd_baseline(ki_operation_find("softmax"), KI_F32, (enum ki_pass)pass, axes, 2);
        assert_true(error > 0 && error < 2e-6);
    }
}

/* x = (log 1, log 3) + 1000: y = (1/4, 3/4), and no exponential overflows. dy = (1, 2): sum y dy = 7/4. */
static void a_row_worked_out_by_hand(void **state)
{
    (void)state;
    static const struct ki_axis_value axes[] = { { "rows", 1 }, { "hidden", 2 } };
    struct fd f;
    fd_init(&f, ki_operation_find("softmax"), KI_F64, axes, 2);
    const double x[2] = { 1000, 1001.0986122886681098 }, dy[2] = { 1, 2 };
    for (int i = 0; i < 2; i++) {
        ki_put(&f.tensor[ki_tensor_find(f.work.operation, "x")], i, x[i]);
        ki_put(&f.tensor[ki_tensor_find(f.work.operation, "dy")], i, dy[i]);
    }
    double *y = fd_values(&f, KI_FORWARD, KI_EXACT, ki_tensor_find(f.work.operation, "y"));
    double *dx = fd_values(&f, KI_FULL, KI_EXACT, ki_tensor_find(f.work.operation, "dx"));
    assert_true(fabs(y[0] - 0.25) < 1e-12);
    assert_true(fabs(y[1] - 0.75) < 1e-12);
    assert_true(fabs(dx[0] + 0.1875) < 1e-12); /* 1/4 (1 - 7/4) */
    assert_true(fabs(dx[1] - 0.1875) < 1e-12);
    free(y);
    free(dx);
    fd_fini(&f);
}

static void backward_uses_the_y_that_was_kept(void **state)
{
    (void)state;
    static const struct ki_axis_value axes[] = { { "rows", 1 }, { "hidden", 2 } };
    struct fd f;
    fd_init(&f, ki_operation_find("softmax"), KI_F64, axes, 2);
    const double y[2] = { 0.5, 0.25 }, dy[2] = { 2, 4 }; /* sum y dy = 2 */
    for (int i = 0; i < 2; i++) {
        ki_put(&f.tensor[ki_tensor_find(f.work.operation, "y")], i, y[i]);
        ki_put(&f.tensor[ki_tensor_find(f.work.operation, "dy")], i, dy[i]);
    }
    double *dx = fd_values(&f, KI_BACKWARD, KI_EXACT, ki_tensor_find(f.work.operation, "dx"));
    assert_true(dx[0] == 0);
    assert_true(dx[1] == 0.5);
    free(dx);
    fd_fini(&f);
}

static void floors_are_those_of_the_axes(void **state)
{
    (void)state;
    static const struct ki_axis_value axes[] = { { "rows", 2048 }, { "hidden", 16384 } };
    const struct ki_operation *op = ki_operation_find("softmax");
    const char *reason = NULL;
    struct ki_case c;
    assert_int_equal(ki_case_set(&c, op, KI_BF16, axes, 2, NULL, 0, &reason), 0);
    assert_true(op->floor(&c, KI_FORWARD).bytes == 134217728);
    assert_true(op->floor(&c, KI_BACKWARD).bytes == 201326592);
    assert_true(op->floor(&c, KI_FULL).bytes == 268435456);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_equal_finite_differences),
        cmocka_unit_test(the_fp32_baseline_stays_near_fp64),
        cmocka_unit_test(a_row_worked_out_by_hand),
        cmocka_unit_test(backward_uses_the_y_that_was_kept),
        cmocka_unit_test(floors_are_those_of_the_axes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
