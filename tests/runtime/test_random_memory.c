/*
 * Random graphs on less memory. Whatever backward makes again, losses, weights and running statistics are the same
 * bits, on any backend, in any layout, in parts or whole. Without batch norms a batch in parts gives the gradients of
 * the whole.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/random_problem.h"

enum { PARTS = 2 };

static int count_recomputed(const engine *e)
{
    const cvy_schedule *s = &e->plan->schedule[CVY_SCHEDULE_TRAIN];
    int count = 0;
    for (int i = 0; i < s->steps; i++) {
        count += s->step[i].phase == CVY_PHASE_RECOMPUTE;
    }
    return count;
}

static void require_equal_bits(const engine *kept, const engine *again, cvy_schedule_kind kind)
{
    const cvy_state *one = cvy_executor_state(kept->executor), *other = cvy_executor_state(again->executor);
    cvy_run how = make_run(kept, kind, 0.5);
    reset(kept, kind);
    reset(again, kind);
    double expected = run(kept, kind, &how).loss, found = run(again, kind, &how).loss;
    const char *what = cvy_recompute_name(again->plan->options.recompute);
    if (memcmp(&expected, &found, sizeof found) != 0) {
        fail_msg("graph %u, recompute %s: loss %.17g, expected %.17g", kept->of->seed, what, found, expected);
    }
    assert_int_equal(one->count, other->count);
    for (int i = 0; i < one->count; i++) {
        size_t bytes = (size_t)cvy_tensor_bytes(&one->tensor[i].tensor);
        if (memcmp(one->tensor[i].data, other->tensor[i].data, bytes) != 0) {
            fail_msg("graph %u, recompute %s: %s differs", kept->of->seed, what, one->tensor[i].name);
        }
    }
}

/* Answers how many steps were made again. */
static int compare_recomputations(const problem *p, const char *backend, cvy_plan_options options)
{
    engine kept, again;
    int steps = 0;
    open_engine_as(&kept, p, backend, options);
    for (cvy_recompute what = CVY_RECOMPUTE_CHEAP; what <= CVY_RECOMPUTE_ALL; what++) {
        options.recompute = what;
        open_engine_as(&again, p, backend, options);
        steps += count_recomputed(&again);
        require_equal_bits(&kept, &again, CVY_SCHEDULE_TRAIN);
        require_equal_bits(&kept, &again, CVY_SCHEDULE_TRAIN_TAIL);
        close_engine(&again);
    }
    close_engine(&kept);
    return steps;
}

static void test_recomputation_changes_no_bit(void **state)
{
    (void)state;
    static const cvy_layout_choice layouts[] = {CVY_LAYOUT_AUTO, CVY_LAYOUT_PLAIN, CVY_LAYOUT_CHANNELS_LAST,
                                                CVY_LAYOUT_BLOCKED};
    int steps = 0;
    for (uint32_t seed = 0; seed < GRAPHS; seed++) {
        problem p;
        open_problem(&p, seed);
        steps += compare_recomputations(&p, "ref", (cvy_plan_options){.dtype = CVY_F64});
        steps += compare_recomputations(&p, NULL, (cvy_plan_options){.dtype = CVY_F32, .layout = layouts[seed % 4]});
        steps += compare_recomputations(&p, NULL, (cvy_plan_options){.dtype = CVY_F32, .micro_batches = PARTS});
        close_problem(&p);
    }
    assert_true(steps > 0);
}

static bool has_batch_norm(const cvy_model *model)
{
    for (int i = 0; i < model->layers; i++) {
        if (strcmp(model->layer[i].kind->name, "batch-norm") == 0) {
            return true;
        }
    }
    return false;
}

/* In double: to rounding. */
static void require_equal_gradients(const engine *whole, const engine *cut)
{
    cvy_run how = make_run(whole, CVY_SCHEDULE_TRAIN, 1.0);
    reset(whole, CVY_SCHEDULE_TRAIN);
    reset(cut, CVY_SCHEDULE_TRAIN);
    cvy_executor_result expected = run(whole, CVY_SCHEDULE_TRAIN, &how), found = run(cut, CVY_SCHEDULE_TRAIN, &how);
    if (!(fabs(found.loss - expected.loss) <= 1e-12 * fmax(1.0, fabs(expected.loss)))) {
        fail_msg("graph %u: loss %.17g in parts, %.17g whole", whole->of->seed, found.loss, expected.loss);
    }
    assert_int_equal(found.correct, expected.correct);
    for (int i = 0; i < whole->of->model->parameters; i++) {
        const cvy_parameter *parameter = &whole->of->model->parameter[i];
        double *a = read_gradient(cut, i), *b = read_gradient(whole, i);
        double difference = relate(a, b, cvy_shape_elements(&parameter->spec.shape));
        if (!(difference <= 1e-11)) {
            fail_msg("graph %u: the gradient of %s in parts is %g off", whole->of->seed, parameter->name, difference);
        }
        cvy_free(a);
        cvy_free(b);
    }
}

/* 3 samples as 2 + 1. */
static void test_parts_sum_to_the_batch(void **state)
{
    (void)state;
    int compared = 0;
    for (uint32_t seed = 0; seed < GRAPHS; seed++) {
        problem p;
        engine whole, cut;
        open_problem(&p, seed);
        if (!has_batch_norm(p.model)) {
            open_engine_as(&whole, &p, "ref", (cvy_plan_options){.dtype = CVY_F64});
            open_engine_as(&cut, &p, "ref", (cvy_plan_options){.dtype = CVY_F64, .micro_batches = PARTS});
            require_equal_gradients(&whole, &cut);
            close_engine(&whole);
            close_engine(&cut);
            compared++;
        }
        close_problem(&p);
    }
    assert_true(compared > GRAPHS / 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recomputation_changes_no_bit),
        cmocka_unit_test(test_parts_sum_to_the_batch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
