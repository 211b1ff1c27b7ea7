/*
 * Shares of the update over the ranks that sum a gradient (Rajbhandari et al., "ZeRO", SC 2020, stage 1). Buckets are
 * laid out before the first step, in the order in which backward makes gradients, as what persists follows them: the
 * weights of a bucket lie side by side in one buffer, as their gradients do in the other, and every parameter is a view
 * of it. All ranks of the group, along the sample axis and those of space, cut a bucket into equal shares of whole
 * cache lines. The sum ends as a share of it on each rank (reduce-scatter), which keeps state for, and updates, what
 * its share has of each parameter: a piece. Then all send each other their shares of the weights (all-gather), so
 * copies stay bit-identical. What travels is what an all-reduce would send.
 *
 * Parameters begin at cache lines, as shares do, so pieces do, too. The gaps between them travel and are never read.
 */
#include "base/checked.h"
#include "base/memory.h"
#include "plan/builder.h"

/* Axes over which a parameter's update is shared out; 0: it is not. */
static unsigned find_axes(const cvy_builder *b, int parameter)
{
    const cvy_plan_options *options = &b->plan->options;
    bool asked = options->training && options->parallel.shard_optimizer;
    bool trained = b->model->parameter[parameter].spec.trainable && b->parameter[parameter] >= 0;
    unsigned axes = asked && trained ? cvy_bucket_axes(b, parameter) : 0;
    return axes & CVY_AXIS_BIT(CVY_AXIS_SAMPLE) ? axes : 0;
}

static cvy_shard *find_open(cvy_builder *b, unsigned key)
{
    for (int i = 0; i < b->shards; i++) {
        if (b->shard[i].key == key && b->shard[i].open) {
            return &b->shard[i];
        }
    }
    return NULL;
}

/* Lay a parameter on the end of a bucket, which is full once it has enough bytes. */
static cvy_status lay(cvy_builder *b, int parameter, unsigned axes)
{
    int64_t enough = b->plan->options.parallel.bucket_bytes;
    unsigned key = cvy_bucket_key(b, parameter);
    cvy_shard *shard = find_open(b, key);
    if (!shard) {
        CVY_TRY(cvy_array_reserve(&b->shard, b->shards, &b->shard_capacity, sizeof *b->shard));
        shard = &b->shard[b->shards++];
        *shard = (cvy_shard){.axes = axes, .key = key, .open = true, .weights = -1, .gradients = -1};
    }
    b->shard_of[parameter] = (int)(shard - b->shard);
    b->shard_offset[parameter] = cvy_round_up(shard->bytes, CVY_ARENA_ALIGNMENT);
    shard->bytes = b->shard_offset[parameter] + b->schedule->buffer[b->parameter[parameter]].bytes;
    shard->last_layer = b->model->parameter[parameter].layer;
    shard->open = enough <= 0 || shard->bytes < enough;
    return CVY_OK;
}

/* A buffer of so many of a bucket's bytes, from one on. */
static cvy_buffer describe(const cvy_builder *b, const cvy_shard *shard, int64_t first_byte, int64_t bytes)
{
    cvy_buffer buffer = {.content = CVY_CONTENT_BUCKET,
                         .layer = -1,
                         .parameter = -1,
                         .part = -1,
                         .tensor = {.dtype = b->plan->options.dtype},
                         .alias_of = -1};
    int64_t item = cvy_dtype_bytes(buffer.tensor.dtype);
    buffer.tensor.shape = CVY_SHAPE(bytes / item);
    buffer.global = CVY_SHAPE(shard->share_bytes * shard->ranks / item);
    buffer.local[0] = (cvy_interval){first_byte / item, (first_byte + bytes) / item};
    return buffer;
}

/* Now a bucket's size is known. */
static cvy_status cut(cvy_builder *b, cvy_shard *shard)
{
    const cvy_mesh *mesh = &b->seat.distribution->strategy.mesh;
    shard->ranks = cvy_mesh_group_size(mesh, shard->axes);
    shard->place = cvy_mesh_group_place(mesh, shard->axes, b->plan->options.parallel.rank);
    shard->share_bytes = cvy_round_up(cvy_ceil_div(shard->bytes, shard->ranks), CVY_ARENA_ALIGNMENT);
    cvy_buffer weights = describe(b, shard, 0, shard->share_bytes * shard->ranks);
    weights.role = CVY_BUFFER_WEIGHTS;
    weights.persistent = true;
    return cvy_builder_add_buffer(b, &weights, &shard->weights);
}

cvy_status cvy_shard_decide(cvy_builder *b)
{
    for (int layer = b->end_layer - 1; layer >= b->first_layer; layer--) {
        const cvy_layer *l = &b->model->layer[layer];
        for (int i = l->first_parameter; i < l->first_parameter + l->parameters; i++) {
            unsigned axes = find_axes(b, i);
            CVY_TRY(axes ? lay(b, i, axes) : CVY_OK);
        }
    }
    for (int i = 0; i < b->shards; i++) {
        CVY_TRY(cut(b, &b->shard[i]));
    }
    for (int i = 0; i < b->model->parameters; i++) {
        if (b->shard_of[i] >= 0) {
            cvy_buffer *parameter = &b->schedule->buffer[b->parameter[i]];
            parameter->alias_of = b->shard[b->shard_of[i]].weights;
            parameter->alias_offset = b->shard_offset[i];
        }
    }
    return CVY_OK;
}

/* Bytes of a parameter that are in this rank's share. */
static cvy_interval find_piece(const cvy_builder *b, int parameter)
{
    const cvy_shard *shard = &b->shard[b->shard_of[parameter]];
    int64_t share = shard->share_bytes * shard->place - b->shard_offset[parameter];
    int64_t bytes = b->schedule->buffer[b->parameter[parameter]].bytes;
    cvy_interval piece = {cvy_max_i64(share, 0), cvy_min_i64(share + shard->share_bytes, bytes)};
    return piece.end > piece.begin ? piece : (cvy_interval){0, 0};
}

bool cvy_shard_describe_piece(const cvy_builder *b, int parameter, cvy_buffer *piece)
{
    const cvy_buffer *whole = &b->schedule->buffer[b->parameter[parameter]];
    int64_t item = cvy_dtype_bytes(whole->tensor.dtype);
    cvy_interval bytes = find_piece(b, parameter);
    *piece = *whole;
    piece->tensor = (cvy_tensor){.shape = CVY_SHAPE((bytes.end - bytes.begin) / item), .dtype = whole->tensor.dtype};
    piece->global = CVY_SHAPE(whole->bytes / item);
    piece->local[0] = (cvy_interval){bytes.begin / item, bytes.end / item};
    piece->stretches.count = 0;
    piece->alias_of = -1;
    piece->alias_offset = 0;
    return bytes.end > bytes.begin;
}

cvy_status cvy_shard_put(cvy_builder *b, int parameter)
{
    cvy_shard *shard = &b->shard[b->shard_of[parameter]];
    if (shard->gradients < 0) {
        cvy_buffer bucket = describe(b, shard, 0, shard->share_bytes * shard->ranks);
        bucket.role = CVY_BUFFER_GRADIENTS;
        CVY_TRY(cvy_builder_add_buffer(b, &bucket, &shard->gradients));
    }
    cvy_buffer *gradient = &b->schedule->buffer[cvy_schedule_root(b->schedule, b->parameter_gradient[parameter])];
    gradient->alias_of = shard->gradients;
    gradient->alias_offset = b->shard_offset[parameter];
    return CVY_OK;
}

static cvy_status add_collective(cvy_builder *b, const cvy_shard *shard, cvy_collective collective, int source,
                                 int target)
{
    cvy_exchange_spec spec = {
        .step = {CVY_STEP_COLLECTIVE, CVY_PHASE_GRADIENT_EXCHANGE, -1},
        .stream = b->plan->options.parallel.overlap ? CVY_STREAM_GRADIENTS : CVY_STREAM_MAIN,
        .exchange = {.collective = collective, .axes = shard->axes, .bucket = shard->bucket,
                     .sum = collective == CVY_COLLECTIVE_REDUCE_SCATTER,
                     .bytes = shard->share_bytes * shard->ranks, .first_message = b->schedule->messages},
        .uses = 2,
        .use = {{.buffer = source, .access = CVY_ACCESS_READ}, {.buffer = target, .access = CVY_ACCESS_WRITE}},
    };
    return cvy_builder_add_exchange(b, &spec);
}

/* From here on the gradient of a parameter, and the parameter to be updated, are this rank's pieces. */
static cvy_status take_piece(cvy_builder *b, int parameter, const cvy_shard *shard, int share)
{
    cvy_buffer piece;
    bool mine = cvy_shard_describe_piece(b, parameter, &piece);
    int64_t first = piece.local[0].begin * cvy_dtype_bytes(piece.tensor.dtype) + b->shard_offset[parameter];
    bool made = b->parameter_gradient[parameter] >= 0;
    b->parameter_gradient[parameter] = b->updated[parameter] = -1;
    if (!mine || !made) {
        return CVY_OK;
    }
    piece.content = CVY_CONTENT_BUCKET;
    piece.alias_of = shard->weights;
    piece.alias_offset = first;
    CVY_TRY(cvy_builder_add_buffer(b, &piece, &b->updated[parameter]));
    piece.role = CVY_BUFFER_GRADIENTS;
    piece.persistent = false;
    piece.alias_of = share;
    piece.alias_offset = first - shard->share_bytes * shard->place;
    return cvy_builder_add_buffer(b, &piece, &b->parameter_gradient[parameter]);
}

static cvy_status scatter(cvy_builder *b, int index)
{
    cvy_shard *shard = &b->shard[index];
    cvy_buffer share = describe(b, shard, shard->share_bytes * shard->place, shard->share_bytes);
    int gradients;
    share.role = CVY_BUFFER_GRADIENTS;
    CVY_TRY(cvy_builder_add_buffer(b, &share, &gradients));
    shard->bucket = b->buckets_closed++;
    CVY_TRY(add_collective(b, shard, CVY_COLLECTIVE_REDUCE_SCATTER, shard->gradients, gradients));
    shard->gradients = -1;
    shard->scattered = true;
    for (int i = 0; i < b->model->parameters; i++) {
        CVY_TRY(b->shard_of[i] == index ? take_piece(b, i, shard, gradients) : CVY_OK);
    }
    return CVY_OK;
}

static cvy_status update(cvy_builder *b, int index)
{
    b->shard[index].scattered = false;
    for (int i = 0; i < b->model->parameters; i++) {
        CVY_TRY(b->shard_of[i] == index ? cvy_build_parameter_update(b, i) : CVY_OK);
    }
    return cvy_shard_gather(b, index);
}

cvy_status cvy_shard_gather(cvy_builder *b, int index)
{
    const cvy_shard *shard = &b->shard[index];
    cvy_buffer share = describe(b, shard, shard->share_bytes * shard->place, shard->share_bytes);
    int weights;
    share.role = CVY_BUFFER_WEIGHTS;
    share.persistent = true;
    share.alias_of = shard->weights;
    share.alias_offset = shard->share_bytes * shard->place;
    CVY_TRY(cvy_builder_add_buffer(b, &share, &weights));
    return add_collective(b, shard, CVY_COLLECTIVE_ALL_GATHER, weights, shard->weights);
}

cvy_status cvy_shard_scatter(cvy_builder *b, int layer)
{
    const cvy_plan_options *options = &b->plan->options;
    for (int i = 0; i < b->shards; i++) {
        if (b->shard[i].gradients < 0 || b->shard[i].last_layer < layer) {
            continue;
        }
        CVY_TRY(scatter(b, i));
        if (!options->parallel.overlap && cvy_optimizer_is_local(&options->optimizer)) {
            CVY_TRY(update(b, i));
        }
    }
    return CVY_OK;
}

cvy_status cvy_shard_update(cvy_builder *b)
{
    for (int i = 0; i < b->shards; i++) {
        CVY_TRY(b->shard[i].scattered ? update(b, i) : CVY_OK);
    }
    return CVY_OK;
}
