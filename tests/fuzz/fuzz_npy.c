/* NPY: the input is x and y of the training split. */
#include "fuzz/fuzz_data.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *part[2];
    size_t bytes[2];
    fuzz_split(data, size, part, bytes);
    (void)fuzz_put("train_x.npy", part[0], bytes[0]);
    (void)fuzz_put("train_y.npy", part[1], bytes[1]);
    fuzz_read_set("npy");
    return 0;
}
