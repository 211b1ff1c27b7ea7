/*
 * The table of the reference, and its view of operands. A kernel holds, for each operand, tables of offsets by
 * dimension; a run only adds the addresses. Outputs of formats with padding are cleared before an op writes its logical
 * elements; where an output lies on an input, the padding is that input's, which is zero already.
 */
#include "backend/ref/ref.h"

#include <string.h>

#include "base/memory.h"

static const cvy_ref_compute computes[CVY_OP_KIND_COUNT][CVY_PASS_COUNT] = {
    [CVY_OP_CONVOLUTION] =
        {
            [CVY_PASS_FORWARD] = cvy_ref_convolution_forward,
            [CVY_PASS_BACKWARD_DATA] = cvy_ref_convolution_data,
            [CVY_PASS_BACKWARD_WEIGHTS] = cvy_ref_convolution_weights,
        },
    [CVY_OP_DENSE] =
        {
            [CVY_PASS_FORWARD] = cvy_ref_dense_forward,
            [CVY_PASS_BACKWARD_DATA] = cvy_ref_dense_data,
            [CVY_PASS_BACKWARD_WEIGHTS] = cvy_ref_dense_weights,
        },
    [CVY_OP_POOL_MAX] =
        {
            [CVY_PASS_FORWARD] = cvy_ref_pool_max_forward,
            [CVY_PASS_INFERENCE] = cvy_ref_pool_max_forward,
            [CVY_PASS_BACKWARD_DATA] = cvy_ref_pool_max_data,
        },
    [CVY_OP_POOL_AVERAGE] =
        {
            [CVY_PASS_FORWARD] = cvy_ref_pool_average_forward,
            [CVY_PASS_BACKWARD_DATA] = cvy_ref_pool_average_data,
        },
    [CVY_OP_POOL_GLOBAL] =
        {
            [CVY_PASS_FORWARD] = cvy_ref_pool_global_forward,
            [CVY_PASS_BACKWARD_DATA] = cvy_ref_pool_global_data,
        },
    [CVY_OP_POOL_ADAPTIVE] =
        {
            [CVY_PASS_FORWARD] = cvy_ref_pool_adaptive_forward,
            [CVY_PASS_BACKWARD_DATA] = cvy_ref_pool_adaptive_data,
        },
    [CVY_OP_BATCH_NORM] =
        {
            [CVY_PASS_FORWARD] = cvy_ref_norm_forward,
            [CVY_PASS_INFERENCE] = cvy_ref_norm_inference,
            [CVY_PASS_BACKWARD] = cvy_ref_norm_backward,
            [CVY_PASS_STATS] = cvy_ref_norm_stats,
            [CVY_PASS_NORMALISE] = cvy_ref_norm_normalise,
            [CVY_PASS_GRAD_STATS] = cvy_ref_norm_grad_stats,
            [CVY_PASS_GRAD_APPLY] = cvy_ref_norm_grad_apply,
            [CVY_PASS_COMMIT] = cvy_ref_norm_commit,
            [CVY_PASS_MERGE] = cvy_ref_norm_merge,
        },
    [CVY_OP_RELU] =
        {
            [CVY_PASS_FORWARD] = cvy_ref_activation_forward,
            [CVY_PASS_BACKWARD_DATA] = cvy_ref_activation_data,
        },
    [CVY_OP_DROPOUT] =
        {
            [CVY_PASS_FORWARD] = cvy_ref_dropout_forward,
            [CVY_PASS_BACKWARD_DATA] = cvy_ref_dropout_data,
        },
    [CVY_OP_ADD] =
        {
            [CVY_PASS_FORWARD] = cvy_ref_add_forward,
        },
    [CVY_OP_SOFTMAX_CROSS_ENTROPY] =
        {
            [CVY_PASS_FORWARD] = cvy_ref_cross_entropy_forward,
            [CVY_PASS_INFERENCE] = cvy_ref_cross_entropy_forward,
            [CVY_PASS_BACKWARD_DATA] = cvy_ref_cross_entropy_data,
        },
    [CVY_OP_MEAN_SQUARED_ERROR] =
        {
            [CVY_PASS_FORWARD] = cvy_ref_squared_error_forward,
            [CVY_PASS_INFERENCE] = cvy_ref_squared_error_forward,
            [CVY_PASS_BACKWARD_DATA] = cvy_ref_squared_error_data,
        },
    [CVY_OP_REORDER] =
        {
            [CVY_PASS_FORWARD] = cvy_ref_reorder,
        },
    [CVY_OP_SGD] =
        {
            [CVY_PASS_UPDATE] = cvy_ref_sgd,
        },
    [CVY_OP_ADAMW] =
        {
            [CVY_PASS_UPDATE] = cvy_ref_adam,
        },
    [CVY_OP_ADAM] =
        {
            [CVY_PASS_UPDATE] = cvy_ref_adam,
        },
    [CVY_OP_RELU6] =
        {
            [CVY_PASS_FORWARD] = cvy_ref_activation_forward,
            [CVY_PASS_BACKWARD_DATA] = cvy_ref_activation_data,
        },
    [CVY_OP_LEAKY_RELU] =
        {
            [CVY_PASS_FORWARD] = cvy_ref_activation_forward,
            [CVY_PASS_BACKWARD_DATA] = cvy_ref_activation_data,
        },
    [CVY_OP_SIGMOID] =
        {
            [CVY_PASS_FORWARD] = cvy_ref_activation_forward,
            [CVY_PASS_BACKWARD_DATA] = cvy_ref_activation_data,
        },
    [CVY_OP_TANH] =
        {
            [CVY_PASS_FORWARD] = cvy_ref_activation_forward,
            [CVY_PASS_BACKWARD_DATA] = cvy_ref_activation_data,
        },
    [CVY_OP_SILU] =
        {
            [CVY_PASS_FORWARD] = cvy_ref_activation_forward,
            [CVY_PASS_BACKWARD_DATA] = cvy_ref_activation_data,
        },
    [CVY_OP_HARD_SWISH] =
        {
            [CVY_PASS_FORWARD] = cvy_ref_activation_forward,
            [CVY_PASS_BACKWARD_DATA] = cvy_ref_activation_data,
        },
    [CVY_OP_MULTIPLY] =
        {
            [CVY_PASS_FORWARD] = cvy_ref_multiply_forward,
            [CVY_PASS_BACKWARD] = cvy_ref_multiply_backward,
        },
    [CVY_OP_STOCHASTIC_DEPTH] =
        {
            [CVY_PASS_FORWARD] = cvy_ref_stochastic_depth_forward,
            [CVY_PASS_BACKWARD_DATA] = cvy_ref_stochastic_depth_data,
        },
    [CVY_OP_TRANSPOSED_CONVOLUTION] = /* what a convolution does, the other way round */
        {
            [CVY_PASS_FORWARD] = cvy_ref_convolution_data,
            [CVY_PASS_BACKWARD_DATA] = cvy_ref_convolution_forward,
            [CVY_PASS_BACKWARD_WEIGHTS] = cvy_ref_convolution_weights,
        },
    [CVY_OP_SOFT_DICE] =
        {
            [CVY_PASS_FORWARD] = cvy_ref_dice_forward,
            [CVY_PASS_INFERENCE] = cvy_ref_dice_forward,
            [CVY_PASS_BACKWARD_DATA] = cvy_ref_dice_data,
        },
    [CVY_OP_CONCAT] =
        {
            [CVY_PASS_FORWARD] = cvy_ref_concat,
        },
    [CVY_OP_SLICE] =
        {
            [CVY_PASS_BACKWARD_DATA] = cvy_ref_slice,
        },
    [CVY_OP_PICK] =
        {
            [CVY_PASS_FORWARD] = cvy_ref_pick,
        },
    [CVY_OP_FRAME] =
        {
            [CVY_PASS_FORWARD] = cvy_ref_frame,
        },
    [CVY_OP_GROUP_NORM] =
        {
            [CVY_PASS_FORWARD] = cvy_ref_group_norm_forward,
            [CVY_PASS_BACKWARD] = cvy_ref_group_norm_backward,
        },
    [CVY_OP_LOCAL_RESPONSE_NORM] =
        {
            [CVY_PASS_FORWARD] = cvy_ref_response_forward,
            [CVY_PASS_BACKWARD_DATA] = cvy_ref_response_data,
        },
    [CVY_OP_SQUARE_SUM] =
        {
            [CVY_PASS_UPDATE] = cvy_ref_square_sum,
        },
    [CVY_OP_CLIP] =
        {
            [CVY_PASS_UPDATE] = cvy_ref_clip,
        },
    [CVY_OP_LARS] =
        {
            [CVY_PASS_UPDATE] = cvy_ref_lars,
        },
    [CVY_OP_LAMB_DIRECTION] =
        {
            [CVY_PASS_UPDATE] = cvy_ref_lamb_direction,
        },
    [CVY_OP_LAMB] =
        {
            [CVY_PASS_UPDATE] = cvy_ref_lamb,
        },
    [CVY_OP_AVERAGE] =
        {
            [CVY_PASS_UPDATE] = cvy_ref_average,
        },
};

static const int64_t origin[1] = {0}; /* the table of a dimension that a tensor lacks */

static bool is_weight(const cvy_op *op, cvy_role role)
{
    return cvy_op_has_weights(op->kind) && (role == CVY_ROLE_W || role == CVY_ROLE_DW);
}

/*
 * Where a dimension of the description stands among n,c,d,h,w or g,o,i,kd,kh,kw: space is counted from the end. Six of
 * them are weights, whatever the op: gradients of weights are summed as well.
 */
static int find_slot(const cvy_tensor *tensor, bool weight, int dim)
{
    if (tensor->shape.dims == CVY_MAX_DIMS) {
        return dim;
    }
    int first = weight && !tensor->grouped ? CVY_REF_O : 0;
    int space = weight ? CVY_REF_KD : CVY_REF_D;
    return first + dim < space ? first + dim : space + 3 - (tensor->shape.dims - dim);
}

/* Reorders and optimizers go over memory by themselves, and have shapes that are no n,c,d,h,w: no tables for them. */
static int count_tables(const cvy_op *op, const cvy_tensor *tensor)
{
    bool flat = op->kind == CVY_OP_REORDER || op->pass == CVY_PASS_UPDATE;
    return flat ? 0 : tensor->shape.dims;
}

/* Look at one operand; its tables begin at @p table. Returns where the next operand's begin. */
static int64_t *view_operand(const cvy_op *op, int i, int64_t *table, cvy_ref_tensor *view)
{
    const cvy_tensor *tensor = &op->operand[i].tensor;
    cvy_layout layout = cvy_tensor_layout(tensor);
    *view = (cvy_ref_tensor){.dtype = tensor->dtype, .elements = layout.elements};
    view->padded = layout.elements != cvy_shape_elements(&tensor->shape);
    for (int slot = 0; slot < CVY_MAX_DIMS; slot++) {
        view->extent[slot] = 1;
        view->at[slot] = origin;
    }
    for (int dim = 0; dim < count_tables(op, tensor); dim++) {
        int slot = find_slot(tensor, is_weight(op, op->operand[i].role), dim);
        int64_t index[CVY_MAX_DIMS] = {0};
        view->extent[slot] = tensor->shape.extent[dim];
        view->at[slot] = table;
        while (index[dim] < tensor->shape.extent[dim]) {
            *table++ = cvy_layout_offset(&layout, index);
            index[dim]++;
        }
    }
    return table;
}

static cvy_status view_operands(cvy_ref_kernel *kernel)
{
    const cvy_op *op = &kernel->base.op;
    size_t entries = 1;
    for (int i = 0; i < op->operands; i++) {
        for (int dim = 0; dim < count_tables(op, &op->operand[i].tensor); dim++) {
            entries += (size_t)op->operand[i].tensor.shape.extent[dim];
        }
    }
    kernel->tables = cvy_calloc(entries, sizeof *kernel->tables);
    if (!kernel->tables) {
        return CVY_ERR_MEMORY;
    }
    int64_t *table = kernel->tables;
    for (int i = 0; i < op->operands; i++) {
        table = view_operand(op, i, table, &kernel->tensor[i]);
    }
    return CVY_OK;
}

static cvy_quality judge_op(const cvy_op *op)
{
    return computes[op->kind][op->pass] && !cvy_op_by_winograd(op) ? CVY_QUALITY_SLOW : CVY_QUALITY_NONE;
}

static void destroy_kernel(cvy_kernel *base)
{
    cvy_ref_kernel *kernel = (cvy_ref_kernel *)base;
    cvy_free(kernel->tables);
    cvy_free(kernel);
}

static cvy_status create_kernel(const cvy_op *op, cvy_kernel **kernel_out)
{
    CVY_REQUIRE(judge_op(op) != CVY_QUALITY_NONE, CVY_ERR_UNSUPPORTED, "%s has no pass %s%s",
                cvy_op_kind_name(op->kind), cvy_op_pass_name(op->pass),
                cvy_op_by_winograd(op) ? " by Winograd's algorithm" : "");
    cvy_ref_kernel *kernel = cvy_calloc(1, sizeof *kernel);
    if (!kernel) {
        return CVY_ERR_MEMORY;
    }
    kernel->base = (cvy_kernel){.backend = &cvy_backend_ref, .op = *op};
    kernel->compute = computes[op->kind][op->pass];
    cvy_status status = view_operands(kernel);
    if (status != CVY_OK) {
        destroy_kernel(&kernel->base);
        return status;
    }
    *kernel_out = &kernel->base;
    return CVY_OK;
}

static size_t need_no_scratch(const cvy_kernel *kernel)
{
    (void)kernel;
    return 0;
}

static const char *name_algorithm(const cvy_kernel *kernel)
{
    (void)kernel;
    return "loops";
}

static bool lies_on_another(void *const *operand, int operands, int which)
{
    for (int i = 0; i < operands; i++) {
        if (i != which && operand[i] == operand[which]) {
            return true;
        }
    }
    return false;
}

static cvy_status run_kernel(cvy_kernel *base, void *const *operand, void *scratch, const cvy_run *run)
{
    cvy_ref_kernel *kernel = (cvy_ref_kernel *)base;
    (void)scratch;
    for (int i = 0; i < base->op.operands; i++) {
        cvy_ref_tensor *tensor = &kernel->tensor[i];
        tensor->data = operand[i];
        bool written = base->op.operand[i].access == CVY_ACCESS_WRITE;
        if (written && tensor->padded && !lies_on_another(operand, base->op.operands, i)) {
            memset(tensor->data, 0, (size_t)(tensor->elements * cvy_dtype_bytes(tensor->dtype)));
        }
    }
    return kernel->compute(kernel, run);
}

const cvy_backend cvy_backend_ref = {
    .name = "ref",
    .quality = judge_op,
    .create = create_kernel,
    .scratch_bytes = need_no_scratch,
    .algorithm = name_algorithm,
    .run = run_kernel,
    .destroy = destroy_kernel,
};
