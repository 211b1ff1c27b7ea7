/*
 * Windows of pooling layers. Ceil mode is PyTorch's (aten/native/Pool.h, pooling_output_shape): the count of positions
 * is rounded up, but a window must start inside the input or the low padding. What the last window then covers beyond
 * the asked padding is padding at the high end; what no window covers any more makes it smaller, down to negative.
 */
#include "model/layers/pool.h"

#include "base/checked.h"

static void round_up(cvy_window *window, const int64_t space[3])
{
    for (int axis = 0; axis < 3; axis++) {
        int64_t stride = window->stride[axis];
        int64_t room = space[axis] + window->before[axis] + window->after[axis] - window->kernel[axis];
        if (room <= -stride) {
            continue; /* too large by more than a step: it does not fit, and cvy_op_describe() says so */
        }
        int64_t last = room > 0 ? cvy_ceil_div(room, stride) : 0; /* index of the last window */
        if (last * stride >= space[axis] + window->before[axis]) {
            last--;
        }
        window->after[axis] = last * stride + window->kernel[axis] - space[axis] - window->before[axis];
    }
}

cvy_status cvy_pool_resolve(const cvy_pool_options *options, const cvy_shape *x, cvy_window *window_out)
{
    int64_t space[3];
    bool given = options->stride.value[0] != 0;
    CVY_TRY(cvy_layer_require_space(x));
    CVY_TRY(cvy_window_resolve(&options->kernel, given ? &options->stride : &options->kernel, NULL, &options->padding,
                               x->dims - 2, window_out));
    if (options->ceil_mode) {
        cvy_space_get(x, space);
        round_up(window_out, space);
    }
    return CVY_OK;
}

bool cvy_pool_overhangs(const cvy_pool_options *options, const cvy_shape *x)
{
    cvy_pool_options floored = *options;
    cvy_window window, asked;
    floored.ceil_mode = false;
    if (cvy_pool_resolve(options, x, &window) != CVY_OK || cvy_pool_resolve(&floored, x, &asked) != CVY_OK) {
        return false;
    }
    for (int axis = 0; axis < 3; axis++) {
        if (window.after[axis] > asked.after[axis]) {
            return true;
        }
    }
    return false;
}
