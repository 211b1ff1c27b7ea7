/*
 * 3D U-Net (Cicek et al., "3D U-Net: learning dense volumetric segmentation from sparse annotation", MICCAI 2016,
 * arXiv:1606.06650): three levels down and up. A level is two convolutions of 3x3x3, each with a batch norm and a
 * rectifier; on the way down the second has twice the filters of the first, so that no level is narrow before a
 * pooling. On the way up a transposed convolution doubles the volume, what the way down made at that size is put in
 * front, and two convolutions go back to its filters. A convolution of 1 gives the classes of each voxel.
 *
 * Convolutions are padded, where the paper crops, so labels have the volume's size. Those before a norm have no bias:
 * the norm would take it off again.
 */
#include <inttypes.h>
#include <stdio.h>

#include "model/zoo/zoo.h"

typedef struct unet_options {
    cvy_axes size;
    int64_t channels, classes, width;
    int loss;
} unet_options;

enum { LEVELS = 3, LEAST_SIZE = 1 << LEVELS };

static const char *const losses[] = {"cross-entropy", "dice", NULL};

static const cvy_field fields[] = {
    {.name = "size", .type = CVY_FIELD_AXES, .offset = offsetof(unet_options, size), .value = 64,
     .minimum = LEAST_SIZE, .maximum = 1024, .help = "depth, height and width of a volume, voxels: multiples of 8"},
    {.name = "channels", .type = CVY_FIELD_INT, .offset = offsetof(unet_options, channels), .value = 1, .minimum = 1,
     .maximum = CVY_MAX_CHANNELS, .help = "channels of a volume"},
    {.name = "classes", .type = CVY_FIELD_INT, .offset = offsetof(unet_options, classes), .value = 3, .minimum = 1,
     .maximum = CVY_MAX_CHANNELS, .help = "classes of a voxel"},
    {.name = "width", .type = CVY_FIELD_INT, .offset = offsetof(unet_options, width), .value = 32, .minimum = 1,
     .maximum = 1024, .help = "filters of the first convolution"},
    {.name = "loss", .type = CVY_FIELD_CHOICE, .offset = offsetof(unet_options, loss), .value = 0, .choices = losses,
     .help = "cross-entropy of each voxel, or soft Dice of each class"},
    {0},
};

/* "PATH.convN", "PATH.bnN", "PATH.reluN". */
static cvy_status append_unit(cvy_model *model, const char *path, int number, int64_t filters, int *at)
{
    char name[32];
    snprintf(name, sizeof name, "%s.conv%d", path, number);
    CVY_TRY(cvy_model_append(model, "conv", name, at, "filters: %" PRId64 ", kernel: 3, padding: 1, bias: no",
                             filters));
    snprintf(name, sizeof name, "%s.bn%d", path, number);
    CVY_TRY(cvy_model_append(model, "batch-norm", name, at, " "));
    snprintf(name, sizeof name, "%s.relu%d", path, number);
    return cvy_model_append(model, "relu", name, at, " ");
}

/* A level on the way down: width filters, then twice as many. */
static cvy_status append_down(cvy_model *model, int level, int64_t width, int *at)
{
    char path[16];
    snprintf(path, sizeof path, "down%d", level);
    CVY_TRY(append_unit(model, path, 1, width, at));
    return append_unit(model, path, 2, 2 * width, at);
}

/* A level on the way up, beside @p skip of @p filters; from below come twice as many. */
static cvy_status append_up(cvy_model *model, int level, int64_t filters, int skip, int *at)
{
    char path[16], name[32];
    int part[2] = {skip, *at};
    snprintf(path, sizeof path, "up%d", level);
    snprintf(name, sizeof name, "%s.up", path);
    CVY_TRY(cvy_model_append(model, "transposed-convolution", name, &part[1],
                             "filters: %" PRId64 ", kernel: 2, stride: 2, bias: no", 2 * filters));
    snprintf(name, sizeof name, "%s.concat", path);
    CVY_TRY(cvy_model_append_concat(model, name, part, 2, at));
    CVY_TRY(append_unit(model, path, 1, filters, at));
    return append_unit(model, path, 2, filters, at);
}

static cvy_status add_layers(cvy_model *model, const unet_options *options)
{
    int at = 0, skip[LEVELS];
    for (int i = 0; i < LEVELS; i++) {
        char name[16];
        CVY_TRY(append_down(model, i + 1, options->width << i, &at));
        skip[i] = at;
        snprintf(name, sizeof name, "pool%d", i + 1);
        CVY_TRY(cvy_model_append(model, "max-pool", name, &at, "kernel: 2"));
    }
    CVY_TRY(append_down(model, LEVELS + 1, options->width << LEVELS, &at));
    for (int i = LEVELS - 1; i >= 0; i--) {
        CVY_TRY(append_up(model, i + 1, 2 * options->width << i, skip[i], &at));
    }
    CVY_TRY(cvy_model_append(model, "conv", "head", &at, "filters: %" PRId64 ", kernel: 1", options->classes));
    return cvy_model_append(model, options->loss ? "soft-dice" : "softmax-cross-entropy", "loss", &at, " ");
}

static cvy_status build(const char *name, const void *options, cvy_model **model_out)
{
    const unet_options *chosen = options;
    cvy_model *model = NULL;
    for (int i = 0; i < chosen->size.count; i++) {
        CVY_REQUIRE(chosen->size.value[i] % LEAST_SIZE == 0, CVY_ERR_INPUT,
                    "size: found %" PRId64 ", expected a multiple of %d, which halves three times",
                    chosen->size.value[i], LEAST_SIZE);
    }
    CVY_TRY(cvy_zoo_start(name, chosen->channels, &chosen->size, 3, &model));
    return cvy_zoo_end(add_layers(model, chosen), model, model_out);
}

const cvy_zoo_entry cvy_zoo_unet3d = {
    .name = "unet3d",
    .help = "3D U-Net, a class for each voxel: 19,070,563 parameters",
    .fields = fields,
    .options_bytes = sizeof(unet_options),
    .build = build,
};
