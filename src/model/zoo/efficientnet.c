/*
 * EfficientNets (Tan and Le, "EfficientNet: rethinking model scaling for convolutional neural networks",
 * arXiv:1905.11946) with torchvision's module paths. B0 has 5,288,548 parameters; the others are B0 with more channels,
 * more blocks a stage and larger images.
 *
 * A block is MobileNetV2's with SiLU, a squeeze-excitation behind the depthwise convolution, and stochastic depth
 * before the addition, whose probability rises linearly from 0 over all blocks.
 */
#include <stdio.h>

#include "model/zoo/zoo.h"

typedef struct efficientnet_options {
    cvy_image_options image;
    double dropout, stochastic_depth;
} efficientnet_options;

/* Below 8 the windows would see little but padding. */
#define EFFICIENTNET_FIELDS(default_size, default_dropout)                                                             \
    {                                                                                                                  \
        CVY_IMAGE_FIELDS(efficientnet_options, default_size, 8, 3, 1000),                                              \
        {.name = "dropout", .type = CVY_FIELD_REAL, .offset = offsetof(efficientnet_options, dropout),                 \
         .value = (default_dropout), .minimum = 0, .maximum = 0.99,                                                    \
         .help = "before the dense layer; 0: no dropout layer"},                                                       \
        {.name = "stochastic-depth", .type = CVY_FIELD_REAL, .offset = offsetof(efficientnet_options,                  \
         stochastic_depth), .value = 0.2, .minimum = 0, .maximum = 0.99,                                               \
         .help = "share of samples dropped, risen to behind the last block; 0: no such layers"},                       \
        {0},                                                                                                           \
    }

static const cvy_field fields_b0[] = EFFICIENTNET_FIELDS(224, 0.2);
static const cvy_field fields_b4[] = EFFICIENTNET_FIELDS(380, 0.4);

/* Blocks of one width: the first of them strides. The paper's table 1. */
typedef struct stage {
    int expansion, kernel, stride, outputs, blocks;
} stage;

static const stage stages[] = {{1, 3, 1, 16, 1},  {6, 3, 2, 24, 2},  {6, 5, 2, 40, 2}, {6, 3, 2, 80, 3},
                               {6, 5, 1, 112, 3}, {6, 5, 2, 192, 4}, {6, 3, 1, 320, 1}};
enum { STAGES = sizeof stages / sizeof stages[0], STEM = 32 };

/* Channels and blocks, in tenths of B0's. */
typedef struct variant {
    int width, depth;
} variant;

/* One block under construction. */
typedef struct block {
    char path[32];        /* "features.1.0" */
    int channels, outputs;
    int expansion, kernel, stride;
    double drop;          /* probability that a sample's branch is dropped */
} block;

/* Channels come in eights: the nearest, but no less than nine tenths. */
static int scale_channels(int channels, int tenths)
{
    int wanted = channels * tenths;
    int eights = (wanted + 40) / 80 * 8;
    return 100 * eights < 9 * wanted ? eights + 8 : eights;
}

static int scale_blocks(int blocks, int tenths) { return (blocks * tenths + 9) / 10; }

/*
 * "block.0" widens, "block.1" is depthwise, "block.2" excites, "block.3" narrows; without the first where nothing is
 * widened.
 */
static cvy_status append_branch(cvy_model *model, const block *b, int *at)
{
    char name[64];
    int part = 0, width = b->channels * b->expansion;
    if (b->expansion > 1) {
        snprintf(name, sizeof name, "%s.block.%d", b->path, part++);
        CVY_TRY(cvy_zoo_append_unit(model, name, (cvy_zoo_unit){width, 1, 1, 1, "silu"}, at));
    }
    snprintf(name, sizeof name, "%s.block.%d", b->path, part++);
    CVY_TRY(cvy_zoo_append_unit(model, name, (cvy_zoo_unit){width, b->kernel, b->stride, width, "silu"}, at));
    snprintf(name, sizeof name, "%s.block.%d", b->path, part++);
    CVY_TRY(cvy_zoo_append_excitation(model, name, b->channels / 4, "silu", at));
    snprintf(name, sizeof name, "%s.block.%d", b->path, part);
    return cvy_zoo_append_unit(model, name, (cvy_zoo_unit){b->outputs, 1, 1, 1, NULL}, at);
}

static cvy_status append_block(cvy_model *model, const block *b, int *at)
{
    char name[64];
    int shortcut = *at;
    CVY_TRY(append_branch(model, b, at));
    if (b->stride > 1 || b->channels != b->outputs) {
        return CVY_OK;
    }
    if (b->drop > 0) {
        snprintf(name, sizeof name, "%s.stochastic_depth", b->path);
        CVY_TRY(cvy_model_append(model, "stochastic-depth", name, at, "probability: %.17g", b->drop));
    }
    snprintf(name, sizeof name, "%s.add", b->path);
    return cvy_model_append_add(model, name, *at, shortcut, at);
}

/* Stage i is "features.I+1"; block k of all n drops k / n of what the option says. */
static cvy_status append_stages(cvy_model *model, const variant *v, double drop, int *at)
{
    int channels = scale_channels(STEM, v->width), index = 0, blocks = 0;
    for (int i = 0; i < STAGES; i++) {
        blocks += scale_blocks(stages[i].blocks, v->depth);
    }
    for (int i = 0; i < STAGES; i++) {
        const stage *s = &stages[i];
        for (int k = 0; k < scale_blocks(s->blocks, v->depth); k++) {
            block b = {.channels = channels, .outputs = scale_channels(s->outputs, v->width),
                       .expansion = s->expansion, .kernel = s->kernel, .stride = k ? 1 : s->stride,
                       .drop = drop * index++ / blocks};
            snprintf(b.path, sizeof b.path, "features.%d.%d", i + 1, k);
            CVY_TRY(append_block(model, &b, at));
            channels = b.outputs;
        }
    }
    return CVY_OK;
}

static cvy_status add_layers(cvy_model *model, const efficientnet_options *options, const variant *v)
{
    int at = 0, stem = scale_channels(STEM, v->width);
    CVY_TRY(cvy_zoo_append_unit(model, "features.0", (cvy_zoo_unit){stem, 3, 2, 1, "silu"}, &at));
    CVY_TRY(append_stages(model, v, options->stochastic_depth, &at));
    int head = 4 * scale_channels(stages[STAGES - 1].outputs, v->width);
    CVY_TRY(cvy_zoo_append_unit(model, "features.8", (cvy_zoo_unit){head, 1, 1, 1, "silu"}, &at));
    CVY_TRY(cvy_model_append(model, "global-pool", "avgpool", &at, " "));
    CVY_TRY(cvy_model_append(model, "flatten", "flatten", &at, " "));
    if (options->dropout > 0) {
        CVY_TRY(cvy_model_append(model, "dropout", "classifier.0", &at, "probability: %.17g", options->dropout));
    }
    CVY_TRY(cvy_model_append(model, "dense", "classifier.1", &at, "outputs: %lld, bias-init: zero",
                             (long long)options->image.classes));
    return cvy_model_append(model, "softmax-cross-entropy", "loss", &at, " ");
}

static cvy_status build(const char *name, const void *options, const variant *v, cvy_model **model_out)
{
    const efficientnet_options *chosen = options;
    cvy_model *model = NULL;
    CVY_TRY(cvy_zoo_start(name, chosen->image.channels, &chosen->image.size, 2, &model));
    return cvy_zoo_end(add_layers(model, chosen, v), model, model_out);
}

/* A zoo entry: its letter, a line of help, and its channels and blocks in tenths of B0's. */
#define EFFICIENTNET(letter, zoo_help, ...)                                                               \
    static cvy_status build_##letter(const char *name, const void *options, cvy_model **model_out)        \
    {                                                                                                     \
        static const variant v = __VA_ARGS__;                                                             \
        return build(name, options, &v, model_out);                                                       \
    }                                                                                                     \
    const cvy_zoo_entry cvy_zoo_efficientnet_##letter = {.name = "efficientnet-" #letter,                 \
                                                         .help = (zoo_help),                              \
                                                         .fields = fields_##letter,                       \
                                                         .options_bytes = sizeof(efficientnet_options),   \
                                                         .build = build_##letter}

EFFICIENTNET(b0, "EfficientNet-B0, torchvision's: 5,288,548 parameters", {10, 10});
EFFICIENTNET(b4, "EfficientNet-B4, torchvision's: 19,341,616 parameters", {14, 18});
