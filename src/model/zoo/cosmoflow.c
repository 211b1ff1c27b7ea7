/*
 * CosmoFlow: cosmological parameters from volumes of matter density (Mathuriya et al., "CosmoFlow: using deep learning
 * to learn the universe at scale", SC18, arXiv:1808.04728). Stages of a 3x3x3 convolution, a rectifier and an average
 * pooling that halves; then three dense layers, and the squared error.
 *
 * At 128 and above there are five stages of 16, 32, 64, 128, 256 filters. A smaller volume has log2(size) - 2 of them,
 * of its shortest axis, rounded down, at least one: four positions an axis are left, 32 gives 16, 32, 64 filters.
 *
 * `layers: abci` is another list, that of volumes of 512 on the machine ABCI (Kahira et al., "An oracle for guiding
 * large-scale model/hybrid parallel training of convolutional neural networks", HPDC 2021): seven convolutions without
 * padding, of which the third strides by 2, and dense layers of 2048 and 256. Smaller volumes cannot afford that
 * stride; without it all weights but the first dense layer's have the same shapes, at 256 those as well.
 */
#include <stdio.h>

#include "base/checked.h"
#include "model/zoo/zoo.h"

typedef struct cosmoflow_options {
    cvy_axes size;
    int64_t channels, outputs;
    double dropout;
    int layers;
} cosmoflow_options;

enum { LAYERS_STAGES, LAYERS_ABCI };
static const char *const lists[] = {[LAYERS_STAGES] = "stages", [LAYERS_ABCI] = "abci", NULL};

/*
 * Of the list of ABCI: from where on its stride leaves the last windows something, and without it. Backwards from two
 * positions: 2 4 5 10 11 22 24 48, then 97 194 196 392 394 with the stride and 50 100 102 204 206 without.
 */
enum { MOST_STAGES = 5, LEAST_STRIDED = 394, LEAST_ABCI = 206 };

static const cvy_field fields[] = {
    {.name = "size", .type = CVY_FIELD_AXES, .offset = offsetof(cosmoflow_options, size), .value = 32, .minimum = 4,
     .maximum = 512, .help = "depth, height and width of a volume, voxels"},
    {.name = "channels", .type = CVY_FIELD_INT, .offset = offsetof(cosmoflow_options, channels), .value = 4,
     .minimum = 1, .maximum = CVY_MAX_CHANNELS, .help = "channels of a volume"},
    {.name = "outputs", .type = CVY_FIELD_INT, .offset = offsetof(cosmoflow_options, outputs), .value = 4,
     .minimum = 1, .maximum = CVY_MAX_CLASSES, .help = "parameters to predict"},
    {.name = "dropout", .type = CVY_FIELD_REAL, .offset = offsetof(cosmoflow_options, dropout), .value = 0,
     .minimum = 0, .maximum = 0.99, .help = "share dropped after each hidden dense layer; 0: none"},
    {.name = "layers", .type = CVY_FIELD_CHOICE, .offset = offsetof(cosmoflow_options, layers),
     .value = LAYERS_STAGES, .choices = lists, .help = "stages by the size, or ABCI's list, for 206 and above"},
    {0},
};

static int64_t shortest(const cvy_axes *size)
{
    int64_t least = size->value[0];
    for (int i = 1; i < size->count; i++) {
        least = cvy_min_i64(least, size->value[i]);
    }
    return least;
}

static int count_stages(int64_t least)
{
    int stages = 1;
    while (stages < MOST_STAGES && least >= INT64_C(8) << stages) {
        stages++;
    }
    return stages;
}

typedef struct convolution {
    int filters, kernel, stride, padding;
} convolution;

/* Convolution, rectifier and pooling: "convN", "reluN", "poolN". */
static cvy_status append_stage(cvy_model *model, int number, convolution c, bool pooled, int *at)
{
    char name[16];
    snprintf(name, sizeof name, "conv%d", number);
    CVY_TRY(cvy_model_append(model, "conv", name, at,
                             "filters: %d, kernel: %d, stride: %d, padding: %d, bias-init: zero", c.filters, c.kernel,
                             c.stride, c.padding));
    snprintf(name, sizeof name, "relu%d", number);
    CVY_TRY(cvy_model_append(model, "relu", name, at, " "));
    snprintf(name, sizeof name, "pool%d", number);
    return pooled ? cvy_model_append(model, "average-pool", name, at, "kernel: 2") : CVY_OK;
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

static cvy_status append_stages(cvy_model *model, int64_t least, int *at)
{
    for (int stage = 0; stage < count_stages(least); stage++) {
        CVY_TRY(append_stage(model, stage + 1, (convolution){16 << stage, 3, 1, 1}, true, at));
    }
    return CVY_OK;
}

static cvy_status append_abci(cvy_model *model, int64_t least, int *at)
{
    const convolution list[] = {{16, 3, 1, 0},  {32, 3, 1, 0},  {64, 3, least < LEAST_STRIDED ? 1 : 2, 0},
                                {128, 3, 1, 0}, {256, 2, 1, 0}, {256, 2, 1, 0},
                                {128, 2, 1, 0}};
    enum { COUNT = sizeof list / sizeof list[0] };
    CVY_REQUIRE(least >= LEAST_ABCI, CVY_ERR_INPUT, "size: found %d, expected at least %d with layers=abci",
                (int)least, (int)LEAST_ABCI);
    for (int i = 0; i < COUNT; i++) {
        CVY_TRY(append_stage(model, i + 1, list[i], i + 1 < COUNT, at));
    }
    return CVY_OK;
}

static cvy_status add_layers(cvy_model *model, const cosmoflow_options *options)
{
    int at = 0;
    int64_t least = shortest(&options->size);
    bool abci = options->layers == LAYERS_ABCI;
    CVY_TRY(abci ? append_abci(model, least, &at) : append_stages(model, least, &at));
    CVY_TRY(cvy_model_append(model, "flatten", "flatten", &at, " "));
    CVY_TRY(append_hidden(model, 1, abci ? 2048 : 128, options->dropout, &at));
    CVY_TRY(append_hidden(model, 2, abci ? 256 : 64, options->dropout, &at));
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
