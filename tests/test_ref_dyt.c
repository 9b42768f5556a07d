#include "finite_difference.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* x = (-1, 0, 2), alpha = 0.5, gamma = (2, 3, 4), beta = (10, 20, 30): gamma tanh(alpha x) + beta. */
static void a_row_worked_out_by_hand(void **state)
{
    (void)state;
    static const struct ki_axis_value axes[] = { { "rows", 1 }, { "hidden", 3 } };
    const char *const names[] = { "dyt", "dyt_no_beta" };
    const double x[3] = { -1, 0, 2 }, gamma[3] = { 2, 3, 4 }, beta[3] = { 10, 20, 30 };
    const double bare[3] = { -2 * 0.46211715726000976, 0, 4 * 0.76159415595576489 };
    for (int n = 0; n < 2; n++) {
        struct fd f;
        fd_init(&f, ki_operation_find(names[n]), KI_F64, axes, 2);
        ki_put(&f.tensor[ki_tensor_find(f.work.operation, "alpha")], 0, 0.5);
        for (int i = 0; i < 3; i++) {
            ki_put(&f.tensor[ki_tensor_find(f.work.operation, "x")], i, x[i]);
            ki_put(&f.tensor[ki_tensor_find(f.work.operation, "gamma")], i, gamma[i]);
            if (n == 0)
                ki_put(&f.tensor[ki_tensor_find(f.work.operation, "beta")], i, beta[i]);
        }
        double *y = fd_values(&f, KI_FORWARD, KI_EXACT, ki_tensor_find(f.work.operation, "y"));
        for (int i = 0; i < 3; i++)
            assert_true(fabs(y[i] - bare[i] - (n == 0 ? beta[i] : 0)) < 1e-14);
        free(y);
        fd_fini(&f);
    }
}

static void the_fp32_baseline_stays_near_fp64(void **state)
{
    (void)state;
    static const struct ki_axis_value axes[] = { { "rows", 3 }, { "hidden", 5 } };
    double error = fd_baseline(ki_operation_find("dyt"), KI_F32, KI_FORWARD, axes, 2);
    assert_true(error > 0 && error < 2e-7);
}

static void floors_are_those_of_the_axes(void **state)
{
    (void)state;
    static const struct ki_axis_value axes[] = { { "rows", 4096 }, { "hidden", 16384 } };
    const char *reason = NULL;
    struct ki_case c;
    assert_int_equal(ki_case_set(&c, ki_operation_find("dyt"), KI_BF16, axes, 2, NULL, 0, &reason), 0);
    assert_true(c.operation->floor(&c, KI_FORWARD).bytes == 2.0 * 4096 * 16384 * 2 + 8 * 16384);
    assert_int_equal(ki_case_set(&c, ki_operation_find("dyt_no_beta"), KI_BF16, axes, 2, NULL, 0, &reason), 0);
    assert_true(c.operation->floor(&c, KI_FORWARD).bytes == 2.0 * 4096 * 16384 * 2 + 4 * 16384);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_worked_out_by_hand),
        cmocka_unit_test(the_fp32_baseline_stays_near_fp64),
        cmocka_unit_test(floors_are_those_of_the_axes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
