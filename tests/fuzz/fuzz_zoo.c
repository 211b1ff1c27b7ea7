/* Models by name, as options give them: any text without a path is a model of the zoo or a refusal. */
#include "fuzz/fuzz.h"
#include "model/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[256];
    cvy_model *model = NULL;
    size_t length = size < sizeof text ? size : sizeof text - 1;
    memcpy(text, data, length);
    text[length] = '\0';
    if (strchr(text, '/') || strstr(text, ".y")) { /* a file */
        return 0;
    }
    cvy_status status = cvy_model_open(text, &model);
    if (status != CVY_OK) {
        FUZZ_REQUIRE(!model);
        fuzz_check_words(status, CVY_ERR_INPUT);
        return 0;
    }
    FUZZ_REQUIRE(cvy_model_parameters(model) >= 0 && cvy_model_forward_flop(model) >= 0);
    cvy_model_destroy(&model);
    return 0;
}
