#include "finite_difference.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void gradients_equal_finite_differences(void **state)
{
    (void)state;
    static const struct ki_axis_value odd[] = { { "tokens", 3 }, { "vocab", 7 } }, one[] = { { "tokens", 1 }, { "vocab", 5 } };
    assert_true(fd_worst(ki_operation_find("tvd"), odd, 2) < 1e-7);
    assert_true(fd_worst(ki_operation_find("tvd"), one, 2) < 1e-7);
}

static void the_fp32_baseline_stays_near_fp64(void **state)
{
    (void)state;
    static const struct ki_axis_value axes[] = { { "tokens", 9 }, { "vocab", 300 } };
    for (int pass = 0; pass < KI_PASSES; pass++) {
        double error = fd_baseline(ki_operation_find("tvd"), KI_F32, (enum ki_pass)pass, axes, 2);
        assert_true(error < 2e-6);
        assert_true(error > 0);
    }
}

static void equal_probabilities_have_no_gradient(void **state)
{
    (void)state;
    static const struct ki_axis_value axes[] = { { "tokens", 2 }, { "vocab", 3 } };
    struct fd f;
    fd_init(&f, ki_operation_find("tvd"), KI_F64, axes, 2);
    fd_put(&f, "p", (const double[]){ 0.5, 0.25, 0.25, 0, 0, 1 });
    fd_put(&f, "q", (const double[]){ 0.25, 0.25, 0.5, 0, 0.5, 0.5 });
    fd_put(&f, "dloss", (const double[]){ 2 });
    assert_true(fd_gives(&f, KI_FORWARD, "loss", (const double[]){ 0.375 }, 1e-15));
    assert_true(fd_gives(&f, KI_BACKWARD, "dp", (const double[]){ 0.5, 0, -0.5, 0, -0.5, 0.5 }, 1e-15));
    fd_fini(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_equal_finite_differences),
        cmocka_unit_test(the_fp32_baseline_stays_near_fp64),
        cmocka_unit_test(equal_probabilities_have_no_gradient),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
