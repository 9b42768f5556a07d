#include "finite_difference.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct ki_axis_value small[] = { { "seq", 2 }, { "batch", 3 }, { "ffn", 5 } };

static void gradients_equal_finite_differences(void **state)
{
    (void)state;
    assert_true(fd_worst(ki_operation_find("megatron_swiglu"), small, 3) < 1e-7);
}

static void the_fp32_baseline_stays_near_fp64(void **state)
{
    (void)state;
    for (int pass = 0; pass < KI_PASSES; pass++) {
        double error = fd_baseline(ki_operation_find("megatron_swiglu"), KI_F32, (enum ki_pass)pass, small, 3);
        assert_true(error > 0 && error < 1e-6);
    }
}

/* gate = (0, log 3), up = (4, 2), dout = (1, 8): sigma = (1/2, 3/4). */
static void a_row_worked_out_by_hand(void **state)
{
    (void)state;
    static const struct ki_axis_value axes[] = { { "seq", 1 }, { "batch", 1 }, { "ffn", 2 } };
    const double log3 = 1.0986122886681098, in[4] = { 0, log3, 4, 2 }, dout[2] = { 1, 8 };
    struct fd f;
    fd_init(&f, ki_operation_find("megatron_swiglu"), KI_F64, axes, 3);
    for (int i = 0; i < 4; i++)
        ki_put(&f.tensor[ki_tensor_find(f.work.operation, "y")], i, in[i]);
    for (int i = 0; i < 2; i++)
        ki_put(&f.tensor[ki_tensor_find(f.work.operation, "dout")], i, dout[i]);
    double *out = fd_values(&f, KI_FORWARD, KI_EXACT, ki_tensor_find(f.work.operation, "out"));
    double *dy = fd_values(&f, KI_BACKWARD, KI_EXACT, ki_tensor_find(f.work.operation, "dy"));
    assert_true(out[0] == 0);
    assert_true(fabs(out[1] - 1.6479184330021646) < 1e-14); /* 1.5 log 3 */
    assert_true(fabs(dy[0] - 2) < 1e-14);                   /* 4 * 1/2 */
    assert_true(fabs(dy[1] - 15.295836866004329) < 1e-13);  /* 12 (1 + log 3 / 4) */
    assert_true(dy[2] == 0);
    assert_true(fabs(dy[3] - 6.5916737320086583) < 1e-14);  /* 6 log 3 */
    free(out);
    free(dy);
    fd_fini(&f);
}

static void the_double_width_is_derived_and_floors_follow_the_axes(void **state)
{
    (void)state;
    static const struct ki_axis_value axes[] = { { "seq", 16384 }, { "batch", 1 }, { "ffn", 14336 } };
    const struct ki_operation *op = ki_operation_find("megatron_swiglu");
    const char *reason = NULL;
    struct ki_case c;
    int64_t shape[KI_MAX_RANK];
    assert_int_equal(ki_case_set(&c, op, KI_BF16, axes, 3, NULL, 0, &reason), 0);
    assert_int_equal(ki_tensor_shape(&c, ki_tensor_find(op, "y"), shape), 3);
    assert_int_equal(shape[2], 28672);
    assert_true(op->floor(&c, KI_FORWARD).bytes == 1409286144);
    assert_true(op->floor(&c, KI_BACKWARD).bytes == 2348810240);
    assert_true(op->floor(&c, KI_FULL).bytes == 2818572288);
}

static void an_ffn_beyond_32_bits_is_refused(void **state)
{
    (void)state;
    static const struct ki_axis_value axes[] = { { "seq", 1 }, { "batch", 1 }, { "ffn", (int64_t)1 << 30 } };
    const char *reason = NULL;
    struct ki_case c;
    assert_int_equal(ki_case_set(&c, ki_operation_find("megatron_swiglu"), KI_BF16, axes, 3, NULL, 0, &reason), -1);
    assert_string_equal(reason, "an axis is too large");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_equal_finite_differences),
        cmocka_unit_test(the_fp32_baseline_stays_near_fp64),
        cmocka_unit_test(a_row_worked_out_by_hand),
        cmocka_unit_test(the_double_width_is_derived_and_floors_follow_the_axes),
        cmocka_unit_test(an_ffn_beyond_32_bits_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
