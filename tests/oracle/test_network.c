/* Collectives on the links of a machine, with the arithmetic by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "network_machine.h"

static cvy_network network; /* one is enough for all; it is larger than a stack likes */

static cvy_network_cost estimate(const cvy_machine *machine, cvy_mesh mesh, cvy_network_request request)
{
    cvy_network_cost cost;
    assert_int_equal(cvy_network_setup(machine, &mesh, &network), CVY_OK);
    cvy_network_estimate_collective(&network, &request, &cost);
    assert_seconds(cost.latency_s + cost.bytes_s, cost.seconds);
    return cost;
}

static double all_reduce_s(const cvy_machine *machine, cvy_mesh mesh, unsigned axes, double bytes)
{
    return estimate(machine, mesh, (cvy_network_request){.collective = CVY_COLLECTIVE_ALL_REDUCE, .axes = axes,
                                                         .traffic = CVY_TRAFFIC_GRADIENTS, .bytes = bytes}).seconds;
}

static cvy_machine make_ring_machine(void)
{
    cvy_machine machine = make_machine();
    add_rule(&machine, CVY_COLLECTIVE_ALL_REDUCE, CVY_ALGORITHM_RING);
    return machine;
}

static void test_one_rank_takes_no_time(void **state)
{
    (void)state;
    cvy_machine machine = make_ring_machine();
    machine.execution.pack_s = 1;
    cvy_network_request request = {.collective = CVY_COLLECTIVE_ALL_REDUCE, .axes = SAMPLE | HEIGHT, .bytes = 1e9,
                                   .tensors = 3};
    cvy_network_cost cost = estimate(&machine, make_mesh(1, 1, 2, 4), request);
    assert_true(cost.seconds == 0 && cost.level == -1);
}

/* 8 MB round 4 ranks: 2 x 3 steps of 2 MB at 10 GB/s, 1 us each. */
static void test_a_ring_inside_a_node(void **state)
{
    (void)state;
    cvy_machine machine = make_ring_machine();
    assert_seconds(all_reduce_s(&machine, make_mesh(16, 1, 1, 4), CHANNEL, 8e6), 6 * (1e-6 + 200e-6));
}

/* 64 ranks of 16 nodes: 126 steps of 125 kB; one link into each node, the other one idle: 1 GB/s. */
static void test_a_ring_across_nodes(void **state)
{
    (void)state;
    cvy_machine machine = make_ring_machine();
    assert_seconds(all_reduce_s(&machine, make_mesh(64, 1, 1, 1), SAMPLE, 8e6), 126 * (10e-6 + 125e-6));
    /* Spread over both links. */
    machine.level[1].rails = 2;
    assert_seconds(all_reduce_s(&machine, make_mesh(64, 1, 1, 1), SAMPLE, 8e6), 126 * (10e-6 + 62.5e-6));
    /* There are but two. */
    machine.level[1].rails = 8;
    assert_seconds(all_reduce_s(&machine, make_mesh(64, 1, 1, 1), SAMPLE, 8e6), 126 * (10e-6 + 62.5e-6));
}

/* 16 nodes, in each 4 ranks of 4 rings: 2 links carry 4 flows, 0.5 GB/s each. 30 steps of 500 kB. */
static void test_four_rings_share_two_ports(void **state)
{
    (void)state;
    cvy_machine machine = make_ring_machine();
    assert_seconds(all_reduce_s(&machine, make_mesh(16, 1, 1, 4), SAMPLE, 8e6), 30 * (10e-6 + 1e-3));
    assert_true(cvy_network_find_group(&network, SAMPLE)->outer.flows == 4);
    /* A measured ring of 0.8 GB/s, alone: two links carry 1.6, four flows have 0.4 each. */
    machine.collective[0].bandwidth_Bps = 0.8e9;
    machine.collective[0].latency_s = 2e-6;
    machine.collective[0].call_s = 5e-3;
    assert_seconds(all_reduce_s(&machine, make_mesh(16, 1, 1, 4), SAMPLE, 8e6), 5e-3 + 30 * (2e-6 + 1.25e-3));
    double alone_s = 5e-3 + 30 * (2e-6 + 0.5e6 / 0.8e9);
    assert_seconds(all_reduce_s(&machine, make_mesh(16, 1, 1, 1), SAMPLE, 8e6), alone_s);
}

/* The other order of axes: a sample group is 16 neighbours on 4 nodes, and one ring passes each border. */
static void test_the_order_of_axes_places_groups(void **state)
{
    (void)state;
    cvy_machine machine = make_ring_machine();
    cvy_mesh mesh;
    const int64_t size[CVY_AXES] = {1, 16, 1, 1, 1, 4};
    const cvy_axis order[CVY_AXES] = {CVY_AXIS_CHANNEL, CVY_AXIS_SAMPLE, CVY_AXIS_STAGE,
                                      CVY_AXIS_DEPTH,   CVY_AXIS_HEIGHT, CVY_AXIS_WIDTH};
    assert_int_equal(cvy_mesh_setup(size, order, &mesh), CVY_OK);
    assert_seconds(all_reduce_s(&machine, mesh, SAMPLE, 8e6), 30 * (10e-6 + 0.5e-3));
    /* A channel group has one rank in each of nodes 0, 4, 8, 12, and so have the others of these nodes. */
    assert_seconds(all_reduce_s(&machine, mesh, CHANNEL, 8e6), 6 * (10e-6 + 2e6 / 0.5e9));
}

/*
 * 64 groups of 16 ranks, one in each leaf: 64 flows leave a leaf by 8 links, an eighth of 1 GB/s each, where leaving
 * the nodes would give a half. One ring over all 1024 has a link for itself.
 */
static void test_a_thinned_spine_is_shared(void **state)
{
    (void)state;
    cvy_machine machine = make_ring_machine();
    assert_seconds(all_reduce_s(&machine, make_mesh(16, 1, 1, 64), SAMPLE, 8e6), 30 * (20e-6 + 0.5e6 / 0.125e9));
    assert_true(cvy_network_find_group(&network, SAMPLE)->outer.flows == 64);
    assert_seconds(all_reduce_s(&machine, make_mesh(1024, 1, 1, 1), SAMPLE, 1024e3), 2046 * (20e-6 + 1e-6));
}

/*
 * 16 nodes of 4. Scattered and gathered inside: 6 steps of 2 MB at 10 GB/s; between, each rank a ring of its quarter:
 * 30 steps of 125 kB, 4 of them over 2 links.
 */
static void test_hierarchical(void **state)
{
    (void)state;
    cvy_machine machine = make_machine();
    add_rule(&machine, CVY_COLLECTIVE_ALL_REDUCE, CVY_ALGORITHM_HIERARCHICAL);
    double inside_s = 6 * (1e-6 + 200e-6), between_s = 30 * (10e-6 + 250e-6);
    assert_seconds(all_reduce_s(&machine, make_mesh(64, 1, 1, 1), SAMPLE, 8e6), inside_s + between_s);
    /* Two groups a node, 2 ranks each: 2 steps of 4 MB inside, 30 of 250 kB between, still 4 flows. */
    inside_s = 2 * (1e-6 + 400e-6), between_s = 30 * (10e-6 + 500e-6);
    assert_seconds(all_reduce_s(&machine, make_mesh(16, 2, 1, 2), SAMPLE | HEIGHT, 8e6), inside_s + between_s);
}

/* A ring in each node, then one of 16 leaders, a link each; then a tree back: 2 steps of all 8 MB. */
static void test_leaders(void **state)
{
    (void)state;
    cvy_machine machine = make_ring_machine();
    cvy_collective_rule *back = add_rule(&machine, CVY_COLLECTIVE_BROADCAST, CVY_ALGORITHM_TREE);
    back->level = 0;
    cvy_network_request request = {.collective = CVY_COLLECTIVE_ALL_REDUCE, .axes = SAMPLE | HEIGHT,
                                   .traffic = CVY_TRAFFIC_GRADIENTS, .bytes = 8e6, .leaders = true};
    double inside_s = 6 * (1e-6 + 200e-6), leaders_s = 30 * (10e-6 + 0.5e-3), back_s = 2 * (1e-6 + 0.8e-3);
    cvy_network_cost cost = estimate(&machine, make_mesh(16, 4, 1, 1), request);
    assert_seconds(cost.seconds, inside_s + leaders_s + back_s);
    assert_seconds(cost.latency_s, 6e-6 + 300e-6 + 2e-6);
    assert_int_equal(cost.algorithm, CVY_ALGORITHM_LEADER);
    machine.execution.leader_broadcast = false;
    assert_seconds(estimate(&machine, make_mesh(16, 4, 1, 1), request).seconds, inside_s + leaders_s);
    /* 10 tensors go in and out. */
    machine.execution.pack_s = 1e-3;
    request.tensors = 10;
    assert_seconds(estimate(&machine, make_mesh(16, 4, 1, 1), request).seconds, inside_s + leaders_s + 20e-3);
    /* One a node: no leaders but all. */
    assert_seconds(estimate(&machine, make_mesh(16, 1, 1, 4), request).seconds, 30 * (10e-6 + 1e-3) + 20e-3);
}

/* Pairs of 64 ranks: 63 steps of an eighth of a MB; all 4 of a node send out of it, over 2 links. */
static void test_pairs_cross_all_at_once(void **state)
{
    (void)state;
    cvy_machine machine = make_machine();
    add_rule(&machine, CVY_COLLECTIVE_ALL_TO_ALL, CVY_ALGORITHM_PAIRWISE);
    cvy_network_request request = {.collective = CVY_COLLECTIVE_ALL_TO_ALL, .axes = SAMPLE, .bytes = 8e6};
    assert_seconds(estimate(&machine, make_mesh(64, 1, 1, 1), request).seconds, 63 * (10e-6 + 125e3 / 0.5e9));
}

/* The first rule that applies: by level, by what it is for, by size, by ranks. */
static void test_rules_apply_in_their_order(void **state)
{
    (void)state;
    cvy_machine machine = make_machine();
    add_rule(&machine, CVY_COLLECTIVE_ALL_REDUCE, CVY_ALGORITHM_RING)->level = 0;
    add_rule(&machine, CVY_COLLECTIVE_ALL_REDUCE, CVY_ALGORITHM_TWO_RINGS)->traffic = CVY_TRAFFIC_LAYERS;
    add_rule(&machine, CVY_COLLECTIVE_ALL_REDUCE, CVY_ALGORITHM_HALVING_DOUBLING)->up_to_bytes = 1000;
    add_rule(&machine, CVY_COLLECTIVE_ALL_REDUCE, CVY_ALGORITHM_HIERARCHICAL)->up_to_ranks = 16;
    add_rule(&machine, CVY_COLLECTIVE_ALL_REDUCE, CVY_ALGORITHM_NCCL);
    cvy_network_request request = {.collective = CVY_COLLECTIVE_ALL_REDUCE, .axes = SAMPLE, .bytes = 1000,
                                   .traffic = CVY_TRAFFIC_GRADIENTS};
    assert_ptr_equal(estimate(&machine, make_mesh(4, 1, 1, 1), request).rule, &machine.collective[0]);
    assert_ptr_equal(estimate(&machine, make_mesh(8, 1, 1, 1), request).rule, &machine.collective[2]);
    request.bytes = 1001;
    assert_int_equal(estimate(&machine, make_mesh(16, 1, 1, 1), request).algorithm, CVY_ALGORITHM_HIERARCHICAL);
    assert_int_equal(estimate(&machine, make_mesh(17, 1, 1, 1), request).algorithm, CVY_ALGORITHM_NCCL);
    request.traffic = CVY_TRAFFIC_LAYERS;
    assert_int_equal(estimate(&machine, make_mesh(17, 1, 1, 1), request).algorithm, CVY_ALGORITHM_TWO_RINGS);
    request.collective = CVY_COLLECTIVE_BROADCAST; /* none applies: the fastest */
    assert_null(estimate(&machine, make_mesh(17, 1, 1, 1), request).rule);
}

/* Of rules of releases those hold whose release runs, or begins what runs before a hyphen, and those of none. */
static void test_rules_of_other_releases_are_passed_over(void **state)
{
    (void)state;
    static const struct {
        const char *runs;
        int rule;
    } expected[] = {{NULL, 2}, {"tensorflow-19.07-xla", 0}, {"tensorflow-19.07", 0}, {"tensorflow", 1},
                    {"tensorflow-19.071", 1}, {"tensorflow2", 2}, {"tensor", 2}};
    cvy_machine machine = make_machine();
    add_rule(&machine, CVY_COLLECTIVE_ALL_REDUCE, CVY_ALGORITHM_RING)->release = "tensorflow-19.07";
    add_rule(&machine, CVY_COLLECTIVE_ALL_REDUCE, CVY_ALGORITHM_RING)->release = "tensorflow";
    add_rule(&machine, CVY_COLLECTIVE_ALL_REDUCE, CVY_ALGORITHM_NCCL);
    cvy_network_request request = {.collective = CVY_COLLECTIVE_ALL_REDUCE, .axes = SAMPLE, .bytes = 1000};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        machine.execution.release = expected[i].runs;
        assert_ptr_equal(estimate(&machine, make_mesh(4, 1, 1, 1), request).rule,
                         &machine.collective[expected[i].rule]);
    }
}

/* NCCL's model of 16 ranks on 4 nodes, one ring at a link a node, and of 4 in a node at 10 GB/s. */
static void test_nccl_counts_nodes(void **state)
{
    (void)state;
    cvy_machine machine = make_machine();
    add_rule(&machine, CVY_COLLECTIVE_ALL_REDUCE, CVY_ALGORITHM_NCCL_RING_SIMPLE)->call_s = 1e-3;
    double hops_s = (8.4 + (30 - 6) * 3.4 + 6 * 9.6) * 1.9e-6; /* 1.9: a plateau between nodes */
    assert_seconds(all_reduce_s(&machine, make_mesh(16, 1, 1, 1), SAMPLE, 8e6), 1e-3 + hops_s + 8e6 / (1e9 * 16 / 30));
    assert_seconds(all_reduce_s(&machine, make_mesh(4, 1, 1, 1), SAMPLE, 8e6),
                   1e-3 + (8.4 + 6 * 3.4) * 1e-6 + 8e6 / (10e9 * 4 / 6));
    machine.nccl.pcie = true;
    assert_seconds(all_reduce_s(&machine, make_mesh(4, 1, 1, 1), SAMPLE, 8e6),
                   1e-3 + (8.4 + 6 * 5.7) * 1e-6 + 8e6 / (10e9 * 4 / 6));
}

/* Gathers of space go through the host, 100 us and 2 GB/s, and only figures for space are measured of that way. */
static void test_space_is_staged(void **state)
{
    (void)state;
    cvy_machine machine = make_machine();
    machine.level[0].staged_latency_s = 100e-6;
    machine.level[0].staged_Bps = 2e9;
    cvy_collective_rule *rule = add_rule(&machine, CVY_COLLECTIVE_ALL_GATHER, CVY_ALGORITHM_RING);
    rule->bandwidth_Bps = 5e9;
    cvy_network_request request = {.collective = CVY_COLLECTIVE_ALL_GATHER, .axes = HEIGHT, .bytes = 8e6,
                                   .traffic = CVY_TRAFFIC_SPACE};
    assert_seconds(estimate(&machine, make_mesh(1, 4, 1, 1), request).seconds, 3 * (1e-6 + 2e6 / 5e9));
    machine.execution.host_halos = true;
    assert_seconds(estimate(&machine, make_mesh(1, 4, 1, 1), request).seconds, 3 * (100e-6 + 2e6 / 2e9));
    rule->traffic = CVY_TRAFFIC_SPACE;
    assert_seconds(estimate(&machine, make_mesh(1, 4, 1, 1), request).seconds, 3 * (100e-6 + 2e6 / 5e9));
    request.traffic = CVY_TRAFFIC_LAYERS;
    machine.collectives = 0;
    assert_seconds(estimate(&machine, make_mesh(1, 4, 1, 1), request).seconds, 2 * 1e-6 + 6e6 / 10e9); /* doubling */
}

static void test_what_steps_are_for(void **state)
{
    (void)state;
    assert_int_equal(cvy_network_traffic(CVY_PHASE_GRADIENT_EXCHANGE, HEIGHT), CVY_TRAFFIC_GRADIENTS);
    assert_int_equal(cvy_network_traffic(CVY_PHASE_HALO, HEIGHT), CVY_TRAFFIC_SPACE);
    assert_int_equal(cvy_network_traffic(CVY_PHASE_REDISTRIBUTE, HEIGHT | WIDTH), CVY_TRAFFIC_SPACE);
    assert_int_equal(cvy_network_traffic(CVY_PHASE_REDISTRIBUTE, HEIGHT | CHANNEL), CVY_TRAFFIC_LAYERS);
    assert_int_equal(cvy_network_traffic(CVY_PHASE_FORWARD, SAMPLE), CVY_TRAFFIC_LAYERS);
}

static void test_more_ranks_than_devices_are_refused(void **state)
{
    (void)state;
    cvy_machine machine = make_machine();
    cvy_mesh mesh = make_mesh(1025, 1, 1, 1);
    assert_int_equal(cvy_network_setup(&machine, &mesh, &network), CVY_ERR_INFEASIBLE);
    assert_string_equal(cvy_error_message(), "machine by hand has 1024 devices, found 1025 ranks");
    machine.nodes = machine.devices_per_node = 1;
    mesh = make_mesh(2, 1, 1, 1);
    assert_int_equal(cvy_network_setup(&machine, &mesh, &network), CVY_ERR_INFEASIBLE);
    assert_string_equal(cvy_error_message(), "machine by hand has 1 device, found 2 ranks");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_rank_takes_no_time),
        cmocka_unit_test(test_a_ring_inside_a_node),
        cmocka_unit_test(test_a_ring_across_nodes),
        cmocka_unit_test(test_four_rings_share_two_ports),
        cmocka_unit_test(test_the_order_of_axes_places_groups),
        cmocka_unit_test(test_a_thinned_spine_is_shared),
        cmocka_unit_test(test_hierarchical),
        cmocka_unit_test(test_leaders),
        cmocka_unit_test(test_pairs_cross_all_at_once),
        cmocka_unit_test(test_rules_apply_in_their_order),
        cmocka_unit_test(test_rules_of_other_releases_are_passed_over),
        cmocka_unit_test(test_nccl_counts_nodes),
        cmocka_unit_test(test_space_is_staged),
        cmocka_unit_test(test_what_steps_are_for),
        cmocka_unit_test(test_more_ranks_than_devices_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
