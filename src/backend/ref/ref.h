/*
 * The reference: every op as op.h words it, in loops that one can read beside the formula. It is slow and judges the
 * others, so it has no second way of doing anything: f32 and f64 and every format share one source. Elements are loaded
 * as double, sums are kept in double, and only the result is rounded to the operand's type.
 */
#ifndef CVY_BACKEND_REF_REF_H
#define CVY_BACKEND_REF_REF_H

#include "backend/backend.h"

extern const cvy_backend cvy_backend_ref;

/** Dimensions of a tensor as the loops see it: n,c,d,h,w. */
enum { CVY_REF_N, CVY_REF_C, CVY_REF_D, CVY_REF_H, CVY_REF_W };

/** Dimensions of weights as the loops see them: g,o,i,kd,kh,kw. */
enum { CVY_REF_G, CVY_REF_O, CVY_REF_I, CVY_REF_KD, CVY_REF_KH, CVY_REF_KW };

/**
 * An operand. Dimensions that it lacks have extent 1, so that 2-D, 3-D and vectors run through the same loops. In every
 * format the offset of an element is a sum of one term for each dimension; the terms lie in a table for each.
 */
typedef struct cvy_ref_tensor {
    void *data;                      /**< of the run that is going on */
    cvy_dtype dtype;
    int64_t extent[CVY_MAX_DIMS];
    const int64_t *at[CVY_MAX_DIMS]; /**< at[dimension][index], in elements */
    int64_t elements;                /**< with padding */
    bool padded;
} cvy_ref_tensor;

typedef struct cvy_ref_kernel cvy_ref_kernel;

/** What computes an op: reads and writes the operands' data. */
typedef cvy_status (*cvy_ref_compute)(const cvy_ref_kernel *kernel, const cvy_run *run);

struct cvy_ref_kernel {
    cvy_kernel base;
    cvy_ref_compute compute;
    int64_t *tables; /**< of all operands; owned */
    cvy_ref_tensor tensor[CVY_MAX_OPERANDS];
};

/** The operand of a role; NULL where the op has none. */
static inline const cvy_ref_tensor *cvy_ref_find(const cvy_ref_kernel *kernel, cvy_role role)
{
    int i = cvy_op_index(&kernel->base.op, role);
    return i < 0 ? NULL : &kernel->tensor[i];
}

static inline double cvy_ref_load(const cvy_ref_tensor *tensor, int64_t offset)
{
    return tensor->dtype == CVY_F32 ? (double)((const float *)tensor->data)[offset]
                                    : ((const double *)tensor->data)[offset];
}

static inline void cvy_ref_store(const cvy_ref_tensor *tensor, int64_t offset, double value)
{
    if (tensor->dtype == CVY_F32) {
        ((float *)tensor->data)[offset] = (float)value;
    } else {
        ((double *)tensor->data)[offset] = value;
    }
}

/** Whether a relu lets the gradient of an element through that it made; it does where there is no such @p tensor. */
static inline bool cvy_ref_lets_through(const cvy_ref_tensor *tensor, int64_t offset)
{
    return !tensor || cvy_ref_load(tensor, offset) > 0.0;
}

/** Offset of n,c,0,0,0: the plane of a channel. */
static inline int64_t cvy_ref_plane(const cvy_ref_tensor *tensor, int64_t n, int64_t c)
{
    return tensor->at[CVY_REF_N][n] + tensor->at[CVY_REF_C][c];
}

/** Offset of d,h,w within a plane (@p first CVY_REF_D), or of kd,kh,kw within a kernel (CVY_REF_KD). */
static inline int64_t cvy_ref_point(const cvy_ref_tensor *tensor, int first, const int64_t index[3])
{
    return tensor->at[first][index[0]] + tensor->at[first + 1][index[1]] + tensor->at[first + 2][index[2]];
}

/** Rows of w in a tensor, in logical order; weights of six dimensions are gone over in some order. */
static inline int64_t cvy_ref_rows(const cvy_ref_tensor *tensor)
{
    return tensor->extent[CVY_REF_N] * tensor->extent[CVY_REF_C] * tensor->extent[CVY_REF_D] *
           tensor->extent[CVY_REF_H] * tensor->extent[CVY_REF_KW];
}

/** Offset of the first element of a row. */
static inline int64_t cvy_ref_row(const cvy_ref_tensor *tensor, int64_t row)
{
    int64_t offset = tensor->at[CVY_REF_KW][row % tensor->extent[CVY_REF_KW]];
    row /= tensor->extent[CVY_REF_KW];
    for (int dim = CVY_REF_H; dim >= CVY_REF_N; dim--) {
        offset += tensor->at[dim][row % tensor->extent[dim]];
        row /= tensor->extent[dim];
    }
    return offset;
}

/** Index in the input of tap @p k of position @p o of a window; outside of [0, extent) in the padding. */
static inline int64_t cvy_ref_tap(const cvy_window *window, int axis, int64_t o, int64_t k)
{
    return o * window->stride[axis] - window->before[axis] + k * window->dilation[axis];
}

/** The position whose tap @p k is input element @p i, of @p positions; -1 where none is. */
static inline int64_t cvy_ref_position(const cvy_window *window, int axis, int64_t i, int64_t k, int64_t positions)
{
    int64_t distance = i + window->before[axis] - k * window->dilation[axis];
    int64_t o = distance / window->stride[axis];
    return distance >= 0 && distance % window->stride[axis] == 0 && o < positions ? o : -1;
}

/** Advance three indices within @p extent, the last fastest; false after the last of all. Start from {0, 0, 0}. */
static inline bool cvy_ref_next(int64_t index[3], const int64_t extent[3])
{
    for (int axis = 2; axis >= 0; axis--) {
        if (++index[axis] < extent[axis]) {
            return true;
        }
        index[axis] = 0;
    }
    return false;
}

cvy_status cvy_ref_convolution_forward(const cvy_ref_kernel *kernel, const cvy_run *run);
cvy_status cvy_ref_convolution_data(const cvy_ref_kernel *kernel, const cvy_run *run);
cvy_status cvy_ref_convolution_weights(const cvy_ref_kernel *kernel, const cvy_run *run);

cvy_status cvy_ref_dense_forward(const cvy_ref_kernel *kernel, const cvy_run *run);
cvy_status cvy_ref_dense_data(const cvy_ref_kernel *kernel, const cvy_run *run);
cvy_status cvy_ref_dense_weights(const cvy_ref_kernel *kernel, const cvy_run *run);

cvy_status cvy_ref_pool_max_forward(const cvy_ref_kernel *kernel, const cvy_run *run);
cvy_status cvy_ref_pool_max_data(const cvy_ref_kernel *kernel, const cvy_run *run);
cvy_status cvy_ref_pool_average_forward(const cvy_ref_kernel *kernel, const cvy_run *run);
cvy_status cvy_ref_pool_average_data(const cvy_ref_kernel *kernel, const cvy_run *run);
cvy_status cvy_ref_pool_global_forward(const cvy_ref_kernel *kernel, const cvy_run *run);
cvy_status cvy_ref_pool_global_data(const cvy_ref_kernel *kernel, const cvy_run *run);
cvy_status cvy_ref_pool_adaptive_forward(const cvy_ref_kernel *kernel, const cvy_run *run);
cvy_status cvy_ref_pool_adaptive_data(const cvy_ref_kernel *kernel, const cvy_run *run);

cvy_status cvy_ref_norm_forward(const cvy_ref_kernel *kernel, const cvy_run *run);
cvy_status cvy_ref_norm_inference(const cvy_ref_kernel *kernel, const cvy_run *run);
cvy_status cvy_ref_norm_backward(const cvy_ref_kernel *kernel, const cvy_run *run);
cvy_status cvy_ref_norm_stats(const cvy_ref_kernel *kernel, const cvy_run *run);
cvy_status cvy_ref_norm_normalise(const cvy_ref_kernel *kernel, const cvy_run *run);
cvy_status cvy_ref_norm_grad_stats(const cvy_ref_kernel *kernel, const cvy_run *run);
cvy_status cvy_ref_norm_grad_apply(const cvy_ref_kernel *kernel, const cvy_run *run);
cvy_status cvy_ref_norm_commit(const cvy_ref_kernel *kernel, const cvy_run *run);
cvy_status cvy_ref_norm_merge(const cvy_ref_kernel *kernel, const cvy_run *run);

cvy_status cvy_ref_activation_forward(const cvy_ref_kernel *kernel, const cvy_run *run);
cvy_status cvy_ref_activation_data(const cvy_ref_kernel *kernel, const cvy_run *run);
cvy_status cvy_ref_dropout_forward(const cvy_ref_kernel *kernel, const cvy_run *run);
cvy_status cvy_ref_dropout_data(const cvy_ref_kernel *kernel, const cvy_run *run);
cvy_status cvy_ref_add_forward(const cvy_ref_kernel *kernel, const cvy_run *run);
cvy_status cvy_ref_stochastic_depth_forward(const cvy_ref_kernel *kernel, const cvy_run *run);
cvy_status cvy_ref_stochastic_depth_data(const cvy_ref_kernel *kernel, const cvy_run *run);

cvy_status cvy_ref_multiply_forward(const cvy_ref_kernel *kernel, const cvy_run *run);
cvy_status cvy_ref_multiply_backward(const cvy_ref_kernel *kernel, const cvy_run *run);

cvy_status cvy_ref_cross_entropy_forward(const cvy_ref_kernel *kernel, const cvy_run *run);
cvy_status cvy_ref_cross_entropy_data(const cvy_ref_kernel *kernel, const cvy_run *run);
cvy_status cvy_ref_dice_forward(const cvy_ref_kernel *kernel, const cvy_run *run);
cvy_status cvy_ref_dice_data(const cvy_ref_kernel *kernel, const cvy_run *run);
cvy_status cvy_ref_squared_error_forward(const cvy_ref_kernel *kernel, const cvy_run *run);
cvy_status cvy_ref_squared_error_data(const cvy_ref_kernel *kernel, const cvy_run *run);

cvy_status cvy_ref_reorder(const cvy_ref_kernel *kernel, const cvy_run *run);

cvy_status cvy_ref_sgd(const cvy_ref_kernel *kernel, const cvy_run *run);
cvy_status cvy_ref_adam(const cvy_ref_kernel *kernel, const cvy_run *run);
cvy_status cvy_ref_square_sum(const cvy_ref_kernel *kernel, const cvy_run *run);
cvy_status cvy_ref_clip(const cvy_ref_kernel *kernel, const cvy_run *run);
cvy_status cvy_ref_lars(const cvy_ref_kernel *kernel, const cvy_run *run);
cvy_status cvy_ref_lamb_direction(const cvy_ref_kernel *kernel, const cvy_run *run);
cvy_status cvy_ref_average(const cvy_ref_kernel *kernel, const cvy_run *run);
cvy_status cvy_ref_lamb(const cvy_ref_kernel *kernel, const cvy_run *run);

/** Gradients as a rule is to see them: clipped. Start with cvy_ref_open_gradient(). */
typedef struct cvy_ref_gradient {
    const cvy_ref_tensor *dw;
    double scale; /**< 1 where nothing clips */
    double limit; /**< infinite where nothing cuts */
} cvy_ref_gradient;

/** Look at a rule's gradients. @retval CVY_ERR_DIVERGED one is not finite */
cvy_status cvy_ref_open_gradient(const cvy_ref_kernel *kernel, cvy_ref_gradient *gradient_out);

/** Element @p i, clipped. */
double cvy_ref_load_gradient(const cvy_ref_gradient *gradient, int64_t i);

cvy_status cvy_ref_concat(const cvy_ref_kernel *kernel, const cvy_run *run);
cvy_status cvy_ref_slice(const cvy_ref_kernel *kernel, const cvy_run *run);
cvy_status cvy_ref_pick(const cvy_ref_kernel *kernel, const cvy_run *run);
cvy_status cvy_ref_frame(const cvy_ref_kernel *kernel, const cvy_run *run);

cvy_status cvy_ref_group_norm_forward(const cvy_ref_kernel *kernel, const cvy_run *run);
cvy_status cvy_ref_group_norm_backward(const cvy_ref_kernel *kernel, const cvy_run *run);

cvy_status cvy_ref_response_forward(const cvy_ref_kernel *kernel, const cvy_run *run);
cvy_status cvy_ref_response_data(const cvy_ref_kernel *kernel, const cvy_run *run);

#endif
