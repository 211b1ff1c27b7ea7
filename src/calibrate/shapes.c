/*
 * Drawings become ops: operands as the vocabulary describes them, formats as a plan chooses them where no backend can
 * be asked (plan/layout), so that what was measured has the bytes, and the key, of what a plan asks about. A drawing
 * that breaks a limit is thrown away and drawn anew, with words of its own.
 */
#include "calibrate/shapes.h"

#include <math.h>

#include "calibrate/shapes_internal.h"
#include "plan/layout.h"

enum { TRIES = 1000, CONVOLUTION_FLOP = 4 }; /* convolutions may have so many times the flop of others */

const cvy_shape_family *cvy_shape_family_get(int i)
{
    return i >= 0 && i < cvy_shape_table_size ? &cvy_shape_table[i] : NULL;
}

int cvy_shape_families(void) { return cvy_shape_table_size; }

/* ---- formats ---- */

/* Blocks, but where padding would be most of them; a convolution over so few channels gives blocks all the same. */
static void choose_formats(cvy_dice *dice, int block, cvy_drawn_shape *shape)
{
    cvy_format blocked = block == 16 ? CVY_FORMAT_C16 : CVY_FORMAT_C8;
    bool mapped = shape->x.dims >= 4, wide = mapped && shape->x.extent[1] * 2 >= block;
    shape->input = wide ? blocked : CVY_FORMAT_PLAIN;
    shape->output = mapped && cvy_op_convolves(shape->op.kind) ? blocked : shape->input;
    if (cvy_op_classifies(shape->op.kind)) {
        shape->input = shape->output = CVY_FORMAT_PLAIN;
    }
    if (shape->op.kind == CVY_OP_REORDER) {
        shape->output = wide && cvy_dice_chance(dice, 0.5) ? CVY_FORMAT_PLAIN : blocked;
        shape->input = shape->output == CVY_FORMAT_PLAIN ? blocked : CVY_FORMAT_PLAIN;
    }
}

static bool is_weight(const cvy_op *op, cvy_role role)
{
    return cvy_op_has_weights(op->kind) && (role == CVY_ROLE_W || role == CVY_ROLE_DW);
}

/* Of a convolution's weights; all others stay plain. */
static cvy_format choose_weight(const cvy_drawn_shape *shape, cvy_op_pass pass, int block)
{
    cvy_layer_formats formats = {.input = shape->input, .output = shape->output};
    const cvy_op_params_window *params = &shape->op.params.window;
    bool convolves = cvy_op_convolves(shape->op.kind);
    bool depthwise = convolves && params->groups > 1 && params->groups == shape->filters;
    if (convolves) {
        cvy_layout_rule_weights(block, shape->op.kind, depthwise, &formats);
    }
    return pass == CVY_PASS_FORWARD         ? formats.weight
           : pass == CVY_PASS_BACKWARD_DATA ? formats.weight_backward
                                            : formats.gradient;
}

static void set_format(const cvy_drawn_shape *shape, cvy_role role, int block, cvy_op_pass pass, cvy_tensor *tensor)
{
    bool output = role == CVY_ROLE_Y || role == CVY_ROLE_DY || role == CVY_ROLE_WINDOW;
    if (is_weight(&shape->op, role)) {
        tensor->format = choose_weight(shape, pass, block);
    } else if (tensor->shape.dims >= 4) {
        tensor->format = output ? shape->output : shape->input;
    }
}

/* ---- ops ---- */

static bool leaves_out(const cvy_drawn_shape *shape, const cvy_op *op, const cvy_signature_place *place)
{
    if (cvy_op_tells_relu(op->kind, op->pass, place->role)) {
        return !op->relu;
    }
    bool bias = place->role == CVY_ROLE_B || place->role == CVY_ROLE_DB;
    return place->optional && (bias ? !shape->biased : place->role != CVY_ROLE_MOMENTUM);
}

cvy_status cvy_shape_make_op(const cvy_drawn_shape *shape, cvy_op_pass pass, int block, cvy_op *op_out)
{
    cvy_op op = shape->op;
    const cvy_tensor x = {.shape = shape->x, .dtype = CVY_F32};
    const cvy_signature *signature = cvy_op_signature(op.kind, pass);
    CVY_REQUIRE(signature, CVY_ERR_ARG, "%s has no pass %s", cvy_op_kind_name(op.kind), cvy_op_pass_name(pass));
    op.pass = pass;
    op.relu = shape->relu && cvy_op_takes_relu(op.kind, pass);
    for (int i = 0; i < signature->places; i++) {
        const cvy_signature_place *place = &signature->place[i];
        cvy_tensor tensor;
        if (!leaves_out(shape, &op, place)) {
            CVY_TRY(cvy_op_describe(&op, &x, shape->filters, place->role, &tensor));
            set_format(shape, place->role, block, pass, &tensor);
            CVY_TRY(cvy_op_add(&op, place->role, &tensor));
        }
    }
    CVY_TRY(cvy_op_check(&op));
    *op_out = op;
    return CVY_OK;
}

/* ---- drawing ---- */

double cvy_shape_op_memory(const cvy_op *op)
{
    double bytes = 0.0;
    for (int i = 0; i < op->operands; i++) {
        bytes += (double)cvy_tensor_bytes(&op->operand[i].tensor);
    }
    return bytes;
}

/* Whether all passes have an op, and each keeps the limits. */
static bool keeps_limits(const cvy_shape_family *family, const cvy_drawn_shape *shape, const cvy_shape_limits *limits)
{
    if (cvy_shape_check(&shape->x, "input") != CVY_OK) {
        return false;
    }
    for (int pass = 0; pass < CVY_PASS_COUNT; pass++) {
        cvy_op op;
        if (!(family->passes >> pass & 1u)) {
            continue;
        }
        if (cvy_shape_make_op(shape, (cvy_op_pass)pass, limits->block, &op) != CVY_OK) {
            return false;
        }
        double bytes = cvy_op_bytes(&op), most_bytes = fmax(bytes, cvy_shape_op_memory(&op));
        bool small = pass == CVY_PASS_COMMIT; /* a few numbers a channel, whatever the map */
        double most_flop = limits->most_flop * (cvy_op_convolves(op.kind) ? CONVOLUTION_FLOP : 1);
        if ((bytes < limits->least_bytes && !small) || most_bytes > limits->most_bytes ||
            cvy_op_flop(&op) > most_flop) {
            return false;
        }
    }
    return true;
}

cvy_status cvy_shape_draw(uint64_t seed, int family, int index, const cvy_shape_limits *limits,
                          cvy_drawn_shape *shape_out)
{
    const cvy_shape_family *of = &cvy_shape_table[family];
    for (uint32_t attempt = 0; attempt < TRIES; attempt++) {
        cvy_dice dice = {.seed = seed, .owner = (uint32_t)family, .index = (uint32_t)index, .attempt = attempt};
        cvy_drawn_shape shape = {.op.kind = of->kind, .filters = 1};
        of->draw(&dice, &shape);
        shape.biased = cvy_dice_chance(&dice, 0.5);
        shape.relu = cvy_dice_chance(&dice, 0.5);
        choose_formats(&dice, limits->block, &shape);
        if (keeps_limits(of, &shape, limits)) {
            cvy_error_clear();
            *shape_out = shape;
            return CVY_OK;
        }
    }
    return cvy_fail(CVY_ERR_INFEASIBLE, "%s: none of %d drawings has %.3g to %.3g bytes and at most %.3g flop",
                    of->name, (int)TRIES, limits->least_bytes, limits->most_bytes, limits->most_flop);
}
