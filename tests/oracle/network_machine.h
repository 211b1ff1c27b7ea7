/*
 * A machine for tests, with figures for arithmetic by hand: 4 devices a node, 16 nodes a leaf, 16 leaves.
 *
 *   bus    10 GB/s, 1 us, a link a device
 *   leaf    1 GB/s, 10 us, 2 links a node
 *   spine   1 GB/s, 20 us, 32 links a leaf, of which 8 pass at once
 */
#ifndef CVY_TEST_NETWORK_MACHINE_H
#define CVY_TEST_NETWORK_MACHINE_H

#include <cmocka.h>

#include "oracle/network.h"

static inline cvy_machine make_machine(void)
{
    return (cvy_machine){
        .name = "by hand",
        .nodes = 256,
        .devices_per_node = 4,
        .levels = 3,
        .level = {{.name = "bus", .endpoints = 4, .devices = 4, .latency_s = 1e-6, .bandwidth_Bps = 10e9, .ports = 1,
                   .rails = 1, .oversubscription = 1},
                  {.name = "leaf", .endpoints = 16, .devices = 64, .latency_s = 10e-6, .bandwidth_Bps = 1e9,
                   .ports = 2, .rails = 1, .oversubscription = 1},
                  {.name = "spine", .endpoints = 16, .devices = 1024, .latency_s = 20e-6, .bandwidth_Bps = 1e9,
                   .ports = 32, .rails = 1, .oversubscription = 4}},
        .execution = {.leader_broadcast = true},
    };
}

/* A rule that holds everywhere; what it leaves open is filled in. */
static inline cvy_collective_rule *add_rule(cvy_machine *machine, cvy_collective collective, int algorithm)
{
    cvy_collective_rule *rule = &machine->collective[machine->collectives++];
    *rule = (cvy_collective_rule){.collective = collective, .algorithm = algorithm, .traffic = CVY_ANY,
                                  .level = CVY_ANY};
    return rule;
}

/* Sizes by axis, in canonical order: consecutive ranks differ in channel, then width, height, … */
static inline cvy_mesh make_mesh(int64_t sample, int64_t height, int64_t width, int64_t channel)
{
    cvy_mesh mesh;
    const int64_t size[CVY_AXES] = {1, sample, 1, height, width, channel};
    assert_int_equal(cvy_mesh_setup(size, NULL, &mesh), CVY_OK);
    return mesh;
}

enum {
    SAMPLE = CVY_AXIS_BIT(CVY_AXIS_SAMPLE),
    HEIGHT = CVY_AXIS_BIT(CVY_AXIS_HEIGHT),
    WIDTH = CVY_AXIS_BIT(CVY_AXIS_WIDTH),
    CHANNEL = CVY_AXIS_BIT(CVY_AXIS_CHANNEL),
};

static inline void assert_seconds(double found, double expected)
{
    if (!(found <= expected * (1 + 1e-12) && found >= expected * (1 - 1e-12))) {
        fail_msg("found %.12g s, expected %.12g s", found, expected);
    }
}

#endif
