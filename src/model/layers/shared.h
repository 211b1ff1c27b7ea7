/* What several layer kinds share. */
#ifndef CVY_MODEL_LAYERS_SHARED_H
#define CVY_MODEL_LAYERS_SHARED_H

#include <stddef.h>

#include "model/layer.h"

/** Largest value of a count, kernel, stride, … in a file: products of two still fit 64 bits. */
#define CVY_MAX_OPTION 1e9

/** How weights and biases are born: part of the options of convolutions and dense layers. */
typedef struct cvy_init_options {
    int weight; /**< index into cvy_init_choices */
    int bias;   /**< index into cvy_bias_init_choices */
    double deviation;
} cvy_init_options;

extern const char *const cvy_init_choices[];
extern const char *const cvy_bias_init_choices[];
enum { CVY_INIT_CHOICE_KAIMING, CVY_INIT_CHOICE_XAVIER, CVY_INIT_CHOICE_UNIFORM, CVY_INIT_CHOICE_NORMAL };

/** The fields of cvy_init_options as the member `init` of struct @p owner. */
#define CVY_INIT_FIELDS(owner, chosen)                                                                                 \
    {.name = "init", .type = CVY_FIELD_CHOICE, .offset = offsetof(owner, init.weight), .value = (chosen),              \
     .choices = cvy_init_choices, .help = "how weights are born"},                                                     \
    {.name = "init-std", .type = CVY_FIELD_REAL, .offset = offsetof(owner, init.deviation), .value = 0.01,             \
     .minimum = 0, .maximum = 1e6, .help = "standard deviation of init: normal"},                                      \
    {.name = "bias-init", .type = CVY_FIELD_CHOICE, .offset = offsetof(owner, init.bias), .value = 0,                  \
     .choices = cvy_bias_init_choices, .help = "how biases are born"}

/** The spec of the weights of @p shape (o,i,…), and of the bias, whose fans follow from it. */
cvy_parameter_spec cvy_weight_spec(const cvy_init_options *init, const cvy_shape *shape, int64_t groups);
cvy_parameter_spec cvy_bias_spec(const cvy_init_options *init, const cvy_shape *weight);

/** Output of a layer by the law of its forward op. */
cvy_status cvy_layer_describe_output(const cvy_layer *layer, const cvy_shape *input, int64_t filters,
                                     cvy_shape *output_out);

/** y has the shape of x: infer slot of element-wise kinds. */
cvy_status cvy_layer_infer_same(const cvy_layer *layer, const cvy_shape *input, cvy_shape *output_out);

/** Refuse inputs that have no space. */
cvy_status cvy_layer_require_space(const cvy_shape *input);

/** Refuse channels or filters that do not fall into equal groups. */
cvy_status cvy_layer_require_groups(int64_t channels, int64_t filters, int64_t groups);

/** Refuse inputs that are not n,c. */
cvy_status cvy_layer_require_flat(const cvy_shape *input);

#endif
