/*
 * Plans of thousands of micro-batches: memory is shared as in plans of few, nothing that lives at once lies on each
 * other, and what no run could hold is refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "plan/plan.h"

static cvy_status make_plan(const cvy_model *model, int parts, cvy_plan **plan_out)
{
    const cvy_plan_options options = {.batch = parts, .micro_batches = parts, .dtype = CVY_F32, .training = true,
                                      .train_only = true, .block = 8};
    return cvy_plan_create(model, &options, plan_out);
}

static cvy_plan *plan_parts(const cvy_model *model, int parts)
{
    cvy_plan *plan = NULL;
    if (make_plan(model, parts, &plan) != CVY_OK) {
        fail_msg("%s", cvy_error_message());
    }
    return plan;
}

static bool is_placed(const cvy_buffer *b) { return !b->persistent && b->alias_of < 0 && b->last_step >= 0; }

static int compare_births(const void *a, const void *b)
{
    const cvy_buffer *x = *(const cvy_buffer *const *)a, *y = *(const cvy_buffer *const *)b;
    return (x->first_step > y->first_step) - (x->first_step < y->first_step);
}

/* Every buffer against all that live when it begins to; as many lives began as there are buffers. */
static void check_places(const cvy_schedule *s)
{
    const cvy_buffer **born = cvy_calloc((size_t)s->buffers, sizeof(cvy_buffer *));
    const cvy_buffer **alive = cvy_calloc((size_t)s->buffers, sizeof(cvy_buffer *));
    int births = 0, living = 0;
    for (int i = 0; i < s->buffers; i++) {
        born[births] = &s->buffer[i];
        births += is_placed(&s->buffer[i]);
    }
    qsort(born, (size_t)births, sizeof *born, compare_births);
    for (int i = 0; i < births; i++) {
        int left = 0;
        for (int k = 0; k < living; k++) {
            const cvy_buffer *b = alive[k];
            if (b->last_step >= born[i]->first_step) {
                assert_true(b->offset + b->bytes <= born[i]->offset || born[i]->offset + born[i]->bytes <= b->offset);
                alive[left++] = b;
            }
        }
        assert_true(born[i]->offset >= 0 && born[i]->offset + born[i]->bytes <= s->memory.transient_bytes);
        living = left;
        alive[living++] = born[i];
    }
    cvy_free(born);
    cvy_free(alive);
}

/* LeNet's micro-batches are alike, and keep nothing but one sum of each gradient: as many bytes for 8 as for 2000. */
static void test_as_much_memory_for_thousands_as_for_a_few(void **state)
{
    (void)state;
    cvy_model *model = NULL;
    assert_int_equal(cvy_model_open("lenet5", &model), CVY_OK);
    cvy_plan *few = plan_parts(model, 8), *many = plan_parts(model, 2000);
    const cvy_schedule *s = &many->schedule[CVY_SCHEDULE_TRAIN];
    assert_true(s->steps > 2000 * 10);
    assert_true(many->transient_bytes == few->transient_bytes);
    assert_true(s->memory.live_bytes == few->schedule[CVY_SCHEDULE_TRAIN].memory.live_bytes);
    check_places(s);
    cvy_plan_destroy(&few);
    cvy_plan_destroy(&many);
    cvy_model_destroy(&model);
}

/* Batch norms keep their statistics of each micro-batch to the end: what lives long and what does not, side by side. */
static void test_what_lives_long_keeps_its_place(void **state)
{
    (void)state;
    cvy_model *model = NULL;
    assert_int_equal(cvy_model_open("resnet18:size=32", &model), CVY_OK);
    cvy_plan *plan = plan_parts(model, 60);
    const cvy_schedule *s = &plan->schedule[CVY_SCHEDULE_TRAIN];
    assert_true(s->steps > 2 * 4096); /* several stretches of memory */
    assert_true(plan->transient_bytes >= s->memory.live_bytes);
    check_places(s);
    cvy_plan_destroy(&plan);
    cvy_model_destroy(&model);
}

/* Layers times micro-batches are 2^18 at most. */
static void test_more_steps_than_a_run_holds_are_refused(void **state)
{
    (void)state;
    cvy_model *model = NULL;
    cvy_plan *plan = NULL;
    assert_int_equal(cvy_model_open("lenet5", &model), CVY_OK);
    char most[128];
    snprintf(most, sizeof most, "of %d layers are more steps than a run can hold, expected at most %d of them",
             model->layers, (1 << 18) / model->layers);
    assert_int_equal(make_plan(model, 65536, &plan), CVY_ERR_INFEASIBLE);
    assert_null(plan);
    assert_non_null(strstr(cvy_error_message(), "65536 micro-batches"));
    assert_non_null(strstr(cvy_error_message(), most));
    cvy_model_destroy(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_much_memory_for_thousands_as_for_a_few),
        cmocka_unit_test(test_what_lives_long_keeps_its_place),
        cmocka_unit_test(test_more_steps_than_a_run_holds_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
