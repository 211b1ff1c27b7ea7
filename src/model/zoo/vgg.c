/*
 * VGG (Simonyan and Zisserman, "Very deep convolutional networks for large-scale image recognition", arXiv:1409.1556),
 * configurations A, B, D, E without batch norm, with torchvision's module paths and initialisation.
 */
#include <stdbool.h>
#include <stdio.h>

#include "model/zoo/zoo.h"

typedef struct vgg_options {
    cvy_image_options image;
    double dropout;
    int64_t hidden;
    bool ceil_mode, adaptive_pool;
} vgg_options;

/* Five poolings halve; below 32 nothing is left. */
static const cvy_field fields[] = {
    CVY_IMAGE_FIELDS(vgg_options, 224, 32, 3, 1000),
    {.name = "dropout", .type = CVY_FIELD_REAL, .offset = offsetof(vgg_options, dropout), .value = 0.5, .minimum = 0,
     .maximum = 0.99, .help = "share that the dropouts behind the dense layers drop"},
    {.name = "hidden", .type = CVY_FIELD_INT, .offset = offsetof(vgg_options, hidden), .value = 4096, .minimum = 1,
     .maximum = CVY_MAX_CHANNELS, .help = "outputs of the two dense layers before the last"},
    {.name = "ceil-mode", .type = CVY_FIELD_BOOL, .offset = offsetof(vgg_options, ceil_mode), .value = 0,
     .help = "poolings round their extents up, as Caffe's and Chainer's do"},
    {.name = "adaptive-pool", .type = CVY_FIELD_BOOL, .offset = offsetof(vgg_options, adaptive_pool), .value = 1,
     .help = "pool to 7x7 before the dense layers, as torchvision; else they take what the size leaves"},
    {0},
};

/* Convolutions of each of the five stages, of 64, 128, 256, 512, 512 filters. */
typedef struct variant {
    int convolutions[5];
} variant;

/* torchvision counts modules: "features.0" is the first convolution, "features.1" its relu. */
static cvy_status append_feature(cvy_model *model, const char *kind, int *module, int *at, const char *options)
{
    char name[32];
    snprintf(name, sizeof name, "features.%d", (*module)++);
    return cvy_model_append(model, kind, name, at, "%s", options);
}

static cvy_status add_features(cvy_model *model, const variant *v, bool ceil_mode, int *at)
{
    static const int filters[5] = {64, 128, 256, 512, 512};
    char conv[64];
    int module = 0;
    for (int stage = 0; stage < 5; stage++) {
        snprintf(conv, sizeof conv, "filters: %d, kernel: 3, padding: 1, bias-init: zero", filters[stage]);
        for (int i = 0; i < v->convolutions[stage]; i++) {
            CVY_TRY(append_feature(model, "conv", &module, at, conv));
            CVY_TRY(append_feature(model, "relu", &module, at, " "));
        }
        CVY_TRY(append_feature(model, "max-pool", &module, at, ceil_mode ? "kernel: 2, ceil-mode: yes" : "kernel: 2"));
    }
    return CVY_OK;
}

#define DENSE "init: normal, init-std: 0.01, bias-init: zero, outputs: "

static cvy_status add_classifier(cvy_model *model, const vgg_options *options, int *at)
{
    long long hidden = options->hidden;
    if (options->adaptive_pool) {
        CVY_TRY(cvy_model_append(model, "adaptive-pool", "avgpool", at, "output: 7"));
    }
    CVY_TRY(cvy_model_append(model, "flatten", "flatten", at, " "));
    CVY_TRY(cvy_model_append(model, "dense", "classifier.0", at, DENSE "%lld", hidden));
    CVY_TRY(cvy_model_append(model, "relu", "classifier.1", at, " "));
    CVY_TRY(cvy_model_append(model, "dropout", "classifier.2", at, "probability: %g", options->dropout));
    CVY_TRY(cvy_model_append(model, "dense", "classifier.3", at, DENSE "%lld", hidden));
    CVY_TRY(cvy_model_append(model, "relu", "classifier.4", at, " "));
    CVY_TRY(cvy_model_append(model, "dropout", "classifier.5", at, "probability: %g", options->dropout));
    CVY_TRY(cvy_model_append(model, "dense", "classifier.6", at, DENSE "%lld", (long long)options->image.classes));
    return cvy_model_append(model, "softmax-cross-entropy", "loss", at, " ");
}

static cvy_status build(const char *name, const void *options, const variant *v, cvy_model **model_out)
{
    const vgg_options *chosen = options;
    cvy_model *model = NULL;
    int at = 0;
    CVY_TRY(cvy_zoo_start(name, chosen->image.channels, &chosen->image.size, 2, &model));
    cvy_status status = add_features(model, v, chosen->ceil_mode, &at);
    return cvy_zoo_end(status == CVY_OK ? add_classifier(model, chosen, &at) : status, model, model_out);
}

/* A zoo entry: its symbol and name, a line of help, and what makes it. */
#define VGG(symbol, zoo_help, ...)                                                                 \
    static cvy_status build_##symbol(const char *name, const void *options, cvy_model **model_out) \
    {                                                                                              \
        static const variant v = __VA_ARGS__;                                                      \
        return build(name, options, &v, model_out);                                                \
    }                                                                                              \
    const cvy_zoo_entry cvy_zoo_##symbol = {.name = #symbol,                                       \
                                            .help = (zoo_help),                                    \
                                            .fields = fields,                                      \
                                            .options_bytes = sizeof(vgg_options),                  \
                                            .build = build_##symbol}

VGG(vgg11, "VGG-11, torchvision's: 132,863,336 parameters", {{1, 1, 2, 2, 2}});
VGG(vgg13, "VGG-13, torchvision's: 133,047,848 parameters", {{2, 2, 2, 2, 2}});
VGG(vgg16, "VGG-16, torchvision's: 138,357,544 parameters", {{2, 2, 3, 3, 3}});
VGG(vgg19, "VGG-19, torchvision's: 143,667,240 parameters", {{2, 2, 4, 4, 4}});
