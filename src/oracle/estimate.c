/*
 * From a strategy to what it costs: divide the model, plan the ranks that may be the slowest, price their steps, lay
 * them out in time. Along the axes of space the first rank may have a row more, and the second has neighbours at both
 * sides: the slower of the two counts. Stages are planned for one micro-batch, and then simulated together.
 */
#include "oracle/estimate.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "oracle/estimate_internal.h"
#include "plan/stages.h"

/* Samples of the serial plans by which layers and stages are weighed. */
enum { FEW_SAMPLES = 4, MANY_SAMPLES = 8 };

const cvy_model *cvy_oracle_get_model(const cvy_oracle *oracle) { return oracle->model; }
const cvy_machine *cvy_oracle_get_machine(const cvy_oracle *oracle) { return oracle->machine; }
const cvy_oracle_options *cvy_oracle_get_options(const cvy_oracle *oracle) { return &oracle->options; }

const char *cvy_time_part_name(int part)
{
    return part == CVY_TIME_BUBBLE ? "bubble" : part == CVY_TIME_WAIT ? "wait" : cvy_phase_name((cvy_phase)part);
}

const char *cvy_memory_part_name(int part)
{
    return part == CVY_MEMORY_CHECKPOINT ? "checkpoint"
           : part == CVY_MEMORY_RUNTIME  ? "runtime"
                                         : cvy_buffer_role_name((cvy_buffer_role)part);
}

/* ---- the oracle ---- */

static cvy_status plan_serial(const cvy_oracle *o, int64_t batch, cvy_plan **plan_out)
{
    cvy_plan_options options = {.batch = batch,
                                .dtype = CVY_F32,
                                .training = true,
                                .train_only = true,
                                .unfused = o->machine->execution.fuse == CVY_FUSING_NONE,
                                .optimizer = o->options.optimizer,
                                .layout = CVY_LAYOUT_PLAIN,
                                .block = cvy_device_block(&o->machine->device)};
    return cvy_plan_create(o->model, &options, plan_out);
}

static double count_flop(const cvy_schedule *s)
{
    double flop = 0.0;
    for (int i = 0; i < s->steps; i++) {
        flop += s->step[i].op >= 0 ? cvy_op_flop(&s->op[s->step[i].op]) : 0.0;
    }
    return flop;
}

/* Flop of an iteration are a line over samples; seconds of layers are weighed at the larger of two batches. */
static cvy_status weigh_layers(cvy_oracle *o)
{
    cvy_plan *few = NULL, *many = NULL;
    cvy_status status = plan_serial(o, FEW_SAMPLES, &few);
    CVY_TRY_GOTO(status, done, status);
    CVY_TRY_GOTO(status, done, plan_serial(o, MANY_SAMPLES, &many));
    const cvy_schedule *s = &many->schedule[CVY_SCHEDULE_TRAIN];
    double least = count_flop(&few->schedule[CVY_SCHEDULE_TRAIN]), most = count_flop(s);
    o->sample_flop = (most - least) / (MANY_SAMPLES - FEW_SAMPLES);
    o->fixed_flop = least - FEW_SAMPLES * o->sample_flop;
    for (int i = 0; i < s->steps; i++) {
        const cvy_step *step = &s->step[i];
        if (step->op >= 0 && step->layer >= 0 && step->phase != CVY_PHASE_UPDATE) {
            o->layer_s[step->layer] += cvy_compute_estimate_op(o->compute, &s->op[step->op], 1.0).seconds /
                                       MANY_SAMPLES;
        }
    }
done:
    cvy_plan_destroy(&few);
    cvy_plan_destroy(&many);
    return status;
}

/* Layers of the same device weigh the same. */
static void take_weights(const cvy_oracle *like, cvy_oracle *o)
{
    memcpy(o->layer_s, like->layer_s, (size_t)o->model->layers * sizeof *o->layer_s);
    o->sample_flop = like->sample_flop;
    o->fixed_flop = like->fixed_flop;
}

static cvy_status prepare(const cvy_oracle *like, cvy_oracle *o)
{
    CVY_TRY(cvy_compute_create(o->machine, o->options.precision, &o->compute));
    CVY_TRY(cvy_simulator_create(&o->simulator));
    o->layer_s = cvy_calloc((size_t)o->model->layers, sizeof *o->layer_s);
    if (!o->layer_s) {
        return CVY_ERR_MEMORY;
    }
    if (like && memcmp(&like->machine->device, &o->machine->device, sizeof o->machine->device) == 0) {
        take_weights(like, o);
        return CVY_OK;
    }
    return weigh_layers(o);
}

cvy_status cvy_oracle_create(const cvy_model *model, const cvy_machine *machine, const cvy_oracle_options *options,
                             cvy_oracle **oracle_out)
{
    return cvy_oracle_create_like(NULL, model, machine, options, oracle_out);
}

cvy_status cvy_oracle_create_like(const cvy_oracle *like, const cvy_model *model, const cvy_machine *machine,
                                  const cvy_oracle_options *options, cvy_oracle **oracle_out)
{
    CVY_REQUIRE(options->batch >= 1, CVY_ERR_INPUT, "the batch is %" PRId64 ", expected at least 1", options->batch);
    cvy_oracle *o = cvy_calloc(1, sizeof *o);
    if (!o) {
        return CVY_ERR_MEMORY;
    }
    o->model = model;
    o->machine = machine;
    o->options = *options;
    cvy_status status = prepare(like, o);
    if (status != CVY_OK) {
        cvy_oracle_destroy(&o);
        return status;
    }
    *oracle_out = o;
    return CVY_OK;
}

void cvy_oracle_destroy(cvy_oracle **oracle)
{
    if (oracle && *oracle) {
        cvy_compute_destroy(&(*oracle)->compute);
        cvy_simulator_destroy(&(*oracle)->simulator);
        cvy_free((*oracle)->layer_s);
        cvy_free((*oracle)->sim_step);
        cvy_free(*oracle);
        *oracle = NULL;
    }
}

/* ---- one strategy ---- */

/* Stages of equal estimated seconds, cut where one tensor passes. */
static cvy_status balance_stages(const cvy_oracle *o, int stages, int *first_out)
{
    int layers = o->model->layers;
    double slowest;
    cvy_status status = CVY_ERR_MEMORY;
    double *cut_s = cvy_calloc((size_t)layers, sizeof *cut_s);
    bool *narrow = cvy_calloc((size_t)layers, sizeof *narrow);
    if (!cut_s || !narrow) {
        goto done;
    }
    CVY_TRY_GOTO(status, done, cvy_model_find_narrow(o->model, narrow));
    for (int i = 1; i < layers; i++) {
        cut_s[i] = narrow[i - 1] && i > 1 ? 0.0 : INFINITY;
    }
    cvy_chain chain = {.layers = layers, .layer_s = o->layer_s, .cut_s = cut_s};
    status = cvy_stages_balance(&chain, stages, first_out, &slowest);
done:
    cvy_free(narrow);
    cvy_free(cut_s);
    return status;
}

/* Micro-batches where nobody said how many: four a stage keep the bubble under a fifth. */
static int64_t choose_micro_batches(const cvy_strategy *strategy, int64_t batch)
{
    int64_t stages = strategy->mesh.size[CVY_AXIS_STAGE];
    int64_t samples = cvy_max_i64(batch / strategy->mesh.size[CVY_AXIS_SAMPLE], 1);
    if (strategy->micro_batches > 0 || stages == 1) {
        return cvy_max_i64(strategy->micro_batches, 1);
    }
    return cvy_min_i64(4 * stages, samples);
}

static cvy_status divide(cvy_pricing *pricing, cvy_estimate *estimate)
{
    const cvy_oracle *o = pricing->oracle;
    cvy_strategy strategy = pricing->question->strategy;
    int stages = (int)strategy.mesh.size[CVY_AXIS_STAGE];
    int *balanced = NULL;
    estimate->strategy.micro_batches = choose_micro_batches(&strategy, o->options.batch);
    strategy.micro_batches = estimate->strategy.micro_batches;
    cvy_distribution_options options = {.batch = o->options.batch,
                                        .whole_channels = o->machine->execution.whole_channels,
                                        .whole_dense = o->machine->execution.whole_dense,
                                        .choices = pricing->question->choices,
                                        .stages = pricing->question->stages};
    pricing->in_flight_parts = 1;
    if (stages > 1) {
        int64_t samples = o->options.batch / strategy.mesh.size[CVY_AXIS_SAMPLE];
        CVY_REQUIRE(samples >= 1, CVY_ERR_INFEASIBLE,
                    "sample=%" PRId64 " needs a batch of at least %" PRId64 ", got %" PRId64,
                    strategy.mesh.size[CVY_AXIS_SAMPLE], strategy.mesh.size[CVY_AXIS_SAMPLE], o->options.batch);
        CVY_REQUIRE(samples >= strategy.micro_batches, CVY_ERR_INFEASIBLE,
                    "%" PRId64 " samples a rank cannot go in %" PRId64 " micro-batches", samples,
                    strategy.micro_batches);
        pricing->in_flight_parts = strategy.micro_batches;
        options.batch = (samples + strategy.micro_batches - 1) / strategy.micro_batches *
                        strategy.mesh.size[CVY_AXIS_SAMPLE];
        strategy.micro_batches = 1;
    }
    cvy_status status = CVY_OK;
    if (stages > 1 && !options.stages) {
        balanced = cvy_calloc((size_t)stages + 1, sizeof *balanced);
        status = balanced ? balance_stages(o, stages, balanced) : CVY_ERR_MEMORY;
        CVY_TRY_GOTO(status, done, status);
        options.stages = balanced;
    }
    status = cvy_distribution_create(o->model, &strategy, &options, &pricing->distribution);
done:
    cvy_free(balanced);
    return status;
}

/* The slower of a stage's two candidates: at the border of space, and inside. */
static cvy_status price_stage(cvy_pricing *pricing, int64_t stage, cvy_priced_rank *slowest_out)
{
    const cvy_mesh *mesh = &pricing->distribution->strategy.mesh;
    int64_t place[CVY_AXES] = {[CVY_AXIS_STAGE] = stage};
    bool has_inside = false;
    CVY_TRY(cvy_price_rank(pricing, cvy_mesh_rank(mesh, place), slowest_out));
    for (int axis = CVY_AXIS_DEPTH; axis <= CVY_AXIS_WIDTH; axis++) {
        place[axis] = mesh->size[axis] > 2;
        has_inside |= mesh->size[axis] > 2;
    }
    if (!has_inside) {
        return CVY_OK;
    }
    cvy_priced_rank inside;
    CVY_TRY(cvy_price_rank(pricing, cvy_mesh_rank(mesh, place), &inside));
    if (inside.iteration_s > slowest_out->iteration_s) {
        cvy_priced_rank border = *slowest_out;
        *slowest_out = inside;
        inside = border;
    }
    cvy_priced_rank_clear(&inside);
    return CVY_OK;
}

static cvy_communication multiply(cvy_communication one, double times)
{
    return (cvy_communication){one.seconds * times, one.latency_s * times, one.bytes * times};
}

/* Sums over what the rank of a stage does in an iteration. */
static void fill_rank(const cvy_pricing *pricing, const cvy_priced_rank *rank, cvy_estimate *estimate)
{
    double times = (double)pricing->in_flight_parts;
    double sent_bytes = 0.0, latency_s = 0.0;
    for (int phase = 0; phase < CVY_PHASE_COUNT; phase++) {
        double often = phase == CVY_PHASE_GRADIENT_EXCHANGE ? 1.0 : times;
        cvy_communication sum = multiply(rank->communication[phase], often);
        bool most = sum.seconds > estimate->communication[phase].seconds;
        estimate->communication[phase] = most ? sum : estimate->communication[phase];
        sent_bytes += sum.bytes;
        latency_s += sum.latency_s;
    }
    cvy_communication transfer = multiply(rank->transfer, times);
    cvy_communication *layerwise = &estimate->communication[CVY_PHASE_REDISTRIBUTE];
    if (transfer.seconds > estimate->transfer.seconds) {
        estimate->transfer = transfer;
        layerwise->seconds += transfer.seconds;
        layerwise->latency_s += transfer.latency_s;
        layerwise->bytes += transfer.bytes;
    }
    estimate->hidden_communication_s = fmax(estimate->hidden_communication_s, rank->hidden_s * times);
    estimate->latency_s = fmax(estimate->latency_s, latency_s + transfer.latency_s);
    estimate->sent_bytes = fmax(estimate->sent_bytes, sent_bytes + transfer.bytes);
    estimate->flop += rank->flop * times / (double)estimate->strategy.mesh.size[CVY_AXIS_STAGE];
    estimate->steps = rank->plan->schedule[CVY_SCHEDULE_TRAIN].steps;
    double error = rank->iteration_s > 0.0 ? rank->error_s / rank->iteration_s : 0.0;
    estimate->error_relative = fmax(estimate->error_relative, error);
}

static void fill_memory(const cvy_pricing *pricing, const cvy_priced_rank *stages, int count, cvy_estimate *estimate)
{
    cvy_estimate largest = *estimate;
    for (int s = 0; s < count; s++) {
        cvy_estimate own = *estimate;
        const cvy_strategy *strategy = &pricing->question->strategy;
        int64_t in_flight = count > 1 ? cvy_pipeline_in_flight(strategy, pricing->in_flight_parts, s) : 1;
        cvy_price_memory(pricing, &stages[s], in_flight, &own);
        largest = own.total_bytes > largest.total_bytes || s == 0 ? own : largest;
    }
    *estimate = largest;
    if (estimate->capacity_bytes > 0 && estimate->total_bytes > estimate->capacity_bytes) {
        estimate->over_memory = true;
        snprintf(estimate->why_not, sizeof estimate->why_not, "needs %.3g GB of memory, a device has %.3g GB",
                 (double)estimate->total_bytes * 1e-9, (double)estimate->capacity_bytes * 1e-9);
    }
}

static void fill_whole(const cvy_pricing *pricing, cvy_estimate *estimate)
{
    const cvy_oracle *o = pricing->oracle;
    double batch = (double)o->options.batch;
    estimate->feasible = true;
    estimate->images_per_s = estimate->iteration_s > 0.0 ? batch / estimate->iteration_s : 0.0;
    estimate->serial_flop = (o->sample_flop * batch + o->fixed_flop) / (double)estimate->strategy.mesh.ranks;
    estimate->exposed_communication_s = estimate->part_s[CVY_PHASE_HALO] + estimate->part_s[CVY_PHASE_REDISTRIBUTE] +
                                        estimate->part_s[CVY_PHASE_GRADIENT_EXCHANGE];
}

/* Price all stages into @p rank, one each. */
static cvy_status price_stages(cvy_pricing *pricing, cvy_priced_rank *rank, int stages, cvy_estimate *estimate)
{
    for (int s = 0; s < stages; s++) {
        CVY_TRY(price_stage(pricing, s, &rank[s]));
        cvy_price_framework(pricing, &rank[s], estimate);
        fill_rank(pricing, &rank[s], estimate);
    }
    if (stages > 1) {
        CVY_TRY(cvy_price_pipeline(pricing, rank, stages, estimate));
    } else {
        estimate->iteration_s = rank->iteration_s;
        for (int part = 0; part < CVY_TIME_PARTS; part++) {
            estimate->part_s[part] = rank->part_s[part];
        }
    }
    fill_memory(pricing, rank, stages, estimate);
    fill_whole(pricing, estimate);
    return CVY_OK;
}

/* What cannot be scheduled is an answer. */
static cvy_status answer_infeasible(cvy_status status, const cvy_estimate_question *question, cvy_estimate *estimate)
{
    if (status == CVY_ERR_INFEASIBLE) {
        *estimate = (cvy_estimate){.strategy = question->strategy, .recompute = question->recompute};
        snprintf(estimate->why_not, sizeof estimate->why_not, "%s", cvy_error_message());
        return CVY_OK;
    }
    return status;
}

static void clear_ranks(cvy_priced_rank *rank, int count)
{
    for (int i = 0; rank && i < count; i++) {
        cvy_priced_rank_clear(&rank[i]);
    }
    cvy_free(rank);
}

/* Price a strategy; what was looked at goes to @p trace, if there is one. */
static cvy_status price(cvy_oracle *o, const cvy_estimate_question *question, cvy_estimate *estimate_out,
                        cvy_trace *trace)
{
    cvy_estimate estimate = {.strategy = question->strategy, .recompute = question->recompute};
    cvy_pricing pricing = {.oracle = o, .question = question, .family = cvy_strategy_find_name(&question->strategy)};
    int stages = (int)question->strategy.mesh.size[CVY_AXIS_STAGE];
    bool recomputes = cvy_strategy_is_among(o->machine->execution.recompute, pricing.family);
    cvy_priced_rank *rank = NULL;
    pricing.recompute = recomputes ? CVY_RECOMPUTE_ALL : question->recompute;
    cvy_status status = cvy_network_setup(o->machine, &question->strategy.mesh, &pricing.network);
    CVY_TRY_GOTO(status, done, status);
    CVY_TRY_GOTO(status, done, divide(&pricing, &estimate));
    status = CVY_ERR_MEMORY;
    rank = cvy_calloc((size_t)stages, sizeof *rank);
    if (!rank) {
        goto done;
    }
    CVY_TRY_GOTO(status, done, price_stages(&pricing, rank, stages, &estimate));
    if (trace) {
        CVY_TRY_GOTO(status, done, cvy_trace_take(trace, &pricing, rank, stages));
    }
done:
    clear_ranks(rank, stages);
    cvy_distribution_destroy(&pricing.distribution);
    status = answer_infeasible(status, question, &estimate);
    if (status == CVY_OK) {
        *estimate_out = estimate;
    }
    return status;
}

cvy_status cvy_oracle_estimate(cvy_oracle *oracle, const cvy_estimate_question *question, cvy_estimate *estimate_out)
{
    return price(oracle, question, estimate_out, NULL);
}

cvy_status cvy_oracle_trace(cvy_oracle *oracle, const cvy_estimate_question *question, cvy_trace **trace_out)
{
    cvy_trace *trace = cvy_calloc(1, sizeof *trace);
    if (!trace) {
        return CVY_ERR_MEMORY;
    }
    cvy_status status = price(oracle, question, &trace->estimate, trace);
    if (status != CVY_OK) {
        cvy_trace_destroy(&trace);
        return status;
    }
    *trace_out = trace;
    return CVY_OK;
}
