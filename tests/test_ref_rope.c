#include "finite_difference.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct ki_axis_value small[] = { { "seq", 3 }, { "hidden", 8 }, { "q_heads", 2 }, { "kv_heads", 1 } };

static void gradients_equal_finite_differences(void **state)
{
    (void)state;
    assert_true(fd_worst(ki_operation_find("rope"), small, 4) < 1e-7);
    assert_true(fd_worst(ki_operation_find("llama4_rope"), small, 4) < 1e-7);
}

/* Two elements a head, so one pair with angle = position; q of position 1 is (1, 2). */
static void position_one_turns_by_one_radian(void **state)
{
    (void)state;
    static const struct ki_axis_value axes[] = { { "seq", 2 }, { "hidden", 2 }, { "q_heads", 1 }, { "kv_heads", 1 } };
    struct fd f;
    fd_init(&f, ki_operation_find("rope"), KI_F64, axes, 4);
    ki_put(&f.tensor[0], 2, 1);
    ki_put(&f.tensor[0], 3, 2);
    double *out = fd_values(&f, KI_FORWARD, KI_EXACT, ki_tensor_find(f.work.operation, "q_out"));
    assert_true(fabs(out[2] + 1.1426396637476532) < 1e-15); /* cos 1 - 2 sin 1 */
    assert_true(fabs(out[3] - 1.922075596544176) < 1e-15); /* 2 cos 1 + sin 1 */
    assert_true(out[0] == ki_get(&f.tensor[0], 0));
    free(out);
    fd_fini(&f);
}

/* The same head of four at position 1 in both pairings: angles 1 and 0.01. */
static void the_two_operations_pair_different_elements(void **state)
{
    (void)state;
    static const struct ki_axis_value axes[] = { { "seq", 2 }, { "hidden", 4 }, { "q_heads", 1 }, { "kv_heads", 1 } };
    const char *const names[] = { "rope", "llama4_rope" };
    const double expected[2] = { -1.9841106485555495, -1.1426396637476532 }; /* 1 cos 1 - 3 sin 1, 1 cos 1 - 2 sin 1 */
    for (int n = 0; n < 2; n++) {
        struct fd f;
        fd_init(&f, ki_operation_find(names[n]), KI_F64, axes, 4);
        for (int i = 0; i < 4; i++)
            ki_put(&f.tensor[0], 4 + i, i + 1);
        double *out = fd_values(&f, KI_FORWARD, KI_EXACT, ki_tensor_find(f.work.operation, "q_out"));
        assert_true(fabs(out[4] - expected[n]) < 1e-15);
        free(out);
        fd_fini(&f);
    }
}

static void a_head_of_odd_size_is_refused(void **state)
{
    (void)state;
    static const struct ki_axis_value axes[] = { { "seq", 2 }, { "hidden", 9 }, { "q_heads", 3 }, { "kv_heads", 1 } };
    struct ki_case c;
    const char *reason = NULL;
    assert_int_equal(ki_case_set(&c, ki_operation_find("rope"), KI_BF16, axes, 4, NULL, 0, &reason), -1);
    assert_string_equal(reason, "head_dim must be even, whole and at most 512");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_equal_finite_differences),
        cmocka_unit_test(position_one_turns_by_one_radian),
        cmocka_unit_test(the_two_operations_pair_different_elements),
        cmocka_unit_test(a_head_of_odd_size_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
