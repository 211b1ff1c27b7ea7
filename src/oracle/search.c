/*
 * The search. Bounds first, of everything. Then estimates: data parallelism; the most promising of each family, so that
 * a table shows every kind once; the others in the order of their bounds, until the next bound is above the best
 * estimate, since no strategy is faster than its bound; the lightest; what a mix of cuts makes of the best. A strategy
 * that turns out not to fit is tried with less memory before it is given up.
 */
#include "oracle/search.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "oracle/mix.h"
#include "oracle/search_internal.h"

/* What a search spends, so that it ends in seconds. */
enum {
    SIMULATIONS = 64, /* estimates, where the caller does not say */
    MIXES = 2,        /* strategies whose cuts are mixed */
    RESCUES = 2,      /* tries with less memory, of one that does not fit */
    HOPELESS = 4      /* one whose bound is beyond so many times the best is not tried with less */
};

const char *const cvy_objective_names[] = {"time", "memory", "cost", NULL};

/* A search under way. */
typedef struct searching {
    cvy_oracle *oracle;
    const cvy_search_options *options;
    cvy_bound *bound;
    cvy_prospects prospects;
    cvy_search *search;
    int capacity;
    double best;   /* of what fits, by the objective; ... */
    double best_s; /* ... and by seconds */
    int64_t spent; /* of estimates: a plan grows with the parts of a batch, but for a pipeline's */
} searching;

static bool is_same(const cvy_candidate *a, const cvy_strategy *strategy, cvy_recompute recompute)
{
    const cvy_strategy *s = &a->estimate.strategy;
    int64_t ours = s->micro_batches > 1 ? s->micro_batches : 1;
    int64_t theirs = strategy->micro_batches > 1 ? strategy->micro_batches : 1;
    return !a->choices && a->estimate.recompute == recompute && ours == theirs && s->pipeline == strategy->pipeline &&
           s->channel_cut == strategy->channel_cut &&
           memcmp(s->mesh.size, strategy->mesh.size, sizeof s->mesh.size) == 0;
}

static bool is_known(const searching *s, const cvy_strategy *strategy, cvy_recompute recompute)
{
    for (int i = 0; i < s->search->count; i++) {
        if (is_same(&s->search->candidate[i], strategy, recompute)) {
            return true;
        }
    }
    return false;
}

/* Append what was estimated. @param[in] choices of a mix; taken over on success */
static cvy_status append(searching *s, const cvy_estimate *estimate, double bound_s, cvy_layer_choice *choices)
{
    CVY_TRY(cvy_array_reserve(&s->search->candidate, s->search->count, &s->capacity, sizeof *s->search->candidate));
    cvy_candidate *candidate = &s->search->candidate[s->search->count++];
    *candidate = (cvy_candidate){.estimate = *estimate, .bound_s = bound_s, .choices = choices};
    candidate->fits = estimate->feasible && (double)estimate->total_bytes <= s->prospects.limit_bytes;
    if (candidate->fits) {
        s->best_s = fmin(s->best_s, estimate->iteration_s);
        s->best = fmin(s->best, cvy_objective_value(s->options->objective, estimate->iteration_s,
                                                    (double)estimate->total_bytes));
    }
    return CVY_OK;
}

/* Estimate a configuration, unless it was before. @param[out] bytes_out that it takes; 0: it was, or cannot be */
static cvy_status simulate(searching *s, const cvy_configuration *c, int64_t *bytes_out)
{
    cvy_estimate estimate;
    *bytes_out = 0;
    if (is_known(s, &c->strategy, c->recompute)) {
        return CVY_OK;
    }
    cvy_estimate_question question = {.strategy = c->strategy, .recompute = c->recompute};
    CVY_TRY(cvy_oracle_estimate(s->oracle, &question, &estimate));
    s->search->simulations++;
    bool parts = c->strategy.mesh.size[CVY_AXIS_STAGE] == 1 && c->strategy.micro_batches > 1;
    s->spent += parts ? c->strategy.micro_batches : 1;
    CVY_TRY(append(s, &estimate, c->bounded.iteration_s, NULL));
    *bytes_out = estimate.total_bytes;
    return CVY_OK;
}

/* The next one of the same mesh that takes less memory: recomputation, then smaller parts of the batch. */
static bool lighten(const searching *s, cvy_configuration *c)
{
    const int64_t *size = c->strategy.mesh.size;
    int64_t samples = cvy_oracle_get_options(s->oracle)->batch / size[CVY_AXIS_SAMPLE];
    if (!s->options->fixed_recompute && c->recompute < CVY_RECOMPUTE_ALL) {
        c->recompute = (cvy_recompute)(c->recompute + 1);
        return true;
    }
    int64_t parts = c->strategy.micro_batches > 1 ? 2 * c->strategy.micro_batches : 2;
    if (parts > samples || (size[CVY_AXIS_STAGE] == 1 && parts > CVY_MOST_ACCUMULATION)) {
        return false;
    }
    c->strategy.micro_batches = parts;
    return true;
}

static cvy_status bound_again(searching *s, cvy_configuration *c)
{
    cvy_block block = {.ranks = 1, .cut = c->strategy.channel_cut};
    for (int axis = 0; axis < CVY_AXES; axis++) {
        block.size[axis] = axis < CVY_AXIS_DEPTH ? 1 : c->strategy.mesh.size[axis];
        block.ranks *= block.size[axis];
    }
    CVY_TRY(cvy_bound_enter(s->bound, &block, NULL));
    c->bounded = cvy_bound_estimate(s->bound, &c->strategy, c->recompute);
    return CVY_OK;
}

/*
 * A configuration, and where it does not fit, lighter ones of it until one does. An estimate says by how much a bound
 * on bytes is short; lighter ones that would not fit if theirs were as short are passed over, and so are those that
 * take many times as long as what fits.
 */
static cvy_status simulate_fitting(searching *s, const cvy_configuration *c)
{
    cvy_configuration lighter = *c;
    int64_t bytes;
    CVY_TRY(simulate(s, c, &bytes));
    if (c->bounded.iteration_s > HOPELESS * s->best_s) {
        return CVY_OK;
    }
    for (int tries = 0; tries < RESCUES && (double)bytes > s->prospects.limit_bytes && lighten(s, &lighter);) {
        double times = (double)bytes / lighter.bounded.memory_bytes;
        double before = lighter.bounded.memory_bytes;
        CVY_TRY(bound_again(s, &lighter));
        if (lighter.bounded.memory_bytes * times <= s->prospects.limit_bytes) {
            CVY_TRY(simulate(s, &lighter, &bytes));
            tries++;
        } else { /* as heavy for its bound as the last one */
            bytes = (int64_t)((double)bytes * lighter.bounded.memory_bytes / before);
        }
    }
    return CVY_OK;
}

static cvy_status simulate_data(searching *s)
{
    int64_t size[CVY_AXES] = {1, 1, 1, 1, 1, 1};
    cvy_configuration data = {.strategy = {.micro_batches = 1}, .feasible = true};
    size[CVY_AXIS_SAMPLE] = s->options->ranks;
    data.recompute = s->options->fixed_recompute ? cvy_oracle_get_options(s->oracle)->recompute : CVY_RECOMPUTE_NONE;
    CVY_TRY(cvy_mesh_setup(size, NULL, &data.strategy.mesh));
    data.recompute = cvy_bound_find_recompute(cvy_oracle_get_machine(s->oracle), &data.strategy, data.recompute);
    if (cvy_oracle_get_options(s->oracle)->batch >= s->options->ranks) {
        CVY_TRY(bound_again(s, &data));
    }
    return simulate_fitting(s, &data);
}

/* Every kind once, the most promising first. */
static cvy_status simulate_families(searching *s)
{
    bool done[CVY_FAMILIES] = {false};
    for (int round = 0; round < CVY_FAMILIES; round++) {
        int next = -1;
        for (int i = 0; i < CVY_FAMILIES; i++) {
            const cvy_configuration *c = &s->prospects.family[i];
            if (c->feasible && !done[i] &&
                (next < 0 || c->bounded.iteration_s < s->prospects.family[next].bounded.iteration_s)) {
                next = i;
            }
        }
        if (next < 0) {
            return CVY_OK;
        }
        done[next] = true;
        CVY_TRY(simulate_fitting(s, &s->prospects.family[next]));
    }
    return CVY_OK;
}

/* In the order of bounds, until no bound is below the best. */
static cvy_status simulate_promising(searching *s)
{
    int most = s->options->simulations > 0 ? s->options->simulations : SIMULATIONS;
    for (int i = 0; i < s->prospects.places && s->spent < most; i++) {
        const cvy_configuration *c = &s->prospects.place[i];
        double value =
            cvy_objective_value(s->options->objective, c->bounded.iteration_s, c->bounded.memory_bytes);
        if (value > s->best) {
            break;
        }
        CVY_TRY(simulate_fitting(s, c));
    }
    int64_t bytes;
    return s->prospects.lightest.feasible ? simulate(s, &s->prospects.lightest, &bytes) : CVY_OK;
}

/* ---- mixes ---- */

/* The best candidate that has a block to cut layers with, and is no mix; each is taken once. */
static int find_mixable(const searching *s, const bool *taken)
{
    int best = -1;
    for (int i = 0; i < s->search->count; i++) {
        const cvy_candidate *c = &s->search->candidate[i];
        const int64_t *size = c->estimate.strategy.mesh.size;
        bool blocked = c->estimate.strategy.mesh.ranks > size[CVY_AXIS_STAGE] * size[CVY_AXIS_SAMPLE];
        if (c->fits && blocked && !c->choices && !taken[i] &&
            (best < 0 || c->estimate.iteration_s < s->search->candidate[best].estimate.iteration_s)) {
            best = i;
        }
    }
    return best;
}

static cvy_status try_mix(searching *s, int index)
{
    const cvy_candidate uniform = s->search->candidate[index];
    cvy_estimate estimate;
    cvy_layer_choice *choices = NULL;
    CVY_TRY(cvy_mix_find(s->bound, &uniform.estimate.strategy, &choices));
    if (!choices) {
        return CVY_OK;
    }
    cvy_estimate_question question = {.strategy = uniform.estimate.strategy, .recompute = uniform.estimate.recompute,
                                      .choices = choices};
    cvy_status status = cvy_oracle_estimate(s->oracle, &question, &estimate);
    s->search->simulations++;
    bool better = status == CVY_OK && estimate.feasible && estimate.iteration_s < uniform.estimate.iteration_s;
    if (better) {
        status = append(s, &estimate, 0.0, choices);
        choices = status == CVY_OK ? NULL : choices;
    }
    cvy_free(choices);
    return status;
}

static cvy_status try_mixes(searching *s)
{
    bool *taken = cvy_calloc((size_t)s->search->count, sizeof *taken);
    if (!taken) {
        return CVY_ERR_MEMORY;
    }
    cvy_status status = CVY_OK;
    for (int i = 0, at; i < MIXES && status == CVY_OK && (at = find_mixable(s, taken)) >= 0; i++) {
        taken[at] = true;
        status = try_mix(s, at);
    }
    cvy_free(taken);
    return status;
}

/* ---- what cannot be ---- */

static bool has_kind(const searching *s, int kind)
{
    for (int i = 0; i < s->search->count; i++) {
        if (cvy_strategy_find_kind(&s->search->candidate[i].estimate.strategy) == kind) {
            return true;
        }
    }
    return false;
}

static void tell_others(const searching *s, int kind)
{
    char *why = s->search->candidate[s->search->count - 1].estimate.why_not;
    size_t length = strlen(why);
    if (s->prospects.impossible_count[kind] > 1) {
        (void)snprintf(why + length, CVY_WHY_TEXT - length, " (and %" PRId64 " more of this kind)",
                       s->prospects.impossible_count[kind] - 1);
    }
}

/* The named strategies, and of every other kind one, with the reason why they cannot be. */
static cvy_status list_impossible(searching *s)
{
    static const char *const names[] = {"spatial", "filter", "channel", "alternating", "pipeline"};
    int64_t space[3], bytes;
    cvy_space_get(&cvy_oracle_get_model(s->oracle)->layer[0].output, space);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        cvy_configuration c = {.recompute = CVY_RECOMPUTE_NONE};
        CVY_TRY(cvy_strategy_parse(names[i], s->options->ranks, space, &c.strategy));
        if (c.strategy.mesh.ranks > 1 && !has_kind(s, cvy_strategy_find_kind(&c.strategy))) {
            CVY_TRY(simulate(s, &c, &bytes));
        }
    }
    for (int kind = 0; kind < CVY_FAMILIES; kind++) {
        s->search->impossible += s->prospects.impossible_count[kind];
        if (s->prospects.impossible_count[kind] > 0 && !has_kind(s, kind)) {
            CVY_TRY(simulate(s, &s->prospects.impossible_one[kind], &bytes));
            tell_others(s, kind);
        }
    }
    return CVY_OK;
}

/* ---- the whole ---- */

static cvy_status run(searching *s)
{
    CVY_TRY(simulate_data(s));
    CVY_TRY(cvy_prospects_fill(s->oracle, s->bound, s->options, &s->prospects));
    CVY_TRY(simulate_families(s));
    CVY_TRY(simulate_promising(s));
    if (s->options->mix) {
        CVY_TRY(try_mixes(s));
    }
    CVY_TRY(list_impossible(s));
    s->search->configurations = s->prospects.configurations;
    s->search->left_out = s->prospects.left_out;
    cvy_search_rank(s->search, s->options);
    return CVY_OK;
}

cvy_status cvy_search_create(cvy_oracle *oracle, const cvy_search_options *options, cvy_search **search_out)
{
    double begin_s = cvy_clock_s();
    const cvy_machine *machine = cvy_oracle_get_machine(oracle);
    CVY_REQUIRE(options->ranks >= 1, CVY_ERR_INPUT, "ranks must be at least 1, got %" PRId64, options->ranks);
    CVY_REQUIRE(options->ranks <= cvy_machine_devices(machine), CVY_ERR_INPUT,
                "%" PRId64 " ranks, machine %s has %" PRId64 " devices", options->ranks, machine->name,
                cvy_machine_devices(machine));
    searching s = {.oracle = oracle, .options = options, .best = INFINITY, .best_s = INFINITY};
    int64_t limit = options->max_memory_bytes > 0 ? options->max_memory_bytes : machine->device.memory_bytes;
    s.prospects.options = options;
    s.prospects.limit_bytes = limit > 0 ? (double)limit : INFINITY;
    cvy_status status = CVY_ERR_MEMORY;
    s.search = cvy_calloc(1, sizeof *s.search);
    if (!s.search) {
        goto done;
    }
    s.search->options = *options;
    CVY_TRY_GOTO(status, done,
                 cvy_bound_create(cvy_oracle_get_model(oracle), machine, cvy_oracle_get_options(oracle), &s.bound));
    CVY_TRY_GOTO(status, done, run(&s));
    s.search->search_s = cvy_clock_s() - begin_s;
    *search_out = s.search;
    s.search = NULL;
done:
    cvy_prospects_clear(&s.prospects);
    cvy_bound_destroy(&s.bound);
    cvy_search_destroy(&s.search);
    return status;
}

void cvy_search_destroy(cvy_search **search)
{
    if (search && *search) {
        for (int i = 0; i < (*search)->count; i++) {
            cvy_free((*search)->candidate[i].choices);
        }
        cvy_free((*search)->candidate);
        cvy_free(*search);
        *search = NULL;
    }
}
