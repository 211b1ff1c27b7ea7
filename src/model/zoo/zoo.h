/* What zoo models share: a builder that stops at the first failure, and option fields. */
#ifndef CVY_MODEL_ZOO_ZOO_H
#define CVY_MODEL_ZOO_ZOO_H

#include <stddef.h>

#include "model/model.h"

/** Options of image classifiers. */
typedef struct cvy_image_options {
    cvy_axes size;
    int64_t channels, classes;
} cvy_image_options;

enum { CVY_MAX_IMAGE_SIZE = 65536, CVY_MAX_CHANNELS = 65536, CVY_MAX_CLASSES = 10000000 };

/** The fields of cvy_image_options as the member `image` of struct @p owner. */
#define CVY_IMAGE_FIELDS(owner, default_size, least_size, default_channels, default_classes)                           \
    {.name = "size", .type = CVY_FIELD_AXES, .offset = offsetof(owner, image.size), .value = (default_size),           \
     .minimum = (least_size), .maximum = CVY_MAX_IMAGE_SIZE, .help = "height and width of an image, pixels"},          \
    {.name = "channels", .type = CVY_FIELD_INT, .offset = offsetof(owner, image.channels),                             \
     .value = (default_channels), .minimum = 1, .maximum = CVY_MAX_CHANNELS, .help = "channels of an image"},          \
    {.name = "classes", .type = CVY_FIELD_INT, .offset = offsetof(owner, image.classes), .value = (default_classes),   \
     .minimum = 1, .maximum = CVY_MAX_CLASSES, .help = "classes to tell apart"}

/**
 * Start a model of samples c,size; a single size holds for all @p spatial axes.
 *
 * @retval CVY_ERR_INPUT the size has neither one nor @p spatial entries
 */
cvy_status cvy_zoo_start(const char *name, int64_t channels, const cvy_axes *size, int spatial, cvy_model **model_out);

/** Check a built model and hand it over, or release it; @p status is that of building. */
cvy_status cvy_zoo_end(cvy_status status, cvy_model *model, cvy_model **model_out);

/** A convolution, its batch norm and what follows it. */
typedef struct cvy_zoo_unit {
    int filters, kernel, stride, groups;
    const char *activation; /**< a kind of layer; NULL: none */
} cvy_zoo_unit;

/**
 * Append torchvision's Conv2dNormActivation: "PATH.0" without bias, "PATH.1" and "PATH.2". Padding keeps the extent but
 * for the stride.
 */
cvy_status cvy_zoo_append_unit(cvy_model *model, const char *path, cvy_zoo_unit unit, int *at);

/**
 * Append a squeeze-excitation (Hu, Shen, Sun, "Squeeze-and-excitation networks", arXiv:1709.01507): the mean of each
 * channel goes through 1x1 convolutions "PATH.fc1" to @p squeeze channels and "PATH.fc2" back, both with biases, and
 * what a sigmoid makes of it is the channel's factor.
 *
 * @param[in] activation  a kind of layer, between the two
 */
cvy_status cvy_zoo_append_excitation(cvy_model *model, const char *path, int squeeze, const char *activation, int *at);

#endif
