/*
 * A batch in parts: each micro-batch goes forward and backward by itself, its gradients are added to those before, and
 * the weights change once. The loss is scaled by the whole batch, so the sums are the gradients of the whole batch, and
 * uneven parts are exact. Batch norms normalise by the statistics of a micro-batch, as they must; what is committed to
 * the running ones, once, is the statistics of the whole batch, its variance unbiased over the whole count (the idea
 * is torchgpipe's deferred batch norm; Kim et al., arXiv:2004.09910).
 */
#include "plan/builder.h"

void cvy_micro_batch_resume(cvy_builder *b, int micro_batch)
{
    size_t state = b->stages > 1 ? (size_t)micro_batch : 0;
    cvy_interval samples = cvy_schedule_micro_batch(b->schedule, micro_batch);
    int64_t first = b->schedule->samples.begin;
    b->micro_batch = micro_batch;
    b->seat.samples = (cvy_interval){first + samples.begin, first + samples.end};
    b->layer = b->layers + state * (size_t)b->model->layers;
}

void cvy_micro_batch_start(cvy_builder *b, int micro_batch)
{
    cvy_micro_batch_resume(b, micro_batch);
    for (int i = 0; i < b->model->layers; i++) {
        b->layer[i] = (cvy_layer_buffers){
            .output = -1, .gradient = -1, .gradient1 = -1, .contribution = -1, .variant = -1};
        for (int role = 0; role < CVY_ROLE_COUNT; role++) {
            b->layer[i].saved[role] = -1;
        }
    }
}

cvy_status cvy_micro_batch_sum_gradients(cvy_builder *b, int layer)
{
    const cvy_layer *l = &b->model->layer[layer];
    for (int i = l->first_parameter; i < l->first_parameter + l->parameters; i++) {
        int *sum = &b->gradient_sum[i];
        if (b->parameter_gradient[i] < 0) {
            continue;
        }
        if (*sum >= 0) {
            const int part[2] = {*sum, b->parameter_gradient[i]};
            cvy_buffer total = b->schedule->buffer[*sum]; /* appending moves the array */
            CVY_TRY(cvy_builder_add_sum(b, layer, part, &total, &b->parameter_gradient[i]));
        }
        *sum = b->parameter_gradient[i];
    }
    return CVY_OK;
}

/* The pair of a layer in a micro-batch: mean, variance. */
static int *find_statistics(const cvy_builder *b, int micro_batch, int layer)
{
    return b->statistics + 2 * ((size_t)micro_batch * (size_t)b->model->layers + (size_t)layer);
}

void cvy_micro_batch_keep_statistics(cvy_builder *b)
{
    for (int i = 0; i < b->model->layers; i++) {
        int *pair = find_statistics(b, b->micro_batch, i);
        pair[0] = b->layer[i].saved[CVY_ROLE_MEAN];
        pair[1] = b->layer[i].saved[CVY_ROLE_VARIANCE];
    }
}

/* Let the statistics of a micro-batch join those of all before it, of @p merged values, where the first one's were. */
static cvy_status merge(cvy_builder *b, int layer, int micro_batch, int64_t merged)
{
    const int *all = find_statistics(b, 0, layer);
    const int *more = find_statistics(b, micro_batch, layer);
    const int operand[4] = {more[0], more[1], all[0], all[1]};
    static const cvy_role role[4] = {CVY_ROLE_MEAN, CVY_ROLE_VARIANCE, CVY_ROLE_RUNNING_MEAN,
                                     CVY_ROLE_RUNNING_VARIANCE};
    cvy_op op = {0};
    cvy_build_local_op(b, layer, CVY_PASS_MERGE, &op);
    op.params.norm.merged = merged;
    op.params.norm.count = merged + cvy_norm_count(b, layer, micro_batch);
    for (int i = 0; i < 4; i++) {
        CVY_TRY(cvy_op_add(&op, role[i], &b->schedule->buffer[operand[i]].tensor));
    }
    return cvy_builder_add_step(b, &(cvy_step_spec){CVY_STEP_LOCAL, CVY_PHASE_UPDATE, layer}, &op, operand);
}

cvy_status cvy_micro_batch_merge_statistics(cvy_builder *b)
{
    b->micro_batch = 0;
    for (int i = b->first_layer; i < b->end_layer; i++) {
        b->layer[i].saved[CVY_ROLE_MEAN] = find_statistics(b, 0, i)[0];
        b->layer[i].saved[CVY_ROLE_VARIANCE] = find_statistics(b, 0, i)[1];
        int64_t merged = 0;
        for (int k = 1; k < b->schedule->micro_batches && cvy_layer_kind_commits(b->model->layer[i].kind); k++) {
            merged += cvy_norm_count(b, i, k - 1);
            CVY_TRY(merge(b, i, k, merged));
        }
    }
    return CVY_OK;
}
