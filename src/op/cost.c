/*
 * What an op costs: floating point operations and bytes. Convolutions and dense layers use each weight once for every
 * sample and output position, in each of their three passes alike; the others do a few operations an element, listed in
 * one table. Comparisons, divisions, roots and exponentials count 1; integer work (random words, indices) counts 0.
 */
#include "op/op.h"

static double count_elements(const cvy_op *op, cvy_role role)
{
    const cvy_operand *operand = cvy_op_find(op, role);
    return operand ? (double)cvy_shape_elements(&operand->tensor.shape) : 0.0;
}

/*
 * 2 n f od oh ow (c/g) kd kh kw = 2 |w| |y| / f, and an addition an element of y for the bias. A transposed convolution
 * has the positions of its window in x: 2 |w| |x| / c.
 */
static double count_products(const cvy_op *op)
{
    const cvy_operand *output = cvy_op_find_either(op, CVY_ROLE_Y, CVY_ROLE_DY);
    const cvy_operand *weights = cvy_op_find_either(op, CVY_ROLE_W, CVY_ROLE_DW);
    const cvy_operand *swept = output;
    if (op->kind == CVY_OP_TRANSPOSED_CONVOLUTION) {
        swept = cvy_op_find_either(op, CVY_ROLE_X, CVY_ROLE_DX);
    }
    double products = (double)cvy_shape_elements(&weights->tensor.shape) *
                      (double)cvy_shape_elements(&swept->tensor.shape) / (double)swept->tensor.shape.extent[1];
    bool biased = cvy_op_find_either(op, CVY_ROLE_B, CVY_ROLE_DB) != NULL;
    return 2.0 * products + (biased ? (double)cvy_shape_elements(&output->tensor.shape) : 0.0);
}

/* A comparison or addition a position of the window; the mean's division; one addition an output for max's gradient. */
static double count_pooling(const cvy_op *op)
{
    if (op->kind == CVY_OP_POOL_MAX && op->pass == CVY_PASS_BACKWARD_DATA) {
        return count_elements(op, CVY_ROLE_DY);
    }
    const int64_t *kernel = op->params.window.window.kernel;
    double positions = (double)kernel[0] * (double)kernel[1] * (double)kernel[2];
    double outputs = count_elements(op, op->pass == CVY_PASS_BACKWARD_DATA ? CVY_ROLE_DY : CVY_ROLE_Y);
    return outputs * (positions + (op->kind == CVY_OP_POOL_AVERAGE ? 1.0 : 0.0));
}

/* Of the parameters only those in force cost something: decay 2, velocity 2, Nesterov's look ahead 2, the step 2. */
static double count_sgd(const cvy_op *op)
{
    bool momentum = cvy_op_find(op, CVY_ROLE_MOMENTUM) != NULL;
    double each = 2.0 + (op->params.optimizer.weight_decay != 0.0 ? 2.0 : 0.0) + (momentum ? 2.0 : 0.0) +
                  (momentum && op->params.optimizer.nesterov ? 2.0 : 0.0);
    return each * count_elements(op, CVY_ROLE_W);
}

/* A square and an addition an element of the window; a division's share and an addition, the power, the product. */
static double count_response(const cvy_op *op)
{
    double size = (double)op->params.response.size;
    double each = op->pass == CVY_PASS_FORWARD ? 2.0 * size + 4.0 : 3.0 * size + 10.0; /* the gradient sums once more */
    return each * count_elements(op, CVY_ROLE_X);
}

/* Clipping: a product an element for the scale, two comparisons for the value. */
static double count_clipping(const cvy_op *op)
{
    if (op->pass != CVY_PASS_UPDATE || !cvy_op_find(op, CVY_ROLE_DW) || op->kind == CVY_OP_LAMB) {
        return 0.0;
    }
    double each = (cvy_op_find(op, CVY_ROLE_SCALE) ? 1.0 : 0.0) + (op->params.optimizer.clip_value > 0.0 ? 2.0 : 0.0);
    return each * count_elements(op, CVY_ROLE_DW);
}

/*
 * A comparison an element of y; of dx, or of dy where y tells; of a norm's dy for each pass over it, with the product
 * and the sum that y is; dy1 is added.
 */
static double count_relu(const cvy_op *op)
{
    if (!op->relu && op->kind != CVY_OP_RELU) {
        return 0.0;
    }
    if (op->relu && op->kind == CVY_OP_BATCH_NORM && cvy_op_find(op, CVY_ROLE_DY)) {
        return (op->pass == CVY_PASS_BACKWARD ? 6.0 : 3.0) * count_elements(op, CVY_ROLE_DY);
    }
    const cvy_operand *masked = op->relu ? cvy_op_find_either(op, CVY_ROLE_Y, CVY_ROLE_DX) : NULL;
    return (masked ? (double)cvy_shape_elements(&masked->tensor.shape) : 0.0) + count_elements(op, CVY_ROLE_DY1);
}

typedef struct unit_cost {
    cvy_role over; /**< the operand whose elements are counted */
    double flop;   /**< an element */
} unit_cost;

static const unit_cost unit_costs[CVY_OP_KIND_COUNT][CVY_PASS_COUNT] = {
    [CVY_OP_POOL_GLOBAL] =
        {
            [CVY_PASS_FORWARD] = {CVY_ROLE_X, 1},
            [CVY_PASS_BACKWARD_DATA] = {CVY_ROLE_DY, 1},
        },
    [CVY_OP_POOL_ADAPTIVE] = /* bins that overlap do a little more */
        {
            [CVY_PASS_FORWARD] = {CVY_ROLE_X, 1},
            [CVY_PASS_BACKWARD_DATA] = {CVY_ROLE_DX, 1},
        },
    [CVY_OP_BATCH_NORM] =
        {
            [CVY_PASS_FORWARD] = {CVY_ROLE_X, 6}, /* as its parts */
            [CVY_PASS_INFERENCE] = {CVY_ROLE_X, 2},
            [CVY_PASS_BACKWARD] = {CVY_ROLE_X, 8},   /* as its parts */
            [CVY_PASS_STATS] = {CVY_ROLE_X, 4},      /* sum; difference, square, sum */
            [CVY_PASS_NORMALISE] = {CVY_ROLE_X, 2},  /* a x + b */
            [CVY_PASS_GRAD_STATS] = {CVY_ROLE_X, 4}, /* sum; difference, product, sum */
            [CVY_PASS_GRAD_APPLY] = {CVY_ROLE_X, 4}, /* a dy + b x + c */
            [CVY_PASS_COMMIT] = {CVY_ROLE_MEAN, 7},  /* two interpolations, one unbiasing */
            [CVY_PASS_MERGE] = {CVY_ROLE_MEAN, 9},   /* a difference, two for the mean, six for the variance */
        },
    [CVY_OP_RELU] =
        {
            [CVY_PASS_FORWARD] = {CVY_ROLE_X, 1},
            [CVY_PASS_BACKWARD_DATA] = {CVY_ROLE_DY, 1},
        },
    [CVY_OP_DROPOUT] =
        {
            [CVY_PASS_FORWARD] = {CVY_ROLE_X, 1},
            [CVY_PASS_BACKWARD_DATA] = {CVY_ROLE_DY, 1},
        },
    [CVY_OP_ADD] =
        {
            [CVY_PASS_FORWARD] = {CVY_ROLE_X, 1},
        },
    [CVY_OP_SOFTMAX_CROSS_ENTROPY] =
        {
            [CVY_PASS_FORWARD] = {CVY_ROLE_X, 5},   /* largest, difference, exponential, sum, quotient */
            [CVY_PASS_INFERENCE] = {CVY_ROLE_X, 4}, /* no quotient */
            [CVY_PASS_BACKWARD_DATA] = {CVY_ROLE_DX, 2},
        },
    [CVY_OP_MEAN_SQUARED_ERROR] =
        {
            [CVY_PASS_FORWARD] = {CVY_ROLE_X, 3},
            [CVY_PASS_INFERENCE] = {CVY_ROLE_X, 3},
            [CVY_PASS_BACKWARD_DATA] = {CVY_ROLE_DX, 2},
        },
    [CVY_OP_ADAMW] =
        {
            [CVY_PASS_UPDATE] = {CVY_ROLE_W, 15}, /* decay 1, first moment 3, second 4, step 7 */
        },
    [CVY_OP_RELU6] =
        { /* two comparisons */
            [CVY_PASS_FORWARD] = {CVY_ROLE_X, 2},
            [CVY_PASS_BACKWARD_DATA] = {CVY_ROLE_DY, 2},
        },
    [CVY_OP_LEAKY_RELU] =
        { /* comparison, product */
            [CVY_PASS_FORWARD] = {CVY_ROLE_X, 2},
            [CVY_PASS_BACKWARD_DATA] = {CVY_ROLE_DY, 2},
        },
    [CVY_OP_SIGMOID] =
        { /* exponential, sum, quotient; difference, two products */
            [CVY_PASS_FORWARD] = {CVY_ROLE_X, 3},
            [CVY_PASS_BACKWARD_DATA] = {CVY_ROLE_DY, 3},
        },
    [CVY_OP_TANH] =
        { /* counted as one exponential; product, difference, product */
            [CVY_PASS_FORWARD] = {CVY_ROLE_X, 1},
            [CVY_PASS_BACKWARD_DATA] = {CVY_ROLE_DY, 3},
        },
    [CVY_OP_SILU] =
        { /* sigmoid, product; sigmoid, difference, two products, sum */
            [CVY_PASS_FORWARD] = {CVY_ROLE_X, 4},
            [CVY_PASS_BACKWARD_DATA] = {CVY_ROLE_DY, 7},
        },
    [CVY_OP_HARD_SWISH] =
        { /* sum, two comparisons, product, quotient; two comparisons, quotient, sum, product */
            [CVY_PASS_FORWARD] = {CVY_ROLE_X, 5},
            [CVY_PASS_BACKWARD_DATA] = {CVY_ROLE_DY, 5},
        },
    [CVY_OP_MULTIPLY] =
        {
            [CVY_PASS_FORWARD] = {CVY_ROLE_X, 1},
            [CVY_PASS_BACKWARD] = {CVY_ROLE_X, 3}, /* dy x1; dy x, sum */
        },
    [CVY_OP_SOFT_DICE] =
        {
            [CVY_PASS_FORWARD] = {CVY_ROLE_X, 7},       /* as cross-entropy, and two sums */
            [CVY_PASS_INFERENCE] = {CVY_ROLE_X, 7},     /* it sums the quotients, too */
            [CVY_PASS_BACKWARD_DATA] = {CVY_ROLE_DX, 6}, /* r, its product and sum; difference, two products */
        },
    [CVY_OP_STOCHASTIC_DEPTH] =
        {
            [CVY_PASS_FORWARD] = {CVY_ROLE_X, 1},
            [CVY_PASS_BACKWARD_DATA] = {CVY_ROLE_DY, 1},
        },
    [CVY_OP_ADAM] =
        {
            [CVY_PASS_UPDATE] = {CVY_ROLE_W, 16}, /* decay 2, then as adamw */
        },
    [CVY_OP_GROUP_NORM] = /* as batch norm */
        {
            [CVY_PASS_FORWARD] = {CVY_ROLE_X, 6},
            [CVY_PASS_BACKWARD] = {CVY_ROLE_X, 8},
        },
    [CVY_OP_SQUARE_SUM] =
        {
            [CVY_PASS_UPDATE] = {CVY_ROLE_X, 2},
        },
    [CVY_OP_CLIP] =
        {
            [CVY_PASS_UPDATE] = {CVY_ROLE_SQUARES, 1},
        },
    [CVY_OP_LARS] =
        {
            [CVY_PASS_UPDATE] = {CVY_ROLE_W, 7}, /* decay 2, factor 1, velocity 2, and the step with its sign 2 */
        },
    [CVY_OP_LAMB_DIRECTION] =
        {
            [CVY_PASS_UPDATE] = {CVY_ROLE_W, 14}, /* first moment 3, second 4, quotient 5, decay 2 */
        },
    [CVY_OP_LAMB] =
        {
            [CVY_PASS_UPDATE] = {CVY_ROLE_W, 2},
        },
    [CVY_OP_AVERAGE] =
        {
            [CVY_PASS_UPDATE] = {CVY_ROLE_W, 3},
        },
};

double cvy_op_flop(const cvy_op *op)
{
    switch (op->kind) {
    case CVY_OP_CONVOLUTION:
    case CVY_OP_TRANSPOSED_CONVOLUTION:
    case CVY_OP_DENSE: return count_products(op) + count_relu(op);
    case CVY_OP_POOL_MAX:
    case CVY_OP_POOL_AVERAGE: return count_pooling(op) + count_relu(op);
    case CVY_OP_SGD: return count_sgd(op) + count_clipping(op);
    case CVY_OP_LOCAL_RESPONSE_NORM: return count_response(op) + count_relu(op);
    default: {
        const unit_cost *cost = &unit_costs[op->kind][op->pass];
        return cost->flop * count_elements(op, cost->over) + count_clipping(op) + count_relu(op);
    }
    }
}

const cvy_tensor *cvy_op_moved(const cvy_op *op, int operand)
{
    bool partial = operand == 0 && (op->kind == CVY_OP_PICK || op->kind == CVY_OP_SLICE);
    return &op->operand[partial ? op->operands - 1 : operand].tensor; /* whose output comes last */
}

double cvy_op_bytes(const cvy_op *op)
{
    double bytes = 0.0;
    for (int i = 0; i < op->operands; i++) {
        double once = (double)cvy_tensor_bytes(cvy_op_moved(op, i));
        bytes += op->operand[i].access == CVY_ACCESS_UPDATE ? 2.0 * once : once;
    }
    return bytes;
}
