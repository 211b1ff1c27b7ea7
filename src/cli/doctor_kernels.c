/*
 * The kernels of this build against plain loops, on this very machine: a library that chooses its code by the processor
 * may choose one that no test has met. Float against double differ by rounding: 1e-4 of the largest element is far
 * above that for sums of a few hundred terms, and far below any error in a formula.
 */
#include <math.h>

#include "backend/backend.h"
#include "base/memory.h"
#include "base/random.h"
#include "cli/doctor.h"

static const double TOLERANCE = 1e-4;

/* An op, its input, and its filters or units. */
typedef struct kernel_case {
    const char *name;
    cvy_op_kind kind;
    cvy_op_pass pass;
    cvy_shape x;
    int64_t filters;
    cvy_window window;
} kernel_case;

#define WINDOW(k, s, p) {{1, k, k}, {1, s, s}, {1, 1, 1}, {0, p, p}, {0, p, p}}
#define IMAGE {4, {2, 16, 9, 10}}
#define VECTOR {2, {8, 64}}

static const kernel_case cases[] = {
    {"conv", CVY_OP_CONVOLUTION, CVY_PASS_FORWARD, IMAGE, 24, WINDOW(3, 1, 1)},
    {"conv", CVY_OP_CONVOLUTION, CVY_PASS_BACKWARD_DATA, IMAGE, 24, WINDOW(3, 1, 1)},
    {"conv", CVY_OP_CONVOLUTION, CVY_PASS_BACKWARD_WEIGHTS, IMAGE, 24, WINDOW(3, 1, 1)},
    {"conv/2", CVY_OP_CONVOLUTION, CVY_PASS_FORWARD, IMAGE, 16, WINDOW(3, 2, 1)},
    {"dense", CVY_OP_DENSE, CVY_PASS_FORWARD, VECTOR, 40, WINDOW(1, 1, 0)},
    {"dense", CVY_OP_DENSE, CVY_PASS_BACKWARD_DATA, VECTOR, 40, WINDOW(1, 1, 0)},
    {"dense", CVY_OP_DENSE, CVY_PASS_BACKWARD_WEIGHTS, VECTOR, 40, WINDOW(1, 1, 0)},
    {"max-pool", CVY_OP_POOL_MAX, CVY_PASS_INFERENCE, IMAGE, 0, WINDOW(3, 2, 1)},
    {"average-pool", CVY_OP_POOL_AVERAGE, CVY_PASS_FORWARD, IMAGE, 0, WINDOW(2, 2, 0)},
    {"batch-norm", CVY_OP_BATCH_NORM, CVY_PASS_FORWARD, IMAGE, 0, WINDOW(1, 1, 0)},
    {"relu", CVY_OP_RELU, CVY_PASS_FORWARD, IMAGE, 0, WINDOW(1, 1, 0)},
    {"add", CVY_OP_ADD, CVY_PASS_FORWARD, IMAGE, 0, WINDOW(1, 1, 0)},
};

/* One side of the comparison. */
typedef struct side {
    cvy_op op;
    cvy_kernel *kernel;
    void *data[CVY_MAX_OPERANDS];
    void *scratch;
} side;

static void release_side(side *s)
{
    cvy_kernel_destroy(&s->kernel);
    for (int i = 0; i < CVY_MAX_OPERANDS; i++) {
        cvy_free(s->data[i]);
    }
    cvy_free(s->scratch);
}

/* All operands plain, in one type. */
static cvy_status describe_op(const kernel_case *at, cvy_dtype dtype, cvy_op *op)
{
    const cvy_tensor x = {.shape = at->x, .dtype = dtype, .format = CVY_FORMAT_PLAIN};
    *op = (cvy_op){.kind = at->kind, .pass = at->pass};
    if (at->kind == CVY_OP_BATCH_NORM) {
        op->params.norm = (cvy_op_params_norm){.epsilon = 1e-5, .momentum = 0.1, .count = 1};
    } else {
        op->params.window = (cvy_op_params_window){.window = at->window, .groups = 1, .count_padding = true};
    }
    const cvy_signature *signature = cvy_op_signature(at->kind, at->pass);
    for (int i = 0; i < signature->places; i++) {
        cvy_tensor tensor;
        CVY_TRY(cvy_op_describe(op, &x, at->filters, signature->place[i].role, &tensor));
        CVY_TRY(cvy_op_add(op, signature->place[i].role, &tensor));
    }
    return CVY_OK;
}

/* The formats that the chain wishes for, one operand after the other, as a plan does. */
static void choose_formats(const cvy_backend_chain *chain, cvy_op *op)
{
    for (int i = 0; i < op->operands; i++) {
        cvy_tensor tensor = op->operand[i].tensor;
        tensor.format = cvy_backend_choose_format(chain, op, op->operand[i].role);
        if (cvy_tensor_format_fits(&tensor)) {
            op->operand[i].tensor = tensor;
        }
    }
}

static cvy_status prepare_side(const cvy_backend_chain *chain, side *s)
{
    CVY_TRY(cvy_kernel_create(chain, &s->op, &s->kernel));
    for (int i = 0; i < s->op.operands; i++) {
        s->data[i] = cvy_calloc(1, (size_t)cvy_tensor_bytes(&s->op.operand[i].tensor));
        if (!s->data[i]) {
            return CVY_ERR_MEMORY;
        }
    }
    s->scratch = cvy_calloc(1, cvy_kernel_scratch_bytes(s->kernel) + CVY_ARENA_ALIGNMENT);
    return s->scratch ? CVY_OK : CVY_ERR_MEMORY;
}

static cvy_status run_side(side *s)
{
    const cvy_run run = {.seed = 1, .samples = s->op.operand[0].tensor.shape.extent[0], .loss_scale = 1, .update = 1};
    size_t unit = CVY_ARENA_ALIGNMENT;
    unsigned char *aligned = (unsigned char *)s->scratch + (unit - (uintptr_t)s->scratch % unit) % unit;
    return cvy_kernel_run(s->kernel, s->data, aligned, &run);
}

/* Numbers in [-1, 1) that are exact in float, the same on both sides whatever the format. */
static cvy_status fill_inputs(side *exact, side *fast)
{
    for (int i = 0; i < exact->op.operands; i++) {
        const cvy_operand *operand = &exact->op.operand[i];
        double *value = exact->data[i];
        for (int64_t e = 0; e < cvy_shape_elements(&operand->tensor.shape); e++) {
            cvy_words words = cvy_random_words(1, CVY_PURPOSE_SYNTHETIC_DATA, (uint32_t)i, 0, 0, (uint32_t)e);
            value[e] = 2 * (double)cvy_random_unit(words.v[0]) - 1;
        }
        CVY_TRY(cvy_tensor_copy(&operand->tensor, value, &fast->op.operand[i].tensor, fast->data[i]));
    }
    return CVY_OK;
}

/* max |a - b| / max |b| over all that the op writes. */
static cvy_status compare_outputs(const side *exact, const side *fast, double *difference_out)
{
    double worst = 0;
    for (int i = 0; i < exact->op.operands; i++) {
        const cvy_operand *operand = &exact->op.operand[i];
        int64_t elements = cvy_shape_elements(&operand->tensor.shape);
        if (operand->access == CVY_ACCESS_READ) {
            continue;
        }
        double *found = cvy_calloc((size_t)elements, sizeof *found), difference = 0, largest = 0;
        if (!found) {
            return CVY_ERR_MEMORY;
        }
        cvy_status status = cvy_tensor_copy(&fast->op.operand[i].tensor, fast->data[i], &operand->tensor, found);
        const double *expected = exact->data[i];
        for (int64_t e = 0; e < elements; e++) {
            double d = fabs(found[e] - expected[e]);
            difference = d <= difference ? difference : d; /* keeps NaN */
            largest = fmax(largest, fabs(expected[e]));
        }
        cvy_free(found);
        CVY_TRY(status);
        double relative = difference / (largest > 0 ? largest : 1);
        worst = relative <= worst ? worst : relative;
    }
    *difference_out = worst;
    return CVY_OK;
}

static cvy_status run_case(const kernel_case *at, doctor_report *report, int *wrong)
{
    side exact = {.kernel = NULL}, fast = {.kernel = NULL};
    cvy_backend_chain chain, reference;
    double difference = 0;
    cvy_status status = CVY_OK;
    CVY_TRY_GOTO(status, done, cvy_backend_chain_find(NULL, &chain));
    CVY_TRY_GOTO(status, done, cvy_backend_chain_find("ref", &reference));
    CVY_TRY_GOTO(status, done, describe_op(at, CVY_F64, &exact.op));
    CVY_TRY_GOTO(status, done, describe_op(at, CVY_F32, &fast.op));
    choose_formats(&chain, &fast.op);
    CVY_TRY_GOTO(status, done, prepare_side(&reference, &exact));
    CVY_TRY_GOTO(status, done, prepare_side(&chain, &fast));
    CVY_TRY_GOTO(status, done, fill_inputs(&exact, &fast));
    CVY_TRY_GOTO(status, done, run_side(&exact));
    CVY_TRY_GOTO(status, done, run_side(&fast));
    CVY_TRY_GOTO(status, done, compare_outputs(&exact, &fast, &difference));
    bool right = difference <= TOLERANCE;
    *wrong += !right;
    cli_doctor_add(report, right ? DOCTOR_OK : DOCTOR_WARNING, "kernels",
                   right ? NULL : "train with --backend ref, and report this", "%s %s: %s %s, off by %.1e", at->name,
                   cvy_op_pass_name(at->pass), fast.kernel->backend->name,
                   fast.kernel->backend->algorithm(fast.kernel), difference);
done:
    release_side(&exact);
    release_side(&fast);
    return status;
}

cvy_status cli_doctor_check_kernels(doctor_report *report)
{
    int wrong = 0;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CVY_TRY(run_case(&cases[i], report, &wrong));
    }
    CVY_REQUIRE(wrong == 0, CVY_ERR_UNSUPPORTED, "%d kernels of this build compute something else than plain loops do",
                wrong);
    return CVY_OK;
}
