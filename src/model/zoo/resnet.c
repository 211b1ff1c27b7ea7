/*
 * ResNet-18 and ResNet-50 (He et al., "Deep residual learning for image recognition", arXiv:1512.03385), with the
 * module paths, defaults and initialisation of torchvision: parameters are named as in its state_dict. Version 1 halves
 * in the first 1x1 convolution of a bottleneck, as the paper does, 1.5 in the 3x3, as torchvision does. Layers without
 * parameters have no state_dict keys, so their names ("layer1.0.relu1", "layer1.0.add") are free.
 */
#include <stdio.h>

#include "model/zoo/zoo.h"

typedef struct resnet_options {
    cvy_image_options image;
    int version;
} resnet_options;

enum { VERSION_1_5, VERSION_1 };
static const char *const versions[] = {[VERSION_1_5] = "1.5", [VERSION_1] = "1", NULL};

/* Below 8 the stem leaves one position, and 3x3 windows would see little but padding. */
static const cvy_field fields_18[] = {CVY_IMAGE_FIELDS(resnet_options, 224, 8, 3, 1000), {0}};
static const cvy_field fields_50[] = {
    CVY_IMAGE_FIELDS(resnet_options, 224, 8, 3, 1000),
    {.name = "version", .type = CVY_FIELD_CHOICE, .offset = offsetof(resnet_options, version), .value = VERSION_1_5,
     .choices = versions, .help = "1 halves in a bottleneck's first 1x1 convolution, 1.5 in its 3x3"},
    {0},
};

/* One residual block under construction. */
typedef struct block {
    cvy_model *model;
    char path[32];        /* "layer1.0" */
    int width;            /* filters within */
    int outputs;          /* channels that come out */
    int stride;
    bool project;         /* the shortcut needs a convolution */
    bool bottleneck;
    int version;
} block;

typedef struct convolution {
    int filters, kernel, stride;
} convolution;

/* Append a convolution without bias and its batch norm: "PATH.CONV" and "PATH.NORM". */
static cvy_status append_conv_norm(const block *b, const char *conv, const char *norm, convolution c, int *at)
{
    char name[64];
    snprintf(name, sizeof name, "%s.%s", b->path, conv);
    CVY_TRY(cvy_model_append(b->model, "conv", name, at, "filters: %d, kernel: %d, stride: %d, padding: %d, bias: no",
                             c.filters, c.kernel, c.stride, c.kernel / 2));
    snprintf(name, sizeof name, "%s.%s", b->path, norm);
    return cvy_model_append(b->model, "batch-norm", name, at, " ");
}

static cvy_status append_relu(const block *b, const char *relu, int *at)
{
    char name[64];
    snprintf(name, sizeof name, "%s.%s", b->path, relu);
    return cvy_model_append(b->model, "relu", name, at, " ");
}

static cvy_status append_basic(const block *b, int *at)
{
    CVY_TRY(append_conv_norm(b, "conv1", "bn1", (convolution){b->width, 3, b->stride}, at));
    CVY_TRY(append_relu(b, "relu1", at));
    return append_conv_norm(b, "conv2", "bn2", (convolution){b->outputs, 3, 1}, at);
}

static cvy_status append_bottleneck(const block *b, int *at)
{
    bool first_halves = b->version == VERSION_1;
    CVY_TRY(append_conv_norm(b, "conv1", "bn1", (convolution){b->width, 1, first_halves ? b->stride : 1}, at));
    CVY_TRY(append_relu(b, "relu1", at));
    CVY_TRY(append_conv_norm(b, "conv2", "bn2", (convolution){b->width, 3, first_halves ? 1 : b->stride}, at));
    CVY_TRY(append_relu(b, "relu2", at));
    return append_conv_norm(b, "conv3", "bn3", (convolution){b->outputs, 1, 1}, at);
}

static cvy_status append_block(const block *b, int *at)
{
    char name[64];
    int shortcut = *at;
    CVY_TRY(b->bottleneck ? append_bottleneck(b, at) : append_basic(b, at));
    if (b->project) {
        convolution fit = {b->outputs, 1, b->stride};
        CVY_TRY(append_conv_norm(b, "downsample.0", "downsample.1", fit, &shortcut));
    }
    snprintf(name, sizeof name, "%s.add", b->path);
    CVY_TRY(cvy_model_append_add(b->model, name, *at, shortcut, at));
    return append_relu(b, "relu", at);
}

/* Four stages of 64, 128, 256, 512 filters within; every stage but the first halves. */
static cvy_status append_stages(cvy_model *model, const int blocks[4], bool bottleneck, int version, int *at)
{
    int channels = 64;
    for (int stage = 0; stage < 4; stage++) {
        int width = 64 << stage;
        for (int i = 0; i < blocks[stage]; i++) {
            block b = {.model = model, .width = width, .outputs = bottleneck ? 4 * width : width,
                       .stride = stage > 0 && i == 0 ? 2 : 1, .bottleneck = bottleneck, .version = version};
            b.project = b.stride != 1 || channels != b.outputs;
            snprintf(b.path, sizeof b.path, "layer%d.%d", stage + 1, i);
            CVY_TRY(append_block(&b, at));
            channels = b.outputs;
        }
    }
    return CVY_OK;
}

static cvy_status add_layers(cvy_model *model, const resnet_options *options, const int blocks[4], bool bottleneck)
{
    int at = 0;
    CVY_TRY(cvy_model_append(model, "conv", "conv1", &at, "filters: 64, kernel: 7, stride: 2, padding: 3, bias: no"));
    CVY_TRY(cvy_model_append(model, "batch-norm", "bn1", &at, " "));
    CVY_TRY(cvy_model_append(model, "relu", "relu", &at, " "));
    CVY_TRY(cvy_model_append(model, "max-pool", "maxpool", &at, "kernel: 3, stride: 2, padding: 1"));
    CVY_TRY(append_stages(model, blocks, bottleneck, options->version, &at));
    CVY_TRY(cvy_model_append(model, "global-pool", "avgpool", &at, " "));
    CVY_TRY(cvy_model_append(model, "flatten", "flatten", &at, " "));
    CVY_TRY(cvy_model_append(model, "dense", "fc", &at, "outputs: %lld", (long long)options->image.classes));
    return cvy_model_append(model, "softmax-cross-entropy", "loss", &at, " ");
}

static cvy_status build(const char *name, const resnet_options *options, const int blocks[4], bool bottleneck,
                        cvy_model **model_out)
{
    cvy_model *model = NULL;
    CVY_TRY(cvy_zoo_start(name, options->image.channels, &options->image.size, 2, &model));
    return cvy_zoo_end(add_layers(model, options, blocks, bottleneck), model, model_out);
}

static cvy_status build_18(const char *name, const void *options, cvy_model **model_out)
{
    static const int blocks[4] = {2, 2, 2, 2};
    return build(name, options, blocks, false, model_out);
}

static cvy_status build_50(const char *name, const void *options, cvy_model **model_out)
{
    static const int blocks[4] = {3, 4, 6, 3};
    return build(name, options, blocks, true, model_out);
}

const cvy_zoo_entry cvy_zoo_resnet18 = {
    .name = "resnet18",
    .help = "ResNet-18, torchvision's: 11,689,512 parameters",
    .fields = fields_18,
    .options_bytes = sizeof(resnet_options),
    .build = build_18,
};

const cvy_zoo_entry cvy_zoo_resnet50 = {
    .name = "resnet50",
    .help = "ResNet-50, torchvision's: 25,557,032 parameters",
    .fields = fields_50,
    .options_bytes = sizeof(resnet_options),
    .build = build_50,
};
