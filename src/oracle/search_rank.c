/* What the estimates say together: an order, a pick, and the front of those that nothing beats in every respect. */
#include <math.h>
#include <stdlib.h>

#include "oracle/search_internal.h"

static int compare_reals(double a, double b) { return (a > b) - (a < b); }

static int rank_group(const cvy_candidate *c) { return c->fits ? 0 : c->estimate.feasible ? 1 : 2; }

/* What remains equal is put in order by the strategy, so that the same search gives the same list. */
static int compare_strategies(const cvy_candidate *a, const cvy_candidate *b)
{
    const cvy_strategy *x = &a->estimate.strategy, *y = &b->estimate.strategy;
    for (int axis = 0; axis < CVY_AXES; axis++) {
        if (x->mesh.size[axis] != y->mesh.size[axis]) {
            return x->mesh.size[axis] < y->mesh.size[axis] ? -1 : 1;
        }
    }
    int order = compare_reals((double)x->micro_batches, (double)y->micro_batches);
    order = order ? order : (int)a->estimate.recompute - (int)b->estimate.recompute;
    order = order ? order : (int)x->channel_cut - (int)y->channel_cut;
    order = order ? order : (int)x->pipeline - (int)y->pipeline;
    return order ? order : (a->choices != NULL) - (b->choices != NULL);
}

static int compare(const cvy_candidate *x, const cvy_candidate *y, cvy_objective objective)
{
    int order = rank_group(x) - rank_group(y);
    if (order == 0 && x->estimate.feasible) {
        double time[2] = {x->estimate.iteration_s, y->estimate.iteration_s};
        double bytes[2] = {(double)x->estimate.total_bytes, (double)y->estimate.total_bytes};
        order = compare_reals(cvy_objective_value(objective, time[0], bytes[0]),
                              cvy_objective_value(objective, time[1], bytes[1]));
        order = order ? order : compare_reals(time[0], time[1]);
        order = order ? order : compare_reals(bytes[0], bytes[1]);
    }
    return order ? order : compare_strategies(x, y);
}

static int compare_by_seconds(const void *a, const void *b) { return compare(a, b, CVY_OBJECTIVE_TIME); }

static int compare_by_bytes(const void *a, const void *b) { return compare(a, b, CVY_OBJECTIVE_MEMORY); }

static bool is_data(const cvy_candidate *c)
{
    return c->estimate.strategy.mesh.size[CVY_AXIS_SAMPLE] == c->estimate.strategy.mesh.ranks;
}

/* Cost is seconds times a price of so many devices, the same for all: two respects are left. */
static bool is_beaten(const cvy_search *search, const cvy_candidate *c)
{
    for (int i = 0; i < search->count; i++) {
        const cvy_estimate *a = &search->candidate[i].estimate, *b = &c->estimate;
        bool no_worse = a->iteration_s <= b->iteration_s && a->total_bytes <= b->total_bytes;
        bool better = a->iteration_s < b->iteration_s || a->total_bytes < b->total_bytes;
        if (search->candidate[i].fits && no_worse && better) {
            return true;
        }
    }
    return false;
}

/* The best; but data parallelism, which is simpler, where the best is faster by less than the error of the two. */
static int find_pick(const cvy_search *search, cvy_objective objective)
{
    if (search->count == 0 || !search->candidate[0].fits) {
        return -1;
    }
    if (search->data < 0 || !search->candidate[search->data].fits || objective == CVY_OBJECTIVE_MEMORY) {
        return 0;
    }
    const cvy_estimate *best = &search->candidate[0].estimate, *data = &search->candidate[search->data].estimate;
    double error = fmax(best->error_relative, data->error_relative);
    return best->iteration_s >= data->iteration_s * (1.0 - error) ? search->data : 0;
}

void cvy_search_rank(cvy_search *search, const cvy_search_options *options)
{
    bool bytes = options->objective == CVY_OBJECTIVE_MEMORY;
    if (search->count > 1) {
        qsort(search->candidate, (size_t)search->count, sizeof *search->candidate,
              bytes ? compare_by_bytes : compare_by_seconds);
    }
    search->data = -1;
    for (int i = search->count - 1; i >= 0; i--) {
        cvy_candidate *c = &search->candidate[i];
        c->front = c->fits && !is_beaten(search, c);
        if (is_data(c) && c->estimate.feasible) {
            search->data = i; /* the first one in the order stays */
        }
    }
    search->pick = find_pick(search, options->objective);
}
