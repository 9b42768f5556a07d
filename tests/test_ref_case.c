#include "finite_difference.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void sixteen_bit_types_round_to_nearest_even(void **state)
{
    (void)state;
    assert_int_equal(ki_float_bf16(1.0f), 0x3f80);
    assert_int_equal(ki_float_bf16(1.00390625f), 0x3f80); /* 1 + 2^-8 is halfway: to even */
    assert_int_equal(ki_float_bf16(1.01171875f), 0x3f82); /* 1 + 3 * 2^-8 is halfway: to even */
    assert_int_equal(ki_float_bf16(3.4e38f), 0x7f80);
    assert_int_equal(ki_float_bf16(NAN) & 0x7fff, 0x7fc0);
    assert_int_equal(ki_float_f16(65504.0f), 0x7bff);
    assert_int_equal(ki_float_f16(65519.0f), 0x7bff);
    assert_int_equal(ki_float_f16(65520.0f), 0x7c00);
    assert_int_equal(ki_float_f16(-1.5f), 0xbe00);
    assert_int_equal(ki_float_f16(5.9604645e-8f), 0x0001);
    assert_int_equal(ki_float_f16(2.9802322e-8f), 0x0000); /* half the least subnormal: to even */
    assert_int_equal(ki_float_f16(6.1035156e-5f), 0x0400);
}

static void sixteen_bit_types_survive_a_round_trip(void **state)
{
    (void)state;
    for (unsigned u = 0; u < 0x10000; u++) {
        if ((u & 0x7f80) != 0x7f80)
            assert_int_equal(ki_float_bf16(ki_bf16_float((uint16_t)u)), u);
        if ((u & 0x7c00) != 0x7c00)
            assert_int_equal(ki_float_f16(ki_f16_float((uint16_t)u)), u);
    }
}

static void an_ulp_is_the_distance_to_the_neighbour(void **state)
{
    (void)state;
    assert_true(ki_ulp(KI_BF16, 1.0) == 0x1p-7);
    assert_true(ki_ulp(KI_BF16, -1.99) == 0x1p-7);
    assert_true(ki_ulp(KI_F16, 2.0) == 0x1p-9);
    assert_true(ki_ulp(KI_F32, 1.0) == 0x1p-23);
    assert_true(ki_ulp(KI_F16, 0.0) == 0x1p-24);
}

static int set(const char *name, const struct ki_axis_value *axes, size_t n, const char **reason)
{
    struct ki_case c;
    return ki_case_set(&c, ki_operation_find(name), KI_BF16, axes, n, NULL, 0, reason);
}

static void a_case_that_does_not_fit_its_operation_is_refused(void **state)
{
    (void)state;
    const char *reason = NULL;
    static const struct ki_axis_value twice[] = { { "rows", 1 }, { "rows", 1 } }, zero[] = { { "rows", 0 }, { "hidden", 1 } },
                                      wide[] = { { "rows", (int64_t)1 << 40 }, { "hidden", 8 } }, good[] = { { "rows", 2 }, { "hidden", 8 } };
    assert_int_equal(set("rms_norm", good, 2, &reason), 0);
    assert_int_equal(set("rms_norm", good, 1, &reason), -1);
    assert_string_equal(reason, "wrong number of axes");
    assert_int_equal(set("rms_norm", twice, 2, &reason), -1);
    assert_string_equal(reason, "unknown or repeated axis");
    assert_int_equal(set("rms_norm", zero, 2, &reason), -1);
    assert_string_equal(reason, "axis out of range");
    assert_int_equal(set("rms_norm", wide, 2, &reason), -1);
    assert_string_equal(reason, "a tensor has too many elements");
    static const struct ki_scalar_value scalar = { "epsilon", 1 };
    struct ki_case c;
    assert_int_equal(ki_case_set(&c, ki_operation_find("rms_norm"), KI_BF16, good, 2, &scalar, 1, &reason), -1);
    assert_string_equal(reason, "unknown scalar, or one that is not finite");
    assert_int_equal(ki_case_set(&c, ki_operation_find("rms_norm"), KI_I64, good, 2, NULL, 0, &reason), -1);
    assert_string_equal(reason, "the operation has no kernel for this dtype");
    assert_null(ki_operation_find("rms"));
}

static void floors_are_those_of_the_least_traffic(void **state)
{
    (void)state;
    static const struct ki_axis_value axes[] = { { "rows", 2048 }, { "hidden", 4096 } };
    const char *reason = NULL;
    struct ki_case c;
    const struct ki_operation *op = ki_operation_find("rms_norm");
    assert_int_equal(ki_case_set(&c, op, KI_BF16, axes, 2, NULL, 0, &reason), 0);
    assert_true(op->floor(&c, KI_FORWARD).bytes == 33562624);
    assert_true(op->floor(&c, KI_BACKWARD).bytes == 50348032);
    assert_true(op->floor(&c, KI_FULL).bytes == 67125248);
}

/* Every contract can be read by those who run it without asking further. */
static void every_contract_is_complete(void **state)
{
    (void)state;
    const struct ki_operation *op;
    for (size_t i = 0; (op = ki_operation_at(i)); i++) {
        assert_ptr_equal(ki_operation_find(op->name), op);
        assert_true(op->passes & KI_BIT(KI_FORWARD));
        assert_non_null(op->tolerance);
        assert_non_null(op->floor);
        assert_non_null(op->reference);
        for (int t = 0; t < ki_tensor_total(op); t++) {
            const struct ki_tensor_spec *spec = &op->tensor[t];
            assert_int_not_equal(spec->role, KI_NO_ROLE);
            assert_true(spec->shape[0] != 0);
            assert_int_equal(ki_tensor_find(op, spec->name), t);
            if (spec->role == KI_GRADIENT || spec->role == KI_UPSTREAM)
                assert_true(spec->of[0] && ki_tensor_find(op, spec->of[0]) >= 0);
            if (spec->fill == KI_FILL_INDEX)
                assert_int_equal(spec->dtype, KI_I64);
        }
    }
    assert_true(ki_operation_at(0) != NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sixteen_bit_types_round_to_nearest_even),
        cmocka_unit_test(sixteen_bit_types_survive_a_round_trip),
        cmocka_unit_test(an_ulp_is_the_distance_to_the_neighbour),
        cmocka_unit_test(a_case_that_does_not_fit_its_operation_is_refused),
        cmocka_unit_test(floors_are_those_of_the_least_traffic),
        cmocka_unit_test(every_contract_is_complete),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
