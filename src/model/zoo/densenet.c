/*
 * DenseNet-121 (Huang et al., "Densely connected convolutional networks", arXiv:1608.06993) with torchvision's module
 * paths: growth 32, bottlenecks of 128, blocks of 6, 12, 24, 16. 7,978,856 parameters.
 *
 * Each dense layer takes everything before it in its block. Joining what it made to what it took gives the next layer
 * its input, channel for channel that of one concat over all.
 */
#include <stdio.h>

#include "model/zoo/zoo.h"

typedef struct densenet_options {
    cvy_image_options image;
} densenet_options;

enum { GROWTH = 32, BOTTLENECK = 4 * GROWTH, STEM = 64 };

/* Below 32 the last transition would have no four positions to take the mean of. */
static const cvy_field fields[] = {CVY_IMAGE_FIELDS(densenet_options, 224, 32, 3, 1000), {0}};

/* Append a layer of the features: "features.PATH". */
static cvy_status append(cvy_model *model, const char *kind, const char *path, const char *options, int *at)
{
    char name[80];
    snprintf(name, sizeof name, "features.%s", path);
    return cvy_model_append(model, kind, name, at, "%s", options);
}

/* Norm, rectifier and convolution, in this order: "PATHnormN", "PATHreluN", "PATHconvN". */
static cvy_status append_unit(cvy_model *model, const char *path, const char *number, const char *conv, int *at)
{
    char name[64];
    snprintf(name, sizeof name, "%snorm%s", path, number);
    CVY_TRY(append(model, "batch-norm", name, " ", at));
    snprintf(name, sizeof name, "%srelu%s", path, number);
    CVY_TRY(append(model, "relu", name, " ", at));
    snprintf(name, sizeof name, "%sconv%s", path, number);
    return append(model, "conv", name, conv, at);
}

static cvy_status append_dense_layer(cvy_model *model, int block, int layer, int *at)
{
    char path[48], conv[64], name[64];
    int part[2] = {*at, *at};
    snprintf(path, sizeof path, "denseblock%d.denselayer%d.", block, layer);
    snprintf(conv, sizeof conv, "filters: %d, kernel: 1, bias: no", BOTTLENECK);
    CVY_TRY(append_unit(model, path, "1", conv, &part[1]));
    snprintf(conv, sizeof conv, "filters: %d, kernel: 3, padding: 1, bias: no", GROWTH);
    CVY_TRY(append_unit(model, path, "2", conv, &part[1]));
    snprintf(name, sizeof name, "features.%sconcat", path);
    return cvy_model_append_concat(model, name, part, 2, at);
}

/* Half of the channels, half of each axis. */
static cvy_status append_transition(cvy_model *model, int block, int channels, int *at)
{
    char path[32], conv[64], name[48];
    snprintf(path, sizeof path, "transition%d.", block);
    snprintf(conv, sizeof conv, "filters: %d, kernel: 1, bias: no", channels / 2);
    CVY_TRY(append_unit(model, path, "", conv, at));
    snprintf(name, sizeof name, "%spool", path);
    return append(model, "average-pool", name, "kernel: 2", at);
}

static cvy_status append_blocks(cvy_model *model, int *at)
{
    static const int layers[4] = {6, 12, 24, 16};
    int channels = STEM;
    for (int block = 1; block <= 4; block++) {
        for (int layer = 1; layer <= layers[block - 1]; layer++) {
            CVY_TRY(append_dense_layer(model, block, layer, at));
            channels += GROWTH;
        }
        if (block < 4) {
            CVY_TRY(append_transition(model, block, channels, at));
            channels /= 2;
        }
    }
    return CVY_OK;
}

static cvy_status add_layers(cvy_model *model, int64_t classes)
{
    int at = 0;
    CVY_TRY(append(model, "conv", "conv0", "filters: 64, kernel: 7, stride: 2, padding: 3, bias: no", &at));
    CVY_TRY(append(model, "batch-norm", "norm0", " ", &at));
    CVY_TRY(append(model, "relu", "relu0", " ", &at));
    CVY_TRY(append(model, "max-pool", "pool0", "kernel: 3, stride: 2, padding: 1", &at));
    CVY_TRY(append_blocks(model, &at));
    CVY_TRY(append(model, "batch-norm", "norm5", " ", &at));
    CVY_TRY(cvy_model_append(model, "relu", "relu", &at, " "));
    CVY_TRY(cvy_model_append(model, "global-pool", "avgpool", &at, " "));
    CVY_TRY(cvy_model_append(model, "flatten", "flatten", &at, " "));
    CVY_TRY(cvy_model_append(model, "dense", "classifier", &at, "outputs: %lld, bias-init: zero",
                             (long long)classes));
    return cvy_model_append(model, "softmax-cross-entropy", "loss", &at, " ");
}

static cvy_status build(const char *name, const void *options, cvy_model **model_out)
{
    const densenet_options *chosen = options;
    cvy_model *model = NULL;
    CVY_TRY(cvy_zoo_start(name, chosen->image.channels, &chosen->image.size, 2, &model));
    return cvy_zoo_end(add_layers(model, chosen->image.classes), model, model_out);
}

const cvy_zoo_entry cvy_zoo_densenet121 = {
    .name = "densenet121",
    .help = "DenseNet-121, torchvision's: 7,978,856 parameters",
    .fields = fields,
    .options_bytes = sizeof(densenet_options),
    .build = build,
};
