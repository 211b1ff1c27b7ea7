/*
 * Dynamic programming: the best that s stages can make of the first n layers is, over all last stages [i, n), the least
 * of max(best of s - 1 stages over i layers, seconds of [i, n)). Layers only add to a last stage that grows downwards,
 * so it stops growing once its layers alone are no better than what was found: about layers / stages steps each, where
 * layers are alike. Of equal cuts the last one found shortest stays.
 */
#include "plan/stages.h"

#include <math.h>

#include "base/memory.h"

static double get_cut(const cvy_chain *chain, int layer)
{
    return chain->cut_s && layer > 0 && layer < chain->layers ? chain->cut_s[layer] : 0;
}

double cvy_stages_seconds(const cvy_chain *chain, int begin, int end)
{
    double seconds = get_cut(chain, begin) + get_cut(chain, end);
    for (int layer = end - 1; layer >= begin; layer--) {
        seconds += chain->layer_s[layer];
    }
    return seconds;
}

/* Two rows of bests, over 0 to all layers, and for each stage and count of layers where the stage begins. */
typedef struct table {
    double *before, *best;
    int *begin;
} table;

/* The best last stage that ends in front of layer @p end, behind at least @p stage others. */
static void find_begin(const cvy_chain *chain, const table *t, int stage, int end)
{
    double best = INFINITY, layers_s = 0;
    int best_begin = -1;
    for (int begin = end - 1; begin >= stage; begin--) {
        layers_s += chain->layer_s[begin];
        if (layers_s >= best) {
            break;
        }
        double slowest = fmax(t->before[begin], layers_s + get_cut(chain, begin) + get_cut(chain, end));
        if (slowest < best) {
            best = slowest;
            best_begin = begin;
        }
    }
    t->best[end] = best;
    t->begin[(size_t)stage * (size_t)(chain->layers + 1) + (size_t)end] = best_begin;
}

static void fill_table(const cvy_chain *chain, int stages, table *t)
{
    t->best[0] = 0;
    for (int end = 1; end <= chain->layers; end++) {
        t->best[end] = INFINITY; /* no stages hold no layers */
    }
    for (int stage = 0; stage < stages; stage++) {
        double *row = t->before;
        t->before = t->best;
        t->best = row;
        for (int end = 0; end <= stage; end++) {
            t->best[end] = INFINITY;
        }
        for (int end = stage + 1; end <= chain->layers; end++) {
            find_begin(chain, t, stage, end);
        }
    }
}

cvy_status cvy_stages_balance(const cvy_chain *chain, int stages, int *first_out, double *slowest_out)
{
    CVY_REQUIRE(stages <= chain->layers, CVY_ERR_INFEASIBLE, "%d stages need as many layers, there are %d", stages,
                chain->layers);
    size_t columns = (size_t)chain->layers + 1;
    cvy_status status = CVY_OK;
    table t = {cvy_calloc(columns, sizeof(double)), cvy_calloc(columns, sizeof(double)),
               cvy_calloc((size_t)stages * columns, sizeof(int))};
    if (!t.before || !t.best || !t.begin) {
        status = CVY_ERR_MEMORY;
        goto done;
    }
    fill_table(chain, stages, &t);
    double slowest = t.best[chain->layers];
    CVY_REQUIRE_GOTO(status, done, slowest < INFINITY, CVY_ERR_INFEASIBLE,
                     "the %d layers cannot be cut into %d stages: there are too few places to cut", chain->layers,
                     stages);
    first_out[stages] = chain->layers;
    for (int stage = stages - 1; stage >= 0; stage--) {
        first_out[stage] = t.begin[(size_t)stage * columns + (size_t)first_out[stage + 1]];
    }
    *slowest_out = slowest;
done:
    cvy_free(t.before);
    cvy_free(t.best);
    cvy_free(t.begin);
    return status;
}
