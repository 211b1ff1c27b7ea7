/*
 * The ways to run an op. A layout gives a convolution blocks, channels last or plain order, and its weights what the
 * backend wishes for with them; where a kernel made for it is among the ways, those that go through copies or plain
 * loops are left out.
 */
#include "calibrate/meter.h"
#include "plan/layout.h"

static bool holds_weights(cvy_role role) { return role == CVY_ROLE_W || role == CVY_ROLE_DW; }

/* The op with its maps in other formats; false where they do not fit. */
static bool change_formats(const cvy_op *op, cvy_format input, cvy_format output, cvy_op *way)
{
    *way = *op;
    for (int i = 0; i < way->operands; i++) {
        cvy_operand *operand = &way->operand[i];
        if (operand->tensor.shape.dims < 4 || holds_weights(operand->role)) {
            continue;
        }
        bool in = operand->role == CVY_ROLE_X || operand->role == CVY_ROLE_DX;
        operand->tensor.format = in ? input : output;
        if (!cvy_tensor_format_fits(&operand->tensor)) {
            return false;
        }
    }
    return true;
}

/* Weights as the backend wishes, where it runs the op better, or no worse, so. */
static cvy_quality wish_weights(const cvy_backend_chain *chain, cvy_op *way)
{
    cvy_quality as_it_is = cvy_backend_quality(chain, way, NULL);
    for (int i = 0; i < way->operands; i++) {
        if (holds_weights(way->operand[i].role)) {
            cvy_format had = way->operand[i].tensor.format;
            way->operand[i].tensor.format = cvy_backend_choose_format(chain, way, way->operand[i].role);
            cvy_quality as_wished = cvy_backend_quality(chain, way, NULL);
            if (as_wished >= as_it_is) {
                return as_wished;
            }
            way->operand[i].tensor.format = had;
        }
    }
    return as_it_is;
}

/* Ways as good as the best so far; a better one throws the others out. */
typedef struct ways {
    cvy_op *way;
    int count;
    cvy_quality best;
} ways;

static bool is_known(const ways *w, const cvy_op *op)
{
    for (int i = 0; i < w->count; i++) {
        if (cvy_op_hash(&w->way[i]) == cvy_op_hash(op)) {
            return true;
        }
    }
    return false;
}

static void add_way(const cvy_op *op, cvy_quality quality, ways *w)
{
    if (quality == CVY_QUALITY_NONE || quality < w->best || is_known(w, op)) {
        return;
    }
    w->count = quality > w->best ? 0 : w->count;
    w->best = quality;
    if (w->count < CVY_MAX_WAYS) {
        w->way[w->count++] = *op;
    }
}

/*
 * By Winograd's algorithm, to which plans give the weights in the format that forward has them in. Beside the direct
 * ways, whatever their quality: a format may have no good kernel but this.
 */
static void add_winograd(const cvy_backend_chain *chain, const cvy_op *direct, int block, ways *w)
{
    cvy_op way = *direct;
    const cvy_operand *input = cvy_op_find_either(direct, CVY_ROLE_X, CVY_ROLE_DX);
    const cvy_operand *output = cvy_op_find_either(direct, CVY_ROLE_Y, CVY_ROLE_DY);
    int weights = cvy_op_index(direct, CVY_ROLE_W);
    weights = weights < 0 ? cvy_op_index(direct, CVY_ROLE_DW) : weights;
    way.params.window.winograd = true;
    if (input && output && weights >= 0 && input->tensor.format == output->tensor.format) {
        cvy_layer_formats formats = {.input = input->tensor.format, .output = output->tensor.format};
        cvy_layout_rule_weights(block, direct->kind, false, &formats);
        way.operand[weights].tensor.format = formats.weight;
    }
    if (w->count < CVY_MAX_WAYS && cvy_backend_quality(chain, &way, NULL) != CVY_QUALITY_NONE) {
        w->way[w->count++] = way;
    }
}

/* Of a convolution: each pair of formats, then Winograd's algorithm in each. */
static void add_formats(const cvy_backend_chain *chain, const cvy_op *op, int block, ways *w)
{
    cvy_format blocked = block == 16 ? CVY_FORMAT_C16 : CVY_FORMAT_C8;
    const cvy_format pair[][2] = {{blocked, blocked},
                                  {CVY_FORMAT_PLAIN, blocked},
                                  {CVY_FORMAT_CHANNELS_LAST, CVY_FORMAT_CHANNELS_LAST},
                                  {CVY_FORMAT_PLAIN, CVY_FORMAT_PLAIN}};
    enum { PAIRS = sizeof pair / sizeof pair[0] };
    cvy_op way[PAIRS];
    bool fits[PAIRS];
    for (int i = 0; i < PAIRS; i++) {
        fits[i] = change_formats(op, pair[i][0], pair[i][1], &way[i]);
        if (fits[i]) {
            add_way(&way[i], wish_weights(chain, &way[i]), w);
        }
    }
    for (int i = 0; i < PAIRS && op->kind == CVY_OP_CONVOLUTION; i++) {
        if (fits[i]) {
            add_winograd(chain, &way[i], block, w);
        }
    }
}

int cvy_op_find_ways(const cvy_backend_chain *chain, const cvy_op *op, int block, cvy_op *way_out)
{
    ways w = {.way = way_out};
    cvy_op way = *op;
    add_way(op, cvy_backend_quality(chain, op, NULL), &w);
    if (cvy_op_has_weights(op->kind)) {
        add_way(&way, wish_weights(chain, &way), &w);
    }
    if (cvy_op_convolves(op->kind)) {
        add_formats(chain, op, block, &w);
    }
    return w.count;
}
