/* Tables of measured kernels: any bytes are a table whose times lie within bounds, or a refusal that names a line. */
#include "fuzz/fuzz.h"
#include "oracle/compute_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cvy_kernel_table table = {0};
    cvy_status status = cvy_kernel_table_load(fuzz_put("kernels.csv", data, size), CVY_PRECISION_FP32, &table);
    if (status != CVY_OK) {
        fuzz_check_refusal(status, CVY_ERR_INPUT);
    }
    FUZZ_REQUIRE(2 * table.entries <= table.capacity && table.entries <= (int64_t)size);
    int64_t found = 0;
    for (int64_t i = 0; i < table.capacity; i++) {
        const cvy_kernel_entry *entry = &table.entry[i];
        if (entry->time.seconds > 0.0) {
            FUZZ_REQUIRE(entry->time.seconds <= 1e6 && entry->time.error >= 0.0 && entry->time.error <= 10.0);
            FUZZ_REQUIRE(entry->roof.flop_per_s >= 1.0 && entry->roof.Bps >= 1.0);
            FUZZ_REQUIRE(cvy_kernel_table_find(&table, entry->key, entry->time.distance_bytes) == entry);
            found++;
        }
    }
    FUZZ_REQUIRE(found == table.entries);
    cvy_kernel_table_clear(&table);
    return 0;
}
