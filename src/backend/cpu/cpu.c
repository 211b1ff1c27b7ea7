/*
 * The CPU backend: own kernels in single precision, vectorised and parallel, for what a library lacks or does in more
 * passes over memory. What it does not take (other products, double precision) goes on along the chain.
 */
#include "backend/cpu/cpu.h"

#include "base/memory.h"

static const cvy_cpu_family *const families[CVY_OP_KIND_COUNT] = {
    [CVY_OP_CONVOLUTION] = &cvy_cpu_convolution,
    [CVY_OP_RELU] = &cvy_cpu_elementwise,
    [CVY_OP_ADD] = &cvy_cpu_elementwise,
    [CVY_OP_DROPOUT] = &cvy_cpu_dropout,
    [CVY_OP_BATCH_NORM] = &cvy_cpu_batch_norm,
    [CVY_OP_POOL_GLOBAL] = &cvy_cpu_pool_global,
    [CVY_OP_POOL_ADAPTIVE] = &cvy_cpu_pool_adaptive,
    [CVY_OP_POOL_MAX] = &cvy_cpu_pool,
    [CVY_OP_POOL_AVERAGE] = &cvy_cpu_pool,
    [CVY_OP_SOFTMAX_CROSS_ENTROPY] = &cvy_cpu_loss,
    [CVY_OP_MEAN_SQUARED_ERROR] = &cvy_cpu_loss,
    [CVY_OP_SOFT_DICE] = &cvy_cpu_dice,
    [CVY_OP_SGD] = &cvy_cpu_optimizer,
    [CVY_OP_ADAMW] = &cvy_cpu_optimizer,
    [CVY_OP_ADAM] = &cvy_cpu_optimizer,
    [CVY_OP_SQUARE_SUM] = &cvy_cpu_norms,
    [CVY_OP_LARS] = &cvy_cpu_norms,
    [CVY_OP_LAMB_DIRECTION] = &cvy_cpu_norms,
    [CVY_OP_LAMB] = &cvy_cpu_norms,
    [CVY_OP_AVERAGE] = &cvy_cpu_average,
    [CVY_OP_REORDER] = &cvy_cpu_reorder,
    [CVY_OP_RELU6] = &cvy_cpu_elementwise,
    [CVY_OP_LEAKY_RELU] = &cvy_cpu_elementwise,
    [CVY_OP_SIGMOID] = &cvy_cpu_elementwise,
    [CVY_OP_TANH] = &cvy_cpu_elementwise,
    [CVY_OP_SILU] = &cvy_cpu_elementwise,
    [CVY_OP_HARD_SWISH] = &cvy_cpu_elementwise,
    [CVY_OP_MULTIPLY] = &cvy_cpu_multiply,
    [CVY_OP_STOCHASTIC_DEPTH] = &cvy_cpu_stochastic_depth,
    [CVY_OP_CONCAT] = &cvy_cpu_concat,
    [CVY_OP_SLICE] = &cvy_cpu_concat,
    [CVY_OP_PICK] = &cvy_cpu_share,
    [CVY_OP_FRAME] = &cvy_cpu_share,
    [CVY_OP_GROUP_NORM] = &cvy_cpu_group_norm,
    [CVY_OP_LOCAL_RESPONSE_NORM] = &cvy_cpu_response,
};

bool cvy_cpu_same_layout(const cvy_op *op)
{
    for (int i = 1; i < op->operands; i++) {
        if (!cvy_tensor_same_layout(&op->operand[0].tensor, &op->operand[i].tensor)) {
            return false;
        }
    }
    return true;
}

static bool has_own_type(cvy_role role)
{
    return role == CVY_ROLE_WINDOW || role == CVY_ROLE_LABEL || role == CVY_ROLE_LOSS || role == CVY_ROLE_OVERLAP ||
           cvy_role_is_total(role);
}

static bool is_single(const cvy_op *op)
{
    for (int i = 0; i < op->operands; i++) {
        if (op->operand[i].tensor.dtype != CVY_F32 && !has_own_type(op->operand[i].role)) {
            return false;
        }
    }
    return true;
}

static cvy_cpu_run find_run(const cvy_op *op)
{
    const cvy_cpu_family *family = families[op->kind];
    return family && is_single(op) ? family->find(op) : NULL;
}

static cvy_quality get_quality(const cvy_op *op) { return find_run(op) ? CVY_QUALITY_FAST : CVY_QUALITY_NONE; }

static cvy_status choose_format(const cvy_op *op, cvy_role role, cvy_format *format_out)
{
    const cvy_cpu_family *family = families[op->kind];
    bool chosen = family && family->choose_format && is_single(op) && family->choose_format(op, role, format_out);
    CVY_REQUIRE(chosen, CVY_ERR_UNSUPPORTED, "cpu: no wish for the format of %s", cvy_role_name(role));
    return CVY_OK;
}

static cvy_status create(const cvy_op *op, cvy_kernel **kernel_out)
{
    cvy_cpu_run run = find_run(op);
    if (!run) {
        char text[CVY_OP_TEXT];
        return cvy_fail(CVY_ERR_UNSUPPORTED, "cpu does not run %s", cvy_op_print(op, text));
    }
    cvy_cpu_kernel *kernel = cvy_calloc(1, sizeof *kernel);
    if (!kernel) {
        return CVY_ERR_MEMORY;
    }
    kernel->base = (cvy_kernel){.backend = &cvy_backend_cpu, .op = *op};
    kernel->algorithm = "simd";
    kernel->run = run;
    const cvy_tensor *first = &op->operand[0].tensor;
    kernel->elements = cvy_tensor_elements(first);
    if (cvy_columns_fit(first)) {
        kernel->columns = cvy_columns_get(first);
    }
    if (families[op->kind]->setup) {
        families[op->kind]->setup(kernel);
    }
    *kernel_out = &kernel->base;
    return CVY_OK;
}

static size_t get_scratch_bytes(const cvy_kernel *kernel) { return ((const cvy_cpu_kernel *)kernel)->scratch_bytes; }

static const char *get_algorithm(const cvy_kernel *kernel) { return ((const cvy_cpu_kernel *)kernel)->algorithm; }

static cvy_status run_kernel(cvy_kernel *kernel, void *const *operand, void *scratch, const cvy_run *run)
{
    const cvy_cpu_kernel *own = (const cvy_cpu_kernel *)kernel;
    return own->run(own, operand, scratch, run);
}

static void destroy(cvy_kernel *kernel) { cvy_free(kernel); }

const cvy_backend cvy_backend_cpu = {
    .name = "cpu",
    .quality = get_quality,
    .choose_format = choose_format,
    .create = create,
    .scratch_bytes = get_scratch_bytes,
    .algorithm = get_algorithm,
    .run = run_kernel,
    .destroy = destroy,
};
