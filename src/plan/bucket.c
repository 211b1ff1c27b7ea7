/*
 * Gradients that ranks sum are exchanged in buckets: in the order in which backward makes them, those that are summed
 * over the same axes side by side, until there are enough bytes for one all-reduce. A gradient is written where it lies
 * in its bucket, each at a multiple of the arena's alignment, and a bucket travels as it lies: nothing is packed (Li et
 * al., "PyTorch Distributed", arXiv:2006.15704, 3.2.3). Micro-batches are summed first, and exchanged once.
 *
 * What ranks along the channel axis have copies of is in other buckets than what they share out, whose sizes may
 * differ: so every copy lies in its bucket as the others do, and is summed in the same order, bit by bit.
 *
 * A parameter is updated behind its bucket. Where the exchange overlaps with backward, that is after all of it, so that
 * backward waits for nobody.
 */
#include "base/checked.h"
#include "base/memory.h"
#include "plan/builder.h"

unsigned cvy_bucket_axes(const cvy_builder *b, int parameter)
{
    int layer = b->model->parameter[parameter].layer;
    unsigned axes = 0;
    for (int axis = 0; b->seat.distribution && axis < CVY_AXES; axis++) {
        unsigned bit = CVY_AXIS_BIT(axis);
        bool summed = axis == CVY_AXIS_SAMPLE || (b->seat.distribution->layer[layer].gradient_axes & bit);
        axes |= summed && b->seat.size[axis] > 1 ? bit : 0;
    }
    return axes & ~cvy_norm_axes(b, layer); /* along those GRAD_STATS were summed */
}

/* The stage axis never sums gradients: its bit is for what the channel axis shares out. */
unsigned cvy_bucket_key(const cvy_builder *b, int parameter)
{
    bool cut = b->seat.size[CVY_AXIS_CHANNEL] > 1 &&
               cvy_distribution_parameter(b->seat.distribution, parameter).placing == CVY_PLACING_SPLIT;
    unsigned axes = cvy_bucket_axes(b, parameter);
    return axes && cut ? axes | CVY_AXIS_BIT(CVY_AXIS_STAGE) : axes;
}

static cvy_status open_bucket(cvy_builder *b, cvy_bucket *bucket)
{
    cvy_buffer buffer = {.role = CVY_BUFFER_GRADIENTS,
                         .content = CVY_CONTENT_GRADIENT,
                         .layer = -1,
                         .parameter = -1,
                         .part = -1,
                         .tensor = {.shape = CVY_SHAPE(1), .dtype = b->plan->options.dtype},
                         .alias_of = -1};
    *bucket = (cvy_bucket){.first = -1, .last = -1, .opened = b->buckets_opened++};
    return cvy_builder_add_buffer(b, &buffer, &bucket->buffer);
}

/* Let a gradient lie on the end of a bucket. */
static void put(cvy_builder *b, cvy_bucket *bucket, int parameter)
{
    cvy_buffer *gradient = &b->schedule->buffer[cvy_schedule_root(b->schedule, b->parameter_gradient[parameter])];
    gradient->alias_of = bucket->buffer;
    gradient->alias_offset = cvy_round_up(bucket->bytes, CVY_ARENA_ALIGNMENT);
    bucket->bytes = gradient->alias_offset + gradient->bytes;
    if (bucket->first < 0) {
        bucket->first = parameter;
    } else {
        b->bucket_next[bucket->last] = parameter;
    }
    bucket->last = parameter;
}

/* Now the bucket's size is known. */
static void measure_bucket(cvy_builder *b, const cvy_bucket *bucket)
{
    cvy_buffer *buffer = &b->schedule->buffer[bucket->buffer];
    int64_t elements = cvy_ceil_div(bucket->bytes, cvy_dtype_bytes(buffer->tensor.dtype));
    buffer->tensor.shape = buffer->global = CVY_SHAPE(elements);
    buffer->local[0] = (cvy_interval){0, elements};
    buffer->bytes = cvy_tensor_bytes(&buffer->tensor);
}

/* Update what was in a bucket now, or put it behind what waits for the end of backward. */
static cvy_status release(cvy_builder *b, const cvy_bucket *bucket)
{
    if (!cvy_optimizer_is_local(&b->plan->options.optimizer)) {
        return CVY_OK; /* all updates wait */
    }
    if (!b->plan->options.parallel.overlap) {
        for (int i = bucket->first; i >= 0; i = b->bucket_next[i]) {
            CVY_TRY(cvy_build_parameter_update(b, i));
        }
        return CVY_OK;
    }
    if (b->waiting < 0) {
        b->waiting = bucket->first;
    } else {
        b->bucket_next[b->last_waiting] = bucket->first;
    }
    b->last_waiting = bucket->last;
    return CVY_OK;
}

static cvy_status close_bucket(cvy_builder *b, unsigned key)
{
    cvy_bucket bucket = b->bucket[key];
    unsigned axes = key & ~CVY_AXIS_BIT(CVY_AXIS_STAGE);
    measure_bucket(b, &bucket);
    cvy_exchange_spec spec = {
        .step = {CVY_STEP_COLLECTIVE, CVY_PHASE_GRADIENT_EXCHANGE, -1},
        .stream = b->plan->options.parallel.overlap ? CVY_STREAM_GRADIENTS : CVY_STREAM_MAIN,
        .exchange = {.collective = CVY_COLLECTIVE_ALL_REDUCE, .axes = axes, .bucket = b->buckets_closed++, .sum = true,
                     .bytes = b->schedule->buffer[bucket.buffer].bytes, .first_message = b->schedule->messages},
        .uses = 1,
        .use = {{.buffer = bucket.buffer, .access = CVY_ACCESS_UPDATE}},
    };
    b->bucket[key].buffer = -1;
    CVY_TRY(cvy_builder_add_exchange(b, &spec));
    return release(b, &bucket);
}

cvy_status cvy_bucket_take(cvy_builder *b, int layer)
{
    const cvy_layer *l = &b->model->layer[layer];
    int64_t enough = b->plan->options.parallel.bucket_bytes;
    if (b->micro_batch + 1 < b->schedule->micro_batches) {
        return CVY_OK;
    }
    for (int i = l->first_parameter; i < l->first_parameter + l->parameters; i++) {
        unsigned key = cvy_bucket_key(b, i);
        cvy_bucket *bucket = &b->bucket[key];
        if (key == 0 || b->parameter_gradient[i] < 0) {
            continue;
        }
        if (b->shard_of[i] >= 0) {
            CVY_TRY(cvy_shard_put(b, i));
            continue;
        }
        CVY_TRY(bucket->buffer < 0 ? open_bucket(b, bucket) : CVY_OK);
        put(b, bucket, i);
        if (enough > 0 && bucket->bytes >= enough) {
            CVY_TRY(close_bucket(b, key));
        }
    }
    return cvy_shard_scatter(b, layer);
}

/* The key of the open bucket that was opened first; 0: none is. */
static unsigned find_oldest(const cvy_builder *b)
{
    unsigned oldest = 0;
    for (unsigned key = 1; key < 1 << CVY_AXES; key++) {
        bool older = oldest == 0 || b->bucket[key].opened < b->bucket[oldest].opened;
        oldest = b->bucket[key].buffer >= 0 && older ? key : oldest;
    }
    return oldest;
}

cvy_status cvy_bucket_close_all(cvy_builder *b)
{
    for (unsigned key = find_oldest(b); key != 0; key = find_oldest(b)) {
        CVY_TRY(close_bucket(b, key));
    }
    return cvy_shard_scatter(b, b->first_layer);
}

cvy_status cvy_bucket_update(cvy_builder *b)
{
    for (int i = b->waiting; i >= 0; i = b->bucket_next[i]) {
        CVY_TRY(cvy_build_parameter_update(b, i));
    }
    return CVY_OK;
}
