/* Window options, given once or for each axis, in the d,h,w order of ops. */
#include "model/layer.h"

static cvy_status check_count(int count, int spatial, const char *what)
{
    CVY_REQUIRE(count == 1 || count == spatial, CVY_ERR_INPUT, "%s: found %d entries, expected 1 or %d", what, count,
                spatial);
    return CVY_OK;
}

cvy_status cvy_window_resolve(const cvy_axes *kernel, const cvy_axes *stride, const cvy_axes *dilation,
                              const cvy_pads *padding, int spatial, cvy_window *window_out)
{
    static const cvy_axes dense = {.count = 1, .value = {1}};
    dilation = dilation ? dilation : &dense;
    CVY_TRY(check_count(kernel->count, spatial, "kernel"));
    CVY_TRY(check_count(stride->count, spatial, "stride"));
    CVY_TRY(check_count(dilation->count, spatial, "dilation"));
    CVY_TRY(check_count(padding->count, spatial, "padding"));
    *window_out = (cvy_window){.kernel = {1, 1, 1}, .stride = {1, 1, 1}, .dilation = {1, 1, 1}};
    for (int i = 0; i < spatial; i++) {
        int axis = 3 - spatial + i;
        window_out->kernel[axis] = kernel->value[kernel->count > 1 ? i : 0];
        window_out->stride[axis] = stride->value[stride->count > 1 ? i : 0];
        window_out->dilation[axis] = dilation->value[dilation->count > 1 ? i : 0];
        window_out->before[axis] = padding->before[padding->count > 1 ? i : 0];
        window_out->after[axis] = padding->after[padding->count > 1 ? i : 0];
    }
    return CVY_OK;
}
