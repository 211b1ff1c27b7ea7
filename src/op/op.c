/* The vocabulary: one table of signatures, and what follows from it. */
#include "op/op.h"

#include <stdio.h>

#define R(role) {CVY_ROLE_##role, CVY_ACCESS_READ, false}
#define W(role) {CVY_ROLE_##role, CVY_ACCESS_WRITE, false}
#define U(role) {CVY_ROLE_##role, CVY_ACCESS_UPDATE, false}
#define OPTIONAL_R(role) {CVY_ROLE_##role, CVY_ACCESS_READ, true}
#define OPTIONAL_W(role) {CVY_ROLE_##role, CVY_ACCESS_WRITE, true}
#define OPTIONAL_U(role) {CVY_ROLE_##role, CVY_ACCESS_UPDATE, true}

static const cvy_signature signatures[CVY_OP_KIND_COUNT][CVY_PASS_COUNT] = {
    [CVY_OP_CONVOLUTION] =
        {
            [CVY_PASS_FORWARD] = {4, {R(X), R(W), OPTIONAL_R(B), W(Y)}},
            [CVY_PASS_BACKWARD_DATA] = {3, {R(DY), R(W), W(DX)}},
            [CVY_PASS_BACKWARD_WEIGHTS] = {4, {R(X), R(DY), W(DW), OPTIONAL_W(DB)}},
        },
    [CVY_OP_DENSE] =
        {
            [CVY_PASS_FORWARD] = {4, {R(X), R(W), OPTIONAL_R(B), W(Y)}},
            [CVY_PASS_BACKWARD_DATA] = {3, {R(DY), R(W), W(DX)}},
            [CVY_PASS_BACKWARD_WEIGHTS] = {4, {R(X), R(DY), W(DW), OPTIONAL_W(DB)}},
        },
    [CVY_OP_POOL_MAX] =
        {
            [CVY_PASS_FORWARD] = {3, {R(X), W(Y), W(WINDOW)}},
            [CVY_PASS_INFERENCE] = {2, {R(X), W(Y)}},
            [CVY_PASS_BACKWARD_DATA] = {4, {R(DY), OPTIONAL_R(Y), R(WINDOW), W(DX)}},
        },
    [CVY_OP_POOL_AVERAGE] =
        {
            [CVY_PASS_FORWARD] = {2, {R(X), W(Y)}},
            [CVY_PASS_BACKWARD_DATA] = {3, {R(DY), OPTIONAL_R(X), W(DX)}},
        },
    [CVY_OP_POOL_GLOBAL] =
        {
            [CVY_PASS_FORWARD] = {2, {R(X), W(Y)}},
            [CVY_PASS_BACKWARD_DATA] = {3, {R(DY), OPTIONAL_R(X), W(DX)}},
        },
    [CVY_OP_POOL_ADAPTIVE] =
        {
            [CVY_PASS_FORWARD] = {2, {R(X), W(Y)}},
            [CVY_PASS_BACKWARD_DATA] = {2, {R(DY), W(DX)}},
        },
    [CVY_OP_BATCH_NORM] =
        {
            [CVY_PASS_FORWARD] = {6, {R(X), R(W), R(B), W(Y), W(MEAN), W(VARIANCE)}},
            [CVY_PASS_INFERENCE] = {6, {R(X), R(W), R(B), R(RUNNING_MEAN), R(RUNNING_VARIANCE), W(Y)}},
            [CVY_PASS_BACKWARD] = {9, {R(X), R(DY), R(W), R(MEAN), R(VARIANCE), W(DX), W(DW), W(DB), OPTIONAL_R(B)}},
            [CVY_PASS_STATS] = {3, {R(X), W(MEAN), W(VARIANCE)}},
            [CVY_PASS_NORMALISE] = {6, {R(X), R(W), R(B), R(MEAN), R(VARIANCE), W(Y)}},
            [CVY_PASS_GRAD_STATS] =
                {8, {R(X), R(DY), R(MEAN), R(VARIANCE), W(DW), W(DB), OPTIONAL_R(W), OPTIONAL_R(B)}},
            [CVY_PASS_GRAD_APPLY] =
                {9, {R(X), R(DY), R(W), R(MEAN), R(VARIANCE), R(DW), R(DB), W(DX), OPTIONAL_R(B)}},
            [CVY_PASS_COMMIT] = {4, {R(MEAN), R(VARIANCE), U(RUNNING_MEAN), U(RUNNING_VARIANCE)}},
            [CVY_PASS_MERGE] = {4, {R(MEAN), R(VARIANCE), U(RUNNING_MEAN), U(RUNNING_VARIANCE)}},
        },
    [CVY_OP_RELU] =
        {
            [CVY_PASS_FORWARD] = {2, {R(X), W(Y)}},
            [CVY_PASS_BACKWARD_DATA] = {4, {R(Y), R(DY), OPTIONAL_R(DY1), W(DX)}},
        },
    [CVY_OP_DROPOUT] =
        {
            [CVY_PASS_FORWARD] = {2, {R(X), W(Y)}},
            [CVY_PASS_BACKWARD_DATA] = {3, {R(DY), OPTIONAL_R(Y), W(DX)}},
        },
    [CVY_OP_ADD] =
        {
            [CVY_PASS_FORWARD] = {3, {R(X), R(X1), W(Y)}},
        },
    [CVY_OP_SOFTMAX_CROSS_ENTROPY] =
        {
            [CVY_PASS_FORWARD] = {4, {R(X), R(LABEL), W(PROBABILITY), W(LOSS)}},
            [CVY_PASS_INFERENCE] = {3, {R(X), R(LABEL), W(LOSS)}},
            [CVY_PASS_BACKWARD_DATA] = {3, {R(PROBABILITY), R(LABEL), W(DX)}},
        },
    [CVY_OP_MEAN_SQUARED_ERROR] =
        {
            [CVY_PASS_FORWARD] = {3, {R(X), R(LABEL), W(LOSS)}},
            [CVY_PASS_INFERENCE] = {3, {R(X), R(LABEL), W(LOSS)}},
            [CVY_PASS_BACKWARD_DATA] = {3, {R(X), R(LABEL), W(DX)}},
        },
    [CVY_OP_REORDER] =
        {
            [CVY_PASS_FORWARD] = {2, {R(X), W(Y)}},
        },
    [CVY_OP_SGD] =
        {
            [CVY_PASS_UPDATE] = {4, {R(DW), U(W), OPTIONAL_U(MOMENTUM), OPTIONAL_R(SCALE)}},
        },
    [CVY_OP_ADAMW] =
        {
            [CVY_PASS_UPDATE] = {5, {R(DW), U(W), U(MOMENTUM), U(MOMENT2), OPTIONAL_R(SCALE)}},
        },
    [CVY_OP_RELU6] =
        {
            [CVY_PASS_FORWARD] = {2, {R(X), W(Y)}},
            [CVY_PASS_BACKWARD_DATA] = {3, {R(Y), R(DY), W(DX)}},
        },
    [CVY_OP_LEAKY_RELU] =
        {
            [CVY_PASS_FORWARD] = {2, {R(X), W(Y)}},
            [CVY_PASS_BACKWARD_DATA] = {3, {R(Y), R(DY), W(DX)}},
        },
    [CVY_OP_SIGMOID] =
        {
            [CVY_PASS_FORWARD] = {2, {R(X), W(Y)}},
            [CVY_PASS_BACKWARD_DATA] = {3, {R(Y), R(DY), W(DX)}},
        },
    [CVY_OP_TANH] =
        {
            [CVY_PASS_FORWARD] = {2, {R(X), W(Y)}},
            [CVY_PASS_BACKWARD_DATA] = {3, {R(Y), R(DY), W(DX)}},
        },
    [CVY_OP_SILU] =
        {
            [CVY_PASS_FORWARD] = {2, {R(X), W(Y)}},
            [CVY_PASS_BACKWARD_DATA] = {3, {R(X), R(DY), W(DX)}},
        },
    [CVY_OP_HARD_SWISH] =
        {
            [CVY_PASS_FORWARD] = {2, {R(X), W(Y)}},
            [CVY_PASS_BACKWARD_DATA] = {3, {R(X), R(DY), W(DX)}},
        },
    [CVY_OP_MULTIPLY] =
        {
            [CVY_PASS_FORWARD] = {3, {R(X), R(X1), W(Y)}},
            [CVY_PASS_BACKWARD] = {5, {R(X), R(X1), R(DY), W(DX), W(DX1)}},
        },
    [CVY_OP_STOCHASTIC_DEPTH] =
        {
            [CVY_PASS_FORWARD] = {2, {R(X), W(Y)}},
            [CVY_PASS_BACKWARD_DATA] = {2, {R(DY), W(DX)}},
        },
    [CVY_OP_ADAM] =
        {
            [CVY_PASS_UPDATE] = {5, {R(DW), U(W), U(MOMENTUM), U(MOMENT2), OPTIONAL_R(SCALE)}},
        },
    [CVY_OP_SQUARE_SUM] =
        {
            [CVY_PASS_UPDATE] = {2, {R(X), W(SQUARES)}},
        },
    [CVY_OP_CLIP] =
        {
            [CVY_PASS_UPDATE] = {2, {R(SQUARES), W(SCALE)}},
        },
    [CVY_OP_LARS] =
        {
            [CVY_PASS_UPDATE] = {5, {R(DW), U(W), U(MOMENTUM), OPTIONAL_R(SQUARES), OPTIONAL_R(SCALE)}},
        },
    [CVY_OP_LAMB_DIRECTION] =
        {
            [CVY_PASS_UPDATE] = {5, {U(DW), R(W), U(MOMENTUM), U(MOMENT2), OPTIONAL_R(SCALE)}},
        },
    [CVY_OP_LAMB] =
        {
            [CVY_PASS_UPDATE] = {3, {R(DW), U(W), OPTIONAL_R(SQUARES)}},
        },
    [CVY_OP_AVERAGE] =
        {
            [CVY_PASS_UPDATE] = {2, {R(W), U(AVERAGE)}},
        },
    [CVY_OP_TRANSPOSED_CONVOLUTION] =
        {
            [CVY_PASS_FORWARD] = {4, {R(X), R(W), OPTIONAL_R(B), W(Y)}},
            [CVY_PASS_BACKWARD_DATA] = {3, {R(DY), R(W), W(DX)}},
            [CVY_PASS_BACKWARD_WEIGHTS] = {4, {R(X), R(DY), W(DW), OPTIONAL_W(DB)}},
        },
    [CVY_OP_SOFT_DICE] =
        {
            [CVY_PASS_FORWARD] = {5, {R(X), R(LABEL), W(PROBABILITY), W(OVERLAP), W(LOSS)}},
            [CVY_PASS_INFERENCE] = {3, {R(X), R(LABEL), W(LOSS)}},
            [CVY_PASS_BACKWARD_DATA] = {4, {R(PROBABILITY), R(LABEL), R(OVERLAP), W(DX)}},
        },
    [CVY_OP_CONCAT] =
        {
            [CVY_PASS_FORWARD] = {5, {R(X), R(X1), OPTIONAL_R(X2), OPTIONAL_R(X3), W(Y)}},
        },
    [CVY_OP_SLICE] =
        {
            [CVY_PASS_BACKWARD_DATA] = {3, {R(DY), OPTIONAL_R(X), W(DX)}},
        },
    [CVY_OP_PICK] =
        {
            [CVY_PASS_FORWARD] = {2, {R(X), W(Y)}},
        },
    [CVY_OP_FRAME] =
        {
            [CVY_PASS_FORWARD] = {2, {R(X), W(Y)}},
        },
    [CVY_OP_GROUP_NORM] =
        {
            [CVY_PASS_FORWARD] = {6, {R(X), R(W), R(B), W(Y), W(MEAN), W(VARIANCE)}},
            [CVY_PASS_BACKWARD] = {8, {R(X), R(DY), R(W), R(MEAN), R(VARIANCE), W(DX), W(DW), W(DB)}},
        },
    [CVY_OP_LOCAL_RESPONSE_NORM] =
        {
            [CVY_PASS_FORWARD] = {2, {R(X), W(Y)}},
            [CVY_PASS_BACKWARD_DATA] = {3, {R(X), R(DY), W(DX)}},
        },
};

const cvy_signature *cvy_op_signature(cvy_op_kind kind, cvy_op_pass pass)
{
    const cvy_signature *signature = &signatures[kind][pass];
    return signature->places ? signature : NULL;
}

static int find_place(const cvy_signature *signature, cvy_role role)
{
    for (int i = 0; i < signature->places; i++) {
        if (signature->place[i].role == role) {
            return i;
        }
    }
    return -1;
}

const char *cvy_op_kind_name(cvy_op_kind kind)
{
    static const char *const name[CVY_OP_KIND_COUNT] = {
        [CVY_OP_CONVOLUTION] = "convolution",
        [CVY_OP_DENSE] = "dense",
        [CVY_OP_POOL_MAX] = "max-pool",
        [CVY_OP_POOL_AVERAGE] = "average-pool",
        [CVY_OP_POOL_GLOBAL] = "global-pool",
        [CVY_OP_POOL_ADAPTIVE] = "adaptive-pool",
        [CVY_OP_BATCH_NORM] = "batch-norm",
        [CVY_OP_RELU] = "relu",
        [CVY_OP_DROPOUT] = "dropout",
        [CVY_OP_ADD] = "add",
        [CVY_OP_SOFTMAX_CROSS_ENTROPY] = "softmax-cross-entropy",
        [CVY_OP_MEAN_SQUARED_ERROR] = "mean-squared-error",
        [CVY_OP_REORDER] = "reorder",
        [CVY_OP_SGD] = "sgd",
        [CVY_OP_ADAMW] = "adamw",
        [CVY_OP_RELU6] = "relu6",
        [CVY_OP_LEAKY_RELU] = "leaky-relu",
        [CVY_OP_SIGMOID] = "sigmoid",
        [CVY_OP_TANH] = "tanh",
        [CVY_OP_SILU] = "silu",
        [CVY_OP_HARD_SWISH] = "hard-swish",
        [CVY_OP_MULTIPLY] = "multiply",
        [CVY_OP_STOCHASTIC_DEPTH] = "stochastic-depth",
        [CVY_OP_ADAM] = "adam",
        [CVY_OP_CONCAT] = "concat",
        [CVY_OP_SLICE] = "slice",
        [CVY_OP_GROUP_NORM] = "group-norm",
        [CVY_OP_LOCAL_RESPONSE_NORM] = "local-response-norm",
        [CVY_OP_SQUARE_SUM] = "square-sum",
        [CVY_OP_CLIP] = "clip",
        [CVY_OP_LARS] = "lars",
        [CVY_OP_LAMB_DIRECTION] = "lamb-direction",
        [CVY_OP_LAMB] = "lamb",
        [CVY_OP_AVERAGE] = "average",
        [CVY_OP_TRANSPOSED_CONVOLUTION] = "transposed-convolution",
        [CVY_OP_SOFT_DICE] = "soft-dice",
        [CVY_OP_PICK] = "pick",
        [CVY_OP_FRAME] = "frame",
    };
    return name[kind];
}

bool cvy_op_convolves(cvy_op_kind kind)
{
    return kind == CVY_OP_CONVOLUTION || kind == CVY_OP_TRANSPOSED_CONVOLUTION;
}

bool cvy_op_is_depthwise(const cvy_op *op)
{
    const cvy_operand *w = cvy_op_find(op, CVY_ROLE_W), *dw = cvy_op_find(op, CVY_ROLE_DW);
    const cvy_operand *weights = w ? w : dw;
    if (op->kind != CVY_OP_CONVOLUTION || !weights || !weights->tensor.grouped) {
        return false;
    }
    const int64_t *extent = weights->tensor.shape.extent; /* g,f/g,c/g,… */
    return extent[0] > 1 && extent[1] == 1 && extent[2] == 1;
}

bool cvy_op_classifies(cvy_op_kind kind)
{
    return kind == CVY_OP_SOFTMAX_CROSS_ENTROPY || kind == CVY_OP_SOFT_DICE;
}

bool cvy_op_has_weights(cvy_op_kind kind) { return cvy_op_convolves(kind) || kind == CVY_OP_DENSE; }

bool cvy_op_by_winograd(const cvy_op *op) { return op->kind == CVY_OP_CONVOLUTION && op->params.window.winograd; }

bool cvy_op_takes_relu(cvy_op_kind kind, cvy_op_pass pass)
{
    if (kind == CVY_OP_BATCH_NORM) { /* but where nothing is said of y or dy */
        return cvy_op_signature(kind, pass) && pass != CVY_PASS_STATS && pass != CVY_PASS_COMMIT &&
               pass != CVY_PASS_MERGE;
    }
    switch (kind) {
    case CVY_OP_CONVOLUTION:
    case CVY_OP_DENSE:
    case CVY_OP_ADD: return pass == CVY_PASS_FORWARD;
    case CVY_OP_POOL_MAX: return cvy_op_signature(kind, pass) != NULL;
    case CVY_OP_POOL_AVERAGE:
    case CVY_OP_POOL_GLOBAL:
    case CVY_OP_DROPOUT:
    case CVY_OP_SLICE:
    case CVY_OP_LOCAL_RESPONSE_NORM: return pass == CVY_PASS_BACKWARD_DATA;
    default: return false;
    }
}

bool cvy_op_tells_relu(cvy_op_kind kind, cvy_op_pass pass, cvy_role role)
{
    const cvy_signature *signature = cvy_op_signature(kind, pass);
    bool takes = cvy_op_takes_relu(kind, pass) && pass != CVY_PASS_FORWARD;
    int place = takes ? find_place(signature, role) : -1;
    return place >= 0 && signature->place[place].optional;
}

const char *cvy_op_pass_name(cvy_op_pass pass)
{
    static const char *const name[CVY_PASS_COUNT] = {
        [CVY_PASS_FORWARD] = "forward",
        [CVY_PASS_INFERENCE] = "inference",
        [CVY_PASS_BACKWARD_DATA] = "backward-data",
        [CVY_PASS_BACKWARD_WEIGHTS] = "backward-weights",
        [CVY_PASS_BACKWARD] = "backward",
        [CVY_PASS_STATS] = "stats",
        [CVY_PASS_NORMALISE] = "normalise",
        [CVY_PASS_GRAD_STATS] = "grad-stats",
        [CVY_PASS_GRAD_APPLY] = "grad-apply",
        [CVY_PASS_COMMIT] = "commit",
        [CVY_PASS_UPDATE] = "update",
        [CVY_PASS_MERGE] = "merge",
    };
    return name[pass];
}

const char *cvy_role_name(cvy_role role)
{
    static const char *const name[CVY_ROLE_COUNT] = {
        [CVY_ROLE_X] = "x",
        [CVY_ROLE_X1] = "x1",
        [CVY_ROLE_Y] = "y",
        [CVY_ROLE_DX] = "dx",
        [CVY_ROLE_DY] = "dy",
        [CVY_ROLE_W] = "w",
        [CVY_ROLE_B] = "b",
        [CVY_ROLE_DW] = "dw",
        [CVY_ROLE_DB] = "db",
        [CVY_ROLE_MEAN] = "mean",
        [CVY_ROLE_VARIANCE] = "variance",
        [CVY_ROLE_RUNNING_MEAN] = "running-mean",
        [CVY_ROLE_RUNNING_VARIANCE] = "running-variance",
        [CVY_ROLE_WINDOW] = "window",
        [CVY_ROLE_PROBABILITY] = "probability",
        [CVY_ROLE_LABEL] = "label",
        [CVY_ROLE_LOSS] = "loss",
        [CVY_ROLE_MOMENTUM] = "momentum",
        [CVY_ROLE_MOMENT2] = "moment2",
        [CVY_ROLE_DX1] = "dx1",
        [CVY_ROLE_X2] = "x2",
        [CVY_ROLE_X3] = "x3",
        [CVY_ROLE_SQUARES] = "squares",
        [CVY_ROLE_SCALE] = "scale",
        [CVY_ROLE_AVERAGE] = "average",
        [CVY_ROLE_OVERLAP] = "overlap",
        [CVY_ROLE_DY1] = "dy1",
    };
    return name[role];
}

bool cvy_role_is_total(cvy_role role) { return role == CVY_ROLE_SQUARES || role == CVY_ROLE_SCALE; }

int cvy_op_index(const cvy_op *op, cvy_role role)
{
    for (int i = 0; i < op->operands; i++) {
        if (op->operand[i].role == role) {
            return i;
        }
    }
    return -1;
}

int cvy_op_index_either(const cvy_op *op, cvy_role role, cvy_role other)
{
    int i = cvy_op_index(op, role);
    return i < 0 ? cvy_op_index(op, other) : i;
}

const cvy_operand *cvy_op_find(const cvy_op *op, cvy_role role)
{
    int i = cvy_op_index(op, role);
    return i < 0 ? NULL : &op->operand[i];
}

const cvy_operand *cvy_op_find_either(const cvy_op *op, cvy_role role, cvy_role other)
{
    int i = cvy_op_index_either(op, role, other);
    return i < 0 ? NULL : &op->operand[i];
}

cvy_status cvy_op_add(cvy_op *op, cvy_role role, const cvy_tensor *tensor)
{
    const cvy_signature *signature = cvy_op_signature(op->kind, op->pass);
    int place = signature ? find_place(signature, role) : -1;
    int last = op->operands ? find_place(signature, op->operand[op->operands - 1].role) : -1;
    CVY_REQUIRE(place > last, CVY_ERR_ARG, "%s %s takes no operand %s here", cvy_op_kind_name(op->kind),
                cvy_op_pass_name(op->pass), cvy_role_name(role));
    op->operand[op->operands++] =
        (cvy_operand){.role = role, .access = signature->place[place].access, .tensor = *tensor};
    return CVY_OK;
}

/* One map becomes another, element by element. */
static bool is_activation(cvy_op_kind kind)
{
    switch (kind) {
    case CVY_OP_RELU:
    case CVY_OP_RELU6:
    case CVY_OP_LEAKY_RELU:
    case CVY_OP_SIGMOID:
    case CVY_OP_TANH:
    case CVY_OP_SILU:
    case CVY_OP_HARD_SWISH:
    case CVY_OP_STOCHASTIC_DEPTH:
    case CVY_OP_DROPOUT: return true;
    default: return false;
    }
}

bool cvy_op_is_elementwise(cvy_op_kind kind)
{
    switch (kind) {
    case CVY_OP_ADD:
    case CVY_OP_MEAN_SQUARED_ERROR:
    case CVY_OP_SGD:
    case CVY_OP_ADAMW:
    case CVY_OP_ADAM:
    case CVY_OP_SQUARE_SUM:
    case CVY_OP_CLIP:
    case CVY_OP_LARS:
    case CVY_OP_LAMB_DIRECTION:
    case CVY_OP_LAMB:
    case CVY_OP_AVERAGE: return true;
    default: return is_activation(kind);
    }
}

bool cvy_op_in_place(const cvy_op *op, cvy_role role)
{
    bool forward = op->pass == CVY_PASS_FORWARD;
    if (is_activation(op->kind) || op->kind == CVY_OP_MULTIPLY) {
        return role == (forward ? CVY_ROLE_X : CVY_ROLE_DY) || (op->kind == CVY_OP_RELU && role == CVY_ROLE_DY1);
    }
    switch (op->kind) {
    case CVY_OP_ADD: return role == CVY_ROLE_X || role == CVY_ROLE_X1;
    case CVY_OP_BATCH_NORM:
        return (op->pass == CVY_PASS_INFERENCE && role == CVY_ROLE_X) ||
               ((op->pass == CVY_PASS_BACKWARD || op->pass == CVY_PASS_GRAD_APPLY) && role == CVY_ROLE_DY);
    case CVY_OP_GROUP_NORM: return role == (forward ? CVY_ROLE_X : CVY_ROLE_DY);
    default: return false;
    }
}

const char *cvy_op_print(const cvy_op *op, char *text)
{
    char shape[CVY_SHAPE_TEXT];
    int length = snprintf(text, CVY_OP_TEXT, "%s %s%s%s", cvy_op_kind_name(op->kind), cvy_op_pass_name(op->pass),
                          op->relu ? " relu" : "", cvy_op_by_winograd(op) ? " winograd" : "");
    for (int i = 0; i < op->operands && length < CVY_OP_TEXT; i++) {
        const cvy_tensor *tensor = &op->operand[i].tensor;
        length += snprintf(text + length, (size_t)(CVY_OP_TEXT - length), " %s %s:%s",
                           cvy_role_name(op->operand[i].role), cvy_shape_print(&tensor->shape, shape),
                           cvy_format_name(tensor->format));
    }
    return text;
}
