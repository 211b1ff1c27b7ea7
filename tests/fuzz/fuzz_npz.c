/* NPZ: the input is the archive of the training split. */
#include "fuzz/fuzz_data.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    (void)fuzz_put("train.npz", data, size);
    fuzz_read_set("npz");
    return 0;
}
