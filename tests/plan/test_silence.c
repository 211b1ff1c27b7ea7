/*
 * What a plan does not do in silence: an evaluation exchanges nothing for norms, whichever axes share their statistics,
 * and a layer that an axis does not cut says why. Over nets of the zoo and every kind of strategy.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "plan/ranks.h"

static const char *const models[] = {"resnet18:size=57", "densenet121:size=64", "unet3d:size=16,width=8"};
static const char *const strategies[] = {"data", "height=2", "sample=2,height=2", "filter", "channel=3",
                                         "sample=2,channel=2", "stage=2,height=2"};
enum { MODELS = sizeof models / sizeof models[0], STRATEGIES = sizeof strategies / sizeof strategies[0] };

static bool open_plans(int which, unsigned norm_axes, ranks *r)
{
    const cvy_plan_options options = {.batch = 7,
                                      .dtype = CVY_F32,
                                      .training = true,
                                      .optimizer = {CVY_OPTIMIZER_SGD, {.momentum = 0.9}},
                                      .block = 8,
                                      .parallel = {.norm_axes = norm_axes}};
    return open_ranks(models[which / STRATEGIES], strategies[which % STRATEGIES], &options, NULL, r);
}

/* Communication steps, and those of them that merge statistics. */
static int count_exchanges(const cvy_schedule *s, int *merging)
{
    int count = 0;
    *merging = 0;
    for (int i = 0; i < s->steps; i++) {
        count += s->step[i].exchange >= 0;
        *merging += s->step[i].exchange >= 0 && s->exchange[s->step[i].exchange].merge;
    }
    return count;
}

/* Training merges where ranks share statistics; evaluation has as many exchanges as without, and merges nothing. */
static void test_evaluation_exchanges_nothing_for_norms(void **state)
{
    (void)state;
    int merged = 0;
    for (int which = 0; which < MODELS * STRATEGIES; which++) {
        ranks shared, apart;
        if (!open_plans(which, CVY_AXIS_BIT(CVY_AXIS_SAMPLE) | CVY_AXIS_SPACE, &shared)) {
            continue;
        }
        assert_true(open_plans(which, 0, &apart));
        for (int i = 0; i < shared.count; i++) {
            int merging, own;
            int exchanges = count_exchanges(&shared.plan[i]->schedule[CVY_SCHEDULE_EVALUATE], &merging);
            assert_int_equal(merging, 0);
            assert_int_equal(exchanges, count_exchanges(&apart.plan[i]->schedule[CVY_SCHEDULE_EVALUATE], &own));
            count_exchanges(&shared.plan[i]->schedule[CVY_SCHEDULE_TRAIN], &merging);
            count_exchanges(&apart.plan[i]->schedule[CVY_SCHEDULE_TRAIN], &own);
            assert_int_equal(own, 0);
            merged += merging;
        }
        close_ranks(&shared);
        close_ranks(&apart);
    }
    assert_true(merged > 100); /* resnet18 alone has 20 norms */
}

/* An axis of the mesh either cuts a layer, takes or leaves a sum there, or the distribution has words for it. */
static void test_no_layer_is_whole_in_silence(void **state)
{
    (void)state;
    int whole = 0, cut = 0;
    for (int which = 0; which < MODELS * STRATEGIES; which++) {
        ranks r;
        if (!open_plans(which, CVY_AXIS_SPACE, &r)) {
            continue;
        }
        for (int i = 1; i < r.model->layers; i++) {
            const cvy_layer_distribution *d = &r.distribution->layer[i];
            for (int axis = CVY_AXIS_DEPTH; axis < CVY_AXES; axis++) {
                unsigned bit = CVY_AXIS_BIT(axis);
                bool divides = (d->input_split | d->raw_split | d->raw_partial) & bit;
                if (r.strategy.mesh.size[axis] > 1 && divides == (d->why_whole[axis] != NULL)) {
                    fail_msg("%s, %s: layer %s: %s", models[which / STRATEGIES], strategies[which % STRATEGIES],
                             r.model->layer[i].name, divides ? d->why_whole[axis] : "whole, and no word");
                }
                whole += r.strategy.mesh.size[axis] > 1 && !divides;
                cut += r.strategy.mesh.size[axis] > 1 && divides;
            }
        }
        close_ranks(&r);
    }
    assert_true(whole > 0 && cut > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_evaluation_exchanges_nothing_for_norms),
        cmocka_unit_test(test_no_layer_is_whole_in_silence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
