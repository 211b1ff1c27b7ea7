/*
 * Machines as objects: made from a file or from what the system says of itself, asked, released. Texts belong to the
 * machine and go with it; the local machine has constant ones and owns nothing.
 */
#include "machine/machine.h"

#include "base/memory.h"
#include "base/topology.h"
#include "machine/internal.h"

int cvy_device_block(const cvy_device *device) { return device->vector_bits >= 512 ? 16 : 8; }

int64_t cvy_machine_devices(const cvy_machine *machine) { return (int64_t)machine->nodes * machine->devices_per_node; }

const char *cvy_machine_find_source(const cvy_machine *machine, const void *figure)
{
    size_t offset = (size_t)((const char *)figure - (const char *)machine);
    for (int i = 0; i < machine->sources; i++) {
        if (machine->source[i].offset == offset) {
            return machine->source[i].text;
        }
    }
    return NULL;
}

cvy_status cvy_machine_set_source(cvy_machine *machine, const void *figure, const char *source)
{
    const char *kept = NULL;
    size_t offset = (size_t)((const char *)figure - (const char *)machine);
    int place = 0;
    CVY_TRY(cvy_machine_keep(machine, source, &kept));
    while (place < machine->sources && machine->source[place].offset != offset) {
        place++;
    }
    if (place == machine->sources) {
        CVY_TRY(cvy_array_reserve(&machine->source, machine->sources, &machine->sources_capacity,
                                  sizeof *machine->source));
        machine->sources++;
    }
    machine->source[place] = (cvy_source){.offset = offset, .text = kept};
    return CVY_OK;
}

void cvy_machine_get_local(cvy_machine *machine_out)
{
    cvy_topology topology;
    cvy_topology_get(&topology);
    *machine_out = (cvy_machine){.name = CVY_MACHINE_HERE,
                                 .summary = "the machine that this program runs on",
                                 .nodes = 1,
                                 .devices_per_node = 1,
                                 .device = {.name = "cpu",
                                            .kind = CVY_DEVICE_CPU,
                                            .cores = topology.cores,
                                            .vector_bits = topology.vector_bits,
                                            .memory_bytes = topology.memory_bytes}};
}

cvy_status cvy_machine_keep(cvy_machine *machine, const char *text, const char **kept_out)
{
    CVY_TRY(cvy_array_reserve(&machine->text, machine->texts, &machine->texts_capacity, sizeof *machine->text));
    char *kept = cvy_strdup(text);
    if (!kept) {
        return CVY_ERR_MEMORY;
    }
    machine->text[machine->texts++] = kept;
    *kept_out = kept;
    return CVY_OK;
}

cvy_status cvy_machine_load(const char *path, cvy_machine **machine_out)
{
    cvy_status status;
    cvy_yaml *yaml = NULL;
    cvy_machine *machine = cvy_calloc(1, sizeof *machine);
    if (!machine) {
        return CVY_ERR_MEMORY;
    }
    CVY_TRY_GOTO(status, done, cvy_yaml_load(path, &yaml));
    CVY_TRY_GOTO(status, done, cvy_machine_read(cvy_yaml_root(yaml), machine));
    CVY_TRY_GOTO(status, done, cvy_machine_check(cvy_yaml_root(yaml), machine));
    CVY_TRY_GOTO(status, done, cvy_machine_keep(machine, path, &machine->file));
    *machine_out = machine;
    machine = NULL;
done:
    cvy_machine_destroy(&machine);
    cvy_yaml_destroy(&yaml);
    return status;
}

void cvy_machine_destroy(cvy_machine **machine)
{
    cvy_machine *old = *machine;
    for (int i = 0; old && i < old->texts; i++) {
        cvy_free(old->text[i]);
    }
    if (old) {
        cvy_free(old->text);
        cvy_free(old->source);
    }
    cvy_free(old);
    *machine = NULL;
}
