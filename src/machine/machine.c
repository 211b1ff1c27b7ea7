/* Reading machines. Every figure is checked here, so that plans may trust it. */
#include "machine/machine.h"

#include <stdio.h>
#include <string.h>

#include "base/topology.h"
#include "base/yaml.h"

int cvy_device_block(const cvy_device *device) { return device->vector_bits >= 512 ? 16 : 8; }

void cvy_machine_get_local(cvy_machine *machine_out)
{
    cvy_topology topology;
    cvy_topology_get(&topology);
    *machine_out = (cvy_machine){.name = "local",
                                 .device = {.cores = topology.cores,
                                            .vector_bits = topology.vector_bits,
                                            .memory_bytes = topology.memory_bytes}};
}

static cvy_status read_device(const cvy_yaml_node *node, cvy_device *device)
{
    static const char *const keys[] = {"cores", "vector-bits", "memory-bytes", NULL};
    int64_t cores;
    int64_t bits;
    for (int i = 0; i < 2; i++) {
        if (!cvy_yaml_find(node, keys[i])) {
            return cvy_yaml_fail(node, "device: '%s' is missing", keys[i]);
        }
    }
    CVY_TRY(cvy_yaml_check_keys(node, keys));
    CVY_TRY(cvy_yaml_get_int(cvy_yaml_find(node, "cores"), "cores", 1, 100000, &cores));
    CVY_TRY(cvy_yaml_get_int(cvy_yaml_find(node, "vector-bits"), "vector-bits", 64, 4096, &bits));
    device->cores = (int)cores;
    device->vector_bits = (int)bits;
    const cvy_yaml_node *memory = cvy_yaml_find(node, "memory-bytes");
    return memory ? cvy_yaml_get_int(memory, "memory-bytes", 1, INT64_MAX, &device->memory_bytes) : CVY_OK;
}

static cvy_status read_machine(const cvy_yaml_node *root, cvy_machine *machine)
{
    static const char *const keys[] = {"name", "device", NULL};
    if (cvy_yaml_node_kind(root) != CVY_YAML_MAPPING) {
        return cvy_yaml_fail(root, "expected a machine: a mapping with name and device");
    }
    CVY_TRY(cvy_yaml_check_keys(root, keys));
    const cvy_yaml_node *name = cvy_yaml_find(root, "name");
    const cvy_yaml_node *device = cvy_yaml_find(root, "device");
    const char *text = name ? cvy_yaml_text(name) : NULL;
    if (!text || strlen(text) == 0 || strlen(text) >= sizeof machine->name) {
        return cvy_yaml_fail(root, "name: expected 1 to %zu characters", sizeof machine->name - 1);
    }
    if (!device || cvy_yaml_node_kind(device) != CVY_YAML_MAPPING) {
        return cvy_yaml_fail(root, "device: expected a mapping with cores and vector-bits");
    }
    snprintf(machine->name, sizeof machine->name, "%s", text);
    return read_device(device, &machine->device);
}

cvy_status cvy_machine_load(const char *path, cvy_machine *machine_out)
{
    cvy_yaml *yaml = NULL;
    cvy_machine machine = {.name = ""};
    CVY_TRY(cvy_yaml_load(path, &yaml));
    cvy_status status = read_machine(cvy_yaml_root(yaml), &machine);
    cvy_yaml_destroy(&yaml);
    if (status == CVY_OK) {
        *machine_out = machine;
    }
    return status;
}
