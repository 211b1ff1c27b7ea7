/* Machine files: any bytes are a machine whose figures lie within bounds and read back as printed, or a refusal. */
#include "fuzz/fuzz.h"
#include "machine/machine.h"

/* What is printed reads back to what prints the same. */
static void check_printed(const cvy_machine *machine)
{
    cvy_text first = {0}, second = {0};
    cvy_machine *back = NULL;
    cvy_machine_print(machine, &first);
    FUZZ_REQUIRE(!first.failed);
    FUZZ_REQUIRE(cvy_machine_load(fuzz_put("printed.yaml", first.data, first.length), &back) == CVY_OK);
    cvy_machine_print(back, &second);
    FUZZ_REQUIRE(first.length == second.length && memcmp(first.data, second.data, first.length) == 0);
    cvy_machine_destroy(&back);
    cvy_text_destroy(&first);
    cvy_text_destroy(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cvy_machine *machine = NULL;
    cvy_status status = cvy_machine_load(fuzz_put("machine.yaml", data, size), &machine);
    if (status != CVY_OK) {
        FUZZ_REQUIRE(!machine);
        fuzz_check_refusal(status, CVY_ERR_INPUT);
        return 0;
    }
    FUZZ_REQUIRE(machine->name[0] && machine->device.cores >= 1 && machine->device.memory_bytes >= 1);
    FUZZ_REQUIRE(cvy_device_block(&machine->device) == 8 || cvy_device_block(&machine->device) == 16);
    int64_t devices = 1;
    for (int i = 0; i < machine->levels; i++) {
        const cvy_level *level = &machine->level[i];
        FUZZ_REQUIRE(level->devices == devices * level->endpoints && level->bandwidth_Bps > 0);
        FUZZ_REQUIRE(level->latency_s >= 0 && level->ports >= 1 && level->oversubscription >= 1);
        devices = level->devices;
    }
    FUZZ_REQUIRE(devices >= cvy_machine_devices(machine));
    check_printed(machine);
    cvy_machine_destroy(&machine);
    return 0;
}
