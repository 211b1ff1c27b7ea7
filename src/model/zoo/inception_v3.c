/*
 * Inception-v3 (Szegedy et al., "Rethinking the inception architecture for computer vision", arXiv:1512.00567) with
 * torchvision's module paths and initialisation, without the auxiliary classifier. 23,834,568 parameters.
 *
 * A module's branches are chains of units (convolution without bias, batch norm, rectifier) from the module's input or
 * from its pooling; n x n windows are factorised into 1 x n and n x 1. Each module is a table of its units.
 */
#include <stdio.h>

#include "model/zoo/zoo.h"

typedef struct inception_options {
    cvy_image_options image;
    double dropout;
} inception_options;

/* 75 is the least of which the last strides leave something: 75 37 35 17 15 7 3 1. */
static const cvy_field fields[] = {
    CVY_IMAGE_FIELDS(inception_options, 299, 75, 3, 1000),
    {.name = "dropout", .type = CVY_FIELD_REAL, .offset = offsetof(inception_options, dropout), .value = 0.5,
     .minimum = 0, .maximum = 0.99, .help = "before the dense layer; 0: no dropout layer"},
    {0},
};

/* What a unit takes: the module's input, its pooling, or the unit that stands one or two rows before. */
enum { FROM_INPUT = 0, FROM_LAST = 1, FROM_LAST_BUT_ONE = 2, FROM_POOL = -1 };

/* What becomes of a unit's output: another unit takes it, it ends a branch, or it joins the row before in one. */
typedef enum end_kind { GOES_ON, ENDS, JOINS } end_kind;

typedef struct unit {
    const char *name;
    int from;
    int filters;   /* 0: the module's width */
    int kernel[2];
    int stride;    /* 2: without padding; 1: padding keeps the extent */
    end_kind end;
} unit;

static const unit units_a[] = {
    {"branch1x1", FROM_INPUT, 64, {1, 1}, 1, ENDS},        {"branch5x5_1", FROM_INPUT, 48, {1, 1}, 1, GOES_ON},
    {"branch5x5_2", FROM_LAST, 64, {5, 5}, 1, ENDS},       {"branch3x3dbl_1", FROM_INPUT, 64, {1, 1}, 1, GOES_ON},
    {"branch3x3dbl_2", FROM_LAST, 96, {3, 3}, 1, GOES_ON}, {"branch3x3dbl_3", FROM_LAST, 96, {3, 3}, 1, ENDS},
    {"branch_pool", FROM_POOL, 0, {1, 1}, 1, ENDS},        {0}};

static const unit units_b[] = {
    {"branch3x3", FROM_INPUT, 384, {3, 3}, 2, ENDS},       {"branch3x3dbl_1", FROM_INPUT, 64, {1, 1}, 1, GOES_ON},
    {"branch3x3dbl_2", FROM_LAST, 96, {3, 3}, 1, GOES_ON}, {"branch3x3dbl_3", FROM_LAST, 96, {3, 3}, 2, ENDS},
    {0}};

static const unit units_c[] = {
    {"branch1x1", FROM_INPUT, 192, {1, 1}, 1, ENDS},      {"branch7x7_1", FROM_INPUT, 0, {1, 1}, 1, GOES_ON},
    {"branch7x7_2", FROM_LAST, 0, {1, 7}, 1, GOES_ON},    {"branch7x7_3", FROM_LAST, 192, {7, 1}, 1, ENDS},
    {"branch7x7dbl_1", FROM_INPUT, 0, {1, 1}, 1, GOES_ON}, {"branch7x7dbl_2", FROM_LAST, 0, {7, 1}, 1, GOES_ON},
    {"branch7x7dbl_3", FROM_LAST, 0, {1, 7}, 1, GOES_ON}, {"branch7x7dbl_4", FROM_LAST, 0, {7, 1}, 1, GOES_ON},
    {"branch7x7dbl_5", FROM_LAST, 192, {1, 7}, 1, ENDS},  {"branch_pool", FROM_POOL, 192, {1, 1}, 1, ENDS},
    {0}};

static const unit units_d[] = {
    {"branch3x3_1", FROM_INPUT, 192, {1, 1}, 1, GOES_ON},   {"branch3x3_2", FROM_LAST, 320, {3, 3}, 2, ENDS},
    {"branch7x7x3_1", FROM_INPUT, 192, {1, 1}, 1, GOES_ON}, {"branch7x7x3_2", FROM_LAST, 192, {1, 7}, 1, GOES_ON},
    {"branch7x7x3_3", FROM_LAST, 192, {7, 1}, 1, GOES_ON},  {"branch7x7x3_4", FROM_LAST, 192, {3, 3}, 2, ENDS},
    {0}};

static const unit units_e[] = {
    {"branch1x1", FROM_INPUT, 320, {1, 1}, 1, ENDS},
    {"branch3x3_1", FROM_INPUT, 384, {1, 1}, 1, GOES_ON},
    {"branch3x3_2a", FROM_LAST, 384, {1, 3}, 1, GOES_ON},
    {"branch3x3_2b", FROM_LAST_BUT_ONE, 384, {3, 1}, 1, JOINS},
    {"branch3x3dbl_1", FROM_INPUT, 448, {1, 1}, 1, GOES_ON},
    {"branch3x3dbl_2", FROM_LAST, 384, {3, 3}, 1, GOES_ON},
    {"branch3x3dbl_3a", FROM_LAST, 384, {1, 3}, 1, GOES_ON},
    {"branch3x3dbl_3b", FROM_LAST_BUT_ONE, 384, {3, 1}, 1, JOINS},
    {"branch_pool", FROM_POOL, 192, {1, 1}, 1, ENDS},
    {0}};

enum { MOST_UNITS = 10 };

typedef struct module {
    const char *name;
    const unit *units;
    int width;
    bool halves; /* its pooling is a maximum that halves, and a branch itself */
} module;

static const module modules[] = {
    {"Mixed_5b", units_a, 32, false},  {"Mixed_5c", units_a, 64, false},  {"Mixed_5d", units_a, 64, false},
    {"Mixed_6a", units_b, 0, true},    {"Mixed_6b", units_c, 128, false}, {"Mixed_6c", units_c, 160, false},
    {"Mixed_6d", units_c, 160, false}, {"Mixed_6e", units_c, 192, false}, {"Mixed_7a", units_d, 0, true},
    {"Mixed_7b", units_e, 0, false},   {"Mixed_7c", units_e, 0, false},
};

#define INIT "init: normal, init-std: 0.1"

/* "PATH.conv", "PATH.bn", "PATH.relu". */
static cvy_status append_unit(cvy_model *model, const char *path, const unit *u, bool padded, int *at)
{
    char name[64];
    snprintf(name, sizeof name, "%s.conv", path);
    CVY_TRY(cvy_model_append(model, "conv", name, at,
                             "filters: %d, kernel: [%d, %d], stride: %d, padding: [%d, %d], bias: no, " INIT,
                             u->filters, u->kernel[0], u->kernel[1], u->stride, padded ? u->kernel[0] / 2 : 0,
                             padded ? u->kernel[1] / 2 : 0));
    snprintf(name, sizeof name, "%s.bn", path);
    CVY_TRY(cvy_model_append(model, "batch-norm", name, at, "epsilon: 0.001"));
    snprintf(name, sizeof name, "%s.relu", path);
    return cvy_model_append(model, "relu", name, at, " ");
}

static cvy_status append_pool(cvy_model *model, const module *m, int *at)
{
    char name[64];
    snprintf(name, sizeof name, "%s.pool", m->name);
    return m->halves ? cvy_model_append(model, "max-pool", name, at, "kernel: 3, stride: 2")
                     : cvy_model_append(model, "average-pool", name, at, "kernel: 3, stride: 1, padding: 1");
}

/* The units of a module; what its branches end in goes to @p branch, as many as are counted. */
static cvy_status append_branches(cvy_model *model, const module *m, int input, int pooled, int branch[4],
                                  int *branches)
{
    int end[MOST_UNITS];
    for (int i = 0; m->units[i].name; i++) {
        char path[48], name[64];
        unit u = m->units[i];
        u.filters = u.filters ? u.filters : m->width;
        end[i] = u.from == FROM_POOL ? pooled : u.from == FROM_INPUT ? input : end[i - u.from];
        snprintf(path, sizeof path, "%s.%s", m->name, u.name);
        CVY_TRY(append_unit(model, path, &u, u.stride == 1, &end[i]));
        if (u.end == JOINS) {
            snprintf(name, sizeof name, "%s.concat", path);
            CVY_TRY(cvy_model_append_concat(model, name, &end[i - 1], 2, &end[i]));
        }
        if (u.end != GOES_ON) {
            branch[(*branches)++] = end[i];
        }
    }
    return CVY_OK;
}

static cvy_status append_module(cvy_model *model, const module *m, int *at)
{
    char name[64];
    int pooled = *at, branch[4], branches = 0;
    CVY_TRY(append_pool(model, m, &pooled));
    CVY_TRY(append_branches(model, m, *at, pooled, branch, &branches));
    if (m->halves) {
        branch[branches++] = pooled;
    }
    snprintf(name, sizeof name, "%s.concat", m->name);
    return cvy_model_append_concat(model, name, branch, branches, at);
}

static cvy_status append_stem(cvy_model *model, int *at)
{
    static const unit stem[] = {{"Conv2d_1a_3x3", 0, 32, {3, 3}, 2, 0},
                                {"Conv2d_2a_3x3", 0, 32, {3, 3}, 1, 0},
                                {"Conv2d_2b_3x3", 0, 64, {3, 3}, 1, 0},
                                {"Conv2d_3b_1x1", 0, 80, {1, 1}, 1, 0},
                                {"Conv2d_4a_3x3", 0, 192, {3, 3}, 1, 0}};
    CVY_TRY(append_unit(model, stem[0].name, &stem[0], false, at));
    CVY_TRY(append_unit(model, stem[1].name, &stem[1], false, at));
    CVY_TRY(append_unit(model, stem[2].name, &stem[2], true, at));
    CVY_TRY(cvy_model_append(model, "max-pool", "maxpool1", at, "kernel: 3, stride: 2"));
    CVY_TRY(append_unit(model, stem[3].name, &stem[3], false, at));
    CVY_TRY(append_unit(model, stem[4].name, &stem[4], false, at));
    return cvy_model_append(model, "max-pool", "maxpool2", at, "kernel: 3, stride: 2");
}

static cvy_status add_layers(cvy_model *model, const inception_options *options)
{
    int at = 0;
    CVY_TRY(append_stem(model, &at));
    for (size_t i = 0; i < sizeof modules / sizeof modules[0]; i++) {
        CVY_TRY(append_module(model, &modules[i], &at));
    }
    CVY_TRY(cvy_model_append(model, "global-pool", "avgpool", &at, " "));
    CVY_TRY(cvy_model_append(model, "flatten", "flatten", &at, " "));
    if (options->dropout > 0) {
        CVY_TRY(cvy_model_append(model, "dropout", "dropout", &at, "probability: %.17g", options->dropout));
    }
    CVY_TRY(cvy_model_append(model, "dense", "fc", &at, "outputs: %lld, " INIT, (long long)options->image.classes));
    return cvy_model_append(model, "softmax-cross-entropy", "loss", &at, " ");
}

static cvy_status build(const char *name, const void *options, cvy_model **model_out)
{
    const inception_options *chosen = options;
    cvy_model *model = NULL;
    CVY_TRY(cvy_zoo_start(name, chosen->image.channels, &chosen->image.size, 2, &model));
    return cvy_zoo_end(add_layers(model, chosen), model, model_out);
}

const cvy_zoo_entry cvy_zoo_inception_v3 = {
    .name = "inception-v3",
    .help = "Inception-v3, torchvision's, without auxiliary classifier: 23,834,568 parameters",
    .fields = fields,
    .options_bytes = sizeof(inception_options),
    .build = build,
};
