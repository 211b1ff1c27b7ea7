/*
 * Ops without neighbours: activations, add, dropout, stochastic depth. All walk rows of w; each element is read before
 * its place is written, so the output may lie on an input.
 *
 * A dropout mask belongs to the sample's place in the global batch and to the logical element, never to memory: it is
 * the same in every format, and drawn anew in the backward pass. That of stochastic depth belongs to the sample.
 */
#include "backend/ref/ref.h"

#include <math.h>

#include "base/random.h"

/* What goes into one element of the output: of one input or two, and the slope of leaky relu, or of what survives. */
typedef struct element {
    double a, b, slope;
} element;

/* Comparisons that NaN fails keep NaN. In gradients a is x or y, b is dy, with what is added to it. */
typedef double (*element_map)(element e);

static double sum_pair(element e) { return e.a + e.b; }

static double relu(element e) { return e.a < 0.0 ? 0.0 : e.a; }

static double relu_of_sum(element e) { return relu((element){.a = sum_pair(e)}); }

static double relu_gradient(element e) { return e.a > 0.0 ? e.b : 0.0; }

static double scaled_relu_gradient(element e) { return e.a > 0.0 ? e.slope * e.b : 0.0; }

static double relu6(element e) { return e.a > 6.0 ? 6.0 : relu(e); }

static double relu6_gradient(element e) { return e.a > 0.0 && e.a < 6.0 ? e.b : 0.0; }

static double leaky_relu(element e) { return e.a > 0.0 ? e.a : e.slope * e.a; }

static double leaky_relu_gradient(element e) { return e.a > 0.0 ? e.b : e.slope * e.b; }

static double sigmoid(element e) { return 1.0 / (1.0 + exp(-e.a)); }

static double sigmoid_gradient(element e) { return e.b * e.a * (1.0 - e.a); }

static double hyperbolic_tangent(element e) { return tanh(e.a); }

static double hyperbolic_tangent_gradient(element e) { return e.b * (1.0 - e.a * e.a); }

static double silu(element e) { return e.a * sigmoid(e); }

static double silu_gradient(element e) { return e.b * sigmoid(e) * (1.0 + e.a * (1.0 - sigmoid(e))); }

static double hard_swish(element e) { return e.a * relu6((element){.a = e.a + 3.0}) / 6.0; }

static double hard_swish_gradient(element e)
{
    return e.a < -3.0 ? 0.0 : e.a >= 3.0 ? e.b : e.b * (e.a / 3.0 + 0.5);
}

/* Each activation and its gradient; whether that goes by x or by y, the signature says. */
static const struct {
    element_map forward, gradient;
} activations[CVY_OP_KIND_COUNT] = {
    [CVY_OP_RELU] = {relu, relu_gradient},
    [CVY_OP_RELU6] = {relu6, relu6_gradient},
    [CVY_OP_LEAKY_RELU] = {leaky_relu, leaky_relu_gradient},
    [CVY_OP_SIGMOID] = {sigmoid, sigmoid_gradient},
    [CVY_OP_TANH] = {hyperbolic_tangent, hyperbolic_tangent_gradient},
    [CVY_OP_SILU] = {silu, silu_gradient},
    [CVY_OP_HARD_SWISH] = {hard_swish, hard_swish_gradient},
};

/* The tensors that an element is made of; b and what is added to it may be NULL. */
typedef struct inputs {
    const cvy_ref_tensor *a, *b, *added;
} inputs;

static int64_t find_row(const cvy_ref_tensor *tensor, int64_t row) { return tensor ? cvy_ref_row(tensor, row) : 0; }

static double load_from(const cvy_ref_tensor *tensor, int64_t row_at, int64_t w)
{
    return tensor ? cvy_ref_load(tensor, row_at + tensor->at[CVY_REF_W][w]) : 0.0;
}

/* Map the elements of the inputs to those of y. */
static void map_elements(const inputs *from, const cvy_ref_tensor *y, element_map map, double slope)
{
    for (int64_t row = 0; row < cvy_ref_rows(y); row++) {
        int64_t a_at = find_row(from->a, row), b_at = find_row(from->b, row), added_at = find_row(from->added, row);
        int64_t y_at = cvy_ref_row(y, row);
        for (int64_t w = 0; w < y->extent[CVY_REF_W]; w++) {
            element e = {.a = load_from(from->a, a_at, w), .b = load_from(from->b, b_at, w), .slope = slope};
            e.b += load_from(from->added, added_at, w);
            cvy_ref_store(y, y_at + y->at[CVY_REF_W][w], map(e));
        }
    }
}

/* Only leaky relu has one. */
static double get_slope(const cvy_op *op) { return op->kind == CVY_OP_LEAKY_RELU ? op->params.activation.slope : 0.0; }

cvy_status cvy_ref_activation_forward(const cvy_ref_kernel *kernel, const cvy_run *run)
{
    const cvy_op *op = &kernel->base.op;
    inputs from = {.a = cvy_ref_find(kernel, CVY_ROLE_X)};
    (void)run;
    map_elements(&from, cvy_ref_find(kernel, CVY_ROLE_Y), activations[op->kind].forward, get_slope(op));
    return CVY_OK;
}

cvy_status cvy_ref_activation_data(const cvy_ref_kernel *kernel, const cvy_run *run)
{
    const cvy_op *op = &kernel->base.op;
    inputs from = {&kernel->tensor[0], cvy_ref_find(kernel, CVY_ROLE_DY), cvy_ref_find(kernel, CVY_ROLE_DY1)};
    (void)run;
    map_elements(&from, cvy_ref_find(kernel, CVY_ROLE_DX), activations[op->kind].gradient, get_slope(op));
    return CVY_OK;
}

cvy_status cvy_ref_add_forward(const cvy_ref_kernel *kernel, const cvy_run *run)
{
    inputs from = {.a = cvy_ref_find(kernel, CVY_ROLE_X), .b = cvy_ref_find(kernel, CVY_ROLE_X1)};
    (void)run;
    map_elements(&from, cvy_ref_find(kernel, CVY_ROLE_Y), kernel->base.op.relu ? relu_of_sum : sum_pair, 0.0);
    return CVY_OK;
}

/* The index in the whole sample of index i along a dimension of the share. */
static int64_t find_in_whole(const cvy_op_params_dropout *share, int dim, int64_t i)
{
    if (share->stretches.count == 0 || share->stretched != dim) {
        return share->first[dim] + i;
    }
    const cvy_interval *at = share->stretches.at;
    while (i >= at->end - at->begin) { /* the next interval begins behind this one */
        i -= at->end - at->begin;
        at++;
    }
    return at->begin + i;
}

/* The number in a whole sample of element w of a row of x. */
static int64_t number_element(const cvy_op_params_dropout *params, const cvy_ref_tensor *x, int64_t row, int64_t w)
{
    int64_t index[4], number = 0;
    index[3] = w;
    for (int dim = 2; dim >= 0; dim--) {
        index[dim] = row % x->extent[CVY_REF_C + dim];
        row /= x->extent[CVY_REF_C + dim];
    }
    for (int dim = 0; dim < 4; dim++) {
        bool all = params->whole[0] == 0;
        number = number * (all ? x->extent[CVY_REF_C + dim] : params->whole[dim]) +
                 (all ? index[dim] : find_in_whole(params, dim, index[dim]));
    }
    return number;
}

/* What element e of local sample n is multiplied with: 0 or 1 / (1 - probability). */
static double draw_factor(const cvy_op_params_dropout *params, const cvy_run *run, int64_t n, int64_t e)
{
    cvy_words words = cvy_random_words(run->seed, CVY_PURPOSE_DROPOUT, (uint32_t)params->layer, (uint32_t)run->step,
                                       (uint32_t)(run->sample_first + n), (uint32_t)(e / 4));
    bool dropped = (double)cvy_random_unit(words.v[e % 4]) < params->probability;
    return dropped ? 0.0 : 1.0 / (1.0 - params->probability);
}

static cvy_status drop(const cvy_ref_kernel *kernel, const cvy_run *run, cvy_role from, cvy_role to)
{
    const cvy_ref_tensor *x = cvy_ref_find(kernel, from);
    const cvy_ref_tensor *y = cvy_ref_find(kernel, to);
    const cvy_op_params_dropout *params = &kernel->base.op.params.dropout;
    int64_t rows = cvy_ref_rows(x) / x->extent[CVY_REF_N]; /* of a sample */
    for (int64_t row = 0; row < cvy_ref_rows(x); row++) {
        int64_t x_at = cvy_ref_row(x, row);
        int64_t y_at = cvy_ref_row(y, row);
        for (int64_t w = 0; w < x->extent[CVY_REF_W]; w++) {
            double factor = draw_factor(params, run, row / rows, number_element(params, x, row, w));
            cvy_ref_store(y, y_at + y->at[CVY_REF_W][w], factor * cvy_ref_load(x, x_at + x->at[CVY_REF_W][w]));
        }
    }
    return CVY_OK;
}

cvy_status cvy_ref_dropout_forward(const cvy_ref_kernel *kernel, const cvy_run *run)
{
    return drop(kernel, run, CVY_ROLE_X, CVY_ROLE_Y);
}

cvy_status cvy_ref_dropout_data(const cvy_ref_kernel *kernel, const cvy_run *run)
{
    const cvy_op *op = &kernel->base.op;
    if (op->relu) { /* y tells what came through both */
        inputs from = {.a = cvy_ref_find(kernel, CVY_ROLE_Y), .b = cvy_ref_find(kernel, CVY_ROLE_DY)};
        map_elements(&from, cvy_ref_find(kernel, CVY_ROLE_DX), scaled_relu_gradient,
                     1.0 / (1.0 - op->params.dropout.probability));
        return CVY_OK;
    }
    return drop(kernel, run, CVY_ROLE_DY, CVY_ROLE_DX);
}

/* What all of local sample n is multiplied with: 0 or 1 / (1 - probability). */
static double draw_sample_factor(const cvy_op_params_dropout *params, const cvy_run *run, int64_t n)
{
    cvy_words words = cvy_random_words(run->seed, CVY_PURPOSE_STOCHASTIC_DEPTH, (uint32_t)params->layer,
                                       (uint32_t)run->step, (uint32_t)(run->sample_first + n), 0);
    bool dropped = (double)cvy_random_unit(words.v[0]) < params->probability;
    return dropped ? 0.0 : 1.0 / (1.0 - params->probability);
}

static cvy_status drop_samples(const cvy_ref_kernel *kernel, const cvy_run *run, cvy_role from, cvy_role to)
{
    const cvy_ref_tensor *x = cvy_ref_find(kernel, from);
    const cvy_ref_tensor *y = cvy_ref_find(kernel, to);
    int64_t rows = cvy_ref_rows(x) / x->extent[CVY_REF_N]; /* of a sample */
    for (int64_t row = 0; row < cvy_ref_rows(x); row++) {
        double factor = draw_sample_factor(&kernel->base.op.params.dropout, run, row / rows);
        int64_t x_at = cvy_ref_row(x, row);
        int64_t y_at = cvy_ref_row(y, row);
        for (int64_t w = 0; w < x->extent[CVY_REF_W]; w++) {
            cvy_ref_store(y, y_at + y->at[CVY_REF_W][w], factor * cvy_ref_load(x, x_at + x->at[CVY_REF_W][w]));
        }
    }
    return CVY_OK;
}

cvy_status cvy_ref_stochastic_depth_forward(const cvy_ref_kernel *kernel, const cvy_run *run)
{
    return drop_samples(kernel, run, CVY_ROLE_X, CVY_ROLE_Y);
}

cvy_status cvy_ref_stochastic_depth_data(const cvy_ref_kernel *kernel, const cvy_run *run)
{
    return drop_samples(kernel, run, CVY_ROLE_DY, CVY_ROLE_DX);
}
