/* What the files of this room share. */
#ifndef CVY_MACHINE_INTERNAL_H
#define CVY_MACHINE_INTERNAL_H

#include "base/yaml.h"
#include "machine/machine.h"

/** Read a tree into an empty machine. @retval CVY_ERR_INPUT file, line, found, expected */
cvy_status cvy_machine_read(const cvy_yaml_node *root, cvy_machine *machine);

/** The release that an efficiency is of, or behind these a rule of collectives; NULL: any. */
static inline const char *cvy_machine_get_release(const cvy_machine *machine, int index)
{
    int efficiencies = machine->device.efficiencies;
    return index < efficiencies ? machine->device.efficiency[index].release
                                : machine->collective[index - efficiencies].release;
}

/** Whether some efficiency or rule is of a release. */
bool cvy_machine_has_release(const cvy_machine *machine, const char *release);

/**
 * Check what keys by themselves cannot: that levels nest, have a border at the node and reach all nodes, and that a
 * device has a peak, and that algorithms do what rules give them. Fills in cvy_level.devices.
 */
cvy_status cvy_machine_check(const cvy_yaml_node *root, cvy_machine *machine);

#endif
