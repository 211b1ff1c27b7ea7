/*
 * Multiply: every position of a channel times the one factor that the channel has in this sample. A factor is read
 * before anything of its channel is written, and an element before its own place, so y may lie on x and dx on dy.
 */
#include "backend/ref/ref.h"

cvy_status cvy_ref_multiply_forward(const cvy_ref_kernel *kernel, const cvy_run *run)
{
    const cvy_ref_tensor *x = cvy_ref_find(kernel, CVY_ROLE_X);
    const cvy_ref_tensor *x1 = cvy_ref_find(kernel, CVY_ROLE_X1);
    const cvy_ref_tensor *y = cvy_ref_find(kernel, CVY_ROLE_Y);
    int64_t channels = x->extent[CVY_REF_C];
    (void)run;
    for (int64_t plane = 0; plane < x->extent[CVY_REF_N] * channels; plane++) {
        int64_t n = plane / channels;
        int64_t c = plane % channels;
        int64_t at[3] = {0, 0, 0};
        double factor = cvy_ref_load(x1, cvy_ref_plane(x1, n, c));
        do {
            double value = cvy_ref_load(x, cvy_ref_plane(x, n, c) + cvy_ref_point(x, CVY_REF_D, at));
            cvy_ref_store(y, cvy_ref_plane(y, n, c) + cvy_ref_point(y, CVY_REF_D, at), factor * value);
        } while (cvy_ref_next(at, &x->extent[CVY_REF_D]));
    }
    return CVY_OK;
}

cvy_status cvy_ref_multiply_backward(const cvy_ref_kernel *kernel, const cvy_run *run)
{
    const cvy_ref_tensor *x = cvy_ref_find(kernel, CVY_ROLE_X);
    const cvy_ref_tensor *x1 = cvy_ref_find(kernel, CVY_ROLE_X1);
    const cvy_ref_tensor *dy = cvy_ref_find(kernel, CVY_ROLE_DY);
    const cvy_ref_tensor *dx = cvy_ref_find(kernel, CVY_ROLE_DX);
    const cvy_ref_tensor *dx1 = cvy_ref_find(kernel, CVY_ROLE_DX1);
    int64_t channels = x->extent[CVY_REF_C];
    (void)run;
    for (int64_t plane = 0; plane < x->extent[CVY_REF_N] * channels; plane++) {
        int64_t n = plane / channels;
        int64_t c = plane % channels;
        int64_t at[3] = {0, 0, 0};
        double factor = cvy_ref_load(x1, cvy_ref_plane(x1, n, c));
        double sum = 0.0;
        do {
            double gradient = cvy_ref_load(dy, cvy_ref_plane(dy, n, c) + cvy_ref_point(dy, CVY_REF_D, at));
            sum += gradient * cvy_ref_load(x, cvy_ref_plane(x, n, c) + cvy_ref_point(x, CVY_REF_D, at));
            cvy_ref_store(dx, cvy_ref_plane(dx, n, c) + cvy_ref_point(dx, CVY_REF_D, at), factor * gradient);
        } while (cvy_ref_next(at, &x->extent[CVY_REF_D]));
        cvy_ref_store(dx1, cvy_ref_plane(dx1, n, c), sum);
    }
    return CVY_OK;
}
