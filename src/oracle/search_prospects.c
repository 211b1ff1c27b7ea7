/*
 * Prospects: a bound for each mesh, number of micro-batches, order and recomputation. A strategy that only saves bytes
 * (more recomputation, or parts of the batch one after the other) is promising where the one that does not save them
 * cannot fit, and where bytes are what is asked for; else it is counted and dropped.
 */
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "oracle/search_internal.h"

enum { MOST_BLOCKS = 1000 }; /* of several axes: what 2 s leave of 100,000 ranks */

int cvy_strategy_find_kind(const cvy_strategy *strategy)
{
    const int64_t *size = strategy->mesh.size;
    bool space = size[CVY_AXIS_DEPTH] > 1 || size[CVY_AXIS_HEIGHT] > 1 || size[CVY_AXIS_WIDTH] > 1;
    int axes = (size[CVY_AXIS_STAGE] > 1) | (size[CVY_AXIS_SAMPLE] > 1) << 1 | space << 2;
    return 4 * axes + (size[CVY_AXIS_CHANNEL] > 1 ? 1 + (int)strategy->channel_cut : 0);
}

double cvy_objective_value(cvy_objective objective, double iteration_s, double bytes)
{
    return objective == CVY_OBJECTIVE_MEMORY ? bytes : iteration_s; /* ranks are given: cost goes as seconds do */
}

static double get_value(const cvy_prospects *prospects, const cvy_configuration *c)
{
    return cvy_objective_value(prospects->options->objective, c->bounded.iteration_s, c->bounded.memory_bytes);
}

/* Whether a is to be looked at before b. */
static bool is_better(const cvy_prospects *prospects, const cvy_configuration *a, const cvy_configuration *b)
{
    double x = get_value(prospects, a), y = get_value(prospects, b);
    if (x != y) {
        return x < y;
    }
    return prospects->options->objective == CVY_OBJECTIVE_MEMORY ? a->bounded.iteration_s < b->bounded.iteration_s
                                                              : a->bounded.memory_bytes < b->bounded.memory_bytes;
}

/* ---- the heap: a place is no better than those behind it ---- */

static void swap(cvy_configuration *a, cvy_configuration *b)
{
    cvy_configuration other = *a;
    *a = *b;
    *b = other;
}

static void sink(cvy_prospects *prospects, int from, int places)
{
    for (int worst = from;; from = worst) {
        for (int child = 2 * from + 1; child <= 2 * from + 2 && child < places; child++) {
            worst = is_better(prospects, &prospects->place[worst], &prospects->place[child]) ? child : worst;
        }
        if (worst == from) {
            return;
        }
        swap(&prospects->place[from], &prospects->place[worst]);
    }
}

static void keep(cvy_prospects *prospects, const cvy_configuration *c)
{
    if (prospects->places == CVY_PROSPECT_PLACES) {
        if (is_better(prospects, c, &prospects->place[0])) {
            prospects->place[0] = *c;
            sink(prospects, 0, prospects->places);
        }
        return;
    }
    int at = prospects->places++;
    prospects->place[at] = *c;
    for (int parent = (at - 1) / 2; at > 0 && is_better(prospects, &prospects->place[parent], &prospects->place[at]);
         at = parent, parent = (at - 1) / 2) {
        swap(&prospects->place[at], &prospects->place[parent]);
    }
}

/* The worst goes behind all others, again and again: the best comes to lie in front. */
static void sort_places(cvy_prospects *prospects)
{
    for (int last = prospects->places - 1; last > 0; last--) {
        swap(&prospects->place[0], &prospects->place[last]);
        sink(prospects, 0, last);
    }
}

/* ---- all strategies ---- */

static bool may_fit(const cvy_prospects *prospects, const cvy_configuration *c)
{
    return c->bounded.memory_bytes <= prospects->limit_bytes;
}

static void keep_of_family(cvy_prospects *prospects, const cvy_configuration *c)
{
    cvy_configuration *best = &prospects->family[cvy_strategy_find_kind(&c->strategy)];
    bool fits = may_fit(prospects, c), fitted = best->feasible && may_fit(prospects, best);
    bool lighter = c->bounded.memory_bytes < best->bounded.memory_bytes;
    if (!best->feasible || (fits && !fitted) || (fits && is_better(prospects, c, best)) ||
        (!fits && !fitted && lighter)) {
        *best = *c;
    }
}

/* A mesh with its micro-batches and order, in every recomputation. @p saved: fewer bytes than these are not needed. */
static void bound_recomputations(cvy_prospects *prospects, cvy_bound *bound, const cvy_strategy *strategy,
                                 cvy_recompute fixed, bool *saved)
{
    bool bytes_count = prospects->options->objective == CVY_OBJECTIVE_MEMORY;
    bool only = prospects->options->fixed_recompute;
    int first = (int)cvy_bound_find_recompute(prospects->machine, strategy, only ? fixed : CVY_RECOMPUTE_NONE);
    int last = only ? first : CVY_RECOMPUTE_ALL;
    bool enough = *saved;
    for (int recompute = first; recompute <= last; recompute++) {
        cvy_configuration c = {.strategy = *strategy, .recompute = (cvy_recompute)recompute, .feasible = true};
        c.bounded = cvy_bound_estimate(bound, strategy, c.recompute);
        prospects->configurations++;
        if (!prospects->lightest.feasible || c.bounded.memory_bytes < prospects->lightest.bounded.memory_bytes) {
            prospects->lightest = c;
        }
        if (enough && !bytes_count) {
            continue;
        }
        keep_of_family(prospects, &c);
        if (may_fit(prospects, &c)) {
            keep(prospects, &c);
            enough = true;
        }
    }
    *saved = enough;
}

/* Micro-batches cost nothing but in a pipeline, where they are what it is about. */
static void bound_block(cvy_prospects *prospects, cvy_bound *bound, cvy_variants *variants, cvy_recompute fixed)
{
    bool saved = false;
    cvy_variants_begin(variants);
    while (cvy_variants_next(variants)) {
        const cvy_strategy *strategy = &variants->strategy;
        bool staged = strategy->mesh.size[CVY_AXIS_STAGE] > 1;
        saved = saved && !staged && strategy->micro_batches > 1;
        bound_recomputations(prospects, bound, strategy, fixed, &saved);
    }
}

/* A block that cannot cut the model: one of each family stays to be told of. */
static void note_impossible(cvy_prospects *prospects, cvy_variants *variants)
{
    cvy_variants_begin(variants);
    if (!cvy_variants_next(variants)) {
        return;
    }
    int kind = cvy_strategy_find_kind(&variants->strategy);
    if (prospects->impossible_count[kind]++ == 0) {
        prospects->impossible_one[kind] = (cvy_configuration){.strategy = variants->strategy};
    }
}

cvy_status cvy_prospects_fill(cvy_oracle *oracle, cvy_bound *bound, const cvy_search_options *options,
                           cvy_prospects *prospects)
{
    const cvy_oracle_options *fixed = cvy_oracle_get_options(oracle);
    cvy_variants variants = {.ranks = options->ranks, .batch = fixed->batch};
    bool whole = cvy_oracle_get_machine(oracle)->execution.whole_channels;
    cvy_blocks blocks = {0};
    cvy_status status;
    prospects->machine = cvy_oracle_get_machine(oracle);
    prospects->place = cvy_calloc(CVY_PROSPECT_PLACES, sizeof *prospects->place);
    if (!prospects->place) {
        return CVY_ERR_MEMORY;
    }
    CVY_TRY(cvy_model_count_stages(cvy_oracle_get_model(oracle), &variants.max_stages));
    CVY_TRY(cvy_blocks_list(cvy_oracle_get_model(oracle), options->ranks, whole, MOST_BLOCKS, &blocks));
    prospects->left_out = blocks.left_out;
    for (int i = 0; i < blocks.count; i++) {
        variants.block = &blocks.block[i];
        status = cvy_bound_enter(bound, variants.block, NULL);
        if (status == CVY_ERR_INFEASIBLE) {
            note_impossible(prospects, &variants);
            continue;
        }
        CVY_TRY_GOTO(status, done, status);
        bound_block(prospects, bound, &variants, fixed->recompute);
    }
    status = CVY_OK;
    sort_places(prospects);
done:
    cvy_blocks_clear(&blocks);
    return status;
}

void cvy_prospects_clear(cvy_prospects *prospects)
{
    cvy_free(prospects->place);
    *prospects = (cvy_prospects){0};
}
