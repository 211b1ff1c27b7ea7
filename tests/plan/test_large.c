/* Sizes beyond 32 bits, exactly: elements of a tensor, bytes of a message, bytes of memory. Nothing is allocated. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "plan/distribution.h"
#include "plan/plan.h"

/*
 * 2^24 images of 8 channels of 8 x 8, cut in halves of 4 rows: 2^24 * 8 * 4 * 8 = 2^32 elements a rank. A window of 3
 * takes one row of the other: 2^24 * 8 * 8 * 4 = 2^32 bytes in one message. Of either, 32 bits would keep nothing.
 */
static void test_counts_beyond_32_bits_are_exact(void **state)
{
    cvy_model *m = NULL;
    cvy_distribution *d = NULL;
    cvy_plan *plan = NULL;
    cvy_strategy strategy;
    cvy_plan_options options = {.batch = 1 << 24, .dtype = CVY_F32, .training = true, .train_only = true, .block = 8};
    int at = 0, halos = 0;
    (void)state;
    assert_int_equal(cvy_model_create("large", &CVY_SHAPE(8, 8, 8), &m), CVY_OK);
    assert_int_equal(cvy_model_append(m, "conv", "a", &at, "filters: 8, kernel: 3, padding: 1, bias: no"), CVY_OK);
    assert_int_equal(cvy_model_append(m, "flatten", "flat", &at, " "), CVY_OK);
    assert_int_equal(cvy_model_append(m, "dense", "c", &at, "outputs: 3, bias: no"), CVY_OK);
    assert_int_equal(cvy_model_append(m, "softmax-cross-entropy", "loss", &at, " "), CVY_OK);
    assert_int_equal(cvy_model_finish(m), CVY_OK);
    assert_int_equal(cvy_strategy_parse("height=2", 2, (int64_t[]){1, 8, 8}, &strategy), CVY_OK);
    assert_int_equal(cvy_distribution_create(m, &strategy, &(cvy_distribution_options){.batch = 1 << 24}, &d), CVY_OK);
    options.parallel.distribution = d;
    assert_int_equal(cvy_plan_create(m, &options, &plan), CVY_OK);
    const cvy_schedule *s = &plan->schedule[CVY_SCHEDULE_TRAIN];
    const cvy_buffer *x = &s->buffer[s->input_buffer];
    assert_true(cvy_shape_elements(&x->tensor.shape) == INT64_C(1) << 32);
    assert_true(x->bytes == INT64_C(1) << 34);
    assert_true(s->memory.transient_bytes >= x->bytes + (INT64_C(1) << 34)); /* and what a leaves */
    for (int i = 0; i < s->messages; i++) {
        assert_true(s->message[i].bytes == INT64_C(1) << 32);
        halos++;
    }
    assert_int_equal(halos, 2); /* one each way; nobody wants the gradient of the images */
    cvy_plan_destroy(&plan);
    cvy_distribution_destroy(&d);
    cvy_model_destroy(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts_beyond_32_bits_are_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
