/*
 * Pipelines of more micro-batches than are laid out: against the closed form of equal stages, and against the layout of
 * all of them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/memory.h"
#include "estimate_world.h"
#include "oracle/estimate_internal.h"

enum { MOST_STAGES = 6 };

static cvy_plan no_plan; /* a schedule without steps */

typedef struct toy {
    int stages, parts, larger;
    cvy_pipeline_order order;
    cvy_priced_rank stage[MOST_STAGES];
} toy;

/* With a trace all micro-batches are laid out. */
static cvy_estimate lay_out(toy *t, cvy_trace *trace)
{
    cvy_machine machine = {.device.kind = CVY_DEVICE_GPU};
    cvy_oracle oracle = {.machine = &machine};
    cvy_estimate_question question = {.strategy.pipeline = t->order};
    cvy_pricing pricing = {.oracle = &oracle, .question = &question, .stages = t->stages,
                           .micro_batches = t->parts, .larger = t->larger, .trace = trace};
    cvy_estimate e = {.feasible = true};
    for (int s = 0; s < t->stages; s++) {
        t->stage[s].plan = &no_plan;
    }
    assert_ok(cvy_simulator_create(&oracle.simulator));
    assert_ok(cvy_price_pipeline(&pricing, t->stage, &e));
    cvy_simulator_destroy(&oracle.simulator);
    return e;
}

/* Nothing passes and all are equal: M + S - 1 times forward and backward, however many M are. */
static void test_a_million_equal_micro_batches(void **state)
{
    (void)state;
    enum { MILLION = 1 << 20 };
    for (int order = 0; order < CVY_PIPELINE_COUNT; order++) {
        for (int stages = 2; stages <= MOST_STAGES; stages++) {
            toy t = {.stages = stages, .parts = MILLION, .larger = MILLION, .order = (cvy_pipeline_order)order};
            for (int s = 0; s < stages; s++) {
                t.stage[s].forward_s[0] = 2.0;
                t.stage[s].backward_s[0][0] = 3.0;
                t.stage[s].iteration_s = t.stage[s].part_s[CVY_PHASE_FORWARD] = MILLION * 5.0;
            }
            cvy_estimate e = lay_out(&t, NULL);
            assert_close(e.iteration_s, (MILLION + stages - 1) * 5.0, 1e-9);
            assert_close(e.part_s[CVY_TIME_BUBBLE], (stages - 1) * 5.0, 1e-3);
        }
    }
}

static double draw(double from, double to) { return from + (to - from) * (rand() / (double)RAND_MAX); }

/* Any seconds of any stage, for micro-batches of both sizes. */
static void draw_stages(toy *t)
{
    for (int s = 0; s < t->stages; s++) {
        cvy_priced_rank *r = &t->stage[s];
        for (int less = 0; less < 2; less++) {
            r->forward_s[less] = draw(0.5, 2.0);
            r->backward_s[less][0] = draw(0.5, 3.0);
            r->backward_s[less][1] = s > 0 ? draw(0.0, 2.0) : 0.0;
            r->send_s[less] = s + 1 < t->stages ? draw(0.0, 3.0) : 0.0;
            r->return_s[less] = s > 0 ? draw(0.0, 3.0) : 0.0;
        }
        r->sum_s[0] = draw(0.0, 0.5);
        r->sum_s[1] = s > 0 ? draw(0.0, 0.5) : 0.0;
        r->last_s = draw(0.0, 0.5);
        r->update_s = draw(0.0, 1.0);
    }
}

/* Whatever they take, and of two sizes: many thousands follow the line of those that are laid out. */
static void test_many_micro_batches_go_on_as_they_began(void **state)
{
    (void)state;
    enum { PARTS = 60000 };
    srand(2);
    for (int round = 0; round < 12; round++) {
        toy t = {.stages = 2 + rand() % (MOST_STAGES - 1), .parts = PARTS,
                 .larger = round % 3 == 0 ? PARTS : 1 + rand() % PARTS,
                 .order = (cvy_pipeline_order)(round % CVY_PIPELINE_COUNT)};
        cvy_trace trace = {.slices = 0};
        draw_stages(&t);
        cvy_estimate all = lay_out(&t, &trace), some = lay_out(&t, NULL);
        assert_int_equal(trace.slices, PARTS * (3 * t.stages - 1) + t.stages);
        assert_close(some.iteration_s, all.iteration_s, 1e-4);
        assert_close(some.transfer_s, all.transfer_s, 1e-3);
        cvy_free(trace.slice);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_million_equal_micro_batches),
        cmocka_unit_test(test_many_micro_batches_go_on_as_they_began),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
