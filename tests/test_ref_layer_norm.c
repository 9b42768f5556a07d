#include "finite_difference.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct ki_axis_value rows3[] = { { "rows", 3 }, { "hidden", 5 } };

static void gradients_equal_finite_differences(void **state)
{
    (void)state;
    assert_true(fd_worst(ki_operation_find("layer_norm"), rows3, 2) < 1e-7);
}

static void the_fp32_baseline_stays_near_fp64(void **state)
{
    (void)state;
    static const struct ki_axis_value axes[] = { { "rows", 7 }, { "hidden", 300 } };
    for (int pass = 0; pass < KI_PASSES; pass++) {
        double error = fd_baseline(ki_operation_find("layer_norm"), KI_F32, (enum ki_pass)pass, axes, 2);
        assert_true(error > 0 && error < 2e-6);
    }
}

/* x = (1, 3), w = (2, 3), b = (10, 20), eps = 3: mean 2, variance 1, rs = 1/2. dy = (1, 1): q = (2, 3). */
static void a_row_worked_out_by_hand(void **state)
{
    (void)state;
    static const struct ki_axis_value axes[] = { { "rows", 1 }, { "hidden", 2 } };
    struct fd f;
    fd_init(&f, ki_operation_find("layer_norm"), KI_F64, axes, 2);
    f.work.scalar[0] = 3;
    const char *const names[] = { "x", "weight", "bias", "dy" };
    const double set[4][2] = { { 1, 3 }, { 2, 3 }, { 10, 20 }, { 1, 1 } };
    for (int t = 0; t < 4; t++)
        for (int i = 0; i < 2; i++)
            ki_put(&f.tensor[ki_tensor_find(f.work.operation, names[t])], i, set[t][i]);
    const char *const outputs[] = { "y", "dx", "dweight", "dbias" };
    const double expected[4][2] = { { 9, 21.5 }, { -0.1875, 0.1875 }, { -0.5, 0.5 }, { 1, 1 } };
    for (int t = 0; t < 4; t++) {
        double *v = fd_values(&f, KI_FULL, KI_EXACT, ki_tensor_find(f.work.operation, outputs[t]));
        for (int i = 0; i < 2; i++)
            assert_true(fabs(v[i] - expected[t][i]) < 1e-14);
        free(v);
    }
    fd_fini(&f);
}

static void floors_and_workspace_are_those_of_the_axes(void **state)
{
    (void)state;
    static const struct ki_axis_value axes[] = { { "rows", 4096 }, { "hidden", 16384 } };
    const struct ki_operation *op = ki_operation_find("layer_norm");
    const char *reason = NULL;
    struct ki_case c;
    assert_int_equal(ki_case_set(&c, op, KI_F32, axes, 2, NULL, 0, &reason), 0);
    assert_true(op->floor(&c, KI_FORWARD).bytes == 537001984);
    assert_true(op->floor(&c, KI_BACKWARD).bytes == 805502976);
    assert_true(op->floor(&c, KI_FULL).bytes == 1074003968);
    assert_int_equal(op->workspace_bytes(&c, KI_FORWARD), 0);
    assert_int_equal(op->workspace_bytes(&c, KI_BACKWARD), 134217728);
}

static void a_hidden_beyond_32_bits_is_refused(void **state)
{
    (void)state;
    static const struct ki_axis_value axes[] = { { "rows", 1 }, { "hidden", (int64_t)1 << 31 } };
    const char *reason = NULL;
    struct ki_case c;
    assert_int_equal(ki_case_set(&c, ki_operation_find("layer_norm"), KI_F32, axes, 2, NULL, 0, &reason), -1);
    assert_string_equal(reason, "hidden is too large");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_equal_finite_differences),
        cmocka_unit_test(the_fp32_baseline_stays_near_fp64),
        cmocka_unit_test(a_row_worked_out_by_hand),
        cmocka_unit_test(floors_and_workspace_are_those_of_the_axes),
        cmocka_unit_test(a_hidden_beyond_32_bits_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
