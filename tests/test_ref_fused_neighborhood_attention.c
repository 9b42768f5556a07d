#include "finite_difference.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define AXES(b, s, hid, n, k, d) \
    { { "batch", b }, { "seq", s }, { "hidden", hid }, { "heads", n }, { "kernel_size", k }, { "dilation", d } }

static const struct ki_operation *attention(void)
{
    return ki_operation_find("fused_neighborhood_attention");
}

/* As fd_worst, but for the key bias: its gradient is 0, so that no relative error of it exists. */
static double worst_gradient(const struct ki_axis_value *axes)
{
    const struct ki_operation *op = attention();
    double worst = 0;
    struct fd f;
    fd_init(&f, op, KI_F64, axes, 6);
    for (int i = 0; i < f.tensors; i++) /* so that a few channels make scores that matter */
        for (int64_t j = 0; op->tensor[i].role == KI_PARAM && j < f.tensor[i].count; j++)
            ki_put(&f.tensor[i], j, 10 * ki_get(&f.tensor[i], j));
    for (int i = 0; i < f.tensors; i++) {
        if (op->tensor[i].role != KI_GRADIENT)
            continue;
        double *backward = fd_values(&f, KI_BACKWARD, KI_EXACT, i), *full = fd_values(&f, KI_FULL, KI_EXACT, i);
        int input = ki_tensor_find(op, op->tensor[i].of[0]);
        for (int64_t j = 0; j < f.tensor[i].count; j++)
            worst = fmax(worst, fabs(backward[j] - full[j]));
        double off = fd_compare(&f, backward, input);
        if (strcmp(op->tensor[i].name, "dk_bias") == 0)
            off *= 1e-30; /* back to the difference itself */
        worst = fmax(worst, off);
        free(backward);
        free(full);
    }
    fd_fini(&f);
    return worst;
}

static void gradients_equal_finite_differences(void **state)
{
    (void)state;
    static const struct ki_axis_value plain[] = AXES(2, 5, 6, 2, 3, 1), dilated[] = AXES(1, 7, 4, 1, 5, 2), wide[] = AXES(1, 3, 3, 3, 9, 1);
    assert_true(worst_gradient(plain) < 1e-7);
    assert_true(worst_gradient(dilated) < 1e-7);
    assert_true(worst_gradient(wide) < 1e-7);
}

static void the_baseline_is_off_by_what_tf32_and_bf16_cost(void **state)
{
    (void)state;
    static const struct ki_axis_value axes[] = AXES(2, 9, 32, 2, 3, 2);
    for (int pass = 0; pass < KI_PASSES; pass++) {
        double tf32 = fd_baseline(attention(), KI_F32, (enum ki_pass)pass, axes, 6);
        double bf16 = fd_baseline(attention(), KI_BF16, (enum ki_pass)pass, axes, 6);
        assert_true(tf32 > 1e-6 && tf32 < 5e-3);
        assert_true(bf16 > tf32 && bf16 < 5e-2);
    }
}

/* One head of one element; all scores are equal (Wq = bq = 0), so that o is the mean over the window of v = 2x + 1, cut at the borders. */
static void the_window_is_cut_at_the_borders(void **state)
{
    (void)state;
    static const struct ki_axis_value next[] = AXES(1, 4, 1, 1, 3, 1), second[] = AXES(1, 4, 1, 1, 3, 2);
    const double x[] = { 1, 2, 3, 6 }, zero[] = { 0 }, one[] = { 1 }, two[] = { 2 }, ten[] = { 10 };
    for (int dilation = 1; dilation <= 2; dilation++) {
        struct fd f;
        fd_init(&f, attention(), KI_F64, dilation == 1 ? next : second, 6);
        fd_put(&f, "hidden_states", x);
        fd_put(&f, "q_weight", zero);
        fd_put(&f, "q_bias", zero);
        fd_put(&f, "v_weight", two);
        fd_put(&f, "v_bias", one);
        fd_put(&f, "out_weight", ten);
        fd_put(&f, "out_bias", two);
        fd_put(&f, "dy", (const double[]){ 1, 0, 0, 6 });
        if (dilation == 1) {
            /* windows {1,2} {1,2,3} {2,3,6} {3,6} */
            assert_true(fd_gives(&f, KI_FORWARD, "y", (const double[]){ 42, 52, 85.33333333333333, 102 }, 1e-12));
            assert_true(fd_gives(&f, KI_NO_GRAD, "y", (const double[]){ 42, 52, 85.33333333333333, 102 }, 1e-12));
            assert_true(fd_gives(&f, KI_BACKWARD, "dv_bias", (const double[]){ 70 }, 1e-12));
            assert_true(fd_gives(&f, KI_BACKWARD, "dv_weight", (const double[]){ 285 }, 1e-12)); /* 10 (1 + 2) / 2 + 60 (3 + 6) / 2 */
            assert_true(fd_gives(&f, KI_BACKWARD, "dout_weight", (const double[]){ 64 }, 1e-12)); /* 1 * 4 + 6 * 10 */
            assert_true(fd_gives(&f, KI_FULL, "dout_bias", (const double[]){ 7 }, 1e-12));
            assert_true(fd_gives(&f, KI_FULL, "dk_bias", zero, 1e-12));
        } else {
            /* windows {1,3} {2,6} {1,3} {2,6} */
            assert_true(fd_gives(&f, KI_FORWARD, "y", (const double[]){ 52, 92, 52, 92 }, 1e-12));
        }
        fd_fini(&f);
    }
}

static int refusal(const struct ki_axis_value *axes, const char **reason)
{
    struct ki_case c;
    return ki_case_set(&c, attention(), KI_F32, axes, 6, NULL, 0, reason);
}

static void shapes_beyond_the_kernels_are_refused(void **state)
{
    (void)state;
    static const struct ki_axis_value uneven[] = AXES(1, 4, 10, 3, 3, 1), even[] = AXES(1, 4, 8, 2, 4, 1), long_head[] = AXES(1, 4, 514, 2, 3, 1),
                                      good[] = AXES(2, 64, 512, 8, 7, 2);
    const char *reason = "";
    assert_int_equal(refusal(uneven, &reason), -1);
    assert_string_equal(reason, "hidden must be a multiple of heads, and kernel_size odd");
    assert_int_equal(refusal(even, &reason), -1);
    assert_int_equal(refusal(long_head, &reason), -1);
    assert_string_equal(reason, "head_dim is above 256, or an axis is too large");
    assert_int_equal(refusal(good, &reason), 0);
}

/* Pairs: 64 * 7 - 2 * 3 * 4 = 424. */
static void floors_count_pairs_and_products(void **state)
{
    (void)state;
    static const struct ki_axis_value axes[] = AXES(2, 64, 512, 8, 7, 2);
    struct ki_case c;
    const char *reason = "";
    assert_int_equal(ki_case_set(&c, attention(), KI_F32, axes, 6, NULL, 0, &reason), 0);
    struct ki_floor forward = attention()->floor(&c, KI_FORWARD), backward = attention()->floor(&c, KI_BACKWARD);
    assert_true(forward.flops == 270172160);
    assert_true(backward.flops == 540344320);
    assert_true(forward.bytes == 4726784);
    assert_true(backward.bytes == 9183232);
    assert_int_equal(forward.math, KI_MATH_TF32);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_equal_finite_differences),
        cmocka_unit_test(the_baseline_is_off_by_what_tf32_and_bf16_cost),
        cmocka_unit_test(the_window_is_cut_at_the_borders),
        cmocka_unit_test(shapes_beyond_the_kernels_are_refused),
        cmocka_unit_test(floors_count_pairs_and_products),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
