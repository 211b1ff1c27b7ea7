/*
 * Which samples batch norms see together. A micro-batch is a part of each rank's own share of the batch: of 8 samples
 * over 2 ranks in 2 micro-batches the first has 0 1 4 5, where one rank alone would take 0 1 2 3. The serial run is the
 * same training where it finds each batch in the order 0 1 4 5 2 3 6 7. That needs micro-batches of the same sizes, and
 * layers that do not go by a sample's place in its batch; what has no such serial run is refused, not compared.
 */
#include "base/checked.h"
#include "plan/distribution.h"
#include "runtime/verify.h"

static bool have_batch_norms(const cvy_model *model)
{
    bool have = false;
    for (int i = 0; i < model->layers; i++) {
        have = have || cvy_layer_kind_commits(model->layer[i].kind);
    }
    return have;
}

/* The share that a rank along the sample axis has of a part, in places of the whole batch. */
static cvy_interval find_share(const cvy_verify_parts *parts, int part, int64_t rank)
{
    cvy_interval own = cvy_intervals_share(parts->batch, parts->ranks, rank).at[0];
    cvy_interval share = cvy_intervals_share(own.end - own.begin, parts->micro_batches, part).at[0];
    return (cvy_interval){own.begin + share.begin, own.begin + share.end};
}

static int64_t count_samples(const cvy_verify_parts *parts, int part)
{
    int64_t samples = 0;
    for (int64_t rank = 0; rank < parts->ranks; rank++) {
        cvy_interval share = find_share(parts, part, rank);
        samples += share.end - share.begin;
    }
    return samples;
}

static cvy_status check_sizes(const cvy_verify_parts *parts)
{
    int64_t even = cvy_round_up(parts->batch, parts->ranks * parts->micro_batches);
    for (int part = 0; part < parts->micro_batches; part++) {
        cvy_intervals alone = cvy_intervals_share(parts->batch, parts->micro_batches, part);
        CVY_REQUIRE(count_samples(parts, part) == cvy_intervals_length(&alone), CVY_ERR_INPUT,
                    "batch %lld: of %d micro-batches over %lld ranks along sample, batch norms see %lld samples at "
                    "once in number %d, those of one rank alone %lld, which is another training: take batch %lld",
                    (long long)parts->batch, parts->micro_batches, (long long)parts->ranks,
                    (long long)count_samples(parts, part), part + 1, (long long)cvy_intervals_length(&alone),
                    (long long)even);
    }
    return CVY_OK;
}

/* Whether a layer drops elements or samples in training: by numbers of chance that a sample's place gives. */
static bool drops(const cvy_model *model, const cvy_layer *layer)
{
    cvy_op op = {0};
    if (layer->kind->forward_passes > 0) {
        layer->kind->make_op(layer, &model->layer[layer->input[0]].output, layer->kind->forward[0], &op);
    }
    bool chance = op.kind == CVY_OP_DROPOUT || op.kind == CVY_OP_STOCHASTIC_DEPTH;
    return chance && op.params.dropout.probability > 0.0;
}

static cvy_status check_layers(const cvy_model *model)
{
    for (int i = 0; i < model->layers; i++) {
        CVY_REQUIRE(!drops(model, &model->layer[i]), CVY_ERR_INPUT,
                    "layer %s drops by a sample's place in its batch, but with batch norms in micro-batches over "
                    "ranks along sample the serial run needs samples in other places: take micro-batches=1",
                    model->layer[i].name);
    }
    return CVY_OK;
}

cvy_status cvy_verify_parts_find(const cvy_plan *plan, cvy_verify_parts *parts_out)
{
    const cvy_plan_parallel *parallel = &plan->options.parallel;
    const cvy_distribution *d = parallel->distribution;
    cvy_verify_parts parts = {.batch = plan->options.batch,
                              .ranks = d ? d->strategy.mesh.size[CVY_AXIS_SAMPLE] : 1,
                              .micro_batches = plan->schedule[CVY_SCHEDULE_TRAIN].micro_batches};
    parts.mixed = parts.ranks > 1 && parts.micro_batches > 1 && have_batch_norms(plan->model) &&
                  (parallel->norm_axes & CVY_AXIS_BIT(CVY_AXIS_SAMPLE));
    if (parts.mixed) {
        CVY_TRY(check_sizes(&parts));
        CVY_TRY(check_layers(plan->model));
    }
    *parts_out = parts;
    return CVY_OK;
}

void cvy_verify_parts_order(const cvy_verify_parts *parts, int64_t *order)
{
    int64_t place = 0;
    for (int part = 0; part < parts->micro_batches; part++) {
        for (int64_t rank = 0; rank < parts->ranks; rank++) {
            cvy_interval share = find_share(parts, part, rank);
            for (int64_t sample = share.begin; sample < share.end; sample++) {
                order[place++] = sample;
            }
        }
    }
}
