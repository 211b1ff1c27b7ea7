/*
 * Random small graphs: convolutions, transposed or not, with random windows and groups, norms, activations, poolings,
 * dropout, branches that are summed, multiplied or joined, layers with several consumers, one to three heads that are
 * summed, either loss. A graph is a function of its seed.
 */
#ifndef CVY_TESTS_RUNTIME_RANDOM_MODEL_H
#define CVY_TESTS_RUNTIME_RANDOM_MODEL_H

#include <stdio.h>

#include "base/random.h"
#include "model/model.h"

/* A stream of random whole numbers. */
typedef struct dice {
    uint32_t seed, thrown;
} dice;

/* One of 0 … sides-1. */
static inline int throw(dice *d, int sides)
{
    const cvy_words counter = {{d->thrown++, 0, 0, 0}};
    return (int)(cvy_philox(counter, d->seed, 7).v[0] % (uint32_t)sides);
}

/* In [-1, 1), of 24 bits: equal in float and double. */
static inline float throw_real(dice *d)
{
    const cvy_words counter = {{d->thrown++, 1, 0, 0}};
    return 2.0f * cvy_random_unit(cvy_philox(counter, d->seed, 7).v[0]) - 1.0f;
}

/* A graph under construction. */
typedef struct growth {
    dice *dice;
    cvy_model *model;
    bool used[64];
} growth;

/* Mostly the newest layer, else any one that still has space. */
static inline int pick_layer(growth *g)
{
    int last = g->model->layers - 1;
    return throw(g->dice, 10) < 7 ? last : throw(g->dice, last + 1);
}

static inline bool grow(growth *g, const char *kind, int input, const char *options)
{
    char name[32];
    snprintf(name, sizeof name, "layer%d", g->model->layers);
    if (cvy_model_append(g->model, kind, name, &input, "%s", options) != CVY_OK) {
        return false; /* the window does not fit here */
    }
    for (int i = 0; i < g->model->layer[g->model->layers - 1].inputs; i++) {
        g->used[g->model->layer[g->model->layers - 1].input[i]] = true;
    }
    return true;
}

static inline bool grow_pair(growth *g, const char *kind, int first, int second)
{
    char name[32];
    const int input[] = {first, second};
    const cvy_layer_spec spec = {.kind = kind, .name = name, .input = input, .inputs = 2};
    snprintf(name, sizeof name, "layer%d", g->model->layers);
    if (cvy_model_add(g->model, &spec, NULL) != CVY_OK) {
        return false; /* their shapes differ */
    }
    g->used[first] = g->used[second] = true;
    return true;
}

static inline bool grow_conv(growth *g, int input)
{
    static const int counts[] = {1, 3, 4, 6, 8, 16, 20, 24};
    char options[160];
    int64_t channels = g->model->layer[input].output.extent[1];
    int filters = throw(g->dice, 3) == 0 ? (int)channels : counts[throw(g->dice, 8)];
    int groups = throw(g->dice, 3) == 0 ? (int)channels : throw(g->dice, 3) == 0 ? 2 : 1;
    groups = channels % groups == 0 && filters % groups == 0 ? groups : 1;
    int kernel = 1 + throw(g->dice, 3);
    int stride = 1 + throw(g->dice, 3) / 2, padding = throw(g->dice, 2), dilation = 1 + throw(g->dice, 3) / 2;
    snprintf(options, sizeof options,
             "filters: %d, kernel: %d, stride: %d, padding: %d, dilation: %d, groups: %d, bias: %s", filters, kernel,
             stride, padding, dilation, groups, throw(g->dice, 2) ? "yes" : "no");
    return grow(g, "conv", input, options);
}

/* Windows that leave gaps or overlap, pads that cut off, rows that are added; of small inputs, or graphs would grow. */
static inline bool grow_transposed(growth *g, int input)
{
    static const int counts[] = {1, 2, 6, 8, 16};
    char options[200];
    const cvy_shape *shape = &g->model->layer[input].output;
    int channels = (int)shape->extent[1], filters = counts[throw(g->dice, 5)];
    int groups = throw(g->dice, 3) == 0 ? 2 : 1;
    groups = channels % groups == 0 && filters % groups == 0 ? groups : 1;
    int kernel = 1 + throw(g->dice, 3), stride = 1 + throw(g->dice, 2), padding = throw(g->dice, 2);
    int dilation = 1 + throw(g->dice, 3) / 2, added = throw(g->dice, stride > dilation ? stride : dilation);
    snprintf(options, sizeof options,
             "filters: %d, kernel: %d, stride: %d, padding: %d, output-padding: %d, dilation: %d, groups: %d, bias: %s",
             filters, kernel, stride, padding, added, dilation, groups, throw(g->dice, 2) ? "yes" : "no");
    return cvy_shape_elements(shape) / channels <= 64 && grow(g, "transposed-convolution", input, options);
}

static inline bool grow_pool(growth *g, int input)
{
    char options[160];
    bool average = throw(g->dice, 2), ceil_mode = throw(g->dice, 3) == 0;
    int kernel = 2 + throw(g->dice, 2), stride = 1 + throw(g->dice, 2), padding = throw(g->dice, 2);
    snprintf(options, sizeof options, "kernel: %d, stride: %d, padding: %d, ceil-mode: %s%s", kernel, stride, padding,
             ceil_mode ? "yes" : "no",
             !average ? "" : ceil_mode || throw(g->dice, 2) ? ", count-padding: no" : ", count-padding: yes");
    return grow(g, average ? "average-pool" : "max-pool", input, options);
}

/* Groups that divide the channels; of at least 8 elements: over few the norm amplifies rounding without bounds. */
static inline bool grow_group_norm(growth *g, int input)
{
    char options[32];
    const cvy_shape *shape = &g->model->layer[input].output;
    int channels = (int)shape->extent[1], groups = 1 + throw(g->dice, 4);
    groups = channels % groups == 0 ? groups : channels;
    snprintf(options, sizeof options, "groups: %d", groups);
    return cvy_shape_elements(shape) / groups >= 8 && grow(g, "group-norm", input, options);
}

static inline bool grow_response(growth *g, int input)
{
    char options[64];
    int size = 1 + throw(g->dice, 6), strength = 1 + throw(g->dice, 3);
    snprintf(options, sizeof options, "size: %d, alpha: %d, beta: %s", size, strength,
             throw(g->dice, 2) ? "0.75" : "0.6");
    return grow(g, "local-response-norm", input, options);
}

/* Up to four layers of one space, the same one twice among them where it comes so. */
static inline bool grow_concat(growth *g, int input)
{
    char name[32];
    int part[4] = {input}, parts = 1, wanted = 2 + throw(g->dice, 3);
    for (int i = g->model->layers - 1; i >= 0 && parts < wanted; i--) {
        cvy_shape shape = g->model->layer[i].output;
        shape.extent[1] = g->model->layer[input].output.extent[1];
        if (cvy_shape_equal(&shape, &g->model->layer[input].output)) {
            part[parts++] = i;
        }
    }
    snprintf(name, sizeof name, "layer%d", g->model->layers);
    if (cvy_model_append_concat(g->model, name, part, parts, NULL) != CVY_OK) {
        return false;
    }
    for (int i = 0; i < parts; i++) {
        g->used[part[i]] = true;
    }
    return true;
}

/* The newest layer of the shape of @p input, itself where there is no other. */
static inline int find_like(const growth *g, int input)
{
    for (int i = g->model->layers - 1; i > 0; i--) {
        if (i != input && cvy_shape_equal(&g->model->layer[i].output, &g->model->layer[input].output)) {
            return i;
        }
    }
    return input;
}

static inline bool grow_activation(growth *g, int input)
{
    static const char *const kinds[] = {"relu6", "leaky-relu", "sigmoid", "tanh", "silu", "hard-swish"};
    return grow(g, kinds[throw(g->dice, 6)], input, " ");
}

/* A layer of one position with the channels of @p source: itself, or its mean over space. */
static inline int pool_to_position(growth *g, int source)
{
    const cvy_shape *shape = &g->model->layer[source].output;
    if (cvy_shape_elements(shape) == shape->extent[1] || !grow(g, "global-pool", source, " ")) {
        return source;
    }
    return g->model->layers - 1;
}

/*
 * Channels of @p input times factors that come from it, from a layer like it, or from the batch where that has as many
 * channels. One layer of one position may be both.
 */
static inline bool grow_product(growth *g, int input)
{
    char options[32];
    int64_t channels = g->model->layer[input].output.extent[1];
    bool batch = g->model->layer[0].output.extent[1] == channels && throw(g->dice, 2);
    snprintf(options, sizeof options, "filters: %d, kernel: 1", (int)channels);
    if (throw(g->dice, 5) == 0) {
        input = pool_to_position(g, input);
        return grow_pair(g, "multiply", input, input);
    }
    int position = pool_to_position(g, batch ? 0 : throw(g->dice, 4) ? input : find_like(g, input));
    if (throw(g->dice, 2) && grow(g, "conv", position, options)) {
        position = g->model->layers - 1;
    }
    if (throw(g->dice, 2) && grow_activation(g, position)) {
        position = g->model->layers - 1;
    }
    return grow_pair(g, "multiply", input, position);
}

static inline void grow_body(growth *g, int wanted)
{
    while (g->model->layers < wanted) {
        int input = pick_layer(g);
        switch (throw(g->dice, 21)) {
        case 0:
        case 1:
        case 2: (void)grow_conv(g, input); break;
        case 3:
        case 4: (void)grow(g, "batch-norm", input, " "); break;
        case 5:
        case 6: (void)grow(g, "relu", input, " "); break;
        case 7: (void)grow_pool(g, input); break;
        case 8: (void)grow_pair(g, "add", input, find_like(g, input)); break;
        case 9:
        case 10: (void)grow_concat(g, input); break;
        case 11: (void)grow_group_norm(g, input); break;
        case 12: (void)grow_response(g, input); break;
        case 13: (void)grow(g, "stochastic-depth", input, "probability: 0.3"); break;
        case 14:
        case 18: (void)grow_product(g, input); break;
        case 15:
        case 16: (void)grow_activation(g, input); break;
        case 17: (void)grow_transposed(g, input); break;
        default: (void)grow(g, "dropout", input, "probability: 0.3"); break;
        }
    }
}

/* Every layer that nobody takes yet gets a head; the heads are summed. */
static inline void grow_heads(growth *g, int outputs)
{
    int body = g->model->layers, sum = -1;
    char options[32];
    snprintf(options, sizeof options, "outputs: %d", outputs);
    for (int i = 0; i < body; i++) {
        if (g->used[i]) {
            continue;
        }
        int at = i;
        if (throw(g->dice, 2)) {
            (void)grow(g, "global-pool", at, " ");
            at = g->model->layers - 1;
        }
        (void)grow(g, "flatten", at, " ");
        if (throw(g->dice, 2)) {
            (void)grow(g, "dense", g->model->layers - 1, "outputs: 9");
            (void)grow(g, "relu", g->model->layers - 1, " ");
        }
        (void)grow(g, "dense", g->model->layers - 1, options);
        at = g->model->layers - 1;
        if (sum >= 0) {
            (void)grow_pair(g, "add", sum, at);
        }
        sum = g->model->layers - 1;
    }
}

/* A finished model of about @p layers layers; NULL, with the error's message, where something is wrong. */
static inline cvy_model *make_random_model(dice *d, int layers)
{
    growth g = {.dice = d};
    int channels = 1 + throw(d, 9);
    cvy_shape input = throw(d, 4) ? CVY_SHAPE(channels, 4 + throw(d, 6), 4 + throw(d, 6))
                                  : CVY_SHAPE(channels, 3 + throw(d, 2), 3 + throw(d, 2), 3 + throw(d, 3));
    if (cvy_model_create("random", &input, &g.model) != CVY_OK) {
        return NULL;
    }
    grow_body(&g, layers);
    bool classes = throw(d, 2);
    grow_heads(&g, classes ? 2 + throw(d, 4) : 1 + throw(d, 3));
    bool closed = grow(&g, classes ? "softmax-cross-entropy" : "mean-squared-error", g.model->layers - 1,
                       classes && throw(d, 2) ? "label-smoothing: 0.1" : " ");
    if (!closed || cvy_model_finish(g.model) != CVY_OK) {
        cvy_model_destroy(&g.model);
    }
    return g.model;
}

#endif
