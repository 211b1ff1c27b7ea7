/*
 * Whether an op is whole. The input (or, in backward passes, what has the input's shape) and the number of filters say
 * what every other operand must be: cvy_op_describe() words it, the operand is held against it. Parameters are checked
 * before they are used in arithmetic.
 */
#include "op/op.h"

#include <inttypes.h>

#include "base/checked.h"

/* The first operand that there is of these has the input's shape; COMMIT and CLIP know only vectors. */
static const cvy_tensor *find_input(const cvy_op *op)
{
    static const cvy_role roles[] = {CVY_ROLE_X, CVY_ROLE_DX, CVY_ROLE_W, CVY_ROLE_MEAN, CVY_ROLE_SQUARES};
    const cvy_operand *operand = NULL;
    for (int i = 0; !operand && i < (int)(sizeof roles / sizeof roles[0]); i++) {
        operand = cvy_op_find(op, roles[i]);
    }
    return operand ? &operand->tensor : NULL;
}

static bool is_optimizer(const cvy_op *op) { return op->pass == CVY_PASS_UPDATE; }

static bool has_window(const cvy_op *op)
{
    return cvy_op_convolves(op->kind) || op->kind == CVY_OP_POOL_MAX || op->kind == CVY_OP_POOL_AVERAGE;
}

/* Walk places and operands together: both are in one order. */
static cvy_status check_signature(const cvy_op *op)
{
    const cvy_signature *signature = cvy_op_signature(op->kind, op->pass);
    CVY_REQUIRE(signature, CVY_ERR_ARG, "there is no such pass");
    CVY_REQUIRE(op->operands >= 0 && op->operands <= CVY_MAX_OPERANDS, CVY_ERR_ARG, "%d operands", op->operands);
    int next = 0;
    for (int i = 0; i < signature->places; i++) {
        const cvy_signature_place *place = &signature->place[i];
        bool filled = next < op->operands && op->operand[next].role == place->role;
        CVY_REQUIRE(filled || place->optional, CVY_ERR_ARG, "operand %s is missing", cvy_role_name(place->role));
        CVY_REQUIRE(!filled || op->operand[next].access == place->access, CVY_ERR_ARG,
                    "operand %s has access %d, expected %d", cvy_role_name(place->role),
                    (int)op->operand[next].access, (int)place->access);
        next += filled;
    }
    CVY_REQUIRE(next == op->operands, CVY_ERR_ARG, "operand %d has no place in the signature", next);
    return CVY_OK;
}

static cvy_status check_window(const cvy_op *op, int dims)
{
    const cvy_window *window = &op->params.window.window;
    int64_t groups = op->params.window.groups;
    CVY_REQUIRE(groups >= 1 && (groups == 1 || cvy_op_convolves(op->kind)), CVY_ERR_ARG, "%" PRId64 " groups",
                groups);
    CVY_REQUIRE(!op->params.window.winograd || op->kind == CVY_OP_CONVOLUTION, CVY_ERR_ARG,
                "Winograd's algorithm is for convolutions");
    int64_t positions = 1;
    for (int axis = 0; axis < 3; axis++) {
        bool sane = window->kernel[axis] >= 1 && window->stride[axis] >= 1 && window->dilation[axis] >= 1 &&
                    window->before[axis] >= 0 && cvy_mul_i64(positions, window->kernel[axis], &positions) &&
                    positions <= INT32_MAX;
        CVY_REQUIRE(sane, CVY_ERR_ARG,
                    "a window along %c: kernel %" PRId64 ", stride %" PRId64 ", dilation %" PRId64 ", padding %" PRId64,
                    "dhw"[axis], window->kernel[axis], window->stride[axis], window->dilation[axis],
                    window->before[axis]);
    }
    bool flat = window->kernel[0] == 1 && window->stride[0] == 1 && window->before[0] == 0 && window->after[0] == 0;
    CVY_REQUIRE(dims == 5 || flat, CVY_ERR_ARG, "a window with depth over an input without");
    return CVY_OK;
}

static cvy_status check_slots(int64_t slot, int64_t taken, int64_t slots)
{
    CVY_REQUIRE(slot >= 0 && slot < slots && slots - slot >= taken, CVY_ERR_ARG,
                "place %" PRId64 " of %" PRId64 " sums of squares", slot, slots);
    return CVY_OK;
}

static cvy_status check_squares(const cvy_op *op)
{
    const cvy_op_params_squares *params = &op->params.squares;
    CVY_REQUIRE(op->kind != CVY_OP_CLIP || params->clip_norm > 0.0, CVY_ERR_ARG, "gradients clipped to a norm of %g",
                params->clip_norm);
    return check_slots(params->slot, 1, params->slots);
}

static cvy_status check_optimizer(const cvy_op *op)
{
    const cvy_op_params_optimizer *params = &op->params.optimizer;
    bool moving = op->kind == CVY_OP_SGD || op->kind == CVY_OP_LARS;
    bool sane = moving ? params->momentum >= 0.0 && params->trust >= 0.0
                       : params->beta1 >= 0.0 && params->beta1 < 1.0 && params->beta2 >= 0.0 && params->beta2 < 1.0 &&
                             params->epsilon >= 0.0;
    CVY_REQUIRE(sane && params->weight_decay >= 0.0, CVY_ERR_ARG,
                "momentum %g, beta %g and %g, epsilon %g, weight decay %g: below 0, or a beta not below 1",
                params->momentum, params->beta1, params->beta2, params->epsilon, params->weight_decay);
    CVY_REQUIRE(params->clip_value >= 0.0, CVY_ERR_ARG, "gradients clipped to %g", params->clip_value);
    return cvy_op_find(op, CVY_ROLE_SQUARES) ? check_slots(params->slot, 2, params->slots) : CVY_OK;
}

static cvy_status check_batch_norm(const cvy_op_params_norm *norm, cvy_op_pass pass)
{
    bool counted = pass == CVY_PASS_COMMIT || pass == CVY_PASS_GRAD_APPLY;
    CVY_REQUIRE(norm->epsilon >= 0.0 && norm->momentum >= 0.0 && norm->momentum <= 1.0, CVY_ERR_ARG,
                "epsilon %g, momentum %g", norm->epsilon, norm->momentum);
    CVY_REQUIRE(!counted || norm->count >= 1, CVY_ERR_ARG, "statistics over %" PRId64 " elements", norm->count);
    CVY_REQUIRE(pass != CVY_PASS_MERGE || (norm->merged >= 1 && norm->merged < norm->count), CVY_ERR_ARG,
                "statistics of %" PRId64 " elements become those of %" PRId64, norm->merged, norm->count);
    return CVY_OK;
}

static cvy_status check_group_norm(const cvy_op_params_group_norm *norm, int64_t channels)
{
    CVY_REQUIRE(norm->epsilon >= 0.0, CVY_ERR_ARG, "epsilon %g", norm->epsilon);
    CVY_REQUIRE(norm->groups >= 1 && channels % norm->groups == 0, CVY_ERR_ARG,
                "%" PRId64 " groups do not divide %" PRId64 " channels", norm->groups, channels);
    return CVY_OK;
}

/* With k above 0 the scale is, too. */
static cvy_status check_response(const cvy_op_params_response *response)
{
    bool sane = response->size >= 1 && response->alpha >= 0.0 && response->k > 0.0 && response->beta >= 0.0;
    CVY_REQUIRE(sane, CVY_ERR_ARG, "size %" PRId64 ", alpha %g, beta %g, k %g: size below 1, k not above 0, or below 0",
                response->size, response->alpha, response->beta, response->k);
    return CVY_OK;
}

static cvy_status check_probability(double probability)
{
    CVY_REQUIRE(probability >= 0.0 && probability < 1.0, CVY_ERR_ARG, "probability %g, expected 0 to below 1",
                probability);
    return CVY_OK;
}

static cvy_status check_slope(double slope)
{
    CVY_REQUIRE(slope >= 0.0, CVY_ERR_ARG, "slope %g, expected 0 or more", slope);
    return CVY_OK;
}

static cvy_status check_smoothing(double smoothing)
{
    CVY_REQUIRE(smoothing >= 0.0 && smoothing <= 1.0, CVY_ERR_ARG, "smoothing %g, expected 0 to 1", smoothing);
    return CVY_OK;
}

static cvy_status check_dice(double epsilon)
{
    CVY_REQUIRE(epsilon > 0.0, CVY_ERR_ARG, "epsilon %g, expected more than 0", epsilon);
    return CVY_OK;
}

static cvy_status check_positions(int64_t positions, const cvy_shape *x)
{
    int64_t space[3];
    cvy_space_get(x, space);
    CVY_REQUIRE(positions == 0 || positions >= space[0] * space[1] * space[2], CVY_ERR_ARG,
                "a share of a sample of %" PRId64 " positions, expected no more than there are", positions);
    return CVY_OK;
}

/* Intervals as cvy_intervals has them, within a dimension. */
static cvy_status check_intervals(const cvy_intervals *intervals, int64_t extent)
{
    int64_t end = 0;
    CVY_REQUIRE(intervals->count >= 1 && intervals->count <= CVY_MAX_INTERVALS, CVY_ERR_ARG, "%d intervals",
                intervals->count);
    for (int i = 0; i < intervals->count; i++) {
        const cvy_interval *at = &intervals->at[i];
        CVY_REQUIRE(at->begin >= end && at->end > at->begin && at->end <= extent, CVY_ERR_ARG,
                    "indices %" PRId64 " to %" PRId64 " of %" PRId64 ", in order", at->begin, at->end, extent);
        end = at->end;
    }
    return CVY_OK;
}

static cvy_status check_pick(const cvy_op_params_pick *pick, const cvy_shape *x)
{
    CVY_REQUIRE(pick->dim >= 0 && pick->dim < x->dims, CVY_ERR_ARG, "dimension %d of %d", pick->dim, x->dims);
    return check_intervals(&pick->intervals, x->extent[pick->dim]);
}

/* Where x has a share of a sample: as many indices as it has, and within the sample. */
static cvy_status check_dropout(const cvy_op_params_dropout *dropout, const cvy_shape *x)
{
    int64_t share[4];
    cvy_sample_get(x, share);
    CVY_TRY(check_probability(dropout->probability));
    for (int dim = 0; dropout->whole[0] && dim < 4; dim++) {
        int64_t first = dropout->first[dim], whole = dropout->whole[dim];
        bool stretched = dropout->stretches.count > 0 && dropout->stretched == dim;
        if (stretched) {
            CVY_TRY(check_intervals(&dropout->stretches, whole));
        }
        bool fits = stretched ? cvy_intervals_length(&dropout->stretches) == share[dim]
                              : first >= 0 && first <= whole && share[dim] <= whole - first;
        CVY_REQUIRE(fits, CVY_ERR_ARG, "a share of %" PRId64 " from %" PRId64 " on of %" PRId64 " along %c", share[dim],
                    first, whole, "cdhw"[dim]);
    }
    bool known = dropout->stretches.count == 0 || (dropout->stretched >= 0 && dropout->stretched < 4);
    CVY_REQUIRE(known && dropout->stretches.count >= 0 && (dropout->whole[0] || dropout->stretches.count == 0),
                CVY_ERR_ARG, "%d stretches along dimension %d of no share", dropout->stretches.count,
                dropout->stretched);
    return CVY_OK;
}

static cvy_status check_frame(const cvy_op_params_frame *frame, const cvy_shape *x)
{
    for (int axis = 0; axis < 3; axis++) {
        CVY_REQUIRE(frame->output[axis] >= 1 && (axis > 0 || x->dims == 5 || frame->output[0] == 1), CVY_ERR_ARG,
                    "%" PRId64 " positions along %c", frame->output[axis], "dhw"[axis]);
    }
    return CVY_OK;
}

static cvy_status check_params(const cvy_op *op, const cvy_shape *x)
{
    if (op->kind == CVY_OP_SQUARE_SUM || op->kind == CVY_OP_CLIP) {
        return check_squares(op);
    }
    if (op->kind == CVY_OP_AVERAGE) {
        double decay = op->params.average.decay;
        CVY_REQUIRE(decay >= 0.0 && decay < 1.0, CVY_ERR_ARG, "decay %g, expected 0 to below 1", decay);
        return CVY_OK;
    }
    if (is_optimizer(op)) {
        return check_optimizer(op);
    }
    switch (op->kind) {
    case CVY_OP_CONVOLUTION:
    case CVY_OP_TRANSPOSED_CONVOLUTION:
    case CVY_OP_POOL_MAX:
    case CVY_OP_POOL_AVERAGE: return check_window(op, x->dims);
    case CVY_OP_BATCH_NORM: return check_batch_norm(&op->params.norm, op->pass);
    case CVY_OP_GROUP_NORM: return check_group_norm(&op->params.group, x->extent[1]);
    case CVY_OP_LOCAL_RESPONSE_NORM: return check_response(&op->params.response);
    case CVY_OP_LEAKY_RELU: return check_slope(op->params.activation.slope);
    case CVY_OP_SOFTMAX_CROSS_ENTROPY:
        CVY_TRY(check_positions(op->params.loss.positions, x));
        return check_smoothing(op->params.loss.smoothing);
    case CVY_OP_POOL_GLOBAL: return check_positions(op->params.global.positions, x);
    case CVY_OP_PICK: return check_pick(&op->params.pick, x);
    case CVY_OP_FRAME: return check_frame(&op->params.frame, x);
    case CVY_OP_SOFT_DICE: return check_dice(op->params.loss.epsilon);
    case CVY_OP_STOCHASTIC_DEPTH: return check_probability(op->params.dropout.probability);
    case CVY_OP_DROPOUT: return check_dropout(&op->params.dropout, x);
    default: return CVY_OK;
    }
}

/* Whether the channels are a dimension of their own to a kind. */
static bool goes_by_channels(const cvy_op *op)
{
    bool vectors = op->pass == CVY_PASS_COMMIT || op->pass == CVY_PASS_MERGE;
    return (op->kind == CVY_OP_BATCH_NORM && !vectors) || op->kind == CVY_OP_GROUP_NORM ||
           op->kind == CVY_OP_LOCAL_RESPONSE_NORM || op->kind == CVY_OP_CONCAT || op->kind == CVY_OP_SLICE ||
           op->kind == CVY_OP_MULTIPLY;
}

/* Dimensions that the input of a kind may have, and its type. */
static cvy_status check_input(const cvy_op *op, const cvy_tensor *x)
{
    int least = 1;
    bool any = is_optimizer(op) || op->kind == CVY_OP_REORDER || op->kind == CVY_OP_ADD; /* also weights */
    int most = any ? CVY_MAX_DIMS : 5;
    if (has_window(op) || op->kind == CVY_OP_POOL_GLOBAL || op->kind == CVY_OP_POOL_ADAPTIVE ||
        op->kind == CVY_OP_FRAME) {
        least = 4;
    } else if (goes_by_channels(op)) {
        least = 2;
    } else if (cvy_op_classifies(op->kind)) {
        least = 2;
    } else if (op->kind == CVY_OP_DENSE || op->kind == CVY_OP_MEAN_SQUARED_ERROR) {
        least = most = 2;
    }
    char text[CVY_SHAPE_TEXT];
    CVY_REQUIRE(x->shape.dims >= least && x->shape.dims <= most, CVY_ERR_ARG,
                "an input of %s, expected %d to %d dimensions", cvy_shape_print(&x->shape, text), least, most);
    CVY_REQUIRE(x->dtype == CVY_F32 || x->dtype == CVY_F64, CVY_ERR_ARG, "type %s, expected f32 or f64",
                cvy_dtype_name(x->dtype));
    return CVY_OK;
}

/* Weights of one group may carry a leading g = 1 or not. */
static bool equals_but_for_one_group(const cvy_tensor *found, const cvy_tensor *expected)
{
    if (!found->grouped || expected->grouped || found->shape.dims != expected->shape.dims + 1 ||
        found->shape.extent[0] != 1) {
        return cvy_shape_equal(&found->shape, &expected->shape) && found->grouped == expected->grouped;
    }
    for (int i = 0; i < expected->shape.dims; i++) {
        if (found->shape.extent[i + 1] != expected->shape.extent[i]) {
            return false;
        }
    }
    return true;
}

static cvy_status compare_operand(const cvy_operand *operand, const cvy_tensor *expected)
{
    char found_text[CVY_SHAPE_TEXT];
    char expected_text[CVY_SHAPE_TEXT];
    const cvy_tensor *found = &operand->tensor;
    CVY_REQUIRE(equals_but_for_one_group(found, expected), CVY_ERR_ARG, "operand %s is %s%s, expected %s%s",
                cvy_role_name(operand->role), cvy_shape_print(&found->shape, found_text),
                found->grouped ? " (grouped)" : "", cvy_shape_print(&expected->shape, expected_text),
                expected->grouped ? " (grouped)" : "");
    CVY_REQUIRE(found->dtype == expected->dtype, CVY_ERR_ARG, "operand %s is of type %s, expected %s",
                cvy_role_name(operand->role), cvy_dtype_name(found->dtype), cvy_dtype_name(expected->dtype));
    return CVY_OK;
}

/* Classes and the sums of soft Dice have no other format. */
static cvy_status check_plain(const cvy_operand *operand)
{
    bool plain = operand->role == CVY_ROLE_OVERLAP ||
                 (operand->role == CVY_ROLE_LABEL && operand->tensor.dtype == CVY_I32);
    CVY_REQUIRE(!plain || operand->tensor.format == CVY_FORMAT_PLAIN, CVY_ERR_ARG,
                "operand %s is in format %s, expected plain", cvy_role_name(operand->role),
                cvy_format_name(operand->tensor.format));
    return CVY_OK;
}

/* Optimizers go over memory, so all operands lie alike; the winners of max pooling lie as the outputs. */
static cvy_status check_equal_formats(const cvy_op *op)
{
    const cvy_operand *window = cvy_op_find(op, CVY_ROLE_WINDOW);
    const cvy_operand *first = is_optimizer(op) ? &op->operand[0] : window;
    for (int i = 0; first && i < op->operands; i++) {
        const cvy_operand *operand = &op->operand[i];
        bool follows = is_optimizer(op) || operand->role == CVY_ROLE_Y || operand->role == CVY_ROLE_DY;
        follows = follows && !cvy_role_is_total(operand->role);
        CVY_REQUIRE(!follows || operand->tensor.format == first->tensor.format, CVY_ERR_ARG,
                    "operand %s is in format %s, expected %s as %s", cvy_role_name(operand->role),
                    cvy_format_name(operand->tensor.format), cvy_format_name(first->tensor.format),
                    cvy_role_name(first->role));
    }
    return CVY_OK;
}

/* Beside the channels, the inputs of a concat are as x; its channels are those of all of them. */
static cvy_status check_concat(const cvy_op *op, int64_t channels)
{
    int64_t sum = 0;
    for (int i = 0; i < op->operands - 1; i++) {
        CVY_REQUIRE(cvy_add_i64(sum, op->operand[i].tensor.shape.extent[1], &sum), CVY_ERR_ARG,
                    "more channels than 64 bits can count");
    }
    CVY_REQUIRE(sum == channels, CVY_ERR_ARG, "inputs of %" PRId64 " channels make %" PRId64, sum, channels);
    return CVY_OK;
}

static cvy_status check_slice(const cvy_op *op, int64_t channels)
{
    int64_t first = op->params.slice.first, end = first;
    const cvy_shape *dx = &cvy_op_find(op, CVY_ROLE_DX)->tensor.shape;
    bool inside = first >= 0 && cvy_add_i64(first, dx->extent[1], &end) && end <= channels;
    CVY_REQUIRE(inside, CVY_ERR_ARG, "channels %" PRId64 " to %" PRId64 " of %" PRId64, first, end, channels);
    return CVY_OK;
}

static bool is_other_input(cvy_role role)
{
    return role == CVY_ROLE_X1 || role == CVY_ROLE_X2 || role == CVY_ROLE_X3;
}

static cvy_status check_operands(const cvy_op *op, const cvy_tensor *x)
{
    const cvy_operand *output = cvy_op_find(op, CVY_ROLE_Y);
    output = output ? output : cvy_op_find(op, CVY_ROLE_DY);
    int64_t filters = output && output->tensor.shape.dims >= 2 ? output->tensor.shape.extent[1] : 1;
    int64_t groups = cvy_op_convolves(op->kind) ? op->params.window.groups : 1;
    CVY_REQUIRE(filters % groups == 0 && (groups == 1 || x->shape.extent[1] % groups == 0), CVY_ERR_ARG,
                "%" PRId64 " groups do not divide %" PRId64 " channels and %" PRId64 " filters", groups,
                x->shape.extent[1], filters);
    for (int i = 0; i < op->operands; i++) {
        cvy_tensor expected;
        const cvy_shape *found = &op->operand[i].tensor.shape;
        CVY_TRY(cvy_op_describe(op, x, filters, op->operand[i].role, &expected));
        if (op->kind == CVY_OP_CONCAT && is_other_input(op->operand[i].role) && found->dims >= 2) {
            expected.shape.extent[1] = found->extent[1];
        }
        CVY_TRY(compare_operand(&op->operand[i], &expected));
        CVY_TRY(check_plain(&op->operand[i]));
    }
    if (op->kind == CVY_OP_CONCAT) {
        return check_concat(op, filters);
    }
    return op->kind == CVY_OP_SLICE ? check_slice(op, filters) : check_equal_formats(op);
}

/* Same number of elements; of the types, only floating ones are converted. */
static cvy_status check_reorder(const cvy_op *op)
{
    const cvy_tensor *x = &op->operand[0].tensor;
    const cvy_tensor *y = &op->operand[1].tensor;
    char from[CVY_SHAPE_TEXT];
    char to[CVY_SHAPE_TEXT];
    CVY_REQUIRE(cvy_shape_elements(&x->shape) == cvy_shape_elements(&y->shape), CVY_ERR_ARG,
                "%s and %s differ in their number of elements", cvy_shape_print(&x->shape, from),
                cvy_shape_print(&y->shape, to));
    CVY_REQUIRE(y->dtype == CVY_F32 || y->dtype == CVY_F64, CVY_ERR_ARG, "operand y is of type %s, expected f32 or f64",
                cvy_dtype_name(y->dtype));
    return CVY_OK;
}

/* A relu is for the ops that have one; what tells its gradient where y or x is 0 is there with it and only then. */
static cvy_status check_relu(const cvy_op *op)
{
    const cvy_signature *signature = cvy_op_signature(op->kind, op->pass);
    CVY_REQUIRE(!op->relu || cvy_op_takes_relu(op->kind, op->pass), CVY_ERR_ARG, "there is none with relu");
    for (int i = 0; i < signature->places; i++) {
        cvy_role role = signature->place[i].role;
        bool tells = cvy_op_tells_relu(op->kind, op->pass, role);
        CVY_REQUIRE(!tells || (cvy_op_find(op, role) != NULL) == op->relu, CVY_ERR_ARG, "operand %s is %s %s relu",
                    cvy_role_name(role), op->relu ? "missing" : "there", op->relu ? "with" : "without");
    }
    return CVY_OK;
}

static cvy_status check_whole(const cvy_op *op)
{
    CVY_TRY(check_signature(op));
    CVY_TRY(check_relu(op));
    for (int i = 0; i < op->operands; i++) {
        const cvy_tensor *tensor = &op->operand[i].tensor;
        CVY_TRY(cvy_shape_check(&tensor->shape, cvy_role_name(op->operand[i].role)));
        CVY_REQUIRE(cvy_tensor_format_fits(tensor), CVY_ERR_ARG, "operand %s of %d dimensions cannot lie in format %s",
                    cvy_role_name(op->operand[i].role), tensor->shape.dims, cvy_format_name(tensor->format));
    }
    const cvy_tensor *x = find_input(op);
    CVY_TRY(check_input(op, x));
    CVY_TRY(check_params(op, &x->shape));
    return op->kind == CVY_OP_REORDER ? check_reorder(op) : check_operands(op, x);
}

cvy_status cvy_op_check(const cvy_op *op)
{
    bool known = (unsigned)op->kind < CVY_OP_KIND_COUNT && (unsigned)op->pass < CVY_PASS_COUNT;
    CVY_REQUIRE(known, CVY_ERR_ARG, "no op of kind %d and pass %d", (int)op->kind, (int)op->pass);
    return check_whole(op) == CVY_OK
               ? CVY_OK
               : cvy_fail_within(CVY_ERR_ARG, "%s %s", cvy_op_kind_name(op->kind), cvy_op_pass_name(op->pass));
}
