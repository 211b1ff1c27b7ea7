/*
 * ResNets (He et al., "Deep residual learning for image recognition", arXiv:1512.03385) and ResNeXts (Xie et al.,
 * "Aggregated residual transformations for deep neural networks", arXiv:1611.05431), with the module paths, defaults
 * and initialisation of torchvision: parameters are named as in its state_dict. Version 1 halves in the first 1x1
 * convolution of a bottleneck, as the paper does, 1.5 in the 3x3, as torchvision does. Layers without parameters have
 * no state_dict keys, so their names ("layer1.0.relu1", "layer1.0.add") are free.
 *
 * SE-ResNet-50 (Hu, Shen, Sun, "Squeeze-and-excitation networks", arXiv:1709.01507) excites the channels of each branch
 * behind its last norm, through a 16th of them. torchvision has none; "layer1.0.se.fc1" is timm's name.
 */
#include <stdbool.h>
#include <stdio.h>

#include "model/zoo/zoo.h"

typedef struct resnet_options {
    cvy_image_options image;
    int version;
    bool ceil_mode;
    int64_t pool_padding;
} resnet_options;

enum { VERSION_1_5, VERSION_1 };
static const char *const versions[] = {[VERSION_1_5] = "1.5", [VERSION_1] = "1", NULL};

/* What the stem's pooling does at the edges. */
#define POOL_FIELDS                                                                                                \
    {.name = "ceil-mode", .type = CVY_FIELD_BOOL, .offset = offsetof(resnet_options, ceil_mode), .value = 0,       \
     .help = "the stem's pooling rounds its extents up, as Caffe's and Chainer's do"},                             \
    {.name = "pool-padding", .type = CVY_FIELD_INT, .offset = offsetof(resnet_options, pool_padding), .value = 1,  \
     .minimum = 0, .maximum = 1, .help = "of the stem's pooling; 0 in Caffe and Chainer"}

/* Below 8 the stem leaves one position, and 3x3 windows would see little but padding. */
static const cvy_field fields_basic[] = {CVY_IMAGE_FIELDS(resnet_options, 224, 8, 3, 1000), POOL_FIELDS, {0}};
static const cvy_field fields_bottleneck[] = {
    CVY_IMAGE_FIELDS(resnet_options, 224, 8, 3, 1000),
    POOL_FIELDS,
    {.name = "version", .type = CVY_FIELD_CHOICE, .offset = offsetof(resnet_options, version), .value = VERSION_1_5,
     .choices = versions, .help = "1 halves in a bottleneck's first 1x1 convolution, 1.5 in its 3x3"},
    {0},
};

/* A member of the family. */
typedef struct variant {
    int blocks[4];        /* in each stage */
    bool bottleneck;
    int groups;           /* of the 3x3 convolution of a bottleneck */
    int group_width;      /* filters of a group where a stage has 64; 64 with one group is ResNet */
    bool excite;          /* squeeze-excitation in each block */
} variant;

/* One residual block under construction. */
typedef struct block {
    cvy_model *model;
    char path[32];        /* "layer1.0" */
    int width;            /* filters within */
    int groups;
    int outputs;          /* channels that come out */
    int stride;
    bool project;         /* the shortcut needs a convolution */
    bool bottleneck;
    bool excite;
    int version;
} block;

enum { REDUCTION = 16 };  /* of an excitation, the paper's */

typedef struct convolution {
    int filters, kernel, stride, groups;
} convolution;

/* Append a convolution without bias and its batch norm: "PATH.CONV" and "PATH.NORM". */
static cvy_status append_conv_norm(const block *b, const char *conv, const char *norm, convolution c, int *at)
{
    char name[64];
    snprintf(name, sizeof name, "%s.%s", b->path, conv);
    CVY_TRY(cvy_model_append(b->model, "conv", name, at,
                             "filters: %d, kernel: %d, stride: %d, padding: %d, groups: %d, bias: no", c.filters,
                             c.kernel, c.stride, c.kernel / 2, c.groups));
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
    CVY_TRY(append_conv_norm(b, "conv1", "bn1", (convolution){b->width, 3, b->stride, 1}, at));
    CVY_TRY(append_relu(b, "relu1", at));
    return append_conv_norm(b, "conv2", "bn2", (convolution){b->outputs, 3, 1, 1}, at);
}

static cvy_status append_bottleneck(const block *b, int *at)
{
    bool first_halves = b->version == VERSION_1;
    CVY_TRY(append_conv_norm(b, "conv1", "bn1", (convolution){b->width, 1, first_halves ? b->stride : 1, 1}, at));
    CVY_TRY(append_relu(b, "relu1", at));
    convolution second = {b->width, 3, first_halves ? 1 : b->stride, b->groups};
    CVY_TRY(append_conv_norm(b, "conv2", "bn2", second, at));
    CVY_TRY(append_relu(b, "relu2", at));
    return append_conv_norm(b, "conv3", "bn3", (convolution){b->outputs, 1, 1, 1}, at);
}

static cvy_status append_block(const block *b, int *at)
{
    char name[64];
    int shortcut = *at;
    CVY_TRY(b->bottleneck ? append_bottleneck(b, at) : append_basic(b, at));
    if (b->project) {
        convolution fit = {b->outputs, 1, b->stride, 1};
        CVY_TRY(append_conv_norm(b, "downsample.0", "downsample.1", fit, &shortcut));
    }
    if (b->excite) {
        snprintf(name, sizeof name, "%s.se", b->path);
        CVY_TRY(cvy_zoo_append_excitation(b->model, name, b->outputs / REDUCTION, "relu", at));
    }
    snprintf(name, sizeof name, "%s.add", b->path);
    CVY_TRY(cvy_model_append_add(b->model, name, *at, shortcut, at));
    return append_relu(b, "relu", at);
}

/* Four stages of 64, 128, 256, 512 filters; every stage but the first halves. */
static cvy_status append_stages(cvy_model *model, const variant *v, int version, int *at)
{
    int channels = 64;
    for (int stage = 0; stage < 4; stage++) {
        int filters = 64 << stage;
        for (int i = 0; i < v->blocks[stage]; i++) {
            block b = {.model = model,
                       .width = filters * v->group_width / 64 * v->groups,
                       .groups = v->groups,
                       .outputs = v->bottleneck ? 4 * filters : filters,
                       .stride = stage > 0 && i == 0 ? 2 : 1,
                       .bottleneck = v->bottleneck,
                       .excite = v->excite,
                       .version = version};
            b.project = b.stride != 1 || channels != b.outputs;
            snprintf(b.path, sizeof b.path, "layer%d.%d", stage + 1, i);
            CVY_TRY(append_block(&b, at));
            channels = b.outputs;
        }
    }
    return CVY_OK;
}

static cvy_status add_layers(cvy_model *model, const resnet_options *options, const variant *v)
{
    int at = 0;
    CVY_TRY(cvy_model_append(model, "conv", "conv1", &at, "filters: 64, kernel: 7, stride: 2, padding: 3, bias: no"));
    CVY_TRY(cvy_model_append(model, "batch-norm", "bn1", &at, " "));
    CVY_TRY(cvy_model_append(model, "relu", "relu", &at, " "));
    CVY_TRY(cvy_model_append(model, "max-pool", "maxpool", &at, "kernel: 3, stride: 2, padding: %d, ceil-mode: %s",
                             (int)options->pool_padding, options->ceil_mode ? "yes" : "no"));
    CVY_TRY(append_stages(model, v, options->version, &at));
    CVY_TRY(cvy_model_append(model, "global-pool", "avgpool", &at, " "));
    CVY_TRY(cvy_model_append(model, "flatten", "flatten", &at, " "));
    CVY_TRY(cvy_model_append(model, "dense", "fc", &at, "outputs: %lld", (long long)options->image.classes));
    return cvy_model_append(model, "softmax-cross-entropy", "loss", &at, " ");
}

static cvy_status build(const char *name, const void *options, const variant *v, cvy_model **model_out)
{
    const resnet_options *chosen = options;
    cvy_model *model = NULL;
    CVY_TRY(cvy_zoo_start(name, chosen->image.channels, &chosen->image.size, 2, &model));
    return cvy_zoo_end(add_layers(model, chosen, v), model, model_out);
}

/* A zoo entry: its symbol, its name, its fields, a line of help, and what makes it. */
#define RESNET(symbol, zoo_name, zoo_fields, zoo_help, ...)                                                    \
    static cvy_status build_##symbol(const char *name, const void *options, cvy_model **model_out)             \
    {                                                                                                          \
        static const variant v = __VA_ARGS__;                                                                  \
        return build(name, options, &v, model_out);                                                            \
    }                                                                                                          \
    const cvy_zoo_entry cvy_zoo_##symbol = {.name = (zoo_name),                                                \
                                            .help = (zoo_help),                                                \
                                            .fields = (zoo_fields),                                            \
                                            .options_bytes = sizeof(resnet_options),                           \
                                            .build = build_##symbol}

RESNET(resnet18, "resnet18", fields_basic, "ResNet-18, torchvision's: 11,689,512 parameters",
       {{2, 2, 2, 2}, false, 1, 64, false});
RESNET(resnet34, "resnet34", fields_basic, "ResNet-34, torchvision's: 21,797,672 parameters",
       {{3, 4, 6, 3}, false, 1, 64, false});
RESNET(resnet50, "resnet50", fields_bottleneck, "ResNet-50, torchvision's: 25,557,032 parameters",
       {{3, 4, 6, 3}, true, 1, 64, false});
RESNET(resnet101, "resnet101", fields_bottleneck, "ResNet-101, torchvision's: 44,549,160 parameters",
       {{3, 4, 23, 3}, true, 1, 64, false});
RESNET(resnet152, "resnet152", fields_bottleneck, "ResNet-152, torchvision's: 60,192,808 parameters",
       {{3, 8, 36, 3}, true, 1, 64, false});
RESNET(resnext50_32x4d, "resnext50-32x4d", fields_bottleneck, "ResNeXt-50 32x4d, torchvision's: 25,028,904 parameters",
       {{3, 4, 6, 3}, true, 32, 4, false});
RESNET(resnext101_32x4d, "resnext101-32x4d", fields_bottleneck, "ResNeXt-101 32x4d, the paper's: 44,177,704 parameters",
       {{3, 4, 23, 3}, true, 32, 4, false});
RESNET(se_resnet50, "se-resnet50", fields_bottleneck, "SE-ResNet-50, the paper's: 28,088,024 parameters",
       {{3, 4, 6, 3}, true, 1, 64, true});
RESNET(se_resnext101_32x4d, "se-resnext101-32x4d", fields_bottleneck,
       "SE-ResNeXt-101 32x4d, timm's: 48,955,416 parameters", {{3, 4, 23, 3}, true, 32, 4, true});
