#include "finite_difference.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void gradients_equal_finite_differences(void **state)
{
    (void)state;
    static const struct ki_axis_value odd[] = { { "tokens", 3 }, { "vocab", 7 } }, one[] = { { "tokens", 1 }, { "vocab", 5 } };
    assert_true(fd_worst(ki_operation_find("kl_div"), odd, 2) < 1e-7);
    assert_true(fd_worst(ki_operation_find("kl_div"), one, 2) < 1e-7);
}

static void the_fp32_baseline_stays_near_fp64(void **state)
{
    (void)state;
    static const struct ki_axis_value axes[] = { { "tokens", 9 }, { "vocab", 300 } };
    for (int pass = 0; pass < KI_PASSES; pass++) {
        double error = fd_baseline(ki_operation_find("kl_div"), KI_F32, (enum ki_pass)pass, axes, 2);
        assert_true(error < 2e-6);
        assert_true(error > 0);
    }
}

/* t = (1/2, 1/2), (0, 1) against (1/4, 3/4), (1/2, 1/2): (log(2)/2 + log(2/3)/2 + log 2) / 2. */
static void a_target_of_zero_adds_nothing(void **state)
{
    (void)state;
    static const struct ki_axis_value axes[] = { { "tokens", 2 }, { "vocab", 2 } };
    const double lp[] = { -1.3862943611198906, -0.2876820724517809, -0.6931471805599453, -0.6931471805599453 };
    struct fd f;
    fd_init(&f, ki_operation_find("kl_div"), KI_F64, axes, 2);
    fd_put(&f, "log_probs", lp);
    fd_put(&f, "target_probs", (const double[]){ 0.5, 0.5, 0, 1 });
    fd_put(&f, "dloss", (const double[]){ 3 });
    assert_true(fd_gives(&f, KI_FORWARD, "loss", (const double[]){ 0.41849410839291784 }, 1e-15));
    assert_true(fd_gives(&f, KI_FULL, "loss", (const double[]){ 0.41849410839291784 }, 1e-15));
    assert_true(fd_gives(&f, KI_BACKWARD, "dlog_probs", (const double[]){ -0.75, -0.75, 0, -1.5 }, 1e-15));
    fd_fini(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_equal_finite_differences),
        cmocka_unit_test(the_fp32_baseline_stays_near_fp64),
        cmocka_unit_test(a_target_of_zero_adds_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
