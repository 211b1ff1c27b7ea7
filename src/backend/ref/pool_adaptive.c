/* Adaptive average pooling: the mean over bins, and for an input element the sum of the shares of the bins it is in. */
#include "backend/ref/ref.h"
#include "op/bins.h"

static void get_space(const cvy_ref_tensor *tensor, int64_t space_out[3])
{
    for (int axis = 0; axis < 3; axis++) {
        space_out[axis] = tensor->extent[CVY_REF_D + axis];
    }
}

/* Extents and first index of a bin. */
static void get_bin(const int64_t o[3], const int64_t in[3], const int64_t out[3], int64_t begin[3], int64_t extent[3])
{
    for (int axis = 0; axis < 3; axis++) {
        begin[axis] = cvy_bin_begin(o[axis], in[axis], out[axis]);
        extent[axis] = cvy_bin_end(o[axis], in[axis], out[axis]) - begin[axis];
    }
}

static double mean_of_bin(const cvy_ref_tensor *x, int64_t plane, const int64_t begin[3], const int64_t extent[3])
{
    int64_t k[3] = {0, 0, 0};
    double sum = 0.0;
    do {
        int64_t i[3] = {begin[0] + k[0], begin[1] + k[1], begin[2] + k[2]};
        sum += cvy_ref_load(x, plane + cvy_ref_point(x, CVY_REF_D, i));
    } while (cvy_ref_next(k, extent));
    return sum / (double)(extent[0] * extent[1] * extent[2]);
}

cvy_status cvy_ref_pool_adaptive_forward(const cvy_ref_kernel *kernel, const cvy_run *run)
{
    const cvy_ref_tensor *x = cvy_ref_find(kernel, CVY_ROLE_X);
    const cvy_ref_tensor *y = cvy_ref_find(kernel, CVY_ROLE_Y);
    int64_t in[3], out[3], begin[3], extent[3];
    get_space(x, in);
    get_space(y, out);
    (void)run;
    for (int64_t n = 0; n < x->extent[CVY_REF_N]; n++) {
        for (int64_t c = 0; c < x->extent[CVY_REF_C]; c++) {
            int64_t o[3] = {0, 0, 0};
            do {
                get_bin(o, in, out, begin, extent);
                cvy_ref_store(y, cvy_ref_plane(y, n, c) + cvy_ref_point(y, CVY_REF_D, o),
                              mean_of_bin(x, cvy_ref_plane(x, n, c), begin, extent));
            } while (cvy_ref_next(o, out));
        }
    }
    return CVY_OK;
}

/* Sum of dy, each over the elements of its bin, of the bins that hold input element i. */
static double sum_shares(const cvy_ref_tensor *dy, int64_t plane, const int64_t i[3], const int64_t in[3])
{
    int64_t out[3], begin[3], extent[3];
    int64_t o[3] = {0, 0, 0};
    double sum = 0.0;
    get_space(dy, out);
    do {
        get_bin(o, in, out, begin, extent);
        bool held = true;
        for (int axis = 0; axis < 3; axis++) {
            held = held && i[axis] >= begin[axis] && i[axis] < begin[axis] + extent[axis];
        }
        if (held) {
            sum += cvy_ref_load(dy, plane + cvy_ref_point(dy, CVY_REF_D, o)) /
                   (double)(extent[0] * extent[1] * extent[2]);
        }
    } while (cvy_ref_next(o, out));
    return sum;
}

cvy_status cvy_ref_pool_adaptive_data(const cvy_ref_kernel *kernel, const cvy_run *run)
{
    const cvy_ref_tensor *dy = cvy_ref_find(kernel, CVY_ROLE_DY);
    const cvy_ref_tensor *dx = cvy_ref_find(kernel, CVY_ROLE_DX);
    int64_t in[3];
    get_space(dx, in);
    (void)run;
    for (int64_t n = 0; n < dx->extent[CVY_REF_N]; n++) {
        for (int64_t c = 0; c < dx->extent[CVY_REF_C]; c++) {
            int64_t i[3] = {0, 0, 0};
            do {
                cvy_ref_store(dx, cvy_ref_plane(dx, n, c) + cvy_ref_point(dx, CVY_REF_D, i),
                              sum_shares(dy, cvy_ref_plane(dy, n, c), i, in));
            } while (cvy_ref_next(i, in));
        }
    }
    return CVY_OK;
}
