/* Begin and end of every zoo model. */
#include "model/zoo/zoo.h"

cvy_status cvy_zoo_start(const char *name, int64_t channels, const cvy_axes *size, int spatial, cvy_model **model_out)
{
    CVY_REQUIRE(size->count == 1 || size->count == spatial, CVY_ERR_INPUT, "size: found %d entries, expected 1 or %d",
                size->count, spatial);
    cvy_shape input = {.dims = 1 + spatial, .extent = {channels}};
    for (int i = 0; i < spatial; i++) {
        input.extent[1 + i] = size->value[size->count > 1 ? i : 0];
    }
    return cvy_model_create(name, &input, model_out);
}

cvy_status cvy_zoo_end(cvy_status status, cvy_model *model, cvy_model **model_out)
{
    status = status == CVY_OK ? cvy_model_finish(model) : status;
    if (status == CVY_OK) {
        *model_out = model;
    } else {
        cvy_model_destroy(&model);
    }
    return status;
}
