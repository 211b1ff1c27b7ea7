/*
 * Estimates of whole strategies: sums, answers that are no failures, traces, and what does not grow with the ranks. One
 * rank as its serial plan, seconds and bytes, is in test_laws.c; the runtime's arenas as the plan's in
 * runtime/test_training.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "estimate_world.h"

/* ---- laws ---- */

static const struct {
    const char *model, *strategy;
    int64_t ranks, batch;
} cases[] = {
    {"lenet5", "serial", 1, 8},
    {"lenet5", "data", 8, 30},
    {"lenet5", "data,micro-batches=3", 2, 14},
    {"lenet5", "spatial", 4, 4},
    {"lenet5", "filter", 4, 4},
    {"lenet5", "channel", 2, 5},
    {"lenet5", "alternating", 4, 4},
    {"lenet5", "pipeline", 3, 11},
    {"lenet5", "sample=2,stage=2,micro-batches=3,pipeline=gpipe", 4, 15},
    {"lenet5", "stage=2,channel=2,channel-cut=filter,micro-batches=1", 4, 3},
    {"resnet18:size=64", "sample=4,height=2", 8, 9},
    {"resnet18:size=64", "sample=2,height=3,width=2", 12, 5},
    {"resnet18:size=64", "sample=4,channel=4", 16, 8},
    {"resnet18:size=64", "height=2,channel=2,channel-cut=channel", 4, 3},
    {"resnet18:size=64", "stage=4,height=2", 8, 17},
    {"resnet18:size=64", "sample=16", 16, 50},
};

/* Machines unlike each other: habits that add time, input between steps, a device that has spread. */
static void change_machine(cvy_machine *machine, int which)
{
    cvy_execution *habit = &machine->execution;
    habit->overlap = which & 1;
    habit->bucket_bytes = which & 2 ? 300000 : 0;
    if (which & 4) {
        machine->storage.read_Bps = 1e9;
        machine->device.spread = 0.02;
        habit->staging = CVY_STAGING_LEADER;
        habit->layer_host_s = 300e-6;
        habit->slice_host_s = 20e-6;
        habit->pack_s = 10e-6;
        habit->serial_halos = true;
    }
}

/* What the breakdown shows is the iteration, nothing twice and nothing left out. */
static void test_parts_sum_to_the_iteration(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        asked a;
        open_asked(&a, cases[i].model, cases[i].strategy, cases[i].ranks, cases[i].batch);
        for (int which = 0; which < 8; which++) {
            a.machine = make_device();
            change_machine(&a.machine, which);
            cvy_estimate e = estimate_feasible(&a);
            int64_t bytes = 0;
            assert_true(e.iteration_s > 0.0);
            assert_close(sum_parts(&e), e.iteration_s, 1e-9);
            assert_close(e.images_per_s * e.iteration_s, (double)cases[i].batch, 1e-9);
            assert_close(e.exposed_communication_s,
                         e.part_s[CVY_PHASE_HALO] + e.part_s[CVY_PHASE_REDISTRIBUTE] +
                             e.part_s[CVY_PHASE_GRADIENT_EXCHANGE], 1e-9);
            for (int part = 0; part < CVY_TIME_PARTS; part++) {
                assert_true(e.part_s[part] >= 0.0);
            }
            for (int part = 0; part < CVY_MEMORY_PARTS; part++) {
                assert_true(e.memory_bytes[part] >= 0);
                bytes += e.memory_bytes[part];
            }
            assert_true(e.total_bytes == bytes && e.redundant_bytes <= bytes && e.strategy.micro_batches >= 1);
        }
        close_asked(&a);
    }
}

/* The same steps, some on a stream of their own: none waits for more. What is hidden and what shows is all of it. */
static void test_overlap_is_never_slower(void **state)
{
    (void)state;
    int hidden = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        asked a;
        open_asked(&a, cases[i].model, cases[i].strategy, cases[i].ranks, cases[i].batch);
        for (int which = 0; which < 8; which += 2) {
            a.machine = make_device();
            change_machine(&a.machine, which);
            cvy_estimate off = estimate_feasible(&a);
            a.machine.execution.overlap = true;
            cvy_estimate on = estimate_feasible(&a);
            const int gradients = CVY_PHASE_GRADIENT_EXCHANGE;
            assert_true(on.iteration_s <= off.iteration_s * (1.0 + 1e-12));
            assert_close(on.communication[gradients].seconds, off.communication[gradients].seconds, 1e-12);
            assert_true(a.question.strategy.mesh.size[CVY_AXIS_STAGE] > 1 || off.hidden_communication_s == 0.0);
            if (a.question.strategy.mesh.size[CVY_AXIS_STAGE] == 1) {
                assert_close(on.part_s[gradients] + on.hidden_communication_s, on.communication[gradients].seconds,
                             1e-9);
            }
            hidden += on.hidden_communication_s > 0.0;
        }
        close_asked(&a);
    }
    assert_true(hidden > 10);
}

/* ---- precision ---- */

/* Half of the bytes of activations and gradients, weights twice: as floats, and halves in kernels. */
static void test_half_precision_takes_half_the_bytes(void **state)
{
    (void)state;
    asked a;
    open_asked(&a, "lenet5", "data", 4, 64);
    cvy_estimate full = estimate_feasible(&a);
    a.options.precision = CVY_PRECISION_FP16;
    cvy_estimate half = estimate_feasible(&a);
    assert_int_equal(2 * half.memory_bytes[CVY_BUFFER_ACTIVATIONS], full.memory_bytes[CVY_BUFFER_ACTIVATIONS]);
    assert_int_equal(2 * half.memory_bytes[CVY_BUFFER_GRADIENTS], full.memory_bytes[CVY_BUFFER_GRADIENTS]);
    assert_int_equal(half.memory_bytes[CVY_BUFFER_OPTIMIZER], full.memory_bytes[CVY_BUFFER_OPTIMIZER]);
    assert_int_equal(2 * half.memory_bytes[CVY_BUFFER_WEIGHTS], 3 * full.memory_bytes[CVY_BUFFER_WEIGHTS]);
    assert_close(half.sent_bytes, full.sent_bytes / 2.0, 1e-12);
    a.options.precision = CVY_PRECISION_FP64;
    cvy_estimate twice = estimate_feasible(&a);
    assert_close(twice.sent_bytes, 2.0 * full.sent_bytes, 2e-3); /* gradients begin at multiples of 64 bytes */
    close_asked(&a);
}

/* Halos are messages, and go in halves, too: without latency in half the time. */
static void test_messages_have_the_wires_bytes(void **state)
{
    (void)state;
    asked a;
    open_asked(&a, "lenet5", "height=2", 2, 64);
    a.machine.level[0].latency_s = 0.0;
    cvy_estimate full = estimate_feasible(&a);
    a.options.precision = CVY_PRECISION_FP16;
    cvy_estimate half = estimate_feasible(&a);
    assert_true(full.communication[CVY_PHASE_HALO].bytes > 0.0);
    assert_close(half.communication[CVY_PHASE_HALO].bytes, full.communication[CVY_PHASE_HALO].bytes / 2.0, 1e-12);
    assert_close(half.communication[CVY_PHASE_HALO].seconds, full.communication[CVY_PHASE_HALO].seconds / 2.0, 1e-6);
    close_asked(&a);
}

/* ---- answers ---- */

static void test_what_cannot_be_scheduled_is_an_answer(void **state)
{
    (void)state;
    static const struct {
        const char *model, *strategy;
        int64_t ranks, batch;
        const char *why;
    } no[] = {
        {"lenet5", "data", 2048, 4096, "machine by hand has 1024 devices, found 2048 ranks"},
        {"lenet5", "data", 16, 8, "sample=16 needs a batch of at least 16, got 8"},
        {"lenet5", "sample=4,stage=2", 8, 3, "sample=4 needs a batch of at least 4, got 3"},
        {"lenet5", "stage=2,micro-batches=9", 2, 8, "8 samples a rank (a batch of 8) cannot go in 9 micro-batches"},
        {"lenet5", "pipeline", 40, 64, "layers"},
        {"lenet5", "depth=2", 2, 8, "depth=2 cuts no layer"},
    };
    for (size_t i = 0; i < sizeof no / sizeof *no; i++) {
        asked a;
        open_asked(&a, no[i].model, no[i].strategy, no[i].ranks, no[i].batch);
        cvy_estimate e = estimate_now(&a);
        assert_false(e.feasible);
        assert_int_equal(e.strategy.mesh.ranks, no[i].ranks);
        assert_true(e.iteration_s == 0.0 && e.total_bytes == 0);
        if (!strstr(e.why_not, no[i].why)) {
            fail_msg("found \"%s\", expected \"%s\"", e.why_not, no[i].why);
        }
        cvy_trace *trace = trace_now(&a);
        assert_string_equal(trace->estimate.why_not, e.why_not);
        assert_true(!trace->distribution && trace->ranks == 0);
        cvy_trace_destroy(&trace);
        assert_null(trace);
        close_asked(&a);
    }
}

/* A plan that does not fit is priced all the same. */
static void test_what_does_not_fit_is_priced(void **state)
{
    (void)state;
    asked a;
    open_asked(&a, "lenet5", "data", 2, 64);
    cvy_estimate fits = estimate_feasible(&a);
    assert_true(!fits.over_memory && fits.why_not[0] == '\0' && fits.capacity_bytes == 16000000000);
    a.machine.device.memory_bytes = fits.total_bytes - 1;
    cvy_estimate over = estimate_feasible(&a);
    assert_true(over.over_memory && strstr(over.why_not, "memory"));
    assert_true(over.iteration_s == fits.iteration_s);
    a.machine.device.memory_bytes = fits.total_bytes;
    assert_false(estimate_feasible(&a).over_memory);
    close_asked(&a);
}

/* ---- traces ---- */

/* Steps of a stream start one behind the other; seconds times how often they run are the estimate's. */
static void test_traces_keep_what_was_looked_at(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        asked a;
        open_asked(&a, cases[i].model, cases[i].strategy, cases[i].ranks, cases[i].batch);
        a.machine.execution.overlap = true;
        a.machine.execution.bucket_bytes = 300000;
        cvy_trace *trace = trace_now(&a);
        cvy_estimate e = estimate_feasible(&a);
        assert_memory_equal(&trace->estimate.part_s, &e.part_s, sizeof e.part_s);
        assert_int_equal(trace->ranks, e.strategy.mesh.size[CVY_AXIS_STAGE]);
        assert_int_equal(trace->distribution->strategy.mesh.ranks, cases[i].ranks);
        for (int r = 0; r < trace->ranks; r++) {
            const cvy_schedule *s = &trace->rank[r].plan->schedule[CVY_SCHEDULE_TRAIN];
            double free_s[CVY_STREAM_COUNT] = {0.0}, sum = 0.0;
            for (int k = 0; k < s->steps; k++) {
                double start_s = trace->rank[r].start_s[k];
                assert_true(start_s >= free_s[s->step[k].stream] - 1e-15);
                free_s[s->step[k].stream] = start_s;
                assert_true(s->step[k].op < 0 || s->step[k].estimate_s > 0.0);
                assert_true(s->step[k].op < 0 || s->step[k].estimate_error == 0.5);
                sum += s->step[k].estimate_s * trace->rank[r].times[k];
            }
            if (trace->ranks == 1) {
                assert_close(sum, e.iteration_s + e.hidden_communication_s, 1e-9);
            }
        }
        cvy_trace_destroy(&trace);
        close_asked(&a);
    }
}

/* ---- cost ---- */

/* What 100,000 ranks do the same is planned once, whatever axes they lie along. */
static void test_cost_does_not_grow_with_ranks(void **state)
{
    (void)state;
    static const char *const small[] = {"sample=64", "sample=16,height=4", "sample=16,channel=4"};
    static const char *const large[] = {"sample=100000", "sample=25000,height=4", "sample=25000,channel=4"};
    for (int i = 0; i < 3; i++) {
        asked a;
        open_asked(&a, "lenet5", small[i], 64, 4 * 64);
        a.machine.nodes = 25000;
        a.machine.level[2].endpoints = 1600;
        a.machine.level[2].devices = 64 * 1600;
        cvy_estimate few = estimate_feasible(&a);
        read_strategy(&a, large[i], 100000);
        a.options.batch = 4 * 100000;
        cvy_estimate many = estimate_feasible(&a);
        assert_int_equal(few.steps, many.steps);
        assert_true(few.flop == many.flop && few.total_bytes == many.total_bytes);
        assert_true(many.iteration_s > few.iteration_s);
        close_asked(&a);
    }
}

/* ---- redundancy ---- */

/* Along samples all is held twice; cut by filters, what no axis cuts: dense layers here. */
static void test_redundant_memory_is_what_others_hold(void **state)
{
    (void)state;
    asked a;
    open_asked(&a, "lenet5", "data", 2, 8);
    cvy_estimate e = estimate_feasible(&a);
    assert_int_equal(e.redundant_bytes, e.memory_bytes[CVY_BUFFER_WEIGHTS] + e.memory_bytes[CVY_BUFFER_OPTIMIZER] +
                                            e.memory_bytes[CVY_BUFFER_GRADIENTS]);
    read_strategy(&a, "serial", 1);
    assert_int_equal(estimate_feasible(&a).redundant_bytes, 0);
    read_strategy(&a, "filter", 2);
    a.machine.execution.whole_dense = true;
    cvy_trace *trace = trace_now(&a);
    const cvy_schedule *s = &trace->rank[0].plan->schedule[CVY_SCHEDULE_TRAIN];
    int64_t whole = 0;
    for (int i = 0; i < s->buffers && s->buffer[i].persistent; i++) {
        int64_t elements = 1;
        for (int k = 0; k < s->buffer[i].global.dims; k++) {
            elements *= s->buffer[i].global.extent[k];
        }
        bool all = s->buffer[i].bytes == 4 * elements;
        whole += all ? (s->buffer[i].bytes + 63) / 64 * 64 : 0;
    }
    assert_true(whole > 0 && whole < trace->estimate.total_bytes);
    assert_int_equal(trace->estimate.redundant_bytes, whole);
    cvy_trace_destroy(&trace);
    close_asked(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts_sum_to_the_iteration),
        cmocka_unit_test(test_overlap_is_never_slower),
        cmocka_unit_test(test_half_precision_takes_half_the_bytes),
        cmocka_unit_test(test_messages_have_the_wires_bytes),
        cmocka_unit_test(test_what_cannot_be_scheduled_is_an_answer),
        cmocka_unit_test(test_what_does_not_fit_is_priced),
        cmocka_unit_test(test_traces_keep_what_was_looked_at),
        cmocka_unit_test(test_cost_does_not_grow_with_ranks),
        cmocka_unit_test(test_redundant_memory_is_what_others_hold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
