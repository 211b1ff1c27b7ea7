/*
 * From op to primitive descriptor. Every operand's memory descriptor is made from its format; nothing is left to the
 * library but the one operand that a caller frees. A descriptor counts only if it takes each operand exactly as the op
 * says: this catches primitives that tie two operands together, as a batch norm does x and y. Where there is none, a
 * convolution may be told over whole blocks; see blocks.c.
 *
 * What is left to the backends that follow, although the library has it:
 *   relu             its max(x, 0) turns NaN into 0, which would hide a divergence
 *   add, global pool no faster than one vectorised loop
 *   batch norm's gradient  Convoy's takes 0.62 to 1.03 of its time over ResNet-50's shapes (2.6, its AVX2 and AVX-512
 *                    kernels, one thread): it makes dx while x and dy are still in the cache from their sums
 *   batch norm with relu  one pass: 0.5 to 0.98 of the time of its norm with a relu after it, there; its own way to
 *                    fuse them keeps a mask for the gradient
 *   max pool         3 to 10 times slower than such loops, training with its index (2.6, AVX2)
 *   average pool     of windows up to 3 a side, where channels lie innermost: Convoy's takes 0.15 to 1.1 of its time
 *                    forward and 0.24 to 1.0 backward over the poolings of cifar10-quick, Inception v3, DenseNet-121
 *                    and CosmoFlow (2.6, AVX-512, one thread); at stride 1 in blocks of 16 up to 1.6 forward, and 0.6
 *                    to 0.8 of both ways together. Planes are the library's, by 2 to 30 times, and larger windows
 *   ":any"           implementations for any machine: plain loops; its reference convolution takes 20 to 30 times as
 *                    long as Convoy's. Reorders may be so: no other backend knows the formats of weights
 *   f64              it has no such type
 *   depthwise        without a kernel made for it: 250 times as long as Convoy's on planes of one position, 4 to 50
 *                    times in the gradient of 5x5 weights (2.6, AVX-512, one thread); those made for it are faster
 *   strided 1x1      the gradient of weights that it gets wrong; see gathers_soundly()
 *   padding of sides  by Winograd's algorithm, the gradient of data that it gets wrong; see pads_soundly()
 *   local response norm  its gradient wants a tensor kept from the forward pass
 *   concat           a copy is a copy, and beside whole blocks it has plain loops
 *   Winograd's algorithm over channels that fill no block of 16: it has kernels, and most of their work is on zeros
 *   planes           of 2^31 positions and more: it counts them in int, and may divide by what has become 0
 */
#include "backend/onednn/problem.h"

#include <string.h>

#include "backend/backend.h"
#include "backend/onednn/blocks.h"
#include "backend/onednn/format.h"
#include "base/checked.h"

extern const cvy_backend cvy_backend_cpu;

/* An op's layouts by role; NULL where the op has no such operand. */
typedef struct layouts {
    cvy_onednn_layout storage[CVY_MAX_OPERANDS];
    const cvy_onednn_layout *of[CVY_ROLE_COUNT];
} layouts;

typedef dnnl_status_t (*describe_function)(const cvy_op *op, const layouts *layouts,
                                           dnnl_primitive_desc_t *description_out);

static const cvy_onednn_layout *either(const layouts *all, cvy_role role, cvy_role gradient)
{
    return all->of[role] ? all->of[role] : all->of[gradient];
}

static dnnl_prop_kind_t find_propagation(cvy_op_pass pass)
{
    switch (pass) {
    case CVY_PASS_FORWARD: return dnnl_forward_training;
    case CVY_PASS_INFERENCE:
    case CVY_PASS_NORMALISE: return dnnl_forward_inference;
    case CVY_PASS_BACKWARD_DATA: return dnnl_backward_data;
    case CVY_PASS_BACKWARD_WEIGHTS: return dnnl_backward_weights;
    default: return dnnl_prop_kind_undef;
    }
}

static cvy_onednn_operands find_operands(const layouts *all)
{
    return (cvy_onednn_operands){
        .x = either(all, CVY_ROLE_X, CVY_ROLE_DX),
        .w = either(all, CVY_ROLE_W, CVY_ROLE_DW),
        .b = either(all, CVY_ROLE_B, CVY_ROLE_DB),
        .y = either(all, CVY_ROLE_Y, CVY_ROLE_DY),
    };
}

/* A 2-D op's window has a d axis in front that its tensors lack. */
static cvy_onednn_window find_window(const cvy_window *window, int space)
{
    cvy_onednn_window found = {.winograd = false};
    for (int i = 0; i < space; i++) {
        int axis = 3 - space + i;
        found.kernel[i] = window->kernel[axis];
        found.stride[i] = window->stride[axis];
        found.dilation[i] = window->dilation[axis] - 1;
        found.before[i] = window->before[axis];
        found.after[i] = window->after[axis];
    }
    return found;
}

static dnnl_status_t describe_convolution(const cvy_op *op, const layouts *all, dnnl_primitive_desc_t *description_out)
{
    cvy_onednn_operands operands = find_operands(all);
    cvy_onednn_window window = find_window(&op->params.window.window, operands.x->dims - 2);
    window.winograd = cvy_op_by_winograd(op);
    bool relu = op->relu && !window.winograd; /* whose only relu is the one that hides NaN: see onednn.c */
    return cvy_onednn_describe_convolution(find_propagation(op->pass), relu, &operands, &window, description_out);
}

static dnnl_status_t describe_deconvolution(const cvy_op *op, const layouts *all,
                                            dnnl_primitive_desc_t *description_out)
{
    cvy_onednn_operands operands = find_operands(all);
    cvy_onednn_window window = find_window(&op->params.window.window, operands.x->dims - 2);
    return cvy_onednn_describe_deconvolution(find_propagation(op->pass), &operands, &window, description_out);
}

static dnnl_status_t describe_dense(const cvy_op *op, const layouts *all, dnnl_primitive_desc_t *description_out)
{
    cvy_onednn_operands operands = find_operands(all);
    return cvy_onednn_describe_dense(find_propagation(op->pass), op->relu, &operands, description_out);
}

static dnnl_status_t describe_average_pool(const cvy_op *op, const layouts *all, dnnl_primitive_desc_t *description_out)
{
    cvy_onednn_operands operands = find_operands(all);
    cvy_onednn_window window = find_window(&op->params.window.window, operands.x->dims - 2);
    return cvy_onednn_describe_average_pool(find_propagation(op->pass), op->params.window.count_padding, &operands,
                                            &window, description_out);
}

static dnnl_status_t describe_norm(const cvy_op *op, const layouts *all, dnnl_primitive_desc_t *description_out)
{
    return cvy_onednn_describe_norm(find_propagation(op->pass), all->of[CVY_ROLE_X], (float)op->params.norm.epsilon,
                                    description_out);
}

static dnnl_status_t describe_reorder(const cvy_op *op, const layouts *all, dnnl_primitive_desc_t *description_out)
{
    (void)op;
    return cvy_onednn_describe_reorder(all->of[CVY_ROLE_X], all->of[CVY_ROLE_Y], description_out);
}

/* A missing entry is an op for the backends that follow. */
static const describe_function describe[CVY_OP_KIND_COUNT][CVY_PASS_COUNT] = {
    [CVY_OP_CONVOLUTION] = {[CVY_PASS_FORWARD] = describe_convolution,
                            [CVY_PASS_BACKWARD_DATA] = describe_convolution,
                            [CVY_PASS_BACKWARD_WEIGHTS] = describe_convolution},
    [CVY_OP_DENSE] = {[CVY_PASS_FORWARD] = describe_dense,
                      [CVY_PASS_BACKWARD_DATA] = describe_dense,
                      [CVY_PASS_BACKWARD_WEIGHTS] = describe_dense},
    [CVY_OP_POOL_AVERAGE] = {[CVY_PASS_FORWARD] = describe_average_pool,
                             [CVY_PASS_BACKWARD_DATA] = describe_average_pool},
    [CVY_OP_BATCH_NORM] = {[CVY_PASS_FORWARD] = describe_norm,
                           [CVY_PASS_INFERENCE] = describe_norm,
                           [CVY_PASS_NORMALISE] = describe_norm},
    [CVY_OP_REORDER] = {[CVY_PASS_FORWARD] = describe_reorder},
    [CVY_OP_TRANSPOSED_CONVOLUTION] = {[CVY_PASS_FORWARD] = describe_deconvolution,
                                       [CVY_PASS_BACKWARD_DATA] = describe_deconvolution,
                                       [CVY_PASS_BACKWARD_WEIGHTS] = describe_deconvolution},
};

static int find_argument(cvy_op_kind kind, cvy_role role)
{
    static const int argument[CVY_ROLE_COUNT] = {
        [CVY_ROLE_X] = DNNL_ARG_SRC,
        [CVY_ROLE_Y] = DNNL_ARG_DST,
        [CVY_ROLE_DX] = DNNL_ARG_DIFF_SRC,
        [CVY_ROLE_DY] = DNNL_ARG_DIFF_DST,
        [CVY_ROLE_W] = DNNL_ARG_WEIGHTS,
        [CVY_ROLE_B] = DNNL_ARG_BIAS,
        [CVY_ROLE_DW] = DNNL_ARG_DIFF_WEIGHTS,
        [CVY_ROLE_DB] = DNNL_ARG_DIFF_BIAS,
        [CVY_ROLE_MEAN] = DNNL_ARG_MEAN,
        [CVY_ROLE_VARIANCE] = DNNL_ARG_VARIANCE,
        [CVY_ROLE_RUNNING_MEAN] = DNNL_ARG_MEAN,
        [CVY_ROLE_RUNNING_VARIANCE] = DNNL_ARG_VARIANCE,
    };
    if (kind == CVY_OP_BATCH_NORM) {
        switch (role) {
        case CVY_ROLE_W: return DNNL_ARG_SCALE;
        case CVY_ROLE_B: return DNNL_ARG_SHIFT;
        default: break;
        }
    }
    return argument[role];
}

static bool is_plain(const cvy_tensor *tensor)
{
    cvy_tensor plain = *tensor;
    plain.format = CVY_FORMAT_PLAIN;
    return cvy_tensor_same_layout(tensor, &plain);
}

/*
 * A reorder may name its sides by different shapes (a flatten; weights with and without g). The logical order is the
 * same, and plain is the logical order, so the plain side takes the other's shape.
 */
static bool match_reorder(const cvy_op *op, layouts *all)
{
    const cvy_tensor *x = &op->operand[0].tensor;
    const cvy_tensor *y = &op->operand[1].tensor;
    if (op->kind != CVY_OP_REORDER || cvy_shape_equal(&x->shape, &y->shape)) {
        return true;
    }
    bool plain_y = is_plain(y);
    if (!plain_y && !is_plain(x)) {
        return false;
    }
    cvy_tensor plain = plain_y ? *x : *y;
    plain.format = CVY_FORMAT_PLAIN;
    plain.dtype = plain_y ? y->dtype : x->dtype;
    return cvy_onednn_layout_get(&plain, &all->storage[plain_y ? 1 : 0]);
}

static bool is_activation(cvy_role role)
{
    return role == CVY_ROLE_X || role == CVY_ROLE_Y || role == CVY_ROLE_DX || role == CVY_ROLE_DY;
}

/*
 * One memory, one description: with one channel, or one position in space, plain and channels-last are the same. The
 * library's cache, which looks past strides that do not matter, would answer for one with what it found for the other,
 * so that what can be had would depend on what was made before; and its kernels want both sides named alike. Such a
 * tensor is named as the other side is.
 */
static cvy_tensor name_alike(const cvy_op *op, int index)
{
    cvy_tensor tensor = op->operand[index].tensor;
    if (!is_activation(op->operand[index].role) || tensor.shape.dims < 4 || !is_plain(&tensor)) {
        return tensor;
    }
    cvy_format format = CVY_FORMAT_PLAIN;
    for (int i = 0; i < op->operands; i++) {
        const cvy_tensor *other = &op->operand[i].tensor;
        bool told = is_activation(op->operand[i].role) && !is_plain(other);
        format = told && other->format == CVY_FORMAT_CHANNELS_LAST ? CVY_FORMAT_CHANNELS_LAST : format;
    }
    tensor.format = format;
    return is_plain(&tensor) ? tensor : op->operand[index].tensor;
}

int cvy_onednn_find_swap(const cvy_op *op, int i)
{
    cvy_role role = op->operand[i].role;
    bool weights = op->kind == CVY_OP_TRANSPOSED_CONVOLUTION && (role == CVY_ROLE_W || role == CVY_ROLE_DW);
    return weights ? 1 + op->operand[i].tensor.grouped : 0; /* c,f to us, f,c to it */
}

static bool is_countable(const cvy_shape *shape)
{
    int64_t positions = 1;
    for (int i = 2; i < shape->dims; i++) {
        if (!cvy_mul_i64(positions, shape->extent[i], &positions) || positions > INT32_MAX) {
            return false;
        }
    }
    return true;
}

static bool lay_out(const cvy_op *op, int free, layouts *all)
{
    *all = (layouts){0};
    for (int i = 0; i < op->operands; i++) {
        cvy_tensor tensor = name_alike(op, i);
        if (!is_countable(&tensor.shape) || !cvy_onednn_layout_get(&tensor, &all->storage[i])) {
            return false;
        }
        all->storage[i].swapped = cvy_onednn_find_swap(op, i);
        if (i == free) {
            all->storage[i].tag = dnnl_format_tag_any;
        }
        all->of[op->operand[i].role] = &all->storage[i];
    }
    return match_reorder(op, all);
}

static bool takes_operands(const cvy_op *op, const layouts *all, int free, const cvy_onednn_problem *problem)
{
    for (int i = 0; i < op->operands; i++) {
        if (i != free && !cvy_onednn_takes(problem->description, problem->argument[i], &all->storage[i])) {
            return false;
        }
    }
    return true;
}

/* Its kernels for Winograd's algorithm go by blocks of 16. */
static bool fills_blocks(const cvy_op *op)
{
    for (int i = 0; cvy_op_by_winograd(op) && i < op->operands; i++) {
        const cvy_shape *shape = &op->operand[i].tensor.shape;
        if (shape->dims > 1 && is_activation(op->operand[i].role) && shape->extent[1] % 16 != 0) {
            return false;
        }
    }
    return true;
}

static bool is_worthwhile(const cvy_op *op, const cvy_onednn_problem *problem)
{
    return op->kind == CVY_OP_REORDER ||
           (fills_blocks(op) && !strstr(cvy_onednn_problem_implementation(problem), ":any"));
}

/* Whether Convoy's own average pooling goes by rows, in registers. */
static bool averages_by_rows(const cvy_op *op)
{
    const cvy_window *window = &op->params.window.window;
    bool small = op->kind == CVY_OP_POOL_AVERAGE;
    int64_t positions = 1;
    for (int axis = 0; small && axis < 3; axis++) {
        positions *= window->kernel[axis];
        small = window->kernel[axis] <= 3 && window->stride[axis] <= 3 && window->dilation[axis] == 1;
    }
    return small && positions <= 9 && !is_plain(&op->operand[0].tensor) && !is_plain(&op->operand[1].tensor) &&
           cvy_backend_cpu.quality(op) != CVY_QUALITY_NONE;
}

/* Whether Convoy's own depthwise kernels take an op, in the formats that it names or, of free weights, in their own. */
static bool is_left_to_own(const cvy_op *op, int free, const cvy_onednn_problem *problem)
{
    cvy_format format;
    if (!cvy_op_is_depthwise(op) || strstr(cvy_onednn_problem_implementation(problem), "_dw")) {
        return false;
    }
    if (free == CVY_ONEDNN_IMPOSED) {
        return cvy_backend_cpu.quality(op) != CVY_QUALITY_NONE;
    }
    return cvy_backend_cpu.choose_format(op, op->operand[free].role, &format) == CVY_OK;
}

/*
 * jit_1x1 gathers a strided channels-last x (of a transposed convolution dy) by whole blocks of channels before it sums
 * the weights' gradient. Where x has fewer channels than a block it writes past its scratch memory and the threads
 * overwrite each other: other numbers in every run, or a crash (seen with 2.6 on AVX2, c 1 to 7; oneDNN issue 6035 has
 * AVX-512, c below 16).
 */
static bool gathers_soundly(const cvy_op *op, const cvy_onednn_problem *problem)
{
    const char *implementation = cvy_onednn_problem_implementation(problem);
    if (!cvy_op_convolves(op->kind) || op->pass != CVY_PASS_BACKWARD_WEIGHTS || !strstr(implementation, "jit_1x1")) {
        return true;
    }
    const int64_t *stride = op->params.window.window.stride;
    const cvy_tensor *x = &op->operand[op->kind == CVY_OP_TRANSPOSED_CONVOLUTION ? 1 : 0].tensor;
    cvy_tensor channels_last = *x;
    channels_last.format = CVY_FORMAT_CHANNELS_LAST;
    bool strided = stride[0] > 1 || stride[1] > 1 || stride[2] > 1;
    int64_t block = strstr(implementation, "avx512") ? 16 : 8;
    return !strided || x->shape.extent[1] / op->params.window.groups >= block ||
           !cvy_tensor_same_layout(x, &channels_last);
}

/*
 * By Winograd's algorithm it gets the gradient of data wrong where padding differs from side to side (2.6, AVX-512; off
 * by the size of the values). What is left is what nets have, and is tested: 0 or 1, alike on opposite sides.
 */
static bool pads_soundly(const cvy_op *op)
{
    const cvy_window *window = &op->params.window.window;
    bool sound = true;
    for (int axis = 1; cvy_op_by_winograd(op) && axis < 3; axis++) {
        int64_t padding = window->before[axis];
        sound = sound && padding >= 0 && padding <= 1 && window->after[axis] == padding;
    }
    return sound;
}

static bool is_sound(const cvy_op *op, const cvy_onednn_problem *problem)
{
    return gathers_soundly(op, problem) && pads_soundly(op);
}

/* As the op says it, neither more nor less. */
static cvy_status create_literally(const cvy_op *op, int free, cvy_onednn_problem *problem_out)
{
    const char *kind = cvy_op_kind_name(op->kind);
    const char *pass = cvy_op_pass_name(op->pass);
    layouts all;
    cvy_onednn_problem problem = {.op = *op};
    bool made = describe[op->kind][op->pass] && (!op->relu || cvy_op_has_weights(op->kind));
    CVY_REQUIRE(made, CVY_ERR_UNSUPPORTED, "onednn: no %s %s%s", kind, pass, op->relu ? " with relu" : "");
    CVY_REQUIRE(cvy_onednn_device_get(), CVY_ERR_UNSUPPORTED, "onednn: the library has no CPU engine here");
    CVY_REQUIRE(lay_out(op, free, &all), CVY_ERR_UNSUPPORTED, "onednn: %s %s has a type or format it does not know",
                kind, pass);
    for (int i = 0; i < op->operands; i++) {
        problem.argument[i] = find_argument(op->kind, op->operand[i].role);
    }
    dnnl_status_t status = describe[op->kind][op->pass](op, &all, &problem.description);
    CVY_REQUIRE(status != dnnl_out_of_memory, CVY_ERR_MEMORY, "onednn: no memory for a %s %s", kind, pass);
    CVY_REQUIRE(status == dnnl_success, CVY_ERR_UNSUPPORTED, "onednn: no %s %s of this kind", kind, pass);
    bool taken = takes_operands(op, &all, free, &problem) && is_worthwhile(op, &problem) && is_sound(op, &problem);
    if (!taken || averages_by_rows(op) || is_left_to_own(op, free, &problem)) {
        cvy_onednn_problem_clear(&problem);
        return cvy_fail(CVY_ERR_UNSUPPORTED, "onednn: no kernel made for a %s %s in these formats", kind, pass);
    }
    *problem_out = problem;
    return CVY_OK;
}

cvy_status cvy_onednn_problem_create(const cvy_op *op, int free, cvy_onednn_problem *problem_out)
{
    cvy_op whole;
    cvy_status status = create_literally(op, free, problem_out);
    if (status == CVY_ERR_UNSUPPORTED && !cvy_op_by_winograd(op) && cvy_onednn_blocks_fill(op, free, &whole)) {
        cvy_error_clear();
        CVY_TRY(create_literally(&whole, free, problem_out));
        problem_out->padded = true;
        return CVY_OK;
    }
    return status;
}

void cvy_onednn_problem_clear(cvy_onednn_problem *problem)
{
    if (problem->description) {
        dnnl_primitive_desc_destroy(problem->description);
        problem->description = NULL;
    }
}

const char *cvy_onednn_problem_implementation(const cvy_onednn_problem *problem)
{
    const char *name = NULL;
    dnnl_status_t status = dnnl_primitive_desc_query(problem->description, dnnl_query_impl_info_str, 0, (void *)&name);
    return status == dnnl_success && name ? name : "unknown";
}
