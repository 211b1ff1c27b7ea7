/* Messages from point to point on the links of a machine, with the arithmetic by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "network_machine.h"

static cvy_network network;

static cvy_network_cost estimate(const cvy_machine *machine, cvy_mesh mesh, const cvy_message *message, int messages,
                                 cvy_traffic traffic)
{
    cvy_network_cost cost;
    assert_int_equal(cvy_network_setup(machine, &mesh, &network), CVY_OK);
    cvy_network_estimate_messages(&network, message, messages, traffic, &cost);
    assert_seconds(cost.latency_s + cost.bytes_s, cost.seconds);
    return cost;
}

/* Both neighbours along an axis, to them and from them. */
static void make_halo(cvy_axis axis, int64_t bytes, cvy_message message[4])
{
    for (int i = 0; i < 4; i++) {
        message[i] = (cvy_message){.bytes = bytes, .receive = i >= 2};
        message[i].peer_offset[axis] = i % 2 ? 1 : -1;
    }
}

static double halo_s(const cvy_machine *machine, cvy_mesh mesh, cvy_axis axis)
{
    cvy_message message[4];
    make_halo(axis, 1000000, message);
    return estimate(machine, mesh, message, 4, CVY_TRAFFIC_SPACE).seconds;
}

/* In a node 2 MB leave a device by one link of 10 GB/s while 2 MB come in; by three links 1 MB by each. */
static void test_halos_in_a_node(void **state)
{
    (void)state;
    cvy_machine machine = make_machine();
    assert_seconds(halo_s(&machine, make_mesh(16, 4, 1, 1), CVY_AXIS_HEIGHT), 1e-6 + 200e-6);
    machine.level[0].ports = 3;
    assert_seconds(halo_s(&machine, make_mesh(16, 4, 1, 1), CVY_AXIS_HEIGHT), 1e-6 + 100e-6);
    /* Both by all three links, or where a rule says so by one each. */
    machine.level[0].rails = 3;
    assert_seconds(halo_s(&machine, make_mesh(16, 4, 1, 1), CVY_AXIS_HEIGHT), 1e-6 + 2e6 / 30e9);
    add_rule(&machine, CVY_COLLECTIVE_POINT_TO_POINT, CVY_ANY)->rails = 1;
    assert_seconds(halo_s(&machine, make_mesh(16, 4, 1, 1), CVY_AXIS_HEIGHT), 1e-6 + 100e-6);
}

/* 16 along the height, 4 a node: one rank at either border sends 1 MB out of the node, by a link each. */
static void test_halos_across_nodes(void **state)
{
    (void)state;
    cvy_machine machine = make_machine();
    assert_seconds(halo_s(&machine, make_mesh(1, 16, 1, 1), CVY_AXIS_HEIGHT), 10e-6 + 1e-3);
    /* Rows of 4: all 4 ranks of a node send up and down, 8 MB by 2 links. */
    assert_seconds(halo_s(&machine, make_mesh(1, 16, 4, 1), CVY_AXIS_HEIGHT), 10e-6 + 4e-3);
    /* Rows of one rank, with 4 channels a node: again 8 MB by 2 links; by 8, each rank 2 MB by its one rail. */
    assert_seconds(halo_s(&machine, make_mesh(1, 16, 1, 4), CVY_AXIS_HEIGHT), 10e-6 + 4e-3);
    machine.level[1].ports = 8;
    assert_seconds(halo_s(&machine, make_mesh(1, 16, 1, 4), CVY_AXIS_HEIGHT), 10e-6 + 2e-3);
    /* Along the rows nothing leaves the node. */
    assert_seconds(halo_s(&machine, make_mesh(1, 16, 4, 1), CVY_AXIS_WIDTH), 1e-6 + 200e-6);
}

/* 64 ranks a row, each its leaf: 64 MB up and 64 MB down leave a leaf by 8 links; nodes would send 8 MB by 2. */
static void test_halos_across_a_thinned_spine(void **state)
{
    (void)state;
    cvy_machine machine = make_machine();
    assert_seconds(halo_s(&machine, make_mesh(1, 16, 64, 1), CVY_AXIS_HEIGHT), 20e-6 + 16e-3);
}

/* 3 hops down and 3 up of 300 us and 1 MB at 10 GB/s each, one after the other, for ranks at an end as well. */
static void test_a_chain_of_halos(void **state)
{
    (void)state;
    cvy_machine machine = make_machine();
    cvy_collective_rule *rule = add_rule(&machine, CVY_COLLECTIVE_POINT_TO_POINT, CVY_ANY);
    rule->latency_s = 300e-6;
    rule->level = 0;
    rule->traffic = CVY_TRAFFIC_SPACE;
    machine.execution.serial_halos = true;
    double chain_s = 6 * (300e-6 + 100e-6);
    assert_seconds(halo_s(&machine, make_mesh(16, 4, 1, 1), CVY_AXIS_HEIGHT), chain_s);
    cvy_message first[2] = {{.bytes = 1000000}, {.bytes = 1000000, .receive = true}};
    first[0].peer_offset[CVY_AXIS_HEIGHT] = first[1].peer_offset[CVY_AXIS_HEIGHT] = 1;
    assert_seconds(estimate(&machine, make_mesh(16, 4, 1, 1), first, 2, CVY_TRAFFIC_SPACE).seconds, chain_s);
    rule->call_s = 7e-6;
    rule->bandwidth_Bps = 1e9;
    assert_seconds(halo_s(&machine, make_mesh(16, 4, 1, 1), CVY_AXIS_HEIGHT), 6 * (307e-6 + 1e-3));
    /* Other traffic is not halos: both at once at the level's figures. */
    assert_seconds(estimate(&machine, make_mesh(16, 4, 1, 1), first, 2, CVY_TRAFFIC_LAYERS).seconds, 1e-6 + 100e-6);
}

/* Through the host, 100 us and 2 GB/s. */
static void test_staged_halos(void **state)
{
    (void)state;
    cvy_machine machine = make_machine();
    machine.execution.host_halos = true;
    machine.level[0].staged_latency_s = 100e-6;
    machine.level[0].staged_Bps = 2e9;
    assert_seconds(halo_s(&machine, make_mesh(16, 4, 1, 1), CVY_AXIS_HEIGHT), 100e-6 + 1e-3);
    /* The net has no figures of its own for that. */
    assert_seconds(halo_s(&machine, make_mesh(1, 16, 4, 1), CVY_AXIS_HEIGHT), 10e-6 + 4e-3);
}

/* A stage of 4 channels a node sends 1 MB to the next: 4 flows by 2 links, 2 ms; measured 0.5 GB/s alone: 4 ms. */
static void test_a_pipeline_between_nodes(void **state)
{
    (void)state;
    cvy_machine machine = make_machine();
    cvy_mesh mesh;
    const int64_t size[CVY_AXES] = {8, 1, 1, 1, 1, 4};
    assert_int_equal(cvy_mesh_setup(size, NULL, &mesh), CVY_OK);
    cvy_message message = {.peer_offset = {1}, .bytes = 1000000};
    cvy_network_cost cost = estimate(&machine, mesh, &message, 1, CVY_TRAFFIC_LAYERS);
    assert_seconds(cost.seconds, 10e-6 + 2e-3);
    assert_true(cost.level == 1 && cost.flows == 4);
    cvy_collective_rule *rule = add_rule(&machine, CVY_COLLECTIVE_POINT_TO_POINT, CVY_ANY);
    rule->bandwidth_Bps = 0.5e9;
    rule->call_s = 50e-6;
    assert_seconds(estimate(&machine, mesh, &message, 1, CVY_TRAFFIC_LAYERS).seconds, 60e-6 + 4e-3);
    message.peer_offset[0] = 0; /* to itself */
    assert_true(estimate(&machine, mesh, &message, 1, CVY_TRAFFIC_LAYERS).seconds == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_halos_in_a_node),
        cmocka_unit_test(test_halos_across_nodes),
        cmocka_unit_test(test_halos_across_a_thinned_spine),
        cmocka_unit_test(test_a_chain_of_halos),
        cmocka_unit_test(test_staged_halos),
        cmocka_unit_test(test_a_pipeline_between_nodes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
