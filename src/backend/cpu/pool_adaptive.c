/*
 * Adaptive average pooling. It stands once in a network, over a few positions, so the loops go by plane in every format
 * alike; planes are shared by the threads, and each is summed in one order.
 */
#include <string.h>

#include "backend/cpu/cpu.h"
#include "op/bins.h"

/* Where the planes of a tensor lie; its spatial dimensions have no blocks in any activation format. */
typedef struct planes {
    cvy_layout layout;
    int64_t space[3], stride[3];
} planes;

static planes get_planes(const cvy_tensor *tensor)
{
    planes p = {.layout = cvy_tensor_layout(tensor)};
    cvy_space_get(&tensor->shape, p.space);
    for (int i = 2; i < tensor->shape.dims; i++) {
        p.stride[i + 3 - tensor->shape.dims] = p.layout.stride[i];
    }
    return p;
}

static int64_t plane_offset(const planes *p, int64_t n, int64_t c)
{
    int64_t index[CVY_MAX_DIMS] = {n, c};
    return cvy_layout_offset(&p->layout, index);
}

/* The input elements of one bin. */
typedef struct bin {
    int64_t begin[3], end[3];
    float share; /* 1 / elements */
} bin;

static bin get_bin(const planes *in, const planes *out, const int64_t o[3])
{
    bin b;
    int64_t elements = 1;
    for (int axis = 0; axis < 3; axis++) {
        b.begin[axis] = cvy_bin_begin(o[axis], in->space[axis], out->space[axis]);
        b.end[axis] = cvy_bin_end(o[axis], in->space[axis], out->space[axis]);
        elements *= b.end[axis] - b.begin[axis];
    }
    b.share = 1.0f / (float)elements;
    return b;
}

static float sum_bin(const planes *in, const bin *b, const float *x)
{
    float sum = 0;
    for (int64_t d = b->begin[0]; d < b->end[0]; d++) {
        for (int64_t h = b->begin[1]; h < b->end[1]; h++) {
            for (int64_t w = b->begin[2]; w < b->end[2]; w++) {
                sum += x[d * in->stride[0] + h * in->stride[1] + w * in->stride[2]];
            }
        }
    }
    return sum;
}

static void spread_bin(const planes *in, const bin *b, float value, float *dx)
{
    for (int64_t d = b->begin[0]; d < b->end[0]; d++) {
        for (int64_t h = b->begin[1]; h < b->end[1]; h++) {
            for (int64_t w = b->begin[2]; w < b->end[2]; w++) {
                dx[d * in->stride[0] + h * in->stride[1] + w * in->stride[2]] += value;
            }
        }
    }
}

/* All bins of one plane: forward from x into y, or backward from y (that is dy) into x (dx, zero before). */
static void run_plane(const planes *in, const planes *out, bool forward, float *x, float *y)
{
    int64_t o[3];
    for (o[0] = 0; o[0] < out->space[0]; o[0]++) {
        for (o[1] = 0; o[1] < out->space[1]; o[1]++) {
            for (o[2] = 0; o[2] < out->space[2]; o[2]++) {
                bin b = get_bin(in, out, o);
                float *at = &y[o[0] * out->stride[0] + o[1] * out->stride[1] + o[2] * out->stride[2]];
                if (forward) {
                    *at = b.share * sum_bin(in, &b, x);
                } else {
                    spread_bin(in, &b, b.share * *at, x);
                }
            }
        }
    }
}

static void run_all(const cvy_cpu_kernel *kernel, bool forward, float *x, float *y)
{
    const cvy_operand *operand = kernel->base.op.operand;
    const cvy_tensor *input = &operand[forward ? 0 : 1].tensor;
    const planes in = get_planes(input), out = get_planes(&operand[forward ? 1 : 0].tensor);
    int64_t channels = input->shape.extent[1], count = input->shape.extent[0] * channels;
#pragma omp parallel for schedule(static) if (kernel->elements > CVY_CPU_SERIAL_ELEMENTS)
    for (int64_t i = 0; i < count; i++) {
        int64_t n = i / channels, c = i % channels;
        run_plane(&in, &out, forward, x + plane_offset(&in, n, c), y + plane_offset(&out, n, c));
    }
}

static cvy_status run_forward(const cvy_cpu_kernel *kernel, void *const *operand, void *scratch, const cvy_run *run)
{
    (void)scratch;
    (void)run;
    memset(operand[1], 0, (size_t)cvy_tensor_bytes(&kernel->base.op.operand[1].tensor)); /* the padding */
    run_all(kernel, true, operand[0], operand[1]);
    return CVY_OK;
}

static cvy_status run_backward(const cvy_cpu_kernel *kernel, void *const *operand, void *scratch, const cvy_run *run)
{
    (void)scratch;
    (void)run;
    memset(operand[1], 0, (size_t)cvy_tensor_bytes(&kernel->base.op.operand[1].tensor));
    run_all(kernel, false, operand[1], operand[0]);
    return CVY_OK;
}

static cvy_cpu_run find(const cvy_op *op) { return op->pass == CVY_PASS_FORWARD ? run_forward : run_backward; }

const cvy_cpu_family cvy_cpu_pool_adaptive = {.find = find};
