/*
 * What lives from one iteration to the next, and the steps that change it. A parameter is updated right behind the
 * backward pass of its layer: its gradient is in the cache still, and its memory is free for those of the layers
 * before. One buffer of all gradients, updated in one pass, would live through all of backward: ResNet-50 at batch 8
 * took 6 % more memory so. A rule that needs norms of several tensors waits until they are all there.
 */
#include "plan/builder.h"

#include "base/checked.h"

static cvy_status add_moment(cvy_builder *b, int parameter, int part)
{
    cvy_buffer moment = b->schedule->buffer[b->parameter[parameter]];
    if (b->shard_of[parameter] >= 0 && !cvy_shard_describe_piece(b, parameter, &moment)) {
        return CVY_OK; /* other ranks update it */
    }
    moment.role = CVY_BUFFER_OPTIMIZER;
    moment.content = CVY_CONTENT_MOMENT;
    moment.part = part;
    return cvy_builder_add_buffer(b, &moment, &b->moment[part][parameter]);
}

static cvy_status add_average(cvy_builder *b, int parameter)
{
    cvy_buffer average = b->schedule->buffer[b->parameter[parameter]];
    average.role = CVY_BUFFER_OPTIMIZER;
    average.content = CVY_CONTENT_AVERAGE;
    average.alias_of = -1;
    average.alias_offset = 0;
    return cvy_builder_add_buffer(b, &average, &b->average[parameter]);
}

static cvy_status add_parameter(cvy_builder *b, int index)
{
    const cvy_parameter *p = &b->model->parameter[index];
    cvy_format format = p->spec.role == CVY_ROLE_W ? b->formats[p->layer].weight : CVY_FORMAT_PLAIN;
    if (p->layer < b->first_layer || p->layer >= b->end_layer) {
        return CVY_OK;
    }
    cvy_buffer buffer = {.role = CVY_BUFFER_WEIGHTS,
                         .content = CVY_CONTENT_PARAMETER,
                         .layer = p->layer,
                         .parameter = index,
                         .part = -1,
                         .tensor = {.dtype = b->plan->options.dtype, .format = format},
                         .alias_of = -1,
                         .persistent = true};
    cvy_seat_describe_parameter(&b->seat, b->model, index, &buffer);
    if (cvy_shape_elements(&buffer.tensor.shape) == 0) {
        return CVY_OK; /* another rank has all of it */
    }
    return cvy_builder_add_buffer(b, &buffer, &b->parameter[index]);
}

/* Bytes of what this rank has of a sample's labels: of a map, where the loss is cut in space, some rows. */
static cvy_status count_label_bytes(const cvy_builder *b, int64_t *bytes_out)
{
    cvy_buffer label;
    int64_t bytes = b->plan->options.label_bytes;
    CVY_TRY(cvy_builder_describe_label(b, &label));
    for (int dim = 1; dim < label.global.dims; dim++) {
        int64_t own = label.local[dim].end - label.local[dim].begin, all = label.global.extent[dim];
        bytes = own < all ? cvy_ceil_div(bytes, all) * own : bytes;
    }
    *bytes_out = bytes;
    return CVY_OK;
}

/*
 * A slot of the loader: images, then labels, each rounded up to whole cache lines; always f32 and i32, raw. It holds
 * this rank's share of a whole batch, and of each sample the rows that it has.
 */
static cvy_status add_slot(cvy_builder *b, int slot)
{
    int64_t label_bytes;
    cvy_tensor x = cvy_builder_activation(b, 0, CVY_CONTENT_BATCH, CVY_FORMAT_PLAIN).tensor;
    x.dtype = CVY_F32;
    x.shape.extent[0] = cvy_plan_count_samples(b->plan, b->plan->options.batch);
    bool images = b->first_layer == 0, labels = b->end_layer == b->model->layers;
    CVY_TRY(count_label_bytes(b, &label_bytes));
    int64_t bytes = (images ? cvy_round_up(cvy_tensor_bytes(&x), 64) : 0) +
                    (labels ? cvy_round_up(x.shape.extent[0] * label_bytes, 64) : 0);
    if (bytes == 0) {
        return CVY_OK; /* a stage in the middle */
    }
    cvy_buffer buffer = {.role = CVY_BUFFER_DATA,
                         .content = CVY_CONTENT_BATCH,
                         .layer = -1,
                         .parameter = -1,
                         .part = slot,
                         .tensor = {.shape = CVY_SHAPE(bytes), .dtype = CVY_U8},
                         .alias_of = -1,
                         .persistent = true};
    int index;
    return cvy_builder_add_buffer(b, &buffer, &index);
}

cvy_status cvy_build_persistent(cvy_builder *b)
{
    const cvy_plan_options *options = &b->plan->options;
    for (int i = 0; i < b->model->parameters; i++) {
        CVY_TRY(add_parameter(b, i));
        b->updated[i] = b->parameter[i];
    }
    CVY_TRY(cvy_shard_decide(b));
    int moments = options->training ? cvy_optimizer_moments(&options->optimizer) : 0;
    for (int part = 0; part < moments; part++) {
        for (int i = 0; i < b->model->parameters; i++) {
            if (b->model->parameter[i].spec.trainable && b->parameter[i] >= 0) {
                CVY_TRY(add_moment(b, i, part));
            }
        }
    }
    for (int i = 0; i < b->model->parameters && options->training && options->average > 0.0; i++) {
        CVY_TRY(b->parameter[i] >= 0 ? add_average(b, i) : CVY_OK);
    }
    for (int i = 0; i < options->data_slots; i++) {
        CVY_TRY(add_slot(b, i));
    }
    return options->training ? cvy_totals_persist(b) : CVY_OK;
}

static cvy_status build_commits(cvy_builder *b)
{
    CVY_TRY(cvy_micro_batch_merge_statistics(b));
    for (int i = (int)cvy_max_i64(b->first_layer, 1); i < b->end_layer; i++) {
        const cvy_layer_kind *kind = b->model->layer[i].kind;
        for (int k = 0; k < kind->forward_passes; k++) {
            if (kind->forward[k] == CVY_PASS_COMMIT) {
                CVY_TRY(cvy_build_pass(b, i, CVY_PASS_COMMIT, CVY_PHASE_UPDATE));
            }
        }
    }
    return CVY_OK;
}

static bool is_updated(const cvy_builder *b, int parameter)
{
    return b->model->parameter[parameter].spec.trainable && b->parameter_gradient[parameter] >= 0;
}

static int dims_of(const cvy_builder *b, int parameter) { return b->model->parameter[parameter].spec.shape.dims; }

static cvy_step_spec update_spec(const cvy_builder *b, int parameter)
{
    return (cvy_step_spec){CVY_STEP_UPDATE, CVY_PHASE_UPDATE, b->model->parameter[parameter].layer};
}

/* Sum the squares of a buffer into one place of another. */
static cvy_status add_square_sum(cvy_builder *b, int parameter, int source, int squares, int64_t slot)
{
    cvy_op op = {.kind = CVY_OP_SQUARE_SUM, .pass = CVY_PASS_UPDATE};
    const cvy_tensor *totals = &b->schedule->buffer[squares].tensor;
    int operand[2] = {source, squares};
    cvy_step_spec spec = update_spec(b, parameter);
    op.params.squares = (cvy_op_params_squares){.slot = slot, .slots = totals->shape.extent[0]};
    CVY_TRY(cvy_op_add(&op, CVY_ROLE_X, &b->schedule->buffer[source].tensor));
    CVY_TRY(cvy_op_add(&op, CVY_ROLE_SQUARES, totals));
    return cvy_builder_add_step(b, &spec, &op, operand);
}

/* The scale that brings all gradients together down to a norm: a sum a parameter, then one small op. */
static cvy_status build_clip(cvy_builder *b, int *scale_out)
{
    cvy_op op = {.kind = CVY_OP_CLIP, .pass = CVY_PASS_UPDATE};
    int64_t slots = 0;
    int64_t slot = 0;
    int operand[2];
    for (int i = 0; i < b->model->parameters; i++) {
        slots += cvy_totals_have(b, i);
    }
    if (b->plan->options.optimizer.clip_norm <= 0.0 || slots == 0) {
        return CVY_OK;
    }
    CVY_TRY(cvy_totals_open(b, CVY_TOTALS_CLIP, slots, &operand[0]));
    for (int i = 0; i < b->model->parameters; i++) {
        if (cvy_totals_count(b, i)) {
            CVY_TRY(add_square_sum(b, i, b->parameter_gradient[i], operand[0], slot));
        }
        slot += cvy_totals_have(b, i);
    }
    CVY_TRY(cvy_totals_close(b, &operand[0]));
    CVY_TRY(cvy_totals_add(b, CVY_CONTENT_SCALE, 1, false, &operand[1]));
    op.params.squares = (cvy_op_params_squares){.slots = slots, .clip_norm = b->plan->options.optimizer.clip_norm};
    CVY_TRY(cvy_op_add(&op, CVY_ROLE_SQUARES, &b->schedule->buffer[operand[0]].tensor));
    CVY_TRY(cvy_op_add(&op, CVY_ROLE_SCALE, &b->schedule->buffer[operand[1]].tensor));
    *scale_out = operand[1];
    return cvy_builder_add_step(b, &(cvy_step_spec){CVY_STEP_UPDATE, CVY_PHASE_UPDATE, -1}, &op, operand);
}

/* What the steps of all parameters share: buffers, -1 where there is none. */
typedef struct shared_totals {
    int scale;   /* of clipping */
    int squares; /* of what a rule adapts to: two places a parameter */
    int64_t slots;
} shared_totals;

/* One step of a rule on a parameter: the op takes what its signature has a place for, of what there is. */
static cvy_status add_rule_step(cvy_builder *b, cvy_op_kind kind, int parameter, const shared_totals *totals,
                                int64_t slot)
{
    cvy_op op = {.kind = kind, .pass = CVY_PASS_UPDATE};
    const cvy_signature *signature = cvy_op_signature(kind, CVY_PASS_UPDATE);
    const int buffer[CVY_ROLE_COUNT] = {
        [CVY_ROLE_DW] = b->parameter_gradient[parameter] + 1,
        [CVY_ROLE_W] = b->updated[parameter] + 1,
        [CVY_ROLE_MOMENTUM] = b->moment[0][parameter] + 1,
        [CVY_ROLE_MOMENT2] = b->moment[1][parameter] + 1,
        [CVY_ROLE_SQUARES] = slot >= 0 ? totals->squares + 1 : 0,
        [CVY_ROLE_SCALE] = totals->scale + 1,
    };
    int operand[CVY_MAX_OPERANDS];
    op.params.optimizer = cvy_optimizer_params(&b->plan->options.optimizer, dims_of(b, parameter));
    if (slot >= 0) {
        op.params.optimizer.slot = slot;
        op.params.optimizer.slots = totals->slots;
    }
    for (int i = 0; i < signature->places; i++) {
        int index = buffer[signature->place[i].role] - 1;
        if (index >= 0) {
            operand[op.operands] = index;
            CVY_TRY(cvy_op_add(&op, signature->place[i].role, &b->schedule->buffer[index].tensor));
        }
    }
    cvy_step_spec spec = update_spec(b, parameter);
    return cvy_builder_add_step(b, &spec, &op, operand);
}

static bool takes_norms(const cvy_builder *b, int parameter)
{
    return cvy_totals_have(b, parameter) &&
           cvy_optimizer_adapts(&b->plan->options.optimizer, dims_of(b, parameter));
}

/* The norms that a rule adapts to: of the gradient, or of the direction first made of it, and of the weights. */
static cvy_status build_norms(cvy_builder *b, shared_totals *totals)
{
    const cvy_optimizer_rule *rule = cvy_optimizer_get_rule(b->plan->options.optimizer.kind);
    int64_t slot = 0;
    for (int i = 0; i < b->model->parameters; i++) {
        totals->slots += takes_norms(b, i) ? 2 : 0;
        if (is_updated(b, i) && rule->directs) {
            CVY_TRY(add_rule_step(b, rule->direction, i, totals, -1));
        }
    }
    if (totals->slots == 0) {
        return CVY_OK;
    }
    CVY_TRY(cvy_totals_open(b, CVY_TOTALS_NORMS, totals->slots, &totals->squares));
    for (int i = 0; i < b->model->parameters; i++) {
        if (takes_norms(b, i) && cvy_totals_count(b, i)) {
            CVY_TRY(add_square_sum(b, i, b->parameter_gradient[i], totals->squares, slot));
            CVY_TRY(add_square_sum(b, i, b->updated[i], totals->squares, slot + 1));
        }
        slot += takes_norms(b, i) ? 2 : 0;
    }
    return cvy_totals_close(b, &totals->squares);
}

/* Averages of all parameters, running statistics too, as they are after the update. */
static cvy_status build_averages(cvy_builder *b)
{
    for (int i = 0; i < b->model->parameters; i++) {
        if (b->average[i] < 0) {
            continue;
        }
        cvy_op op = {.kind = CVY_OP_AVERAGE, .pass = CVY_PASS_UPDATE};
        const int operand[2] = {b->parameter[i], b->average[i]};
        cvy_step_spec spec = update_spec(b, i);
        op.params.average.decay = b->plan->options.average;
        CVY_TRY(cvy_op_add(&op, CVY_ROLE_W, &b->schedule->buffer[operand[0]].tensor));
        CVY_TRY(cvy_op_add(&op, CVY_ROLE_AVERAGE, &b->schedule->buffer[operand[1]].tensor));
        CVY_TRY(cvy_builder_add_step(b, &spec, &op, operand));
    }
    return CVY_OK;
}

cvy_status cvy_build_parameter_update(cvy_builder *b, int parameter)
{
    const shared_totals none = {.scale = -1, .squares = -1};
    cvy_op_kind op = cvy_optimizer_get_rule(b->plan->options.optimizer.kind)->op;
    return is_updated(b, parameter) ? add_rule_step(b, op, parameter, &none, -1) : CVY_OK;
}

cvy_status cvy_build_layer_update(cvy_builder *b, int layer)
{
    const cvy_layer *l = &b->model->layer[layer];
    if (b->micro_batch + 1 < b->schedule->micro_batches || !cvy_optimizer_is_local(&b->plan->options.optimizer)) {
        return CVY_OK;
    }
    for (int i = l->first_parameter; i < l->first_parameter + l->parameters; i++) {
        CVY_TRY(cvy_bucket_axes(b, i) == 0 ? cvy_build_parameter_update(b, i) : CVY_OK);
    }
    return CVY_OK;
}

/* The weights, once all gradients are there. */
static cvy_status build_rules(cvy_builder *b)
{
    const cvy_optimizer_rule *rule = cvy_optimizer_get_rule(b->plan->options.optimizer.kind);
    shared_totals totals = {.scale = -1, .squares = -1};
    int64_t slot = 0;
    CVY_TRY(build_clip(b, &totals.scale));
    CVY_TRY(build_norms(b, &totals));
    for (int i = 0; i < b->model->parameters; i++) {
        bool adapted = takes_norms(b, i);
        CVY_TRY(is_updated(b, i) ? add_rule_step(b, rule->op, i, &totals, adapted ? slot : -1) : CVY_OK);
        slot += adapted ? 2 : 0;
    }
    for (int i = 0; i < b->shards; i++) {
        CVY_TRY(cvy_shard_gather(b, i));
    }
    return CVY_OK;
}

cvy_status cvy_build_update(cvy_builder *b)
{
    CVY_TRY(cvy_bucket_close_all(b));
    CVY_TRY(build_commits(b));
    CVY_TRY(cvy_bucket_update(b));
    bool local = cvy_optimizer_is_local(&b->plan->options.optimizer);
    CVY_TRY(local ? cvy_shard_update(b) : build_rules(b));
    return build_averages(b);
}
