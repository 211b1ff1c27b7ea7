/*
 * Safetensors: whatever opens is read, tensor by tensor, in plain order and channels last; and given to a model of two
 * parameters, whose memory must be as it was where the file is refused.
 */
#include "base/memory.h"
#include "fuzz/fuzz.h"
#include "runtime/checkpoint.h"
#include "runtime/safetensors.h"

enum { MOST_ELEMENTS = 1 << 20 };

static void read_tensor(const cvy_safetensor *source, const char *path, cvy_dtype dtype, cvy_format format)
{
    cvy_tensor target = {.shape = source->shape, .dtype = dtype, .format = format};
    if (cvy_shape_elements(&source->shape) < 1 || cvy_shape_elements(&source->shape) > MOST_ELEMENTS) {
        FUZZ_REQUIRE(source->bytes >= 0);
        return;
    }
    void *memory = malloc((size_t)cvy_tensor_bytes(&target));
    FUZZ_REQUIRE(memory);
    cvy_status status = cvy_safetensor_read(source, path, &target, memory);
    if (status != CVY_OK) {
        fuzz_check_refusal(status, CVY_ERR_CHECKPOINT);
    }
    free(memory);
}

static void read_all(const char *path)
{
    cvy_safetensors file = {0};
    cvy_status status = cvy_safetensors_open(path, &file);
    if (status != CVY_OK) {
        FUZZ_REQUIRE(!file.count && !file.mapping);
        fuzz_check_refusal(status, CVY_ERR_CHECKPOINT);
        return;
    }
    for (int i = 0; i < file.count; i++) {
        const cvy_safetensor *tensor = &file.tensor[i];
        FUZZ_REQUIRE(cvy_safetensors_find(&file, tensor->name) == tensor);
        read_tensor(tensor, path, CVY_F64, CVY_FORMAT_PLAIN);
        read_tensor(tensor, path, CVY_F32, tensor->shape.dims == 4 ? CVY_FORMAT_CHANNELS_LAST : CVY_FORMAT_PLAIN);
    }
    cvy_safetensors_close(&file);
}

/* The parameters of a 1x1 convolution of 3 channels and 2 filters. */
static void load_weights(const char *path)
{
    float weight[6] = {1, 2, 3, 4, 5, 6}, bias[2] = {7, 8};
    cvy_state_tensor tensor[] = {
        {.name = "conv.weight", .shape = CVY_SHAPE(2, 3, 1, 1), .data = weight},
        {.name = "conv.bias", .shape = CVY_SHAPE(2), .data = bias},
    };
    for (int i = 0; i < 2; i++) {
        tensor[i].tensor = (cvy_tensor){.shape = tensor[i].shape, .dtype = CVY_F32, .format = CVY_FORMAT_PLAIN};
    }
    cvy_state state = {.count = 2, .tensor = tensor};
    cvy_status status = cvy_weights_load(path, &state);
    if (status != CVY_OK) {
        fuzz_check_refusal(status, CVY_ERR_CHECKPOINT);
        for (int i = 0; i < 8; i++) {
            FUZZ_REQUIRE((i < 6 ? weight[i] : bias[i - 6]) == (float)(i + 1));
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *path = fuzz_put("model.safetensors", data, size);
    read_all(path);
    load_weights(path);
    return 0;
}
