/*
 * The backend over oneDNN. A kernel is a primitive and one memory object for each operand; the arguments of an
 * execution are laid out once. The formats are the op's; see problem.c.
 *
 * Scratch memory comes from the caller (the plan counts it), and buffers of a plan do not move, so that a run sets an
 * address only when it is new: in 2.x setting one costs a pass over the padding behind it. The library chooses its
 * blocking for the number of OpenMP threads at creation: create and run under the same number.
 *
 * By Winograd's algorithm a convolution takes no relu but one that turns NaN into 0, which would hide a divergence: it
 * is a loop over y of our own. And its kernels store whole lines of a cache past the cache: what does not lie at one
 * would be a crash, and is refused.
 */
#include <string.h>

#include "backend/backend.h"
#include "backend/onednn/blocks.h"
#include "backend/onednn/format.h"
#include "backend/onednn/points.h"
#include "backend/onednn/problem.h"
#include "base/memory.h"

enum { ARGUMENTS = CVY_MAX_OPERANDS + 1, FROM_SCRATCH = -1, NAME_BYTES = 48 };

typedef struct onednn_kernel {
    cvy_kernel base;
    dnnl_primitive_t primitive;
    int arguments;
    dnnl_exec_arg_t argument[ARGUMENTS];
    int source[ARGUMENTS];    /* operand that each takes its address from; FROM_SCRATCH */
    void *address[ARGUMENTS]; /* where each points now */
    size_t scratch_bytes;
    int rectified;            /* operand over which a relu of ours goes at the end; -1: none */
    char algorithm[NAME_BYTES];
} onednn_kernel;

extern const cvy_backend cvy_backend_onednn;

/*
 * The library names an implementation by how it works: jit (kernels made at run time), brgconv, brgemm, …; gemm, with
 * the product's own implementation around it ("x64:gemm:jit"), which a convolution reaches through im2col; ref, plain
 * loops, of which only reorders get here (their "simple:any" is a copy at the speed of memory). A dense layer is a
 * matrix product to begin with. A kernel over padded channels multiplies zeros, too: with 3 or 4 channels in blocks of
 * 16 it takes from as long as to 3 times as long as a product (2.6, AVX-512).
 */
static cvy_quality judge(const cvy_onednn_problem *problem)
{
    const char *implementation = cvy_onednn_problem_implementation(problem);
    if (strstr(implementation, "ref:any")) {
        return CVY_QUALITY_SLOW;
    }
    bool product = strstr(implementation, "gemm") && !strstr(implementation, "brgemm");
    return problem->padded || (product && problem->op.kind != CVY_OP_DENSE) ? CVY_QUALITY_GEMM : CVY_QUALITY_FAST;
}

static cvy_quality find_quality(const cvy_op *op)
{
    cvy_onednn_problem problem;
    if (cvy_onednn_points_take(op)) {
        return CVY_QUALITY_FAST;
    }
    if (cvy_onednn_problem_create(op, CVY_ONEDNN_IMPOSED, &problem) != CVY_OK) {
        cvy_error_clear();
        return CVY_QUALITY_NONE;
    }
    cvy_quality quality = judge(&problem);
    cvy_onednn_problem_clear(&problem);
    return quality;
}

static cvy_status choose_format(const cvy_op *op, cvy_role role, cvy_format *format_out)
{
    cvy_onednn_problem problem;
    cvy_format wish;
    int i = cvy_op_index(op, role);
    CVY_REQUIRE(i >= 0, CVY_ERR_ARG, "%s has no operand %s", cvy_op_kind_name(op->kind), cvy_role_name(role));
    if (cvy_onednn_points_want(op) && (role == CVY_ROLE_W || role == CVY_ROLE_DW)) {
        *format_out = CVY_FORMAT_W_HWIO;
        return CVY_OK;
    }
    CVY_TRY(cvy_onednn_problem_create(op, i, &problem));
    const cvy_tensor *told = &problem.op.operand[i].tensor;
    bool found = cvy_onednn_format_find(problem.description, problem.argument[i], told, cvy_onednn_find_swap(op, i),
                                        &wish) &&
                 cvy_onednn_blocks_hold(&op->operand[i].tensor, told, wish);
    cvy_onednn_problem_clear(&problem);
    CVY_REQUIRE(found, CVY_ERR_UNSUPPORTED, "onednn: no wish for the format of %s", cvy_role_name(role));
    *format_out = wish;
    return CVY_OK;
}

static void destroy(cvy_kernel *base)
{
    onednn_kernel *kernel = (onednn_kernel *)base;
    for (int i = 0; i < kernel->arguments; i++) {
        dnnl_memory_destroy(kernel->argument[i].memory);
    }
    if (kernel->primitive) {
        dnnl_primitive_destroy(kernel->primitive);
    }
    cvy_free(kernel);
}

static dnnl_status_t add_argument(onednn_kernel *kernel, const_dnnl_primitive_desc_t description, int argument,
                                  int source)
{
    dnnl_exec_arg_t *place = &kernel->argument[kernel->arguments];
    place->arg = argument;
    kernel->source[kernel->arguments] = source;
    dnnl_status_t status = cvy_onednn_memory_create(description, argument, &place->memory);
    kernel->arguments += status == dnnl_success;
    return status;
}

static dnnl_status_t fill(onednn_kernel *kernel, const cvy_onednn_problem *problem)
{
    const_dnnl_primitive_desc_t description = problem->description;
    strncpy(kernel->algorithm, cvy_onednn_problem_implementation(problem), NAME_BYTES - 1);
    kernel->scratch_bytes = cvy_onednn_argument_bytes(description, DNNL_ARG_SCRATCHPAD);
    bool rectifies = kernel->base.op.relu && cvy_op_by_winograd(&kernel->base.op);
    kernel->rectified = rectifies ? cvy_op_index(&kernel->base.op, CVY_ROLE_Y) : -1;
    dnnl_status_t status = dnnl_primitive_create(&kernel->primitive, description);
    for (int i = 0; i < kernel->base.op.operands && status == dnnl_success; i++) {
        status = add_argument(kernel, description, problem->argument[i], i);
    }
    if (kernel->scratch_bytes > 0 && status == dnnl_success) {
        status = add_argument(kernel, description, DNNL_ARG_SCRATCHPAD, FROM_SCRATCH);
    }
    return status;
}

static cvy_status create(const cvy_op *op, cvy_kernel **kernel_out)
{
    cvy_onednn_problem problem;
    if (cvy_onednn_points_take(op)) {
        return cvy_onednn_points_create(op, kernel_out);
    }
    CVY_TRY(cvy_onednn_problem_create(op, CVY_ONEDNN_IMPOSED, &problem));
    cvy_status status = CVY_ERR_MEMORY;
    onednn_kernel *kernel = cvy_calloc(1, sizeof *kernel);
    if (!kernel) {
        goto done;
    }
    kernel->base = (cvy_kernel){.backend = &cvy_backend_onednn, .op = *op};
    dnnl_status_t made = fill(kernel, &problem);
    CVY_REQUIRE_GOTO(status, done, made != dnnl_out_of_memory, CVY_ERR_MEMORY, "onednn: no memory for a kernel");
    CVY_REQUIRE_GOTO(status, done, made == dnnl_success, CVY_ERR_UNSUPPORTED,
                     "onednn: cannot make %s of %s (status %d)", kernel->algorithm, cvy_op_kind_name(op->kind),
                     (int)made);
    *kernel_out = &kernel->base;
    kernel = NULL;
    status = CVY_OK;
done:
    if (kernel) {
        destroy(&kernel->base);
    }
    cvy_onednn_problem_clear(&problem);
    return status;
}

static size_t get_scratch_bytes(const cvy_kernel *base) { return ((const onednn_kernel *)base)->scratch_bytes; }

static const char *get_algorithm(const cvy_kernel *base) { return ((const onednn_kernel *)base)->algorithm; }

static dnnl_status_t point(onednn_kernel *kernel, int i, void *address)
{
    if (kernel->address[i] == address) {
        return dnnl_success;
    }
    kernel->address[i] = address;
    return cvy_onednn_memory_point(kernel->argument[i].memory, address);
}

/* NaN is not below 0, and stays. */
static void rectify(const cvy_tensor *tensor, float *restrict y)
{
    int64_t elements = cvy_tensor_elements(tensor);
#pragma omp parallel for simd schedule(static)
    for (int64_t i = 0; i < elements; i++) {
        y[i] = y[i] < 0.0f ? 0.0f : y[i];
    }
}

static bool is_aligned(const cvy_op *op, void *const *operand)
{
    bool aligned = true;
    for (int i = 0; i < op->operands; i++) {
        aligned = aligned && (uintptr_t)operand[i] % CVY_ARENA_ALIGNMENT == 0;
    }
    return aligned;
}

static cvy_status run(cvy_kernel *base, void *const *operand, void *scratch, const cvy_run *settings)
{
    (void)settings;
    onednn_kernel *kernel = (onednn_kernel *)base;
    dnnl_stream_t stream = cvy_onednn_device_get()->stream;
    dnnl_status_t status = dnnl_success;
    CVY_REQUIRE(!cvy_op_by_winograd(&base->op) || is_aligned(&base->op, operand), CVY_ERR_ARG,
                "onednn: %s needs operands that lie at multiples of %d bytes", kernel->algorithm, CVY_ARENA_ALIGNMENT);
    for (int i = 0; i < kernel->arguments && status == dnnl_success; i++) {
        int source = kernel->source[i];
        status = point(kernel, i, source == FROM_SCRATCH ? scratch : operand[source]);
    }
    if (status == dnnl_success) {
        status = dnnl_primitive_execute(kernel->primitive, stream, kernel->arguments, kernel->argument);
    }
    if (status == dnnl_success) {
        status = dnnl_stream_wait(stream);
    }
    CVY_REQUIRE(status == dnnl_success, status == dnnl_out_of_memory ? CVY_ERR_MEMORY : CVY_ERR_UNSUPPORTED,
                "onednn: %s of %s failed (status %d)", kernel->algorithm, cvy_op_kind_name(base->op.kind), (int)status);
    if (kernel->rectified >= 0) {
        rectify(&base->op.operand[kernel->rectified].tensor, operand[kernel->rectified]);
    }
    return CVY_OK;
}

const cvy_backend cvy_backend_onednn = {
    .name = "onednn",
    .quality = find_quality,
    .choose_format = choose_format,
    .create = create,
    .scratch_bytes = get_scratch_bytes,
    .algorithm = get_algorithm,
    .run = run,
    .destroy = destroy,
};
