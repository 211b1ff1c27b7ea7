/*
 * MobileNetV2 (Sandler et al., "MobileNetV2: inverted residuals and linear bottlenecks", arXiv:1801.04381) with
 * torchvision's module paths and initialisation. 3,504,872 parameters.
 *
 * A block widens its channels by a 1x1 convolution, sees space by a depthwise 3x3 one, and narrows them without an
 * activation; where it keeps the shape its input is added.
 */
#include <stdio.h>

#include "model/zoo/zoo.h"

typedef struct mobilenet_options {
    cvy_image_options image;
    double dropout;
} mobilenet_options;

/* Below 8 the 3x3 windows would see little but padding. */
static const cvy_field fields[] = {
    CVY_IMAGE_FIELDS(mobilenet_options, 224, 8, 3, 1000),
    {.name = "dropout", .type = CVY_FIELD_REAL, .offset = offsetof(mobilenet_options, dropout), .value = 0.2,
     .minimum = 0, .maximum = 0.99, .help = "before the dense layer; 0: no dropout layer"},
    {0},
};

enum { STEM = 32, HEAD = 1280 };

/* Blocks of one width: the first of them strides. The paper's table 2. */
typedef struct stage {
    int expansion, outputs, blocks, stride;
} stage;

static const stage stages[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                               {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};

/*
 * Block "features.INDEX" from @p channels: "conv.0" widens, "conv.1" is depthwise, "conv.2" narrows, "conv.3" is its
 * norm; without the first where nothing is widened.
 */
static cvy_status append_block(cvy_model *model, int index, int channels, const stage *s, int stride, int *at)
{
    char name[48];
    int shortcut = *at, part = 0, width = channels * s->expansion;
    if (s->expansion > 1) {
        snprintf(name, sizeof name, "features.%d.conv.%d", index, part++);
        CVY_TRY(cvy_zoo_append_unit(model, name, (cvy_zoo_unit){width, 1, 1, 1, "relu6"}, at));
    }
    snprintf(name, sizeof name, "features.%d.conv.%d", index, part++);
    CVY_TRY(cvy_zoo_append_unit(model, name, (cvy_zoo_unit){width, 3, stride, width, "relu6"}, at));
    snprintf(name, sizeof name, "features.%d.conv.%d", index, part++);
    CVY_TRY(cvy_model_append(model, "conv", name, at, "filters: %d, kernel: 1, bias: no", s->outputs));
    snprintf(name, sizeof name, "features.%d.conv.%d", index, part);
    CVY_TRY(cvy_model_append(model, "batch-norm", name, at, " "));
    if (stride > 1 || channels != s->outputs) {
        return CVY_OK;
    }
    snprintf(name, sizeof name, "features.%d.add", index);
    return cvy_model_append_add(model, name, *at, shortcut, at);
}

static cvy_status append_features(cvy_model *model, int *at)
{
    char name[48];
    int index = 0, channels = STEM;
    CVY_TRY(cvy_zoo_append_unit(model, "features.0", (cvy_zoo_unit){STEM, 3, 2, 1, "relu6"}, at));
    for (size_t i = 0; i < sizeof stages / sizeof stages[0]; i++) {
        for (int k = 0; k < stages[i].blocks; k++) {
            CVY_TRY(append_block(model, ++index, channels, &stages[i], k ? 1 : stages[i].stride, at));
            channels = stages[i].outputs;
        }
    }
    snprintf(name, sizeof name, "features.%d", index + 1);
    return cvy_zoo_append_unit(model, name, (cvy_zoo_unit){HEAD, 1, 1, 1, "relu6"}, at);
}

static cvy_status add_layers(cvy_model *model, const mobilenet_options *options)
{
    int at = 0;
    CVY_TRY(append_features(model, &at));
    CVY_TRY(cvy_model_append(model, "global-pool", "avgpool", &at, " "));
    CVY_TRY(cvy_model_append(model, "flatten", "flatten", &at, " "));
    if (options->dropout > 0) {
        CVY_TRY(cvy_model_append(model, "dropout", "classifier.0", &at, "probability: %.17g", options->dropout));
    }
    CVY_TRY(cvy_model_append(model, "dense", "classifier.1", &at,
                             "outputs: %lld, init: normal, init-std: 0.01, bias-init: zero",
                             (long long)options->image.classes));
    return cvy_model_append(model, "softmax-cross-entropy", "loss", &at, " ");
}

static cvy_status build(const char *name, const void *options, cvy_model **model_out)
{
    const mobilenet_options *chosen = options;
    cvy_model *model = NULL;
    CVY_TRY(cvy_zoo_start(name, chosen->image.channels, &chosen->image.size, 2, &model));
    return cvy_zoo_end(add_layers(model, chosen), model, model_out);
}

const cvy_zoo_entry cvy_zoo_mobilenet_v2 = {
    .name = "mobilenet-v2",
    .help = "MobileNetV2, torchvision's: 3,504,872 parameters",
    .fields = fields,
    .options_bytes = sizeof(mobilenet_options),
    .build = build,
};
