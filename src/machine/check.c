/*
 * What one key alone cannot get wrong. Levels are a tree by construction: each connects domains of the one before, so
 * a domain has the product of endpoints. That tree must have a border at the node, or else devices of a node would lie
 * in two domains, and must reach every node.
 */
#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "machine/internal.h"

/* What a level says that it connects, against the level before. */
static cvy_status check_connects(const cvy_machine *machine, const cvy_yaml_node *links, int i)
{
    char word[CVY_WORD_TEXT];
    const cvy_yaml_node *node = cvy_yaml_find(cvy_yaml_item(links, i), "connects");
    const char *before = i > 0 ? machine->level[i - 1].name : "device";
    const char *text = node ? cvy_yaml_text(node) : before;
    if (text && strcmp(text, before) == 0) {
        return CVY_OK;
    }
    for (int j = i; text && j < machine->levels; j++) {
        if (strcmp(text, machine->level[j].name) == 0) {
            return cvy_yaml_fail(node, "links %d: level %s connects '%s', which is %s: levels stand from the device "
                                 "outwards, without a cycle", i + 1, machine->level[i].name, text,
                                 j == i ? "itself" : "further out");
        }
    }
    return cvy_yaml_fail(node, "links %d: connects: found '%s', expected '%s', the level before", i + 1,
                         cvy_print_word(text ? text : "a list or mapping", word), before);
}

static cvy_status check_level(cvy_machine *machine, const cvy_yaml_node *links, int i)
{
    cvy_level *level = &machine->level[i];
    const cvy_yaml_node *node = cvy_yaml_item(links, i);
    if (strcmp(level->name, "device") == 0 || strcmp(level->name, "any") == 0) {
        return cvy_yaml_fail(node, "links %d: name: '%s' is no name for a level, it has a meaning of its own", i + 1,
                             level->name);
    }
    for (int j = 0; j < i; j++) {
        if (strcmp(level->name, machine->level[j].name) == 0) {
            return cvy_yaml_fail(node, "links %d: name: '%s' is the name of level %d too", i + 1, level->name, j + 1);
        }
    }
    CVY_TRY(check_connects(machine, links, i));
    if (!cvy_mul_i64(i > 0 ? machine->level[i - 1].devices : 1, level->endpoints, &level->devices)) {
        return cvy_yaml_fail(node, "links %d: level %s: too many devices to count, found %d endpoints", i + 1,
                             level->name, level->endpoints);
    }
    return CVY_OK;
}

static cvy_status check_links(cvy_machine *machine, const cvy_yaml_node *root)
{
    const cvy_yaml_node *links = cvy_yaml_find(root, "links");
    int64_t devices = cvy_machine_devices(machine);
    int64_t reached = 1;
    bool border = machine->devices_per_node == 1 || machine->nodes == 1;
    for (int i = 0; i < machine->levels; i++) {
        CVY_TRY(check_level(machine, links, i));
        reached = machine->level[i].devices;
        border = border || reached == machine->devices_per_node;
    }
    const cvy_yaml_node *node = links ? links : root;
    if (!border) {
        return cvy_yaml_fail(node, "links: no level connects the %d devices of a node: levels do not nest with nodes",
                             machine->devices_per_node);
    }
    if (reached < devices) {
        return cvy_yaml_fail(node, "links: levels reach %" PRId64 " of the %" PRId64 " devices: expected the product "
                             "of endpoints to be at least nodes times devices-per-node", reached, devices);
    }
    return CVY_OK;
}

static cvy_status check_collectives(const cvy_machine *machine, const cvy_yaml_node *list)
{
    for (int i = 0; i < machine->collectives; i++) {
        const cvy_collective_rule *rule = &machine->collective[i];
        if (rule->algorithm != CVY_ANY &&
            !cvy_algorithm_does((cvy_algorithm)rule->algorithm, (cvy_collective)rule->collective)) {
            return cvy_yaml_fail(cvy_yaml_item(list, i), "collectives %d: algorithm: %s is no algorithm of %s", i + 1,
                                 cvy_algorithm_name((cvy_algorithm)rule->algorithm),
                                 cvy_collective_name((cvy_collective)rule->collective));
        }
        if (rule->rails > 0 && rule->collective != CVY_COLLECTIVE_POINT_TO_POINT) {
            return cvy_yaml_fail(cvy_yaml_item(list, i), "collectives %d: rails: found them for %s, expected them for "
                                 "point-to-point alone; rings have those of links", i + 1,
                                 cvy_collective_name((cvy_collective)rule->collective));
        }
    }
    return CVY_OK;
}

static cvy_status check_device(const cvy_device *device, const cvy_yaml_node *node)
{
    double most = 0;
    for (int i = 0; i < CVY_PRECISION_COUNT; i++) {
        most = device->peak_flop_per_s[i] > most ? device->peak_flop_per_s[i] : most;
    }
    if (most == 0) {
        return cvy_yaml_fail(cvy_yaml_find(node, "peak"), "device: peak: expected at least one rate, as fp32: "
                             "15.7 TFLOP/s");
    }
    if (device->kind == CVY_DEVICE_CPU && device->vector_bits == 0) {
        return cvy_yaml_fail(node, "device: vector-bits: missing; it is the width of the widest vector of floats");
    }
    return CVY_OK;
}

bool cvy_machine_has_release(const cvy_machine *machine, const char *release)
{
    bool has = false;
    for (int i = 0; i < machine->device.efficiencies + machine->collectives; i++) {
        const char *of = cvy_machine_get_release(machine, i);
        has = has || (of && strcmp(of, release) == 0);
    }
    return has;
}

cvy_status cvy_machine_check(const cvy_yaml_node *root, cvy_machine *machine)
{
    CVY_TRY(check_device(&machine->device, cvy_yaml_find(root, "device")));
    const char *release = machine->execution.release;
    if (release && !cvy_machine_has_release(machine, release)) {
        return cvy_yaml_fail(cvy_yaml_find(root, "execution"), "execution: release: no efficiency and no rule of "
                             "collectives is of '%s'", release);
    }
    CVY_TRY(check_links(machine, root));
    return check_collectives(machine, cvy_yaml_find(root, "collectives"));
}
