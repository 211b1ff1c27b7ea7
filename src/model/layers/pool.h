/* What max-pool and average-pool share: a window, and ceil mode. */
#ifndef CVY_MODEL_LAYERS_POOL_H
#define CVY_MODEL_LAYERS_POOL_H

#include "model/layers/shared.h"

typedef struct cvy_pool_options {
    cvy_axes kernel, stride;
    cvy_pads padding;
    bool ceil_mode;
} cvy_pool_options;

/** The fields of cvy_pool_options as the member `pool` of struct @p owner. */
#define CVY_POOL_FIELDS(owner)                                                                                         \
    {.name = "kernel", .type = CVY_FIELD_AXES, .offset = offsetof(owner, pool.kernel), .required = true, .minimum = 1, \
     .maximum = CVY_MAX_OPTION, .help = "extent of the window, elements an axis"},                                     \
    {.name = "stride", .type = CVY_FIELD_AXES, .offset = offsetof(owner, pool.stride), .value = 0, .minimum = 1,       \
     .maximum = CVY_MAX_OPTION, .help = "step of the window, elements an axis; default: the kernel"},                  \
    {.name = "padding", .type = CVY_FIELD_PADS, .offset = offsetof(owner, pool.padding), .value = 0, .minimum = 0,     \
     .maximum = CVY_MAX_OPTION, .help = "positions outside the input at both ends of an axis, elements"},              \
    {.name = "ceil-mode", .type = CVY_FIELD_BOOL, .offset = offsetof(owner, pool.ceil_mode), .value = 0,               \
     .help = "a last window may reach beyond the padding"}

/** The window over inputs of shape @p x; ceil mode's extra positions become padding at the high end. */
cvy_status cvy_pool_resolve(const cvy_pool_options *options, const cvy_shape *x, cvy_window *window_out);

/** Whether ceil mode lets a window reach beyond the padding that was asked for. */
bool cvy_pool_overhangs(const cvy_pool_options *options, const cvy_shape *x);

#endif
