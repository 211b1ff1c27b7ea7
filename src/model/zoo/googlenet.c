/*
 * GoogLeNet (Szegedy et al., "Going deeper with convolutions", arXiv:1409.4842) as torchvision has it: batch norms, no
 * auxiliary classifiers, and 3x3 convolutions in the third branch where the paper has 5x5. Names are torchvision's
 * module paths. 6,624,904 parameters.
 */
#include <stdio.h>

#include "model/zoo/zoo.h"

typedef struct googlenet_options {
    cvy_image_options image;
    double dropout;
} googlenet_options;

/* Below 16 the poolings leave windows of padding alone. */
static const cvy_field fields[] = {
    CVY_IMAGE_FIELDS(googlenet_options, 224, 16, 3, 1000),
    {.name = "dropout", .type = CVY_FIELD_REAL, .offset = offsetof(googlenet_options, dropout), .value = 0.2,
     .minimum = 0, .maximum = 0.99, .help = "before the dense layer; 0: no dropout layer"},
    {0},
};

/* Filters of an inception module: of its four branches, the second and third after a reduction. */
typedef struct inception {
    const char *name;
    int ones, reduce3, threes, reduce5, fives, pooled;
    const char *pool; /* a pooling behind it */
    int kernel;
} inception;

static const inception modules[] = {
    {"inception3a", 64, 96, 128, 16, 32, 32, NULL, 0},
    {"inception3b", 128, 128, 192, 32, 96, 64, "maxpool3", 3},
    {"inception4a", 192, 96, 208, 16, 48, 64, NULL, 0},
    {"inception4b", 160, 112, 224, 24, 64, 64, NULL, 0},
    {"inception4c", 128, 128, 256, 24, 64, 64, NULL, 0},
    {"inception4d", 112, 144, 288, 32, 64, 64, NULL, 0},
    {"inception4e", 256, 160, 320, 32, 128, 128, "maxpool4", 2},
    {"inception5a", 256, 160, 320, 32, 128, 128, NULL, 0},
    {"inception5b", 384, 192, 384, 48, 128, 128, NULL, 0},
};

#define HALVE "kernel: %d, stride: 2, ceil-mode: yes"

/* A convolution without bias, its batch norm and rectifier. */
static cvy_status append_conv(cvy_model *model, const char *path, int filters, int kernel, int *at)
{
    char name[64];
    int stride = kernel == 7 ? 2 : 1;
    snprintf(name, sizeof name, "%s.conv", path);
    CVY_TRY(cvy_model_append(model, "conv", name, at,
                             "filters: %d, kernel: %d, stride: %d, padding: %d, bias: no, init: normal", filters,
                             kernel, stride, kernel / 2));
    snprintf(name, sizeof name, "%s.bn", path);
    CVY_TRY(cvy_model_append(model, "batch-norm", name, at, "epsilon: 0.001"));
    snprintf(name, sizeof name, "%s.relu", path);
    return cvy_model_append(model, "relu", name, at, " ");
}

/* A branch of two convolutions: "PATH.0" of 1x1, "PATH.1" of 3x3. */
static cvy_status append_pair(cvy_model *model, const char *path, int reduce, int filters, int *at)
{
    char name[64];
    snprintf(name, sizeof name, "%s.0", path);
    CVY_TRY(append_conv(model, name, reduce, 1, at));
    snprintf(name, sizeof name, "%s.1", path);
    return append_conv(model, name, filters, 3, at);
}

static cvy_status append_pooled(cvy_model *model, const char *path, int filters, int *at)
{
    char name[64];
    snprintf(name, sizeof name, "%s.0", path);
    CVY_TRY(cvy_model_append(model, "max-pool", name, at, "kernel: 3, stride: 1, padding: 1"));
    snprintf(name, sizeof name, "%s.1", path);
    return append_conv(model, name, filters, 1, at);
}

static cvy_status append_inception(cvy_model *model, const inception *module, int *at)
{
    char path[4][40], name[48];
    int end[4] = {*at, *at, *at, *at};
    for (int i = 0; i < 4; i++) {
        snprintf(path[i], sizeof path[i], "%s.branch%d", module->name, i + 1);
    }
    CVY_TRY(append_conv(model, path[0], module->ones, 1, &end[0]));
    CVY_TRY(append_pair(model, path[1], module->reduce3, module->threes, &end[1]));
    CVY_TRY(append_pair(model, path[2], module->reduce5, module->fives, &end[2]));
    CVY_TRY(append_pooled(model, path[3], module->pooled, &end[3]));
    snprintf(name, sizeof name, "%s.concat", module->name);
    CVY_TRY(cvy_model_append_concat(model, name, end, 4, at));
    return module->pool ? cvy_model_append(model, "max-pool", module->pool, at, HALVE, module->kernel) : CVY_OK;
}

static cvy_status add_layers(cvy_model *model, const googlenet_options *options)
{
    int at = 0;
    CVY_TRY(append_conv(model, "conv1", 64, 7, &at));
    CVY_TRY(cvy_model_append(model, "max-pool", "maxpool1", &at, HALVE, 3));
    CVY_TRY(append_conv(model, "conv2", 64, 1, &at));
    CVY_TRY(append_conv(model, "conv3", 192, 3, &at));
    CVY_TRY(cvy_model_append(model, "max-pool", "maxpool2", &at, HALVE, 3));
    for (size_t i = 0; i < sizeof modules / sizeof modules[0]; i++) {
        CVY_TRY(append_inception(model, &modules[i], &at));
    }
    CVY_TRY(cvy_model_append(model, "global-pool", "avgpool", &at, " "));
    CVY_TRY(cvy_model_append(model, "flatten", "flatten", &at, " "));
    if (options->dropout > 0) {
        CVY_TRY(cvy_model_append(model, "dropout", "dropout", &at, "probability: %.17g", options->dropout));
    }
    CVY_TRY(cvy_model_append(model, "dense", "fc", &at, "outputs: %lld, init: normal",
                             (long long)options->image.classes));
    return cvy_model_append(model, "softmax-cross-entropy", "loss", &at, " ");
}

static cvy_status build(const char *name, const void *options, cvy_model **model_out)
{
    const googlenet_options *chosen = options;
    cvy_model *model = NULL;
    CVY_TRY(cvy_zoo_start(name, chosen->image.channels, &chosen->image.size, 2, &model));
    return cvy_zoo_end(add_layers(model, chosen), model, model_out);
}

const cvy_zoo_entry cvy_zoo_googlenet = {
    .name = "googlenet",
    .help = "GoogLeNet, torchvision's, without auxiliary classifiers: 6,624,904 parameters",
    .fields = fields,
    .options_bytes = sizeof(googlenet_options),
    .build = build,
};
