/*
 * Habits of frameworks, one at a time: what each adds to an iteration, by hand, is its difference to the same iteration
 * without it. The machine is that of estimate_world.h.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "estimate_world.h"

/* Seconds of kernels and local steps, by their trace. */
static double sum_kernels(asked *a)
{
    cvy_trace *trace = trace_now(a);
    const cvy_schedule *s = &trace->rank[0].plan->schedule[CVY_SCHEDULE_TRAIN];
    double sum = 0.0;
    for (int i = 0; i < s->steps; i++) {
        sum += s->step[i].op >= 0 ? s->step[i].estimate_s : 0.0;
    }
    cvy_trace_destroy(&trace);
    return sum;
}

/* All layers but the input are functions. The host runs ahead, and counts where it takes longer than the device. */
static void test_the_host_shows_where_it_is_slower(void **state)
{
    (void)state;
    asked a;
    open_asked(&a, "lenet5", "serial", 1, 64);
    double kernels = sum_kernels(&a), functions = a.model->layers - 1;
    a.machine.execution.layer_host_s = 0.5 * kernels / functions;
    assert_close(estimate_feasible(&a).iteration_s, kernels, 1e-9);
    a.machine.execution.layer_host_s = 3.0 * kernels / functions;
    assert_close(estimate_feasible(&a).iteration_s, 3.0 * kernels, 1e-9);
    /* Twice as many functions run where the batch goes in two parts. */
    read_strategy(&a, "serial,micro-batches=2", 1);
    assert_close(estimate_feasible(&a).iteration_s, 6.0 * kernels, 1e-9);
    close_asked(&a);
}

/* Exchanges between layers make it wait each time: all of it is added, a third of it to forward. */
static void test_the_host_adds_up_where_layers_exchange(void **state)
{
    (void)state;
    asked a;
    open_asked(&a, "lenet5", "height=2", 2, 64);
    cvy_estimate without = estimate_feasible(&a);
    double functions = a.model->layers - 1;
    a.machine.execution.layer_host_s = 1e-4;
    cvy_estimate with = estimate_feasible(&a);
    assert_close(with.iteration_s - without.iteration_s, 1e-4 * functions, 1e-9);
    assert_close(with.part_s[CVY_PHASE_FORWARD] - without.part_s[CVY_PHASE_FORWARD], 1e-4 * functions / 3.0, 1e-9);
    close_asked(&a);
}

/* Each gather of forward over the channels joins, and backward cuts, a piece a rank. */
static void test_pieces_take_the_host(void **state)
{
    (void)state;
    asked a;
    open_asked(&a, "lenet5", "filter", 2, 8);
    a.machine.execution.whole_channels = a.machine.execution.whole_dense = true;
    cvy_estimate without = estimate_feasible(&a);
    a.machine.execution.slice_host_s = 1e-3;
    cvy_estimate with = estimate_feasible(&a);
    /* LeNet-5's two convolutions, each gathered from two ranks. */
    assert_close(with.iteration_s - without.iteration_s, 2 * 2 * 1e-3, 1e-9);
    close_asked(&a);
}

/* Eight tensors (4 layers with weights and bias) go into buckets and out of them; leaders do it once more. */
static void test_packing_counts_tensors_in_and_out(void **state)
{
    (void)state;
    asked a;
    open_asked(&a, "lenet5", "data", 8, 64);
    for (int bucket = 0; bucket <= 100000; bucket += 50000) {
        a.machine.execution.bucket_bytes = bucket;
        a.machine.execution.pack_s = 0.0;
        a.machine.execution.leader_exchange = 0;
        double without = estimate_feasible(&a).iteration_s;
        a.machine.execution.pack_s = 1e-3;
        assert_close(estimate_feasible(&a).iteration_s - without, 2 * 8 * 1e-3, 1e-9);
        a.machine.execution.pack_s = 0.0;
        a.machine.execution.leader_exchange = 1u << CVY_STRATEGY_DATA;
        without = estimate_feasible(&a).iteration_s;
        a.machine.execution.pack_s = 1e-3;
        assert_close(estimate_feasible(&a).iteration_s - without, 2 * 2 * 8 * 1e-3, 1e-9);
    }
    close_asked(&a);
}

/* 64 samples of 1x28x28 floats are 200,704 bytes. */
static void test_input_between_steps(void **state)
{
    (void)state;
    const double bytes = 64.0 * 28 * 28 * 4;
    asked a;
    open_asked(&a, "lenet5", "data", 8, 64);
    double without = estimate_feasible(&a).iteration_s;
    a.machine.storage.read_Bps = 1e6;
    assert_close(estimate_feasible(&a).iteration_s, without, 1e-12); /* hidden */
    a.machine.execution.staging = CVY_STAGING_EACH;
    cvy_estimate e = estimate_feasible(&a); /* two nodes read */
    assert_close(e.part_s[CVY_PHASE_IO], bytes / 2e6, 1e-9);
    assert_close(e.iteration_s, without + bytes / 2e6, 1e-9);
    a.machine.storage.total_Bps = 0.5e6;
    assert_close(estimate_feasible(&a).part_s[CVY_PHASE_IO], bytes / 0.5e6, 1e-9);
    a.machine.storage.total_Bps = 0.0;
    read_strategy(&a, "filter", 2); /* each needs all of it */
    assert_close(estimate_feasible(&a).part_s[CVY_PHASE_IO], 2.0 * bytes / 1e6, 1e-9);
    read_strategy(&a, "height=2", 2); /* each its half */
    assert_close(estimate_feasible(&a).part_s[CVY_PHASE_IO], bytes / 1e6, 1e-9);
    a.machine.execution.staging = CVY_STAGING_LEADER; /* one reads, and sends 10 GB/s, 1 us */
    cvy_collective_rule *rule = add_rule(&a.machine, CVY_COLLECTIVE_BROADCAST, CVY_ALGORITHM_TREE);
    rule->call_s = 0.0;
    assert_close(estimate_feasible(&a).part_s[CVY_PHASE_IO], bytes / 1e6 + 1e-6 + bytes / 10e9, 1e-9);
    read_strategy(&a, "stage=2,micro-batches=4", 2); /* the first stage alone, nobody to tell */
    assert_close(estimate_feasible(&a).part_s[CVY_PHASE_IO], bytes / 1e6, 1e-9);
    close_asked(&a);
}

/* sqrt(2 ln 8) deviations; groups apart by their share of computing, times sqrt(log2 of them). */
static void test_waiting_for_the_slowest(void **state)
{
    (void)state;
    asked a;
    open_asked(&a, "lenet5", "sample=4,height=2", 8, 64);
    double kernels = sum_kernels(&a);
    cvy_estimate without = estimate_feasible(&a);
    a.machine.device.spread = 0.1;
    cvy_estimate with = estimate_feasible(&a);
    assert_close(with.part_s[CVY_TIME_WAIT], 0.1 * sqrt(2.0 * log(8.0)) * kernels, 1e-9);
    assert_close(with.iteration_s - without.iteration_s, with.part_s[CVY_TIME_WAIT], 1e-9);
    a.machine.device.spread = 0.0;
    a.machine.execution.leader_input = 1u << CVY_STRATEGY_DATA_SPATIAL;
    a.machine.execution.leader_skew = 0.3;
    with = estimate_feasible(&a);
    double computing = without.part_s[CVY_PHASE_FORWARD] + without.part_s[CVY_PHASE_BACKWARD] +
                       without.part_s[CVY_PHASE_UPDATE];
    assert_close(with.part_s[CVY_TIME_WAIT], 0.3 * computing * sqrt(2.0), 1e-9);
    close_asked(&a);
}

/* Buffers of more than 1 MB, at 1 GB/s: a plain loop over the plan. */
static void test_managed_memory_pages_large_tensors(void **state)
{
    (void)state;
    asked a;
    double bytes = 0.0;
    open_asked(&a, "lenet5", "height=2", 2, 256);
    cvy_estimate without = estimate_feasible(&a);
    cvy_trace *trace = trace_now(&a);
    const cvy_schedule *s = &trace->rank[0].plan->schedule[CVY_SCHEDULE_TRAIN];
    for (int i = 0; i < s->buffers; i++) {
        bytes += s->buffer[i].bytes > 1000000 ? (double)s->buffer[i].bytes : 0.0;
    }
    cvy_trace_destroy(&trace);
    a.machine.execution.managed_over_bytes = 1000000;
    a.machine.execution.managed_Bps = 1e9;
    assert_false(estimate_feasible(&a).managed_memory);
    a.machine.execution.managed_memory = 1u << CVY_STRATEGY_SPATIAL;
    cvy_estimate with = estimate_feasible(&a);
    assert_true(with.managed_memory && bytes > 0.0);
    assert_close(with.part_s[CVY_PHASE_IO], bytes / 1e9, 1e-9);
    assert_close(with.iteration_s, without.iteration_s + bytes / 1e9, 1e-9);
    close_asked(&a);
}

/* What libraries take is part of the memory, and of whether it fits. */
static void test_reserved_memory_counts(void **state)
{
    (void)state;
    asked a;
    open_asked(&a, "lenet5", "serial", 1, 8);
    cvy_estimate without = estimate_feasible(&a);
    a.machine.execution.reserved_bytes = 16000000000 - without.total_bytes;
    cvy_estimate with = estimate_feasible(&a);
    assert_true(with.memory_bytes[CVY_MEMORY_RUNTIME] == a.machine.execution.reserved_bytes && !with.over_memory);
    assert_int_equal(with.total_bytes, 16000000000);
    a.machine.execution.reserved_bytes++;
    assert_true(estimate_feasible(&a).over_memory);
    close_asked(&a);
}

/*
 * A process that computes on CPUs has its batches where its tensors lie: three, of 8 images of 28 x 28 floats and 8
 * classes, which take 64 bytes. The largest reduce-scatter is of the second convolution's output, 8 x 50 x 8 x 8
 * floats: the library sums in a copy, and takes in the half of the other rank.
 */
static void test_memory_of_a_process(void **state)
{
    (void)state;
    asked a;
    open_asked(&a, "lenet5", "channel", 2, 8);
    a.machine.execution.reserved_bytes = 30000000;
    cvy_estimate gpu = estimate_feasible(&a);
    a.machine.device.kind = CVY_DEVICE_CPU;
    cvy_estimate cpu = estimate_feasible(&a);
    int64_t half = 8 * 50 * 8 * 8 * 4 / 2;
    assert_true(gpu.memory_bytes[CVY_BUFFER_DATA] == 0 && gpu.memory_bytes[CVY_MEMORY_RUNTIME] == 30000000);
    assert_int_equal(cpu.memory_bytes[CVY_BUFFER_DATA], 3 * (8 * 28 * 28 * 4 + 64));
    assert_int_equal(cpu.memory_bytes[CVY_BUFFER_COMMUNICATION] - gpu.memory_bytes[CVY_BUFFER_COMMUNICATION], 3 * half);
    assert_int_equal(cpu.memory_bytes[CVY_MEMORY_RUNTIME], 30000000 + 20000 * cpu.steps);
    close_asked(&a);
}

/* Made whole at once, the second convolution's gradient to its input is a sum over the ranks: a share of its bytes. */
static void test_sums_by_shares(void **state)
{
    (void)state;
    asked a;
    open_asked(&a, "lenet5", "filter", 2, 8);
    a.machine.execution.whole_channels = a.machine.execution.whole_dense = true;
    double all = estimate_feasible(&a).sent_bytes;
    a.machine.execution.shard_sums = true;
    double shares = estimate_feasible(&a).sent_bytes;
    /* 8 samples of 20x12x12 floats, of which half is left out. */
    assert_close(all - shares, 8.0 * 20 * 12 * 12 * 4 / 2.0, 1e-9);
    close_asked(&a);
}

/* The framework makes activations again, whatever is asked for: as if it had been. */
static void test_recomputation_is_the_frameworks(void **state)
{
    (void)state;
    asked a;
    open_asked(&a, "resnet18:size=64", "data", 2, 16);
    cvy_estimate none = estimate_feasible(&a);
    a.question.recompute = CVY_RECOMPUTE_ALL;
    cvy_estimate asked_for = estimate_feasible(&a);
    a.question.recompute = CVY_RECOMPUTE_NONE;
    a.machine.execution.recompute = 1u << CVY_STRATEGY_DATA;
    cvy_estimate habit = estimate_feasible(&a);
    assert_true(none.part_s[CVY_PHASE_RECOMPUTE] == 0.0 && habit.part_s[CVY_PHASE_RECOMPUTE] > 0.0);
    assert_true(habit.iteration_s == asked_for.iteration_s && habit.total_bytes == asked_for.total_bytes);
    assert_true(habit.total_bytes < none.total_bytes);
    close_asked(&a);
}

/* Statistics over what shares a sample are exchanged, 20 norms there and back; a rank's own are not. */
static void test_local_norms_exchange_nothing(void **state)
{
    (void)state;
    asked a;
    open_asked(&a, "resnet18:size=64", "height=2", 2, 4);
    double shared = estimate_feasible(&a).communication[CVY_PHASE_REDISTRIBUTE].latency_s;
    a.machine.execution.local_norms = true;
    double own = estimate_feasible(&a).communication[CVY_PHASE_REDISTRIBUTE].latency_s;
    assert_true(shared > own + 20 * 1e-6);
    close_asked(&a);
}

/* ---- what ranks do to each other ---- */

/* Of 16 devices k are busy: a kernel that takes 3 times as long among all takes 1 + 2 (k - 1) / 15 times as long. */
static void test_kernels_slow_down_with_the_devices_that_compute(void **state)
{
    (void)state;
    const int64_t ranks[] = {2, 4, 16};
    for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++) {
        asked a;
        open_asked(&a, "lenet5", "data", ranks[i], 64);
        double devices = (double)cvy_machine_devices(&a.machine);
        double without = sum_kernels(&a);
        a.machine.execution.lockstep = 3.0;
        assert_close(sum_kernels(&a), without * (1.0 + 2.0 * ((double)ranks[i] - 1.0) / (devices - 1.0)), 1e-9);
        close_asked(&a);
    }
}

/* A whole exchange hides behind backward but for its last bucket: computing beside it takes twice as long, h in place
   of h / 2, so that h / 2 is added. What sticks out goes on as it would alone. */
static void test_computing_slows_down_beside_exchanges(void **state)
{
    (void)state;
    asked a;
    open_asked(&a, "lenet5", "data", 8, 512);
    a.machine.execution.overlap = true;
    a.machine.execution.bucket_bytes = 50000;
    cvy_estimate without = estimate_feasible(&a);
    assert_true(without.hidden_communication_s > 0.0);
    a.machine.execution.compute_slowdown = 2.0;
    cvy_estimate with = estimate_feasible(&a);
    assert_close(with.iteration_s - without.iteration_s, without.hidden_communication_s / 2.0, 1e-9);
    assert_close(sum_parts(&with), with.iteration_s, 1e-9);
    /* With nothing to hide behind, an exchange that takes 5 times as long beside computing takes what it takes. */
    a.machine.execution.compute_slowdown = 1.0;
    a.machine.execution.bucket_bytes = 0;
    without = estimate_feasible(&a);
    a.machine.execution.exchange_slowdown = 5.0;
    with = estimate_feasible(&a);
    assert_close(with.part_s[CVY_PHASE_GRADIENT_EXCHANGE] + with.hidden_communication_s / 5.0,
                 without.part_s[CVY_PHASE_GRADIENT_EXCHANGE] + without.hidden_communication_s, 1e-9);
    close_asked(&a);
}

/* Gradients go at the rate but for what was saved up: the burst, or more of them where it holds more; never more than
   the time that the rank computes. */
static void test_bursts_are_spent_once_an_iteration(void **state)
{
    (void)state;
    asked a;
    open_asked(&a, "lenet5", "data", 16, 64);
    int last = 0;
    while (a.machine.level[last].devices < 16) { /* the innermost that holds all */
        last++;
    }
    cvy_estimate without = estimate_feasible(&a);
    double exchange = without.part_s[CVY_PHASE_GRADIENT_EXCHANGE], Bps = a.machine.level[last].bandwidth_Bps;
    double latency = without.communication[CVY_PHASE_GRADIENT_EXCHANGE].latency_s;
    a.machine.level[last].burst_bytes = (int64_t)(0.1 * (exchange - latency) * Bps);
    cvy_estimate with = estimate_feasible(&a);
    assert_close(exchange - with.part_s[CVY_PHASE_GRADIENT_EXCHANGE],
                 (double)a.machine.level[last].burst_bytes / Bps, 1e-6);
    a.machine.level[last].burst_bytes = 1000000000;
    with = estimate_feasible(&a);
    double computing = sum_kernels(&a), saved = exchange - with.part_s[CVY_PHASE_GRADIENT_EXCHANGE];
    assert_close(saved, fmin(exchange - latency, computing), 1e-6);
    close_asked(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_host_shows_where_it_is_slower),
        cmocka_unit_test(test_the_host_adds_up_where_layers_exchange),
        cmocka_unit_test(test_pieces_take_the_host),
        cmocka_unit_test(test_packing_counts_tensors_in_and_out),
        cmocka_unit_test(test_input_between_steps),
        cmocka_unit_test(test_waiting_for_the_slowest),
        cmocka_unit_test(test_managed_memory_pages_large_tensors),
        cmocka_unit_test(test_reserved_memory_counts),
        cmocka_unit_test(test_memory_of_a_process),
        cmocka_unit_test(test_sums_by_shares),
        cmocka_unit_test(test_recomputation_is_the_frameworks),
        cmocka_unit_test(test_local_norms_exchange_nothing),
        cmocka_unit_test(test_kernels_slow_down_with_the_devices_that_compute),
        cmocka_unit_test(test_computing_slows_down_beside_exchanges),
        cmocka_unit_test(test_bursts_are_spent_once_an_iteration),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
