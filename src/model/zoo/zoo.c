/* Begin and end of every zoo model, and parts that several have. */
#include <stdio.h>

#include "model/zoo/zoo.h"

enum { NAME_TEXT = 80 };

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

cvy_status cvy_zoo_append_unit(cvy_model *model, const char *path, cvy_zoo_unit unit, int *at)
{
    char name[NAME_TEXT];
    snprintf(name, sizeof name, "%s.0", path);
    CVY_TRY(cvy_model_append(model, "conv", name, at,
                             "filters: %d, kernel: %d, stride: %d, padding: %d, groups: %d, bias: no", unit.filters,
                             unit.kernel, unit.stride, unit.kernel / 2, unit.groups));
    snprintf(name, sizeof name, "%s.1", path);
    CVY_TRY(cvy_model_append(model, "batch-norm", name, at, " "));
    snprintf(name, sizeof name, "%s.2", path);
    return unit.activation ? cvy_model_append(model, unit.activation, name, at, " ") : CVY_OK;
}

cvy_status cvy_zoo_append_excitation(cvy_model *model, const char *path, int squeeze, const char *activation, int *at)
{
    long long channels = model->layer[*at].output.extent[1];
    char name[NAME_TEXT];
    int main = *at, gate = *at;
    snprintf(name, sizeof name, "%s.avgpool", path);
    CVY_TRY(cvy_model_append(model, "global-pool", name, &gate, " "));
    snprintf(name, sizeof name, "%s.fc1", path);
    CVY_TRY(cvy_model_append(model, "conv", name, &gate, "filters: %d, kernel: 1, bias-init: zero", squeeze));
    snprintf(name, sizeof name, "%s.activation", path);
    CVY_TRY(cvy_model_append(model, activation, name, &gate, " "));
    snprintf(name, sizeof name, "%s.fc2", path);
    CVY_TRY(cvy_model_append(model, "conv", name, &gate, "filters: %lld, kernel: 1, bias-init: zero", channels));
    snprintf(name, sizeof name, "%s.scale", path);
    CVY_TRY(cvy_model_append(model, "sigmoid", name, &gate, " "));
    snprintf(name, sizeof name, "%s.multiply", path);
    return cvy_model_append_multiply(model, name, main, gate, at);
}
