/* The checks of verify/compare.c on the CPU device: honest results pass, each kind of wrong result is named. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "verify/compare.h"

static const struct tolerance usual[KI_MAX_TENSORS] = {
    { 2, 1, 0, 0 }, { 2, 1, 0, 0 }, { 2, 1, 0, 0 }, { 2, 1, 0, 0 }, { 2, 1, 0, 0 }, { 2, 1, 0, 0 }, { 2, 1, 0, 0 }, { 2, 1, 0, 0 }, { 2, 1, 0, 0 }, { 2, 1, 0, 0 },
};

static struct ki_case rms_norm(enum ki_dtype dtype, int64_t rows, int64_t hidden)
{
    const struct ki_axis_value axes[] = { { "rows", rows }, { "hidden", hidden } };
    struct ki_case c;
    const char *reason = "";
    assert_int_equal(ki_case_set(&c, ki_operation_find("rms_norm"), dtype, axes, 2, NULL, 0, &reason), 0);
    return c;
}

/* One check of rms_norm with `launch` in the place of an implementation. */
static struct compare_result check(int (*launch)(void *, const struct ki_call *), enum ki_dtype dtype, enum ki_pass pass, int64_t hidden)
{
    struct ki_case c = rms_norm(dtype, 3, hidden);
    struct tensors t;
    struct compare_result r;
    struct err e = { 0 };
    struct implementation by = launch ? (struct implementation){ .launch = launch } : compare_own(&place_host);
    assert_int_equal(tensors_init(&t, &place_host, &c, KI_BIT(pass), &e), 0);
    assert_int_equal(compare_pass(&t, pass, by, usual, 7, NULL, &r, &e), 0);
    tensors_fini(&t);
    return r;
}

static void the_baseline_passes_in_every_pass_and_dtype(void **state)
{
    (void)state;
    for (int d = KI_F32; d <= KI_F16; d++)
        for (int pass = 0; pass < KI_PASSES; pass++) {
            struct compare_result r = check(NULL, (enum ki_dtype)d, (enum ki_pass)pass, 33);
            assert_string_equal(r.text, "");
            assert_int_equal(r.status, COMPARE_PASSED);
            assert_false(r.vacuous);
            assert_int_equal(r.tensors, pass == KI_FULL ? 3 : pass == KI_BACKWARD ? 2 : 1);
        }
}

static int zeros(void *state, const struct ki_call *c)
{
    (void)state;
    for (int i = 0; i < ki_tensor_total(c->work.operation); i++)
        if (ki_tensor_use(c->work.operation, c->pass, i) == KI_WRITE)
            memset(c->tensor[i].data, 0, (size_t)(c->tensor[i].count * ki_dtype_bytes(c->tensor[i].dtype)));
    return 0;
}

static int nothing(void *state, const struct ki_call *c)
{
    (void)state;
    (void)c;
    return 0;
}

static int mutate(void *state, const struct ki_call *c)
{
    (void)state;
    int rc = place_host.launch(c);
    ki_put(&c->tensor[0], 1, ki_get(&c->tensor[0], 1) + 1);
    return rc;
}

static int beyond_the_end(void *state, const struct ki_call *c)
{
    (void)state;
    int rc = place_host.launch(c);
    const struct ki_tensor *y = &c->tensor[ki_tensor_find(c->work.operation, "y")];
    ((char *)y->data)[y->count * ki_dtype_bytes(y->dtype)] ^= 1;
    return rc;
}

static int before_the_start(void *state, const struct ki_call *c)
{
    (void)state;
    int rc = place_host.launch(c);
    ((char *)c->tensor[ki_tensor_find(c->work.operation, "y")].data)[-1] ^= 1;
    return rc;
}

static int last_element_missing(void *state, const struct ki_call *c)
{
    (void)state;
    const struct ki_tensor *y = &c->tensor[ki_tensor_find(c->work.operation, "y")];
    int rc = place_host.launch(c);
    memset((char *)y->data + (y->count - 1) * ki_dtype_bytes(y->dtype), 0xff, (size_t)ki_dtype_bytes(y->dtype));
    return rc;
}

static int three_ulps_off(void *state, const struct ki_call *c)
{
    (void)state;
    const struct ki_tensor *y = &c->tensor[ki_tensor_find(c->work.operation, "y")];
    int rc = place_host.launch(c);
    for (int64_t i = 0; i < y->count; i++)
        ki_put(y, i, ki_get(y, i) + 3 * ki_ulp(y->dtype, ki_get(y, i)));
    return rc;
}

static int infinite(void *state, const struct ki_call *c)
{
    (void)state;
    const struct ki_tensor *y = &c->tensor[ki_tensor_find(c->work.operation, "y")];
    int rc = place_host.launch(c);
    ki_put(y, 5, INFINITY);
    return rc;
}

static void wrong_results_are_named(void **state)
{
    (void)state;
    struct compare_result r = check(zeros, KI_F32, KI_FORWARD, 33);
    assert_int_equal(r.status, COMPARE_NUMERICAL);
    r = check(nothing, KI_F32, KI_FORWARD, 33);
    assert_int_equal(r.status, COMPARE_UNWRITTEN);
    assert_int_equal(r.unwritten, 99);
    assert_int_equal(check(mutate, KI_F32, KI_FORWARD, 33).status, COMPARE_MUTATION);
    assert_int_equal(check(beyond_the_end, KI_BF16, KI_FORWARD, 33).status, COMPARE_MUTATION);
    assert_int_equal(check(before_the_start, KI_F32, KI_FORWARD, 33).status, COMPARE_MUTATION);
    r = check(last_element_missing, KI_BF16, KI_FORWARD, 33);
    assert_int_equal(r.status, COMPARE_UNWRITTEN);
    assert_string_equal(r.text, "left unwritten: 1 elements");
    assert_int_equal(check(three_ulps_off, KI_F32, KI_FORWARD, 33).status, COMPARE_NUMERICAL);
    r = check(infinite, KI_F32, KI_FORWARD, 33);
    assert_int_equal(r.status, COMPARE_NUMERICAL);
    assert_string_equal(r.text, "y: 1 of 99 elements are not finite, or should not be");
}

/* Rows summed in bf16: the running sum of squares stops growing once it is 256 times a term. */
static int sums_in_bf16(void *state, const struct ki_call *c)
{
    (void)state;
    int64_t hidden = c->tensor[1].count, rows = c->tensor[0].count / hidden;
    for (int64_t r = 0; r < rows; r++) {
        float sum = 0;
        for (int64_t h = 0; h < hidden; h++) {
            float x = (float)ki_get(&c->tensor[0], r * hidden + h);
            sum = ki_bf16_float(ki_float_bf16(sum + x * x));
        }
        for (int64_t h = 0; h < hidden; h++)
            ki_put(&c->tensor[2], r * hidden + h, ki_get(&c->tensor[0], r * hidden + h) * ki_get(&c->tensor[1], h) / sqrt((double)sum / (double)hidden + 1e-6));
    }
    return 0;
}

static void the_wrong_accumulation_type_is_found(void **state)
{
    (void)state;
    assert_int_equal(check(sums_in_bf16, KI_BF16, KI_FORWARD, 4096).status, COMPARE_NUMERICAL);
}

static void the_same_seed_draws_the_same_inputs_and_a_redraw_changes_a_part(void **state)
{
    (void)state;
    struct ki_case c = rms_norm(KI_F32, 64, 64);
    struct tensors t;
    struct err e = { 0 };
    uint64_t a, b, d;
    assert_int_equal(tensors_init(&t, &place_host, &c, KI_BIT(KI_FORWARD), &e), 0);
    tensors_draw(&t, 5, NULL, &e);
    tensors_hash(&t, KI_FORWARD, false, NULL, &a, &e);
    float before[64 * 64];
    memcpy(before, t.tensor[0].data, sizeof before);
    tensors_redraw(&t, 6, NULL, &e);
    tensors_hash(&t, KI_FORWARD, false, NULL, &b, &e);
    int changed = 0;
    for (int i = 0; i < 64 * 64; i++)
        changed += before[i] != ((float *)t.tensor[0].data)[i];
    tensors_draw(&t, 5, NULL, &e);
    tensors_hash(&t, KI_FORWARD, false, NULL, &d, &e);
    tensors_fini(&t);
    assert_true(a != b);
    assert_true(a == d);
    assert_int_equal(changed, 64);
}

static void drawn_values_have_the_moments_of_their_contract(void **state)
{
    (void)state;
    struct draw d = { .fill = KI_FILL_NORMAL, .mean = 1, .deviation = 0.5f, .seed = 3 };
    double sum = 0, squares = 0;
    for (int i = 0; i < 20000; i++) {
        double v = draw_element(&d, i);
        sum += v;
        squares += (v - 1) * (v - 1);
    }
    assert_true(fabs(sum / 20000 - 1) < 0.015);
    assert_true(fabs(sqrt(squares / 20000) - 0.5) < 0.01);
    d = (struct draw){ .fill = KI_FILL_INDEX, .range = 7, .seed = 3 };
    int seen[7] = { 0 };
    for (int i = 0; i < 7000; i++)
        seen[(int)draw_element(&d, i)]++;
    for (int i = 0; i < 7; i++)
        assert_true(seen[i] > 850 && seen[i] < 1150);
}

static void a_workload_that_zeros_would_pass_is_vacuous(void **state)
{
    (void)state;
    struct tolerance loose[KI_MAX_TENSORS];
    struct ki_case c = rms_norm(KI_F32, 3, 33);
    struct tensors t;
    struct compare_result r;
    struct err e = { 0 };
    for (int i = 0; i < KI_MAX_TENSORS; i++)
        loose[i] = (struct tolerance){ 1e9, 1e9, 0, 0 };
    assert_int_equal(tensors_init(&t, &place_host, &c, KI_BIT(KI_FORWARD), &e), 0);
    assert_int_equal(compare_pass(&t, KI_FORWARD, compare_own(&place_host), loose, 7, NULL, &r, &e), 0);
    tensors_fini(&t);
    assert_int_equal(r.status, COMPARE_PASSED);
    assert_true(r.vacuous);
}

static int first_loss_off(void *state, const struct ki_call *c)
{
    int rc = place_host.launch(c);
    const struct ki_tensor *y = &c->tensor[ki_tensor_find(c->work.operation, "y")];
    ki_put(y, 0, ki_get(y, 0) + *(double *)state * ki_ulp(y->dtype, 4));
    return rc;
}

/* 3 x 33 elements, the largest between 2 and 8: 3 ulps at 4 pass where few elements are allowed 4, and 20 never do. */
static void few_elements_are_allowed_a_few_ulps(void **state)
{
    (void)state;
    const double off[] = { 1.5, 1.5, 20 };
    const double few[] = { 0, 256, 256 };
    const enum compare_status expected[] = { COMPARE_NUMERICAL, COMPARE_PASSED, COMPARE_NUMERICAL };
    for (int i = 0; i < 3; i++) {
        struct ki_case c = rms_norm(KI_F32, 3, 33);
        struct tensors t;
        struct compare_result r;
        struct err e = { 0 };
        double ulps = off[i];
        struct tolerance by_tensor[KI_MAX_TENSORS];
        for (int k = 0; k < KI_MAX_TENSORS; k++)
            by_tensor[k] = (struct tolerance){ 2, 1, few[i], 4 };
        assert_int_equal(tensors_init(&t, &place_host, &c, KI_BIT(KI_FORWARD), &e), 0);
        assert_int_equal(compare_pass(&t, KI_FORWARD, (struct implementation){ .launch = first_loss_off, .state = &ulps }, by_tensor, 7, NULL, &r, &e), 0);
        assert_true(r.tensor[0].exact_max > 2 && r.tensor[0].exact_max < 8);
        tensors_fini(&t);
        assert_int_equal(r.status, expected[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_baseline_passes_in_every_pass_and_dtype),
        cmocka_unit_test(wrong_results_are_named),
        cmocka_unit_test(the_wrong_accumulation_type_is_found),
        cmocka_unit_test(the_same_seed_draws_the_same_inputs_and_a_redraw_changes_a_part),
        cmocka_unit_test(drawn_values_have_the_moments_of_their_contract),
        cmocka_unit_test(few_elements_are_allowed_a_few_ulps),
        cmocka_unit_test(a_workload_that_zeros_would_pass_is_vacuous),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
