/*
 * The order in which a rank takes its micro-batches, and what passes between the stages of a pipeline. One tensor
 * passes, since stages are cut where one does; its gradient comes back. Each way has streams of its own for what comes
 * and for what goes, so that a stage computes on while it travels, and no two stages wait for each other's messages.
 *
 * Forward and backward of micro-batches follow each other as GPipe does (all forward, then all backward; Huang et al.,
 * arXiv:1811.06965), or one by one: a stage goes forward as often as there are stages behind it, then backward as soon
 * as it can (1F1B; Narayanan et al., PipeDream, arXiv:1806.03377, with the weights changed once a batch).
 */
#include "base/checked.h"
#include "plan/builder.h"

static cvy_status go_forward(cvy_builder *b, int micro_batch)
{
    cvy_micro_batch_start(b, micro_batch);
    CVY_TRY(cvy_build_forward(b));
    return b->training ? cvy_recompute_decide(b) : CVY_OK;
}

static cvy_status go_backward(cvy_builder *b, int micro_batch)
{
    cvy_micro_batch_resume(b, micro_batch);
    CVY_TRY(cvy_build_backward(b));
    cvy_micro_batch_keep_statistics(b);
    return CVY_OK;
}

/* How many micro-batches go forward before the first goes backward. */
static int count_ahead(const cvy_builder *b)
{
    const cvy_distribution *d = b->seat.distribution;
    int micro_batches = b->schedule->micro_batches;
    if (!b->training || (b->stages > 1 && d->strategy.pipeline == CVY_PIPELINE_GPIPE)) {
        return micro_batches;
    }
    return (int)cvy_min_i64(b->stages - b->seat.coordinate[CVY_AXIS_STAGE], micro_batches);
}

cvy_status cvy_build_micro_batches(cvy_builder *b)
{
    int ahead = count_ahead(b);
    for (int i = 0; i < ahead; i++) {
        CVY_TRY(go_forward(b, i));
    }
    for (int i = 0; b->training && i < b->schedule->micro_batches; i++) {
        CVY_TRY(go_backward(b, i));
        CVY_TRY(ahead + i < b->schedule->micro_batches ? go_forward(b, ahead + i) : CVY_OK);
    }
    return CVY_OK;
}

/* One message with the stage before (-1), or after (1). */
static cvy_status add_transfer(cvy_builder *b, int layer, int buffer, int offset, bool receive)
{
    bool backward = (offset > 0) == receive;
    const cvy_tensor *tensor = &b->schedule->buffer[buffer].tensor;
    cvy_message message = {.peer_offset[CVY_AXIS_STAGE] = offset, .bytes = cvy_share_bytes(tensor), .receive = receive};
    cvy_exchange_spec spec = {
        .step = {CVY_STEP_EXCHANGE, CVY_PHASE_REDISTRIBUTE, layer},
        .stream = backward ? (receive ? CVY_STREAM_GRADIENT_IN : CVY_STREAM_GRADIENT_OUT)
                           : (receive ? CVY_STREAM_FORWARD_IN : CVY_STREAM_FORWARD_OUT),
        .exchange = {.axes = CVY_AXIS_BIT(CVY_AXIS_STAGE), .bucket = -1, .first_message = b->schedule->messages,
                     .messages = 1, .bytes = receive ? 0 : message.bytes},
        .uses = 1,
        .use = {{.buffer = buffer, .access = receive ? CVY_ACCESS_WRITE : CVY_ACCESS_READ}},
        .packed_bytes = message.bytes == cvy_tensor_bytes(tensor) ? 0 : message.bytes,
    };
    CVY_TRY(cvy_builder_add_message(b, &message));
    return cvy_builder_add_exchange(b, &spec);
}

cvy_status cvy_pipeline_receive(cvy_builder *b)
{
    int layer = b->first_layer - 1;
    cvy_buffer x = cvy_builder_activation(b, layer, CVY_CONTENT_OUTPUT, b->formats[layer].output);
    CVY_TRY(cvy_builder_add_buffer(b, &x, &b->layer[layer].output));
    return add_transfer(b, layer, b->layer[layer].output, -1, true);
}

cvy_status cvy_pipeline_send(cvy_builder *b)
{
    int layer = b->end_layer - 1;
    return add_transfer(b, layer, b->layer[layer].output, 1, false);
}

cvy_status cvy_pipeline_receive_gradient(cvy_builder *b)
{
    int layer = b->end_layer - 1;
    cvy_buffer dy = cvy_builder_activation(b, layer, CVY_CONTENT_OUTPUT_GRADIENT, b->formats[layer].output);
    CVY_TRY(cvy_builder_add_buffer(b, &dy, &b->layer[layer].gradient));
    return add_transfer(b, layer, b->layer[layer].gradient, 1, true);
}

cvy_status cvy_pipeline_send_gradient(cvy_builder *b)
{
    int layer = b->first_layer - 1;
    return add_transfer(b, layer, b->layer[layer].gradient, -1, false);
}
