/*
 * CosmoFlow: cosmological parameters from volumes of matter density (Mathuriya et al., "CosmoFlow: using deep learning
 * to learn the universe at scale", SC18, arXiv:1808.04728). Stages of a 3x3x3 convolution, a rectifier and an average
 * pooling that halves; then three dense layers, and the squared error.
 *
 * At 128 and above there are five stages of 16, 32, 64, 128, 256 filters. A smaller volume has log2(size) - 2 of them,
 * of its shortest axis, rounded down, at least one: four positions an axis are left, 32 gives 16, 32, 64 filters.
 */
#include <stdio.h>

#include "base/checked.h"
#include "model/zoo/zoo.h"

typedef struct cosmoflow_options {
    cvy_axes size;
    int64_t channels, outputs;
    double dropout;
} cosmoflow_options;

enum { MOST_STAGES = 5 };

static const cvy_field fields[] = {
    {.name = "size", .type = CVY_FIELD_AXES, .offset = offsetof(cosmoflow_options, size), .value = 32, .minimum = 4,
     .maximum = 512, .help = "depth, height and width of a volume, voxels"},
    {.name = "channels", .type = CVY_FIELD_INT, .offset = offsetof(cosmoflow_options, channels), .value = 4,
     .minimum = 1, .maximum = CVY_MAX_CHANNELS, .help = "channels of a volume"},
    {.name = "outputs", .type = CVY_FIELD_INT, .offset = offsetof(cosmoflow_options, outputs), .value = 4,
     .minimum = 1, .maximum = CVY_MAX_CLASSES, .help = "parameters to predict"},
    {.name = "dropout", .type = CVY_FIELD_REAL, .offset = offsetof(cosmoflow_options, dropout), .value = 0,
     .minimum = 0, .maximum = 0.99, .help = "share dropped after each hidden dense layer; 0: none"},
    {0},
};

static int count_stages(const cvy_axes *size)
{
    int64_t least = size->value[0];
    for (int i = 1; i < size->count; i++) {
        least = cvy_min_i64(least, size->value[i]);
    }
    int stages = 1;
    while (stages < MOST_STAGES && least >= INT64_C(8) << stages) {
        stages++;
    }
    return stages;
}

static cvy_status append_stage(cvy_model *model, int stage, int *at)
{
    char name[16];
    snprintf(name, sizeof name, "conv%d", stage + 1);
    CVY_TRY(cvy_model_append(model, "conv", name, at, "filters: %d, kernel: 3, padding: 1, bias-init: zero",
                             16 << stage));
    snprintf(name, sizeof name, "relu%d", stage + 1);
    CVY_TRY(cvy_model_append(model, "relu", name, at, " "));
    snprintf(name, sizeof name, "pool%d", stage + 1);
    return cvy_model_append(model, "average-pool", name, at, "kernel: 2");
}

static cvy_status append_hidden(cvy_model *model, int number, int outputs, double dropout, int *at)
{
    char name[32];
    snprintf(name, sizeof name, "fc%d", number);
    CVY_TRY(cvy_model_append(model, "dense", name, at, "outputs: %d", outputs));
    snprintf(name, sizeof name, "fc%d-relu", number);
    CVY_TRY(cvy_model_append(model, "relu", name, at, " "));
    if (dropout > 0) {
        snprintf(name, sizeof name, "fc%d-dropout", number);
        CVY_TRY(cvy_model_append(model, "dropout", name, at, "probability: %.17g", dropout));
    }
    return CVY_OK;
}

static cvy_status add_layers(cvy_model *model, const cosmoflow_options *options)
{
    int at = 0, stages = count_stages(&options->size);
    for (int stage = 0; stage < stages; stage++) {
        CVY_TRY(append_stage(model, stage, &at));
    }
    CVY_TRY(cvy_model_append(model, "flatten", "flatten", &at, " "));
    CVY_TRY(append_hidden(model, 1, 128, options->dropout, &at));
    CVY_TRY(append_hidden(model, 2, 64, options->dropout, &at));
    CVY_TRY(cvy_model_append(model, "dense", "fc3", &at, "outputs: %lld", (long long)options->outputs));
    return cvy_model_append(model, "mean-squared-error", "loss", &at, " ");
}

static cvy_status build(const char *name, const void *options, cvy_model **model_out)
{
    const cosmoflow_options *chosen = options;
    cvy_model *model = NULL;
    CVY_TRY(cvy_zoo_start(name, chosen->channels, &chosen->size, 3, &model));
    return cvy_zoo_end(add_layers(model, chosen), model, model_out);
}

const cvy_zoo_entry cvy_zoo_cosmoflow = {
    .name = "cosmoflow",
    .help = "CosmoFlow in 3-D, by the size of the volume: 603,892 parameters at 32",
    .fields = fields,
    .options_bytes = sizeof(cosmoflow_options),
    .build = build,
};
