/* From a model and options to the schedules of a training: formats first, then each schedule, then memory. */
#include "plan/plan.h"

#include "base/checked.h"
#include "base/memory.h"
#include "plan/builder.h"

static void clear_builder(cvy_builder *b)
{
    cvy_free(b->layers);
    cvy_free(b->statistics);
    cvy_free(b->parameter);
    cvy_free(b->parameter_gradient);
    cvy_free(b->gradient_sum);
    cvy_free(b->moment[0]);
    cvy_free(b->moment[1]);
    cvy_free(b->average);
    cvy_free(b->contribution);
    cvy_free(b->variant);
    cvy_free(b->bucket_next);
    cvy_free(b->updated);
    cvy_free(b->shard);
    cvy_free(b->shard_of);
    cvy_free(b->shard_offset);
}

/* One number for each parameter, -1 throughout. */
static int *make_indices(size_t count)
{
    int *index = cvy_calloc(count + 1, sizeof *index);
    for (size_t i = 0; index && i < count; i++) {
        index[i] = -1;
    }
    return index;
}

/*
 * Room for what a training has, which spares copies of arrays that grow: for each layer and micro-batch up to 4 ops and
 * 6 buffers (over the zoo 2.5 to 3.7 and 3.1 to 5.4). Of very many micro-batches the arrays grow as they have to.
 */
static cvy_status reserve_schedule(const cvy_builder *b)
{
    enum { MOST_PARTS = 1 << 16 };
    cvy_schedule *s = b->schedule;
    int64_t layers = b->end_layer - b->first_layer;
    int parts = (int)cvy_min_i64(layers * s->micro_batches + 1, MOST_PARTS), choices = 0;
    CVY_TRY(cvy_array_reserve(&s->choice, 4 * parts, &choices, sizeof *s->choice));
    CVY_TRY(cvy_array_reserve(&s->op, 4 * parts, &s->op_capacity, sizeof *s->op));
    return cvy_array_reserve(&s->buffer, 6 * parts, &s->buffer_capacity, sizeof *s->buffer);
}

/*
 * Every step of every micro-batch is described, in a plan as in the run that it is for, where a step has 20 kB of
 * kernel, too. This many layers make a million steps.
 */
static cvy_status check_length(const cvy_builder *b)
{
    enum { MOST_LAYERS = 1 << 18 };
    int64_t layers = b->end_layer - b->first_layer, most = MOST_LAYERS / cvy_max_i64(layers, 1);
    CVY_REQUIRE(b->schedule->micro_batches <= cvy_max_i64(most, 1), CVY_ERR_INFEASIBLE,
                "%d micro-batches of %lld layers are more steps than a run can hold, expected at most %lld of them",
                b->schedule->micro_batches, (long long)layers, (long long)most);
    return CVY_OK;
}

static cvy_status start_builder(cvy_builder *b)
{
    size_t layers = (size_t)b->model->layers;
    size_t parameters = (size_t)b->model->parameters;
    size_t states = b->stages > 1 ? (size_t)b->schedule->micro_batches : 1;
    b->layer = b->layers = cvy_calloc(layers * states, sizeof *b->layers);
    b->statistics = make_indices(2 * layers * (size_t)b->schedule->micro_batches);
    b->parameter = make_indices(parameters);
    b->parameter_gradient = make_indices(parameters);
    b->gradient_sum = make_indices(parameters);
    b->moment[0] = make_indices(parameters);
    b->moment[1] = make_indices(parameters);
    b->average = make_indices(parameters);
    b->bucket_next = make_indices(parameters);
    b->updated = make_indices(parameters);
    b->shard_of = make_indices(parameters);
    b->shard_offset = cvy_calloc(parameters + 1, sizeof *b->shard_offset);
    b->waiting = b->last_waiting = -1;
    for (int i = 0; i < 1 << CVY_AXES; i++) {
        b->bucket[i].buffer = -1;
    }
    bool whole = b->layer && b->statistics && b->parameter && b->parameter_gradient && b->gradient_sum &&
                 b->moment[0] && b->moment[1] && b->average && b->bucket_next && b->updated && b->shard_of &&
                 b->shard_offset;
    return whole ? CVY_OK : CVY_ERR_MEMORY;
}

static int count_persistent(const cvy_schedule *s)
{
    int count = 0;
    while (count < s->buffers && s->buffer[count].persistent) {
        count++;
    }
    return count;
}

static cvy_status build_steps(cvy_builder *b)
{
    CVY_TRY(cvy_build_persistent(b));
    b->plan->persistent_buffers = count_persistent(b->schedule);
    CVY_TRY(cvy_build_micro_batches(b));
    return b->training ? cvy_build_update(b) : CVY_OK;
}

static int64_t count_sample_ranks(const cvy_plan *plan)
{
    const cvy_distribution *d = plan->options.parallel.distribution;
    return d ? d->strategy.mesh.size[CVY_AXIS_SAMPLE] : 1;
}

static cvy_interval find_samples(const cvy_plan *plan, int64_t batch)
{
    cvy_seat seat;
    cvy_seat_take(plan->options.parallel.distribution, plan->options.parallel.rank, &seat);
    cvy_intervals share = cvy_intervals_share(batch, count_sample_ranks(plan), seat.coordinate[CVY_AXIS_SAMPLE]);
    return share.count ? share.at[0] : (cvy_interval){batch, batch};
}

int64_t cvy_plan_count_samples(const cvy_plan *plan, int64_t batch)
{
    cvy_interval samples = find_samples(plan, batch);
    return samples.end - samples.begin;
}

/* As many micro-batches on every rank, as the one with the fewest samples has to give. */
static int count_micro_batches(const cvy_plan *plan, int64_t batch)
{
    int64_t least = cvy_max_i64(batch / count_sample_ranks(plan), 1);
    const cvy_distribution *d = plan->options.parallel.distribution;
    int64_t asked = plan->options.micro_batches == 0 && d ? d->strategy.micro_batches : plan->options.micro_batches;
    return (int)cvy_min_i64(cvy_max_i64(asked, 1), least);
}

static void find_stage(cvy_builder *b)
{
    const cvy_distribution *d = b->seat.distribution;
    b->stages = (int)b->seat.size[CVY_AXIS_STAGE];
    b->first_layer = d ? d->stages[b->seat.coordinate[CVY_AXIS_STAGE]] : 0;
    b->end_layer = d ? d->stages[b->seat.coordinate[CVY_AXIS_STAGE] + 1] : b->model->layers;
}

static cvy_status build_schedule(cvy_plan *plan, cvy_schedule_kind kind, int64_t batch)
{
    cvy_schedule *s = &plan->schedule[kind];
    *s = (cvy_schedule){.batch = cvy_max_i64(cvy_plan_count_samples(plan, batch), 1),
                        .samples = find_samples(plan, batch),
                        .training = kind != CVY_SCHEDULE_EVALUATE,
                        .loss_buffer = -1, .label_buffer = -1, .input_buffer = -1, .output_buffer = -1};
    s->micro_batches = count_micro_batches(plan, batch);
    cvy_builder b = {.plan = plan, .model = plan->model, .formats = plan->formats, .schedule = s,
                     .training = s->training};
    cvy_seat_take(plan->options.parallel.distribution, plan->options.parallel.rank, &b.seat);
    b.seat.batch = batch;
    find_stage(&b);
    b.seat.samples = (cvy_interval){s->samples.begin, s->samples.begin + s->batch};
    CVY_TRY(check_length(&b));
    cvy_status status = start_builder(&b);
    CVY_TRY_GOTO(status, done, status);
    CVY_TRY_GOTO(status, done, reserve_schedule(&b));
    CVY_TRY_GOTO(status, done, build_steps(&b));
    CVY_TRY_GOTO(status, done, cvy_schedule_place_in_place(s));
    CVY_TRY_GOTO(status, done, cvy_schedule_place(s));
    CVY_TRY_GOTO(status, done, cvy_schedule_derive_dependencies(s));
    plan->persistent_bytes = cvy_max_i64(plan->persistent_bytes, s->memory.persistent_bytes);
    plan->transient_bytes = cvy_max_i64(plan->transient_bytes, s->memory.transient_bytes);
done:
    clear_builder(&b);
    return status;
}

/* Reorders of activations and their gradients in a training iteration; weights and views do not count. */
static int count_format_changes(const cvy_schedule *s)
{
    int changes = 0;
    for (int i = 0; i < s->steps; i++) {
        const cvy_step *step = &s->step[i];
        changes += step->op >= 0 && s->op[step->op].kind == CVY_OP_REORDER &&
                   s->buffer[s->use[step->first_use].buffer].role == CVY_BUFFER_ACTIVATIONS;
    }
    return changes;
}

static cvy_status check_parallel(const cvy_model *model, const cvy_plan_options *options)
{
    const cvy_distribution *d = options->parallel.distribution;
    int64_t rank = options->parallel.rank, ranks = d ? d->strategy.mesh.ranks : 1;
    CVY_REQUIRE(rank >= 0 && rank < ranks, CVY_ERR_ARG, "rank %lld of %lld", (long long)rank, (long long)ranks);
    CVY_REQUIRE(!d || (d->model == model && d->options.batch == options->batch), CVY_ERR_ARG,
                "a distribution of another model, or of a batch of %lld, expected %lld",
                (long long)(d ? d->options.batch : 0), (long long)options->batch);
    return CVY_OK;
}

static cvy_status check_options(const cvy_plan_options *options)
{
    CVY_REQUIRE(options->batch >= 1, CVY_ERR_ARG, "batch must be at least 1, got %lld", (long long)options->batch);
    CVY_REQUIRE(options->tail_batch >= 0 && options->tail_batch < options->batch, CVY_ERR_ARG,
                "the last batch of an epoch has %lld samples, expected 0 to %lld", (long long)options->tail_batch,
                (long long)options->batch - 1);
    CVY_REQUIRE(options->micro_batches >= 0 && options->micro_batches <= options->batch, CVY_ERR_ARG,
                "a batch of %lld cannot go in %d micro-batches", (long long)options->batch, options->micro_batches);
    CVY_REQUIRE(options->dtype == CVY_F32 || options->dtype == CVY_F64, CVY_ERR_ARG,
                "plans compute in f32 or f64, got %s", cvy_dtype_name(options->dtype));
    CVY_REQUIRE(options->average >= 0.0 && options->average < 1.0, CVY_ERR_ARG,
                "averages decay by 0 to below 1, got %g", options->average);
    CVY_REQUIRE(options->block == 8 || options->block == 16, CVY_ERR_ARG, "channels in a block: 8 or 16, got %d",
                options->block);
    return CVY_OK;
}

/* A batch of every layer's output must have a size that can be computed with, before anybody is asked about it. */
static cvy_status check_sizes(const cvy_model *model, int64_t batch)
{
    for (int i = 0; i < model->layers; i++) {
        cvy_shape shape = model->layer[i].output;
        shape.extent[0] = batch;
        if (cvy_shape_check(&shape, model->layer[i].name) != CVY_OK) {
            return cvy_fail(CVY_ERR_INFEASIBLE, "layer %s", cvy_error_message());
        }
    }
    return CVY_OK;
}

cvy_status cvy_plan_create(const cvy_model *model, const cvy_plan_options *options, cvy_plan **plan_out)
{
    CVY_TRY(check_options(options));
    CVY_TRY(check_parallel(model, options));
    CVY_TRY(check_sizes(model, options->batch));
    cvy_status status = CVY_ERR_MEMORY;
    cvy_plan *plan = cvy_calloc(1, sizeof *plan);
    if (!plan) {
        goto done;
    }
    plan->model = model;
    plan->options = *options;
    plan->formats = cvy_calloc((size_t)model->layers, sizeof *plan->formats);
    if (!plan->formats) {
        goto done;
    }
    CVY_TRY_GOTO(status, done, cvy_layout_decide(model, options, plan->formats));
    plan->options.layouts = NULL; /* borrowed for the call */
    plan->options.winograd = NULL;
    plan->options.formats = NULL;
    if (options->training) {
        CVY_TRY_GOTO(status, done, build_schedule(plan, CVY_SCHEDULE_TRAIN, options->batch));
        plan->format_changes = count_format_changes(&plan->schedule[CVY_SCHEDULE_TRAIN]);
    }
    if (options->training && options->tail_batch > 0 && !options->train_only) {
        CVY_TRY_GOTO(status, done, build_schedule(plan, CVY_SCHEDULE_TRAIN_TAIL, options->tail_batch));
    }
    if (!options->training || !options->train_only) {
        CVY_TRY_GOTO(status, done, build_schedule(plan, CVY_SCHEDULE_EVALUATE, options->batch));
    }
    *plan_out = plan;
    plan = NULL;
done:
    cvy_plan_destroy(&plan);
    return status;
}

cvy_status cvy_plan_describe_label(const cvy_model *model, cvy_shape *label_out, bool *classes_out)
{
    const cvy_layer *loss = &model->layer[model->layers - 1];
    cvy_tensor label, x = {.shape = model->layer[loss->input[0]].output, .dtype = CVY_F32};
    cvy_op op = {0};
    loss->kind->make_op(loss, &x.shape, CVY_PASS_FORWARD, &op);
    CVY_TRY(cvy_op_describe(&op, &x, 0, CVY_ROLE_LABEL, &label));
    *label_out = label.shape;
    *classes_out = cvy_op_classifies(op.kind);
    return CVY_OK;
}

void cvy_plan_destroy(cvy_plan **plan)
{
    if (plan && *plan) {
        for (int i = 0; i < CVY_SCHEDULE_COUNT; i++) {
            cvy_schedule_clear(&(*plan)->schedule[i]);
        }
        cvy_free((*plan)->formats);
        cvy_free(*plan);
        *plan = NULL;
    }
}

void cvy_plan_memory(const cvy_plan *plan, int64_t by_role_out[CVY_BUFFER_ROLE_COUNT])
{
    const cvy_schedule *largest = &plan->schedule[CVY_SCHEDULE_EVALUATE];
    for (int i = 0; i < CVY_SCHEDULE_COUNT; i++) {
        if (plan->schedule[i].memory.transient_bytes > largest->memory.transient_bytes) {
            largest = &plan->schedule[i];
        }
    }
    int64_t rest = plan->persistent_bytes + plan->transient_bytes;
    for (int i = 0; i < CVY_BUFFER_ROLE_COUNT; i++) {
        by_role_out[i] = largest->memory.by_role[i];
        rest -= by_role_out[i];
    }
    by_role_out[CVY_BUFFER_WORKSPACE] += rest; /* gaps of the placement, so that the parts sum up to the whole */
}
