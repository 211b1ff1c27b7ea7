/* Tensors joined along the channels, and the part of one of them taken out again. */
#include "backend/ref/ref.h"

/*
 * Copy @p count channels, from channel @p from of x to channel @p to of y; where there is a @p relu, shaped as y, only
 * what it lets through.
 */
static void copy_channels(const cvy_ref_tensor *x, int64_t from, const cvy_ref_tensor *y, int64_t to, int64_t count,
                          const cvy_ref_tensor *relu)
{
    for (int64_t plane = 0; plane < x->extent[CVY_REF_N] * count; plane++) {
        int64_t n = plane / count, c = plane % count;
        int64_t x_at = cvy_ref_plane(x, n, from + c), y_at = cvy_ref_plane(y, n, to + c);
        int64_t index[3] = {0, 0, 0};
        do {
            double value = cvy_ref_load(x, x_at + cvy_ref_point(x, CVY_REF_D, index));
            int64_t relu_at = relu ? cvy_ref_plane(relu, n, to + c) + cvy_ref_point(relu, CVY_REF_D, index) : 0;
            cvy_ref_store(y, y_at + cvy_ref_point(y, CVY_REF_D, index),
                          cvy_ref_lets_through(relu, relu_at) ? value : 0.0);
        } while (cvy_ref_next(index, &x->extent[CVY_REF_D]));
    }
}

cvy_status cvy_ref_concat(const cvy_ref_kernel *kernel, const cvy_run *run)
{
    int inputs = kernel->base.op.operands - 1;
    const cvy_ref_tensor *y = &kernel->tensor[inputs];
    int64_t first = 0;
    (void)run;
    for (int i = 0; i < inputs; i++) {
        const cvy_ref_tensor *x = &kernel->tensor[i];
        copy_channels(x, 0, y, first, x->extent[CVY_REF_C], NULL);
        first += x->extent[CVY_REF_C];
    }
    return CVY_OK;
}

cvy_status cvy_ref_slice(const cvy_ref_kernel *kernel, const cvy_run *run)
{
    const cvy_ref_tensor *dx = cvy_ref_find(kernel, CVY_ROLE_DX);
    (void)run;
    copy_channels(cvy_ref_find(kernel, CVY_ROLE_DY), kernel->base.op.params.slice.first, dx, 0,
                  dx->extent[CVY_REF_C], cvy_ref_find(kernel, CVY_ROLE_X));
    return CVY_OK;
}
