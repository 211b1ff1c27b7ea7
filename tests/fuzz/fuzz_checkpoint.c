/*
 * The record of a checkpoint, state.json. Its checksum would refuse nearly every input before it is looked at, so the
 * harness closes the text with the one that is right; as it came is what the first byte may ask for.
 */
#include <inttypes.h>
#include <xxhash.h>

#include "base/memory.h"
#include "fuzz/fuzz.h"
#include "runtime/checkpoint_record.h"

enum { TAIL_BYTES = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size) {
        return 0;
    }
    bool closed = data[0] != '0';
    size_t body = size - 1;
    char *text = malloc(body + TAIL_BYTES);
    FUZZ_REQUIRE(text);
    memcpy(text, data + 1, body);
    int tail = closed ? snprintf(text + body, TAIL_BYTES, ",\n  \"checksum\": \"%016" PRIx64 "\"\n}\n",
                                 (uint64_t)XXH3_64bits(text, body))
                      : 0;
    (void)fuzz_put("state.json", text, body + (size_t)tail);
    free(text);
    cvy_checkpoint_record record = {.position = {.step = -1}};
    cvy_status status = cvy_checkpoint_record_load(fuzz_folder(), &record);
    if (status == CVY_OK) {
        FUZZ_REQUIRE(record.position.step >= 0 && record.position.sample >= 0 && record.position.best_step >= -1);
        FUZZ_REQUIRE(record.file[CVY_CHECKPOINT_MODEL].present && record.file[CVY_CHECKPOINT_MODEL].bytes >= 0);
        status = cvy_checkpoint_verify(fuzz_folder(), &record); /* there is no file of tensors beside it */
    } else {
        FUZZ_REQUIRE(record.position.step == -1);
    }
    fuzz_check_refusal(status, CVY_ERR_CHECKPOINT);
    return 0;
}
