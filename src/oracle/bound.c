/*
 * Bounds in three steps: the model once, a block once, a size of micro-batch once in a block; then a few sums.
 *
 * Of a pipeline of s stages and m micro-batches that take T seconds through all of them, and X between them: under
 * GPipe all forward parts come first, so T, X and m - 1 parts of the slowest stage pass. Under 1F1B a stage ends no
 * sooner than its own m parts and the way in and out through those before it. If the first takes L / m, the next
 * (L - L / m) / m, … all of them are equally late, and L (1 - (1 - 1/m)^s) is T: no balance does better than L. A stage
 * also waits, with so many forward parts begun as there are stages behind it, for the first to come back, and at the
 * end for the last. By these and by the last stage alone equal stages are the best balance where m >= 2 s (the least
 * over all balances was looked for as the value of a game, for up to 16 stages and 64 micro-batches), and in each of
 * them all of X passes once: (m + s - 1) T / s + X.
 */
#include "oracle/bound.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "oracle/bound_internal.h"
#include "oracle/estimate_internal.h"

/* A stage may begin behind a place where one tensor passes. */
static cvy_status number_regions(const cvy_model *model, int *region_out)
{
    bool *narrow = cvy_calloc((size_t)model->layers, sizeof *narrow);
    if (!narrow) {
        return CVY_ERR_MEMORY;
    }
    cvy_status status = cvy_model_find_narrow(model, narrow);
    for (int i = 1; i < model->layers; i++) {
        region_out[i] = region_out[i - 1] + (i > 1 && narrow[i - 1]);
    }
    cvy_free(narrow);
    return status;
}

cvy_status cvy_bound_create(const cvy_model *model, const cvy_machine *machine, const cvy_oracle_options *options,
                            cvy_bound **bound_out)
{
    cvy_status status = CVY_ERR_MEMORY;
    cvy_bound *bound = cvy_calloc(1, sizeof *bound);
    if (!bound) {
        goto done;
    }
    bound->model = model;
    bound->machine = machine;
    bound->options = *options;
    bound->share = cvy_calloc((size_t)model->layers, sizeof *bound->share);
    bound->edge = cvy_calloc((size_t)model->layers, sizeof *bound->edge);
    if (!bound->share || !bound->edge) {
        goto done;
    }
    CVY_TRY_GOTO(status, done, cvy_compute_create(machine, options->precision, &bound->compute));
    CVY_TRY_GOTO(status, done, cvy_bound_table_fill(model, machine, &options->optimizer, &bound->table));
    bound->piece_kernel = cvy_calloc((size_t)bound->table.pieces, sizeof *bound->piece_kernel);
    bound->region_s = cvy_calloc((size_t)model->layers, sizeof *bound->region_s);
    bound->region = cvy_calloc((size_t)model->layers, sizeof *bound->region);
    bound->border = cvy_calloc((size_t)model->layers, sizeof *bound->border);
    if (!bound->piece_kernel || !bound->region_s || !bound->region || !bound->border) {
        status = CVY_ERR_MEMORY;
        goto done;
    }
    CVY_TRY_GOTO(status, done, number_regions(model, bound->region));
    bound->item_bytes = cvy_compute_element_bytes(bound->compute);
    bound->weight_bytes = fmax(bound->item_bytes, 4.0);
    *bound_out = bound;
    bound = NULL;
done:
    cvy_bound_destroy(&bound);
    return status;
}

void cvy_bound_destroy(cvy_bound **bound)
{
    if (bound && *bound) {
        cvy_bound_table_clear(&(*bound)->table);
        cvy_distribution_destroy(&(*bound)->distribution);
        cvy_compute_destroy(&(*bound)->compute);
        cvy_free((*bound)->share);
        cvy_free((*bound)->edge);
        cvy_free((*bound)->kernel);
        cvy_free((*bound)->sending);
        cvy_free((*bound)->piece_kernel);
        cvy_free((*bound)->link);
        cvy_free((*bound)->region);
        cvy_free((*bound)->region_s);
        cvy_free((*bound)->border);
        cvy_free(*bound);
        *bound = NULL;
    }
}

/* Ops with a batch in front are priced at each size of a micro-batch, updates once. */
static void price_updates(cvy_bound *bound)
{
    bound->update_s = 0.0;
    for (int i = 0; i < bound->kernels; i++) {
        cvy_bound_kernel *kernel = &bound->kernel[i];
        if (kernel->times[CVY_BOUND_UPDATE] > 0.0) {
            kernel->seconds = cvy_compute_bound_op(bound->compute, &kernel->op, 1.0);
            bound->update_s += kernel->times[CVY_BOUND_UPDATE] * kernel->seconds;
        }
    }
}

cvy_status cvy_bound_enter(cvy_bound *bound, const cvy_block *block, const cvy_layer_choice *choices)
{
    const cvy_execution *execution = &bound->machine->execution;
    cvy_strategy strategy = {.channel_cut = block->cut};
    cvy_distribution_options options = {.batch = bound->options.batch, .whole_channels = execution->whole_channels,
                                        .whole_dense = execution->whole_dense, .choices = choices};
    cvy_distribution_destroy(&bound->distribution);
    bound->block = *block;
    bound->sizes = 0;
    bound->network.mesh.ranks = 0;
    CVY_TRY(cvy_mesh_setup(block->size, NULL, &strategy.mesh));
    CVY_TRY(cvy_distribution_create(bound->model, &strategy, &options, &bound->distribution));
    CVY_TRY(cvy_network_setup(bound->machine, &strategy.mesh, &bound->block_network));
    CVY_TRY(cvy_bound_cut(bound));
    CVY_TRY(cvy_bound_find_sendings(bound));
    price_updates(bound);
    return CVY_OK;
}

static void set_samples(cvy_bound_kernel *kernel, int64_t samples)
{
    for (int i = 0; i < kernel->op.operands; i++) {
        cvy_bound_like like = (cvy_bound_like)kernel->of->like[i];
        if (like == CVY_LIKE_SAMPLES || like == CVY_LIKE_OUTPUT || like >= CVY_LIKE_INPUT) {
            kernel->op.operand[i].tensor.shape.extent[0] = samples;
        }
    }
}

/* Of the stretches between places where a stage may end, the one that takes longest. */
static double find_slowest(cvy_bound *bound)
{
    double slowest_s = 0.0;
    memset(bound->region_s, 0, (size_t)bound->model->layers * sizeof *bound->region_s);
    for (int i = 0; i < bound->table.pieces; i++) {
        const cvy_bound_piece *piece = &bound->table.piece[i];
        if (piece->set <= CVY_BOUND_BACKWARD) {
            double *region_s = &bound->region_s[bound->region[piece->layer]];
            *region_s += bound->kernel[bound->piece_kernel[i]].seconds;
            slowest_s = fmax(slowest_s, *region_s);
        }
    }
    return slowest_s;
}

void cvy_bound_price(cvy_bound *bound, int64_t samples, cvy_bound_seconds *seconds)
{
    double sent_s[2];
    *seconds = (cvy_bound_seconds){.samples = samples};
    for (int i = 0; i < bound->kernels; i++) {
        cvy_bound_kernel *kernel = &bound->kernel[i];
        if (kernel->times[CVY_BOUND_UPDATE] > 0.0) {
            continue;
        }
        set_samples(kernel, samples);
        kernel->seconds = cvy_compute_bound_op(bound->compute, &kernel->op, kernel->slices);
        for (int set = 0; set < CVY_BOUND_UPDATE; set++) {
            seconds->set_s[set] += kernel->times[set] * kernel->seconds;
        }
    }
    cvy_bound_price_sendings(bound, samples, sent_s);
    sent_s[0] += cvy_bound_count_pieces(bound) * bound->machine->execution.slice_host_s;
    seconds->set_s[CVY_BOUND_FORWARD] += sent_s[0];
    seconds->set_s[CVY_BOUND_BACKWARD] += sent_s[1];
    seconds->sent_s = sent_s[0] + sent_s[1];
    seconds->slowest_s = find_slowest(bound);
}

/* Seconds at a size; the last place is used again and again where there are more sizes than places. */
static const cvy_bound_seconds *find_seconds(cvy_bound *bound, int64_t samples)
{
    for (int i = 0; i < bound->sizes; i++) {
        if (bound->seconds[i].samples == samples) {
            return &bound->seconds[i];
        }
    }
    bound->sizes += bound->sizes < CVY_BOUND_SIZES;
    cvy_bound_seconds *seconds = &bound->seconds[bound->sizes - 1];
    cvy_bound_price(bound, samples, seconds);
    return seconds;
}

/* Seconds of all micro-batches of a rank in all stages, one after the other, and of the last one's two halves. */
typedef struct work {
    double all_s, forward_s, backward_s;
    double sent_s;    /* of all */
    double slowest_s; /* of all, what no stage can divide */
} work;

static void add_micro_batches(cvy_bound *bound, int64_t samples, int64_t count, cvy_recompute recompute, work *sum)
{
    static const cvy_bound_set again[] = {[CVY_RECOMPUTE_CHEAP] = CVY_BOUND_CHEAP, [CVY_RECOMPUTE_ALL] = CVY_BOUND_ALL};
    const cvy_bound_seconds *s = find_seconds(bound, samples);
    sum->forward_s = s->set_s[CVY_BOUND_FORWARD];
    sum->backward_s = s->set_s[CVY_BOUND_BACKWARD];
    sum->backward_s += recompute == CVY_RECOMPUTE_NONE ? 0.0 : s->set_s[again[recompute]];
    sum->all_s += (double)count * (sum->forward_s + sum->backward_s);
    sum->sent_s += (double)count * s->sent_s;
    sum->slowest_s += (double)count * s->slowest_s;
}

/* Stages take micro-batches of one size, of what all ranks have; without stages the larger ones come first. */
static work add_up(cvy_bound *bound, const cvy_strategy *strategy, cvy_recompute recompute)
{
    int64_t ranks = strategy->mesh.size[CVY_AXIS_SAMPLE], m = strategy->micro_batches;
    bool staged = strategy->mesh.size[CVY_AXIS_STAGE] > 1;
    int64_t samples = (bound->options.batch + (staged ? 0 : ranks - 1)) / ranks;
    int64_t larger = samples % m;
    work sum = {0};
    if (larger > 0) {
        add_micro_batches(bound, samples / m + 1, staged ? m : larger, recompute, &sum);
    }
    if (larger == 0 || !staged) {
        add_micro_batches(bound, samples / m, m - larger, recompute, &sum);
    }
    return sum;
}

/* Ranks that an update is at most shared out over: all that sum gradients, where there are samples on several. */
static double count_shards(const cvy_bound *bound, const int64_t size[CVY_AXES])
{
    int64_t space = size[CVY_AXIS_DEPTH] * size[CVY_AXIS_HEIGHT] * size[CVY_AXIS_WIDTH];
    bool shared = bound->options.shard_optimizer && size[CVY_AXIS_SAMPLE] > 1;
    return shared ? (double)(size[CVY_AXIS_SAMPLE] * space) : 1.0;
}

/* Of a stage: activations of all micro-batches that are under way there. */
static double bound_memory(const cvy_bound *bound, const cvy_strategy *strategy, cvy_recompute recompute)
{
    const int64_t *size = strategy->mesh.size;
    double stages = (double)size[CVY_AXIS_STAGE], m = (double)strategy->micro_batches;
    double samples = (double)(bound->options.batch / size[CVY_AXIS_SAMPLE] / strategy->micro_batches);
    double shards = count_shards(bound, size);
    double fixed = bound->fixed_bytes[recompute] + bound->state_bytes[recompute] / shards;
    double once = bound->sample_bytes[recompute] * samples;
    if (size[CVY_AXIS_STAGE] == 1) {
        return fixed + once;
    }
    double turns = 0.0; /* stage i holds min(m, stages - i): if all were equally full, a share of 1 / that each */
    for (int64_t i = 1; i <= size[CVY_AXIS_STAGE]; i++) {
        turns += 1.0 / (strategy->pipeline == CVY_PIPELINE_GPIPE ? m : fmin(m, (double)i));
    }
    return fmax(once / turns, (fixed + once) / stages);
}

/* Host time, as the estimate has it: exchanges between layers make the device wait for the host. */
static double bound_host(const cvy_bound *bound, double compute_s)
{
    double host_s = bound->machine->execution.layer_host_s * (bound->model->layers - 1);
    bool waits = bound->sendings > 0 && !bound->machine->execution.overlap;
    return waits ? host_s : fmax(host_s - compute_s, 0.0);
}

static double bound_pipeline(cvy_bound *bound, const cvy_strategy *strategy, const work *sum)
{
    double m = (double)strategy->micro_batches, stages = (double)strategy->mesh.size[CVY_AXIS_STAGE];
    double samples = (double)(bound->options.batch / strategy->mesh.size[CVY_AXIS_SAMPLE] / strategy->micro_batches);
    double once_s = sum->all_s / m + bound_host(bound, (sum->all_s - sum->sent_s) / m);
    double slowest_s = fmax(m * once_s / stages, sum->slowest_s);
    double transfers_s = cvy_bound_price_transfers(bound, strategy, samples);
    if (strategy->pipeline == CVY_PIPELINE_GPIPE) {
        return once_s + transfers_s + (m - 1.0) / m * slowest_s;
    }
    double late_s = m >= 2.0 * stages ? once_s * (m + stages - 1.0) / stages + transfers_s
                                      : fmax(once_s / (1.0 - pow(1.0 - 1.0 / m, stages)), once_s + transfers_s);
    return fmax(late_s, slowest_s);
}

/* Ranks that meet wait for the slowest, and groups whose leaders load input start apart, as the estimate has it. */
static double bound_wait(const cvy_bound *bound, const cvy_strategy *strategy, double compute_s, double host_s)
{
    const cvy_execution *execution = &bound->machine->execution;
    double groups = (double)strategy->mesh.size[CVY_AXIS_SAMPLE];
    double wait_s = bound->machine->device.spread * sqrt(2.0 * log((double)strategy->mesh.ranks)) * compute_s;
    if (groups > 1.0 && cvy_strategy_is_among(execution->leader_input, cvy_strategy_find_name(strategy))) {
        wait_s += execution->leader_skew * (compute_s + host_s) * sqrt(log2(groups));
    }
    return wait_s;
}

bool cvy_bound_lay_out(cvy_bound *bound, const cvy_strategy *strategy)
{
    if (bound->network.mesh.ranks &&
        memcmp(bound->network.mesh.size, strategy->mesh.size, sizeof strategy->mesh.size) == 0) {
        return true;
    }
    if (cvy_network_setup(bound->machine, &strategy->mesh, &bound->network) != CVY_OK) {
        bound->network.mesh.ranks = 0;
        return false;
    }
    bound->exchange_s = cvy_bound_price_gradients(bound, strategy);
    return true;
}

cvy_recompute cvy_bound_find_recompute(const cvy_machine *machine, const cvy_strategy *strategy,
                                       cvy_recompute recompute)
{
    bool always = cvy_strategy_is_among(machine->execution.recompute, cvy_strategy_find_name(strategy));
    return always ? CVY_RECOMPUTE_ALL : recompute;
}

cvy_bounded cvy_bound_estimate(cvy_bound *bound, const cvy_strategy *strategy, cvy_recompute recompute)
{
    const int64_t *size = strategy->mesh.size;
    double stages = (double)size[CVY_AXIS_STAGE];
    double shards = count_shards(bound, size);
    double update_s = bound->update_s / shards;
    recompute = cvy_bound_find_recompute(bound->machine, strategy, recompute);
    work sum = add_up(bound, strategy, recompute);
    double compute_s = sum.all_s - sum.sent_s + update_s;
    cvy_bounded bounded = {.memory_bytes = bound_memory(bound, strategy, recompute)};
    if (!cvy_bound_lay_out(bound, strategy)) {
        bounded.iteration_s = HUGE_VAL;
        return bounded;
    }
    if (size[CVY_AXIS_STAGE] > 1) {
        bounded.iteration_s = fmax(bound_pipeline(bound, strategy, &sum),
                                   (sum.all_s + update_s) / stages + bound->exchange_s);
        return bounded;
    }
    double iteration_s = sum.all_s + bound->exchange_s + update_s;
    if (bound->machine->execution.overlap) { /* beside the last backward and updates, but not forward */
        iteration_s = fmax(sum.all_s + update_s, sum.all_s - sum.backward_s + bound->exchange_s);
    }
    double host_s = bound_host(bound, compute_s);
    bounded.iteration_s = iteration_s + host_s + bound_wait(bound, strategy, compute_s, host_s);
    return bounded;
}
