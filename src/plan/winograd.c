/*
 * Winograd's algorithm, pass by pass. It takes the weights in the format that forward has them in, so that a plan may
 * have it for one batch and not for another (the tail of an epoch, a micro-batch) with the same parameters.
 */
#include "plan/builder.h"

static bool is_offered(const cvy_backend_chain *backends, const cvy_op *op)
{
    return cvy_op_by_winograd(op) && cvy_backend_quality(backends, op, NULL) != CVY_QUALITY_NONE;
}

/* A direct op otherwise; false where it is none that could. */
static bool describe_winograd(const cvy_plan *plan, int layer, const cvy_op *op, cvy_op *winograd_out)
{
    cvy_op other = *op;
    int w = cvy_op_index(op, CVY_ROLE_W);
    if (op->kind != CVY_OP_CONVOLUTION || op->params.window.winograd) {
        return false;
    }
    other.params.window.winograd = true;
    if (w >= 0) {
        other.operand[w].tensor.format = plan->formats[layer].weight;
    }
    *winograd_out = other;
    return true;
}

bool cvy_plan_find_winograd(const cvy_plan *plan, int layer, const cvy_op *op, cvy_op *winograd_out)
{
    cvy_op other;
    if (!describe_winograd(plan, layer, op, &other) || !is_offered(&plan->options.backends, &other)) {
        return false;
    }
    *winograd_out = other;
    return true;
}

cvy_status cvy_builder_find_scratch(const cvy_builder *b, int layer, const cvy_op *op, int64_t *bytes_out)
{
    cvy_scratch_book *book = b->plan->options.scratch;
    cvy_op other;
    *bytes_out = 0;
    bool asks = book && layer >= 0 && describe_winograd(b->plan, layer, op, &other);
    return asks ? cvy_scratch_book_find(book, &other, bytes_out) : CVY_OK;
}
