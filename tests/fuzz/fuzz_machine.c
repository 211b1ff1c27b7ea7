/* Machine files: any bytes are a machine whose figures lie within bounds, or a refusal. */
#include "fuzz/fuzz.h"
#include "machine/machine.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cvy_machine machine = {.name = "untouched"};
    cvy_status status = cvy_machine_load(fuzz_put("machine.yaml", data, size), &machine);
    if (status != CVY_OK) {
        FUZZ_REQUIRE(strcmp(machine.name, "untouched") == 0);
        fuzz_check_refusal(status, CVY_ERR_INPUT);
        return 0;
    }
    FUZZ_REQUIRE(machine.name[0] && machine.device.cores >= 1 && machine.device.memory_bytes >= 0);
    FUZZ_REQUIRE(cvy_device_block(&machine.device) == 8 || cvy_device_block(&machine.device) == 16);
    return 0;
}
