#include "finite_difference.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct ki_axis_value rows3[] = { { "rows", 3 }, { "hidden", 5 } };
static const struct ki_axis_value megatron[] = { { "seq", 2 }, { "batch", 3 }, { "hidden", 4 } };

static void gradients_equal_finite_differences(void **state)
{
    (void)state;
    assert_true(fd_worst(ki_operation_find("rms_norm"), rows3, 2) < 1e-7);
    assert_true(fd_worst(ki_operation_find("megatron_rms_norm"), megatron, 3) < 1e-7);
    assert_true(fd_worst(ki_operation_find("fused_add_rms_norm"), rows3, 2) < 1e-7);
}

static void the_fp32_baseline_stays_near_fp64(void **state)
{
    (void)state;
    static const struct ki_axis_value axes[] = { { "rows", 7 }, { "hidden", 300 } };
    const char *const names[] = { "rms_norm", "fused_add_rms_norm" };
    for (int i = 0; i < 2; i++)
        for (int pass = 0; pass < KI_PASSES; pass++) {
            const struct ki_operation *op = ki_operation_find(names[i]);
            assert_true(fd_baseline(op, KI_F32, (enum ki_pass)pass, axes, 2) < 2e-6);
            assert_true(fd_baseline(op, KI_F32, (enum ki_pass)pass, axes, 2) > 0);
        }
}

/* x = (3, 4), w = (1, 2), eps = 0.5: mean square 12.5, r = 13^(-1/2). */
static void a_row_worked_out_by_hand(void **state)
{
    (void)state;
    static const struct ki_axis_value axes[] = { { "rows", 1 }, { "hidden", 2 } };
    struct fd f;
    fd_init(&f, ki_operation_find("rms_norm"), KI_F64, axes, 2);
    f.work.scalar[0] = 0.5;
    const double set[4][2] = { { 3, 4 }, { 1, 2 }, { 0, 0 }, { 1, 1 } }; /* x, weight, y, dy */
    for (int t = 0; t < 4; t++)
        for (int i = 0; i < 2; i++)
            ki_put(&f.tensor[t], i, set[t][i]);
    double *y = fd_values(&f, KI_FORWARD, KI_EXACT, ki_tensor_find(f.work.operation, "y"));
    double *dx = fd_values(&f, KI_BACKWARD, KI_EXACT, ki_tensor_find(f.work.operation, "dx"));
    assert_true(fabs(y[0] - 0.8320502943378437) < 1e-15);
    assert_true(fabs(y[1] - 2.2188007849009166) < 1e-15);
    assert_true(fabs(dx[0] + 0.07467118026108854) < 1e-15); /* r (1 - 33/26) */
    assert_true(fabs(dx[1] - 0.08533849172695829) < 1e-15); /* r (2 - 44/26) */
    free(y);
    free(dx);
    fd_fini(&f);
}

/* The check itself: a contract that says dx is the gradient of weight is found out. */
static void a_wrong_gradient_is_found(void **state)
{
    (void)state;
    static const struct ki_axis_value axes[] = { { "rows", 1 }, { "hidden", 5 } };
    struct ki_operation wrong = *ki_operation_find("rms_norm");
    wrong.tensor[ki_tensor_find(&wrong, "dx")].of[0] = "weight";
    assert_true(fd_worst(&wrong, axes, 2) > 0.1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_equal_finite_differences),
        cmocka_unit_test(the_fp32_baseline_stays_near_fp64),
        cmocka_unit_test(a_row_worked_out_by_hand),
        cmocka_unit_test(a_wrong_gradient_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
