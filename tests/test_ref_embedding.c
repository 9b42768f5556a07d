#include "finite_difference.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void gradients_equal_finite_differences(void **state)
{
    (void)state;
    static const struct ki_axis_value many[] = { { "batch", 2 }, { "seq", 5 }, { "hidden", 3 }, { "vocab", 4 } };
    static const struct ki_axis_value few[] = { { "batch", 1 }, { "seq", 3 }, { "hidden", 2 }, { "vocab", 11 } };
    assert_true(fd_worst(ki_operation_find("embedding"), many, 4) < 1e-7);
    assert_true(fd_worst(ki_operation_find("embedding"), few, 4) < 1e-7);
}

static void the_fp32_baseline_stays_near_fp64(void **state)
{
    (void)state;
    static const struct ki_axis_value axes[] = { { "batch", 3 }, { "seq", 100 }, { "hidden", 5 }, { "vocab", 7 } };
    assert_true(fd_baseline(ki_operation_find("embedding"), KI_F32, KI_FORWARD, axes, 4) == 0); /* a copy */
    assert_true(fd_baseline(ki_operation_find("embedding"), KI_F32, KI_BACKWARD, axes, 4) > 0);
    assert_true(fd_baseline(ki_operation_find("embedding"), KI_F32, KI_BACKWARD, axes, 4) < 2e-6);
}

static void rows_of_equal_ids_add_up(void **state)
{
    (void)state;
    static const struct ki_axis_value axes[] = { { "batch", 2 }, { "seq", 2 }, { "hidden", 2 }, { "vocab", 3 } };
    const double y[] = { 5, 6, 1, 2, 5, 6, 5, 6 }, dweight[] = { 10, 20, 0, 0, 1101, 2202 };
    struct fd f;
    fd_init(&f, ki_operation_find("embedding"), KI_F64, axes, 4);
    fd_put(&f, "input_ids", (const double[]){ 2, 0, 2, 2 });
    fd_put(&f, "weight", (const double[]){ 1, 2, 3, 4, 5, 6 });
    fd_put(&f, "dy", (const double[]){ 1, 2, 10, 20, 100, 200, 1000, 2000 });
    assert_true(fd_gives(&f, KI_FORWARD, "y", y, 0));
    assert_true(fd_gives(&f, KI_FULL, "y", y, 0));
    assert_true(fd_gives(&f, KI_BACKWARD, "dweight", dweight, 0));
    assert_true(fd_gives(&f, KI_FULL, "dweight", dweight, 0));
    fd_fini(&f);
}

static void an_id_outside_the_table_gives_zeros(void **state)
{
    (void)state;
    static const struct ki_axis_value axes[] = { { "batch", 1 }, { "seq", 3 }, { "hidden", 1 }, { "vocab", 2 } };
    struct fd f;
    fd_init(&f, ki_operation_find("embedding"), KI_F64, axes, 4);
    fd_put(&f, "input_ids", (const double[]){ -1, 1, 2 });
    fd_put(&f, "weight", (const double[]){ 7, 8 });
    fd_put(&f, "dy", (const double[]){ 1, 2, 4 });
    assert_true(fd_gives(&f, KI_FORWARD, "y", (const double[]){ 0, 8, 0 }, 0));
    assert_true(fd_gives(&f, KI_BACKWARD, "dweight", (const double[]){ 0, 2 }, 0));
    fd_fini(&f);
}

static void floors_and_scratch_follow_the_shape(void **state)
{
    (void)state;
    static const struct ki_axis_value axes[] = { { "batch", 1 }, { "seq", 1 }, { "hidden", 8 }, { "vocab", 100 } };
    static const struct ki_axis_value large[] = { { "batch", 1 << 16 }, { "seq", 1 << 15 }, { "hidden", 8 }, { "vocab", 100 } };
    const struct ki_operation *op = ki_operation_find("embedding");
    struct ki_case c;
    const char *reason = "";
    assert_int_equal(ki_case_set(&c, op, KI_F32, axes, 4, NULL, 0, &reason), 0);
    assert_true(fabs(op->floor(&c, KI_FORWARD).bytes - 72) < 1e-9);    /* one id, one row in, one out */
    assert_true(fabs(op->floor(&c, KI_BACKWARD).bytes - 3240) < 1e-9); /* one id, 101 rows */
    assert_int_equal(op->workspace_bytes(&c, KI_FORWARD), 0);
    assert_int_equal(op->workspace_bytes(&c, KI_BACKWARD), 100 * 33 * 4);
    assert_int_equal(ki_case_set(&c, op, KI_F32, large, 4, NULL, 0, &reason), -1);
    assert_string_equal(reason, "batch x seq, vocab or hidden are too large");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_equal_finite_differences),
        cmocka_unit_test(the_fp32_baseline_stays_near_fp64),
        cmocka_unit_test(rows_of_equal_ids_add_up),
        cmocka_unit_test(an_id_outside_the_table_gives_zeros),
        cmocka_unit_test(floors_and_scratch_follow_the_shape),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
