/* CIFAR: the first byte chooses the set of 10 or of 100 classes, the rest is the file of its test split. */
#include "fuzz/fuzz_data.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size) {
        return 0;
    }
    bool fine = data[0] & 1;
    (void)fuzz_put(fine ? "test.bin" : "test_batch.bin", data + 1, size - 1);
    fuzz_read_set(fine ? "cifar100" : "cifar10");
    return 0;
}
