/*
 * What the tests of every backend share: operands with deterministic values, one run of a kernel, and the difference
 * between a backend and the reference in double. Values are functions of role and logical element, exact in float, so
 * they are the same in every format and type. What an op is to write starts as NaN (all bits set): an element that it
 * forgets shows.
 */
#ifndef CVY_TESTS_BACKEND_SUPPORT_H
#define CVY_TESTS_BACKEND_SUPPORT_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "backend/backend.h"
#include "backend/shapes.h"
#include "base/memory.h"
#include "base/random.h"

extern const cvy_backend cvy_backend_ref;

/* What a run says, for a configuration: no number is 0 or 1 that an op might forget. */
static inline cvy_run make_run(const test_shape *shape)
{
    int64_t n = shape->x.extent[0];
    return (cvy_run){.seed = 42,
                     .step = 5,
                     .sample_first = 16,
                     .samples = shape->samples ? shape->samples : n,
                     .loss_scale = 1.0 / 8.0,
                     .learning_rate = 0.05,
                     .update = 3};
}

/* The offset of the logical element @p e (counted in logical order) of a tensor. */
static inline int64_t element_offset(const cvy_tensor *tensor, const cvy_layout *layout, int64_t e)
{
    int64_t index[CVY_MAX_DIMS];
    for (int i = tensor->shape.dims - 1; i >= 0; i--) {
        index[i] = e % tensor->shape.extent[i];
        e /= tensor->shape.extent[i];
    }
    return cvy_layout_offset(layout, index);
}

static inline double get_element(cvy_dtype dtype, const void *data, int64_t offset)
{
    switch (dtype) {
    case CVY_F32: return ((const float *)data)[offset];
    case CVY_F64: return ((const double *)data)[offset];
    case CVY_I32: return ((const int32_t *)data)[offset];
    default: return ((const uint8_t *)data)[offset];
    }
}

static inline void set_element(cvy_dtype dtype, void *data, int64_t offset, double value)
{
    switch (dtype) {
    case CVY_F32: ((float *)data)[offset] = (float)value; break;
    case CVY_F64: ((double *)data)[offset] = value; break;
    case CVY_I32: ((int32_t *)data)[offset] = (int32_t)value; break;
    default: ((uint8_t *)data)[offset] = (uint8_t)value; break;
    }
}

/*
 * A number in [-1, 1), exact in float, by what it is for and its place: 24 bits of SplitMix64's finaliser (Steele, Lea,
 * Flood, "Fast splittable pseudorandom number generators", 2014), since most of the time of a test goes into these.
 */
static inline double draw_value(uint32_t what, int64_t e)
{
    uint64_t word = ((uint64_t)what << 40 | (uint64_t)(e + 1)) * 0x9E3779B97F4A7C15u;
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9u;
    word = (word ^ word >> 27) * 0x94D049BB133111EBu;
    word ^= word >> 31;
    return (double)(word >> 40) * 0x1p-23 - 1.0;
}

/* Fill a tensor with numbers in [low, high), row by row along the last dimension; the padding becomes zero. */
static inline void fill(const cvy_tensor *tensor, void *data, uint32_t what, double low, double high)
{
    cvy_layout layout = cvy_tensor_layout(tensor);
    int last = tensor->shape.dims - 1;
    int64_t row = tensor->shape.extent[last], block = layout.block[last];
    memset(data, 0, (size_t)cvy_tensor_bytes(tensor));
    for (int64_t e = 0; e < cvy_shape_elements(&tensor->shape); e += row) {
        int64_t first = element_offset(tensor, &layout, e);
        for (int64_t i = 0; i < row; i++) {
            double value = (float)(low + (high - low) * 0.5 * (draw_value(what, e + i) + 1.0));
            int64_t along = block == 1 ? i * layout.stride[last]
                                       : i / block * layout.stride[last] + i % block * layout.inner_stride[last];
            set_element(tensor->dtype, data, first + along, value);
        }
    }
}

/* A tap along one axis that lies inside the input, chosen by @p choice. */
static inline int64_t choose_tap(const cvy_window *window, int axis, int64_t position, int64_t extent, uint32_t choice)
{
    int64_t found = 0;
    int64_t inside[CVY_SHAPE_TEXT];
    for (int64_t k = 0; k < window->kernel[axis] && found < CVY_SHAPE_TEXT; k++) {
        int64_t at = position * window->stride[axis] - window->before[axis] + k * window->dilation[axis];
        if (at >= 0 && at < extent) {
            inside[found++] = k;
        }
    }
    return inside[choice % (uint32_t)found];
}

/* Winners of a max pooling: any tap inside the input. */
static inline void fill_window(const cvy_op *op, const cvy_tensor *tensor, void *data)
{
    const cvy_operand *input = cvy_op_find(op, CVY_ROLE_DX);
    const cvy_window *window = &op->params.window.window;
    cvy_layout layout = cvy_tensor_layout(tensor);
    int64_t in[3], out[3], tap[3];
    cvy_space_get(&input->tensor.shape, in);
    cvy_space_get(&tensor->shape, out);
    memset(data, 0, (size_t)cvy_tensor_bytes(tensor));
    for (int64_t e = 0; e < cvy_shape_elements(&tensor->shape); e++) {
        cvy_words words = cvy_random_words(7, CVY_PURPOSE_SYNTHETIC_DATA, 99, 0, 0, (uint32_t)e);
        int64_t position[3] = {e / out[2] / out[1] % out[0], e / out[2] % out[1], e % out[2]};
        for (int axis = 0; axis < 3; axis++) {
            tap[axis] = choose_tap(window, axis, position[axis], in[axis], words.v[axis]);
        }
        int64_t index = (tap[0] * window->kernel[1] + tap[1]) * window->kernel[2] + tap[2];
        set_element(tensor->dtype, data, element_offset(tensor, &layout, e), (double)index);
    }
}

/* Probabilities: positive, with sum 1 over the classes of a position. */
static inline void fill_probability(const cvy_tensor *tensor, void *data)
{
    cvy_layout layout = cvy_tensor_layout(tensor);
    int64_t n = tensor->shape.extent[0], classes = tensor->shape.extent[1];
    int64_t positions = cvy_shape_elements(&tensor->shape) / (n * classes);
    fill(tensor, data, CVY_ROLE_PROBABILITY, 0.01, 1.0);
    for (int64_t i = 0; i < n * positions; i++) {
        int64_t first = i / positions * classes * positions + i % positions;
        double sum = 0.0;
        for (int64_t c = 0; c < classes; c++) {
            sum += get_element(tensor->dtype, data, element_offset(tensor, &layout, first + c * positions));
        }
        for (int64_t c = 0; c < classes; c++) {
            int64_t at = element_offset(tensor, &layout, first + c * positions);
            set_element(tensor->dtype, data, at, (float)(get_element(tensor->dtype, data, at) / sum));
        }
    }
}

/* Fill what an op reads with values that make sense for its role; what it writes becomes NaN. */
static inline void fill_operand(const cvy_op *op, int i, void *data)
{
    const cvy_operand *operand = &op->operand[i];
    const cvy_tensor *tensor = &operand->tensor;
    double classes = 1.0;
    if (operand->access == CVY_ACCESS_WRITE) {
        memset(data, 0xFF, (size_t)cvy_tensor_bytes(tensor));
        return;
    }
    switch (operand->role) {
    case CVY_ROLE_OVERLAP:
    case CVY_ROLE_VARIANCE:
    case CVY_ROLE_RUNNING_VARIANCE: fill(tensor, data, operand->role, 0.5, 1.5); break;
    case CVY_ROLE_SQUARES:
    case CVY_ROLE_SCALE:
    case CVY_ROLE_MOMENT2: fill(tensor, data, operand->role, 0.0, 1.0); break;
    case CVY_ROLE_WINDOW: fill_window(op, tensor, data); break;
    case CVY_ROLE_PROBABILITY: fill_probability(tensor, data); break;
    case CVY_ROLE_LABEL:
        if (tensor->dtype == CVY_I32) {
            const cvy_operand *scores = cvy_op_find(op, CVY_ROLE_X);
            classes = (double)(scores ? scores : cvy_op_find(op, CVY_ROLE_DX))->tensor.shape.extent[1];
            fill(tensor, data, operand->role, 0.0, classes);
            break;
        }
        fill(tensor, data, operand->role, -1.0, 1.0);
        break;
    default: fill(tensor, data, operand->role, -1.0, 1.0); break;
    }
}

/* Memory for each operand of an op, aligned as in a plan. */
typedef struct test_operands {
    void *data[CVY_MAX_OPERANDS];
    void *owned[CVY_MAX_OPERANDS];
} test_operands;

/* Take memory for the operands, zeroed. */
static inline test_operands take_operands(const cvy_op *op)
{
    test_operands operands = {{NULL}, {NULL}};
    for (int i = 0; i < op->operands; i++) {
        operands.owned[i] = cvy_calloc(1, (size_t)cvy_tensor_bytes(&op->operand[i].tensor) + CVY_ARENA_ALIGNMENT);
        assert_non_null(operands.owned[i]);
        size_t past = (uintptr_t)operands.owned[i] % CVY_ARENA_ALIGNMENT;
        operands.data[i] = (char *)operands.owned[i] + (past ? CVY_ARENA_ALIGNMENT - past : 0);
    }
    return operands;
}

/* Take memory for the operands and fill them. */
static inline test_operands create_operands(const cvy_op *op)
{
    test_operands operands = take_operands(op);
    for (int i = 0; i < op->operands; i++) {
        fill_operand(op, i, operands.data[i]);
    }
    return operands;
}

static inline void destroy_operands(test_operands *operands)
{
    for (int i = 0; i < CVY_MAX_OPERANDS; i++) {
        cvy_free(operands->owned[i]);
        operands->owned[i] = operands->data[i] = NULL;
    }
}

/* Run an op once on a backend; CVY_ERR_UNSUPPORTED where it does not take it. */
static inline cvy_status run_op(const cvy_backend *backend, const cvy_op *op, void *const *data, const cvy_run *run)
{
    cvy_backend_chain chain = {1, {backend}};
    cvy_kernel *kernel = NULL;
    cvy_arena scratch = {0};
    CVY_TRY(cvy_kernel_create(&chain, op, &kernel));
    cvy_status status = cvy_arena_create(cvy_kernel_scratch_bytes(kernel), &scratch);
    if (status == CVY_OK) {
        status = cvy_kernel_run(kernel, data, scratch.base, run);
    }
    cvy_arena_destroy(&scratch);
    cvy_kernel_destroy(&kernel);
    return status;
}

/* max|a - b| / max|b| over logical elements (max|a - b| where b is all zero); infinite where an element is NaN. */
static inline double relative_difference(const cvy_tensor *a, const void *a_data, const cvy_tensor *b,
                                         const void *b_data)
{
    cvy_layout a_layout = cvy_tensor_layout(a);
    cvy_layout b_layout = cvy_tensor_layout(b);
    double difference = 0.0;
    double largest = 0.0;
    for (int64_t e = 0; e < cvy_shape_elements(&b->shape); e++) {
        double x = get_element(a->dtype, a_data, element_offset(a, &a_layout, e));
        double y = get_element(b->dtype, b_data, element_offset(b, &b_layout, e));
        if (isnan(x) || isnan(y)) {
            return INFINITY;
        }
        difference = fmax(difference, fabs(x - y));
        largest = fmax(largest, fabs(y));
    }
    return largest > 0.0 ? difference / largest : difference;
}

/* Whether all elements that a format adds are zero: their bits, set aside of the logical ones. */
static inline bool padding_is_zero(const cvy_tensor *tensor, const void *data)
{
    cvy_layout layout = cvy_tensor_layout(tensor);
    unsigned char *logical = (unsigned char *)cvy_calloc((size_t)layout.elements, 1);
    assert_non_null(logical);
    for (int64_t e = 0; e < cvy_shape_elements(&tensor->shape); e++) {
        logical[element_offset(tensor, &layout, e)] = 1;
    }
    bool zero = true;
    for (int64_t i = 0; i < layout.elements; i++) {
        zero = zero && (logical[i] || get_element(tensor->dtype, data, i) == 0.0);
    }
    cvy_free(logical);
    return zero;
}

/* The same op with all operands plain and in double, and summed directly: what the reference runs. */
static inline cvy_op make_reference_op(const cvy_op *op)
{
    cvy_op reference = *op;
    if (cvy_op_by_winograd(op)) {
        reference.params.window.winograd = false;
    }
    for (int i = 0; i < op->operands; i++) {
        cvy_tensor *tensor = &reference.operand[i].tensor;
        tensor->format = CVY_FORMAT_PLAIN;
        tensor->dtype = tensor->dtype == CVY_F32 ? CVY_F64 : tensor->dtype;
    }
    return reference;
}

/* The largest relative difference of what two runs wrote; infinite where the first left padding that is not zero. */
static inline double compare_written(const cvy_op *op, const test_operands *found, const cvy_op *reference,
                                     const test_operands *expected)
{
    double worst = 0.0;
    for (int i = 0; i < op->operands; i++) {
        if (op->operand[i].access == CVY_ACCESS_READ) {
            continue;
        }
        const cvy_tensor *tensor = &op->operand[i].tensor;
        double difference = relative_difference(tensor, found->data[i], &reference->operand[i].tensor,
                                                expected->data[i]);
        worst = fmax(worst, padding_is_zero(tensor, found->data[i]) ? difference : INFINITY);
    }
    return worst;
}

/**
 * Run @p op as it stands (formats, type) on @p backend and, plain and in double, on the reference, from equal values.
 *
 * @param[out] difference_out  largest relative difference of a written operand; infinite with NaN or padding not zero
 * @return what the backend answered
 */
static inline cvy_status differ_from_reference(const cvy_backend *backend, const cvy_op *op, const cvy_run *run,
                                               double *difference_out)
{
    cvy_op reference = make_reference_op(op);
    test_operands found = create_operands(op);
    test_operands expected = take_operands(&reference);
    for (int i = 0; i < op->operands; i++) { /* the very values that the backend sees */
        if (op->operand[i].access == CVY_ACCESS_WRITE) {
            fill_operand(&reference, i, expected.data[i]);
        } else {
            assert_int_equal(cvy_tensor_copy(&op->operand[i].tensor, found.data[i], &reference.operand[i].tensor,
                                             expected.data[i]),
                             CVY_OK);
        }
    }
    cvy_status status = run_op(backend, op, found.data, run);
    *difference_out = INFINITY;
    if (status == CVY_OK) {
        assert_int_equal(run_op(&cvy_backend_ref, &reference, expected.data, run), CVY_OK);
        *difference_out = compare_written(op, &found, &reference, &expected);
    }
    destroy_operands(&found);
    destroy_operands(&expected);
    return status;
}

/**
 * Give an activation format to every operand of two dimensions or more that is no weight, statistic or class, and a
 * weight format to the weights of convolutions and dense layers; an operand that a format does not fit stays plain.
 */
static inline void set_formats(cvy_op *op, cvy_format activations, cvy_format weights)
{
    bool filtered = cvy_op_has_weights(op->kind);
    for (int i = 0; i < op->operands; i++) {
        cvy_role role = op->operand[i].role;
        cvy_tensor *tensor = &op->operand[i].tensor;
        bool weight = filtered && (role == CVY_ROLE_W || role == CVY_ROLE_DW);
        bool statistic = role == CVY_ROLE_MEAN || role == CVY_ROLE_VARIANCE || role == CVY_ROLE_OVERLAP ||
                         (role == CVY_ROLE_LABEL && tensor->dtype == CVY_I32);
        tensor->format = weight ? weights : activations;
        if (statistic || !cvy_tensor_format_fits(tensor)) {
            tensor->format = CVY_FORMAT_PLAIN;
        }
    }
}

#endif
