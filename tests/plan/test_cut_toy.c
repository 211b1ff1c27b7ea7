/*
 * A net that one can go through by hand, 8 channels of 8 x 8 throughout, a batch of 4, two ranks:
 *     conv a (8 filters, 3 x 3, padding 1), conv b (the same), dense c (3 outputs) behind a flatten
 * Weights of a and b have 8 * 8 * 9 = 576 elements, of c 512 * 3 = 1536. An image between the layers is 512 elements.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "plan/distribution.h"
#include "plan/plan.h"

enum { F = 4, IMAGES = 4 * 512 * F, SCORES = 4 * 3 * F };

static cvy_model *make_toy(void)
{
    cvy_model *m = NULL;
    int at = 0;
    assert_int_equal(cvy_model_create("toy", &CVY_SHAPE(8, 8, 8), &m), CVY_OK);
    assert_int_equal(cvy_model_append(m, "conv", "a", &at, "filters: 8, kernel: 3, padding: 1, bias: no"), CVY_OK);
    assert_int_equal(cvy_model_append(m, "conv", "b", &at, "filters: 8, kernel: 3, padding: 1, bias: no"), CVY_OK);
    assert_int_equal(cvy_model_append(m, "flatten", "flat", &at, " "), CVY_OK);
    assert_int_equal(cvy_model_append(m, "dense", "c", &at, "outputs: 3, bias: no"), CVY_OK);
    assert_int_equal(cvy_model_append(m, "softmax-cross-entropy", "loss", &at, " "), CVY_OK);
    assert_int_equal(cvy_model_finish(m), CVY_OK);
    return m;
}

/* A communication step that is expected: of which layer, what, how many bytes. */
typedef struct expected {
    const char *layer; /* NULL: of none */
    cvy_step_kind kind;
    cvy_collective collective;
    int64_t bytes;
} expected;

static void check(const char *text, const cvy_plan_options *asked, int rank, const expected *list, int count)
{
    cvy_model *m = make_toy();
    cvy_distribution *d = NULL;
    cvy_plan *plan = NULL;
    cvy_strategy strategy;
    cvy_plan_options options = *asked;
    int found = 0;
    assert_int_equal(cvy_strategy_parse(text, 2, (int64_t[]){1, 8, 8}, &strategy), CVY_OK);
    assert_int_equal(cvy_distribution_create(m, &strategy, &(cvy_distribution_options){.batch = 4}, &d), CVY_OK);
    options.parallel.distribution = d;
    options.parallel.rank = rank;
    assert_int_equal(cvy_plan_create(m, &options, &plan), CVY_OK);
    const cvy_schedule *s = &plan->schedule[CVY_SCHEDULE_TRAIN];
    for (int i = 0; i < s->steps; i++) {
        const cvy_step *step = &s->step[i];
        if (step->exchange < 0) {
            continue;
        }
        const cvy_exchange *e = &s->exchange[step->exchange];
        const char *layer = step->layer >= 0 ? m->layer[step->layer].name : NULL;
        assert_true(found < count);
        assert_true((layer == NULL) == (list[found].layer == NULL));
        if (layer) {
            assert_string_equal(layer, list[found].layer);
        }
        assert_int_equal(step->kind, list[found].kind);
        assert_true(step->kind == CVY_STEP_EXCHANGE || e->collective == list[found].collective);
        assert_int_equal(e->bytes, list[found].bytes);
        found++;
    }
    assert_int_equal(found, count);
    cvy_plan_destroy(&plan);
    cvy_distribution_destroy(&d);
    cvy_model_destroy(&m);
}

static const cvy_plan_options plain = {.batch = 4, .dtype = CVY_F32, .training = true, .train_only = true, .block = 8};

#define CHECK(text, options, rank, list) check(text, options, rank, list, (int)(sizeof(list) / sizeof(list)[0]))

/* Gradients in the order of backward: c, b, a. All in one; then closed at 6000 bytes: c (6144), then b and a (4608). */
static void test_data_exchanges_gradients_in_buckets(void **state)
{
    static const expected all[] = {{NULL, CVY_STEP_COLLECTIVE, CVY_COLLECTIVE_ALL_REDUCE, (1536 + 2 * 576) * F}};
    static const expected two[] = {{NULL, CVY_STEP_COLLECTIVE, CVY_COLLECTIVE_ALL_REDUCE, 1536 * F},
                                   {NULL, CVY_STEP_COLLECTIVE, CVY_COLLECTIVE_ALL_REDUCE, 2 * 576 * F}};
    cvy_plan_options options = plain;
    (void)state;
    CHECK("data", &options, 0, all);
    options.parallel.bucket_bytes = 6000;
    CHECK("data", &options, 1, two);
}

/*
 * a has 4 filters a rank, b takes all channels: a gathering of a's output. b's output stays split (flat is its view),
 * and c takes it whole again: gathered; c's 3 outputs are 2 and 1, gathered for the loss. Back: the sum of c's dx ends
 * split as b's output is, of b's as a's; nobody wants a's.
 */
static void test_filters_gather_forward_and_sum_backward(void **state)
{
    static const expected steps[] = {
        {"a", CVY_STEP_COLLECTIVE, CVY_COLLECTIVE_ALL_GATHER, IMAGES},
        {"flat", CVY_STEP_COLLECTIVE, CVY_COLLECTIVE_ALL_GATHER, IMAGES},
        {"c", CVY_STEP_COLLECTIVE, CVY_COLLECTIVE_ALL_GATHER, SCORES},
        {"flat", CVY_STEP_COLLECTIVE, CVY_COLLECTIVE_REDUCE_SCATTER, IMAGES},
        {"a", CVY_STEP_COLLECTIVE, CVY_COLLECTIVE_REDUCE_SCATTER, IMAGES},
    };
    (void)state;
    CHECK("channel=2,channel-cut=filter", &plain, 0, steps);
}

/* Each takes its channels and leaves a sum: that ends split for the next; the scores' ends whole, as the loss asks. */
static void test_channels_sum_forward_and_gather_backward(void **state)
{
    static const expected steps[] = {
        {"a", CVY_STEP_COLLECTIVE, CVY_COLLECTIVE_REDUCE_SCATTER, IMAGES},
        {"b", CVY_STEP_COLLECTIVE, CVY_COLLECTIVE_REDUCE_SCATTER, IMAGES},
        {"c", CVY_STEP_COLLECTIVE, CVY_COLLECTIVE_ALL_REDUCE, SCORES},
        {"b", CVY_STEP_COLLECTIVE, CVY_COLLECTIVE_ALL_GATHER, IMAGES},
        {"a", CVY_STEP_COLLECTIVE, CVY_COLLECTIVE_ALL_GATHER, IMAGES},
    };
    (void)state;
    CHECK("channel=2,channel-cut=channel", &plain, 1, steps);
}

/* a by filters, b by the channels that come: one sum. c by filters of what is whole; one more sum, of c's dx. */
static void test_alternating_has_one_collective_a_pair(void **state)
{
    static const expected steps[] = {
        {"b", CVY_STEP_COLLECTIVE, CVY_COLLECTIVE_ALL_REDUCE, IMAGES},
        {"c", CVY_STEP_COLLECTIVE, CVY_COLLECTIVE_ALL_GATHER, SCORES},
        {"flat", CVY_STEP_COLLECTIVE, CVY_COLLECTIVE_ALL_REDUCE, IMAGES},
    };
    (void)state;
    CHECK("alternating", &plain, 0, steps);
}

/*
 * 4 of 8 rows each: a window of 3 needs one row of the other, 4 samples of 8 channels of 8 numbers. Before flat the
 * image is gathered. Back, b's gradient of the row that it took goes home. Gradients of a and b are summed, c's is
 * whole everywhere.
 */
static void test_space_sends_a_row_each_way(void **state)
{
    static const expected steps[] = {
        {"a", CVY_STEP_EXCHANGE, 0, 4 * 8 * 8 * F},
        {"b", CVY_STEP_EXCHANGE, 0, 4 * 8 * 8 * F},
        {"b", CVY_STEP_COLLECTIVE, CVY_COLLECTIVE_ALL_GATHER, IMAGES},
        {"b", CVY_STEP_EXCHANGE, 0, 4 * 8 * 8 * F},
        {NULL, CVY_STEP_COLLECTIVE, CVY_COLLECTIVE_ALL_REDUCE, 2 * 576 * F},
    };
    (void)state;
    CHECK("height=2", &plain, 0, steps);
    CHECK("height=2", &plain, 1, steps);
}

/* What cannot be planned says so. */
static void test_what_cannot_be_planned_says_why(void **state)
{
    cvy_model *m = make_toy();
    cvy_distribution *d = NULL;
    cvy_plan *plan = NULL;
    cvy_strategy strategy;
    cvy_plan_options options = plain;
    (void)state;
    assert_int_equal(cvy_strategy_parse("filter", 2, (int64_t[]){1, 8, 8}, &strategy), CVY_OK);
    assert_int_equal(cvy_distribution_create(m, &strategy, &(cvy_distribution_options){.batch = 4}, &d), CVY_OK);
    options.parallel.distribution = d;
    options.parallel.rank = 2;
    assert_int_equal(cvy_plan_create(m, &options, &plan), CVY_ERR_ARG);
    assert_string_equal(cvy_error_message(), "rank 2 of 2");
    options.parallel.rank = 0;
    options.batch = 5;
    assert_int_equal(cvy_plan_create(m, &options, &plan), CVY_ERR_ARG);
    assert_null(plan);
    cvy_distribution_destroy(&d);
    cvy_model_destroy(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_data_exchanges_gradients_in_buckets),
        cmocka_unit_test(test_filters_gather_forward_and_sum_backward),
        cmocka_unit_test(test_channels_sum_forward_and_gather_backward),
        cmocka_unit_test(test_alternating_has_one_collective_a_pair),
        cmocka_unit_test(test_space_sends_a_row_each_way),
        cmocka_unit_test(test_what_cannot_be_planned_says_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
