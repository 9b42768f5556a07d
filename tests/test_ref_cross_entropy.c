#include "finite_difference.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct ki_axis_value plain[] = { { "tokens", 3 }, { "vocab", 7 } };
static const struct ki_axis_value megatron[] = { { "seq", 2 }, { "batch", 3 }, { "vocab", 5 } };

static void gradients_equal_finite_differences(void **state)
{
    (void)state;
    assert_true(fd_worst(ki_operation_find("cross_entropy"), plain, 2) < 1e-7);
    assert_true(fd_worst(ki_operation_find("megatron_cross_entropy"), megatron, 3) < 1e-7);
}

static void the_fp32_baseline_stays_near_fp64(void **state)
{
    (void)state;
    static const struct ki_axis_value rows[] = { { "tokens", 9 }, { "vocab", 300 } };
    static const struct ki_axis_value layout[] = { { "seq", 3 }, { "batch", 3 }, { "vocab", 300 } };
    for (int pass = 0; pass < KI_PASSES; pass++) {
        double mean = fd_baseline(ki_operation_find("cross_entropy"), KI_F32, (enum ki_pass)pass, rows, 2);
        double tokens = fd_baseline(ki_operation_find("megatron_cross_entropy"), KI_BF16, (enum ki_pass)pass, layout, 3);
        assert_true(mean > 0 && mean < 2e-6);
        assert_true(tokens > 0 && tokens < 2e-6);
    }
}

/* Softmax (1/4, 3/4), (2/3, 1/3); the third token is ignored. */
static const double logits[] = { 0, 1.0986122886681098, 0.6931471805599453, 0, 5, -5 };
static const double targets[] = { 1, 0, -100 };

static void an_ignored_token_does_not_count(void **state)
{
    (void)state;
    static const struct ki_axis_value axes[] = { { "tokens", 3 }, { "vocab", 2 } };
    const double loss[] = { 0.3465735902799727 }; /* (log(4/3) + log(3/2)) / 2 */
    const double dlogits[] = { 0.5, -0.5, -0.6666666666666666, 0.6666666666666666, 0, 0 };
    struct fd f;
    fd_init(&f, ki_operation_find("cross_entropy"), KI_F64, axes, 2);
    fd_put(&f, "logits", logits);
    fd_put(&f, "target", targets);
    fd_put(&f, "dloss", (const double[]){ 4 });
    assert_true(fd_gives(&f, KI_FORWARD, "loss", loss, 1e-15));
    assert_true(fd_gives(&f, KI_NO_GRAD, "loss", loss, 1e-15));
    assert_true(fd_gives(&f, KI_BACKWARD, "dlogits", dlogits, 1e-15));
    assert_true(fd_gives(&f, KI_FULL, "dlogits", dlogits, 1e-15));
    fd_fini(&f);
}

static void each_token_has_its_loss_and_its_gradient(void **state)
{
    (void)state;
    static const struct ki_axis_value axes[] = { { "seq", 1 }, { "batch", 3 }, { "vocab", 2 } };
    struct fd f;
    fd_init(&f, ki_operation_find("megatron_cross_entropy"), KI_F64, axes, 3);
    fd_put(&f, "logits", logits);
    fd_put(&f, "target", targets);
    fd_put(&f, "dloss", (const double[]){ 4, 3, 2 });
    assert_true(fd_gives(&f, KI_FORWARD, "loss", (const double[]){ 0.2876820724517809, 0.4054651081081644, 0 }, 1e-15));
    assert_true(fd_gives(&f, KI_BACKWARD, "dlogits", (const double[]){ 1, -1, -1, 1, 0, 0 }, 1e-15));
    fd_fini(&f);
}

static void a_loss_of_large_logits_stays_finite(void **state)
{
    (void)state;
    static const struct ki_axis_value axes[] = { { "tokens", 1 }, { "vocab", 2 } };
    struct fd f;
    fd_init(&f, ki_operation_find("cross_entropy"), KI_F64, axes, 2);
    fd_put(&f, "logits", (const double[]){ 10000, 9000 });
    fd_put(&f, "target", (const double[]){ 1 });
    assert_true(fd_gives(&f, KI_FORWARD, "loss", (const double[]){ 1000 }, 1e-15));
    fd_fini(&f);
}

static void shapes_beyond_the_kernels_are_refused(void **state)
{
    (void)state;
    static const struct ki_axis_value wide[] = { { "tokens", 1 }, { "vocab", (1 << 30) + 1 } };
    static const struct ki_axis_value many[] = { { "seq", 1 << 20 }, { "batch", 1 << 11 }, { "vocab", 1 } };
    struct ki_case c;
    const char *reason = "";
    assert_int_equal(ki_case_set(&c, ki_operation_find("cross_entropy"), KI_F32, wide, 2, NULL, 0, &reason), -1);
    assert_string_equal(reason, "tokens or vocab are too large");
    assert_int_equal(ki_case_set(&c, ki_operation_find("megatron_cross_entropy"), KI_BF16, many, 3, NULL, 0, &reason), -1);
    assert_string_equal(reason, "seq x batch or vocab are too large");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_equal_finite_differences),
        cmocka_unit_test(the_fp32_baseline_stays_near_fp64),
        cmocka_unit_test(an_ignored_token_does_not_count),
        cmocka_unit_test(each_token_has_its_loss_and_its_gradient),
        cmocka_unit_test(a_loss_of_large_logits_stays_finite),
        cmocka_unit_test(shapes_beyond_the_kernels_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
