/*
 * One grid of p1 groups of p2 ranks covers all but the pipeline: samples over groups, channels or space inside one.
 * With p1 = 1 or p2 = 1 the formulas of the hybrids become those of the pure strategies, term by term.
 *
 * B is the batch, d the bytes of an element, a1 b1 (inner) and a2 b2 (outer) the seconds of a message and of a byte;
 * |x| |y| |w| are elements of a layer. [TR] gives an epoch, D/B iterations; these are of one.
 */
#include "oracle/closed_form.h"

#include <math.h>
#include <string.h>

typedef enum cut { CUT_NONE, CUT_CHANNELS, CUT_SPACE } cut;

typedef struct grid {
    int groups, group_ranks; /* p1, p2 */
    cut inside;              /* what the ranks of a group divide */
} grid;

static bool is_cut(const grid *g, const cvy_closed_layer *layer)
{
    return (g->inside == CUT_CHANNELS && layer->cut_channels) || (g->inside == CUT_SPACE && layer->cut_space);
}

/* Over how many ranks the layer's work is divided inside a group, and its weights: space leaves those whole. */
static double work_shares(const grid *g, const cvy_closed_layer *layer)
{
    return is_cut(g, layer) ? g->group_ranks : 1.0;
}

static double weight_shares(const grid *g, const cvy_closed_layer *layer)
{
    return g->inside == CUT_CHANNELS ? work_shares(g, layer) : 1.0;
}

/*
 * (B/p1) (sum over cut layers of (FW + BW) / p2 + sum over the others of (FW + BW)) + sum of WU, / p2 where channels
 * are cut. [TR] eq. 5, 8, 15, 20; layers that stay whole as in 4.2's variant and the authors' programs.
 */
static void add_compute(const cvy_closed_case *what, const grid *g, cvy_closed_form *form)
{
    double samples = what->batch / g->groups;
    for (int i = 0; i < what->layers; i++) {
        const cvy_closed_layer *layer = &what->layer[i];
        form->phase_s[CVY_PHASE_FORWARD] += samples * layer->forward_s / work_shares(g, layer);
        form->phase_s[CVY_PHASE_BACKWARD] += samples * layer->backward_s / work_shares(g, layer);
        form->phase_s[CVY_PHASE_UPDATE] += layer->update_s / weight_shares(g, layer);
    }
}

/* 2 d sum((B/p1) (|x| + |y|) / (p2 where space is cut) + |w| / (p2 where channels are)). [TR] eq. 7, 10, 18, 22. */
static void add_memory(const cvy_closed_case *what, const grid *g, cvy_closed_form *form)
{
    double samples = what->batch / g->groups, items = 0.0;
    for (int i = 0; i < what->layers; i++) {
        const cvy_closed_layer *layer = &what->layer[i];
        double shares = g->inside == CUT_SPACE ? work_shares(g, layer) : 1.0;
        items += samples * (layer->x_items + layer->y_items) / shares + layer->w_items / weight_shares(g, layer);
    }
    form->memory_bytes = 2.0 * what->item_bytes * items;
}

/*
 * 3 (p2-1) sum(a1 + (B/p) |y| d b1) over cut layers but the last one: all-gather of y and all-reduce of dx, or the
 * other way round; 2 in place of 3 with reduce-scatter. [TR] eq. 16, 21
 */
static void add_layerwise(const cvy_closed_case *what, const grid *g, cvy_closed_form *form)
{
    double share = what->batch / g->groups / g->group_ranks * what->item_bytes, seconds = 0.0;
    for (int i = 0; i + 1 < what->layers; i++) {
        if (is_cut(g, &what->layer[i])) {
            seconds += cvy_line_estimate_s(what->inner, share * what->layer[i].y_items);
        }
    }
    form->phase_s[CVY_PHASE_REDISTRIBUTE] += what->layerwise_rounds * (g->group_ranks - 1) * seconds;
}

/* Sum of 4 (a + (B/p1) halo d b): x forward, dy as large backward, each to both sides. [TR] eq. 9 */
static void add_halos(const cvy_closed_case *what, const grid *g, cvy_closed_form *form)
{
    double scale = what->batch / g->groups * what->item_bytes;
    for (int i = 0; i < what->layers && g->group_ranks > 1; i++) {
        const cvy_closed_layer *layer = &what->layer[i];
        if (is_cut(g, layer) && layer->halo_items > 0.0) {
            form->phase_s[CVY_PHASE_HALO] += 4.0 * cvy_line_estimate_s(what->halo, scale * layer->halo_items);
        }
    }
}

/*
 * 2 (p2-1) (a + (B/p1) |y_s| / p2 d b), y_s of the last divided layer: all-gather forward, all-to-all backward. [TR]
 * V.A and the authors' programs; none where no whole layer follows.
 */
static void add_gather(const cvy_closed_case *what, const grid *g, cvy_closed_form *form)
{
    int last = what->layers - 1;
    while (last >= 0 && !is_cut(g, &what->layer[last])) {
        last--;
    }
    if (last >= 0 && last + 1 < what->layers) {
        double share = what->batch / g->groups / g->group_ranks * what->item_bytes * what->layer[last].y_items;
        form->phase_s[CVY_PHASE_REDISTRIBUTE] +=
            2.0 * (g->group_ranks - 1) * cvy_line_estimate_s(what->gather, share);
    }
}

/* 2 (p-1) (a + m/p b): a ring. [TR] III */
static double ring_s(cvy_line line, int ranks, double bytes)
{
    return 2.0 * (ranks - 1) * cvy_line_estimate_s(line, bytes / ranks);
}

/*
 * Between the p1 ranks that hold the same weights, a ring: [TR] eq. 6, 21. Where space is cut all p2 of a group hold
 * them too, and a ring in each group comes before that of leaders: eq. 9, and the authors' programs for data+spatial.
 */
static void add_gradient_exchange(const cvy_closed_case *what, const grid *g, cvy_closed_form *form)
{
    double items = 0.0;
    for (int i = 0; i < what->layers; i++) {
        double shares = what->whole_gradients ? 1.0 : weight_shares(g, &what->layer[i]);
        items += what->layer[i].w_items / shares;
    }
    double bytes = items * what->item_bytes;
    double seconds = ring_s(what->outer, g->groups, bytes);
    if (g->inside == CUT_SPACE) {
        seconds += ring_s(what->inner, g->group_ranks, bytes);
    }
    form->phase_s[CVY_PHASE_GRADIENT_EXCHANGE] += seconds;
}

static void estimate_grid(const cvy_closed_case *what, grid g, cvy_closed_form *form)
{
    add_compute(what, &g, form);
    add_memory(what, &g, form);
    add_gradient_exchange(what, &g, form);
    if (g.inside == CUT_CHANNELS) {
        add_layerwise(what, &g, form);
    } else if (g.inside == CUT_SPACE) {
        add_halos(what, &g, form);
        add_gather(what, &g, form);
    }
}

/* ---- the strategies; bounds on ranks are [TR] table III ---- */

static double least_filters(const cvy_closed_layer *layer) { return layer->filters; }
static double least_channels(const cvy_closed_layer *layer) { return layer->channels; }
static double least_positions(const cvy_closed_layer *layer) { return (double)layer->positions; }

/* The least count over the layers that are divided; 1 where none is. */
static double find_least(const cvy_closed_case *what, cut inside, double (*count)(const cvy_closed_layer *layer))
{
    grid g = {.inside = inside};
    double least = INFINITY;
    for (int i = 0; i < what->layers; i++) {
        if (is_cut(&g, &what->layer[i])) {
            least = fmin(least, count(&what->layer[i]));
        }
    }
    return isinf(least) ? 1.0 : least;
}

/* [TR] eq. 5-7: p <= B */
static void estimate_data(const cvy_closed_case *what, cvy_closed_form *form)
{
    estimate_grid(what, (grid){what->ranks, 1, CUT_NONE}, form);
    form->most_ranks = what->batch;
}

/* [TR] eq. 8-10: p <= min(positions) */
static void estimate_spatial(const cvy_closed_case *what, cvy_closed_form *form)
{
    estimate_grid(what, (grid){1, what->ranks, CUT_SPACE}, form);
    form->most_ranks = find_least(what, CUT_SPACE, least_positions);
}

/* [TR] eq. 15, 16, 18: p <= min(f) */
static void estimate_filter(const cvy_closed_case *what, cvy_closed_form *form)
{
    estimate_grid(what, (grid){1, what->ranks, CUT_CHANNELS}, form);
    form->most_ranks = find_least(what, CUT_CHANNELS, least_filters);
}

/* [TR] eq. 17-19, the seconds of filter: p <= min(c), where the first layer stays whole */
static void estimate_channel(const cvy_closed_case *what, cvy_closed_form *form)
{
    estimate_filter(what, form);
    form->most_ranks = find_least(what, CUT_CHANNELS, least_channels);
}

/* [TR] eq. 20-22: p <= B min(f) */
static void estimate_data_filter(const cvy_closed_case *what, cvy_closed_form *form)
{
    estimate_grid(what, (grid){what->ranks / what->group_ranks, what->group_ranks, CUT_CHANNELS}, form);
    form->most_ranks = what->batch * find_least(what, CUT_CHANNELS, least_filters);
}

/* Not in [TR]; as the authors' programs count it: p1 <= B, p2 <= min(positions) */
static void estimate_data_spatial(const cvy_closed_case *what, cvy_closed_form *form)
{
    estimate_grid(what, (grid){what->ranks / what->group_ranks, what->group_ranks, CUT_SPACE}, form);
    form->most_ranks = what->batch * find_least(what, CUT_SPACE, least_positions);
}

/* Sums over the layers of a stage. */
typedef struct stage_sums {
    double forward_s, backward_s; /* of a sample */
    double update_s;
    double xy_items, w_items, last_y_items;
} stage_sums;

static stage_sums sum_stage(const cvy_closed_case *what, int stage)
{
    stage_sums sums = {0};
    for (int i = 0; i < what->layers; i++) {
        const cvy_closed_layer *layer = &what->layer[i];
        if (layer->stage == stage) {
            sums.forward_s += layer->forward_s;
            sums.backward_s += layer->backward_s;
            sums.update_s += layer->update_s;
            sums.xy_items += layer->x_items + layer->y_items;
            sums.w_items += layer->w_items;
            sums.last_y_items = layer->y_items;
        }
    }
    return sums;
}

/*
 * S micro-batches in p stages, forward and again backward:
 *   B (p+S-1)/S (max FW + max BW) + max WU: [TR] eq. 12 and table III, with one update an iteration; (p-1)/S is bubble
 *   2 (p+S-2) max over stages but the last of (a + (B/S) |y| d b): eq. 13, y of the stage's last layer
 *   2 d max(sum(B (|x| + |y|) + |w|)): table III; all micro-batches are held. p <= layers
 */
static void estimate_pipeline(const cvy_closed_case *what, cvy_closed_form *form)
{
    double forward_s = 0.0, backward_s = 0.0, update_s = 0.0, send_s = 0.0, items = 0.0;
    for (int stage = 0; stage < what->ranks; stage++) {
        stage_sums sums = sum_stage(what, stage);
        forward_s = fmax(forward_s, sums.forward_s);
        backward_s = fmax(backward_s, sums.backward_s);
        update_s = fmax(update_s, sums.update_s);
        items = fmax(items, what->batch * sums.xy_items + sums.w_items);
        if (stage + 1 < what->ranks) {
            double bytes = what->batch / what->micro_batches * sums.last_y_items * what->item_bytes;
            send_s = fmax(send_s, cvy_line_estimate_s(what->inner, bytes));
        }
    }
    form->phase_s[CVY_PHASE_FORWARD] = what->batch * forward_s;
    form->phase_s[CVY_PHASE_BACKWARD] = what->batch * backward_s;
    form->phase_s[CVY_PHASE_UPDATE] = update_s;
    form->phase_s[CVY_PHASE_REDISTRIBUTE] = 2.0 * (what->ranks + what->micro_batches - 2) * send_s;
    form->bubble_s = what->batch * (forward_s + backward_s) * (what->ranks - 1) / what->micro_batches;
    form->memory_bytes = 2.0 * what->item_bytes * items;
    form->most_ranks = what->layers;
}

static const cvy_closed_strategy strategies[] = {
    {.name = "data", .estimate = estimate_data},
    {.name = "spatial", .estimate = estimate_spatial},
    {.name = "filter", .estimate = estimate_filter},
    {.name = "channel", .estimate = estimate_channel},
    {.name = "pipeline", .staged = true, .estimate = estimate_pipeline},
    {.name = "data+filter", .grouped = true, .estimate = estimate_data_filter},
    {.name = "data+spatial", .grouped = true, .estimate = estimate_data_spatial},
};

const cvy_closed_strategy *cvy_closed_form_find(const char *name)
{
    for (size_t i = 0; i < sizeof strategies / sizeof strategies[0]; i++) {
        if (strcmp(strategies[i].name, name) == 0) {
            return &strategies[i];
        }
    }
    return NULL;
}

/* Stages rise by one at most, from 0 to ranks - 1. */
static cvy_status check_stages(const cvy_closed_case *what)
{
    int stage = 0;
    for (int i = 0; i < what->layers; i++) {
        int next = what->layer[i].stage;
        CVY_REQUIRE(next == stage || (i > 0 && next == stage + 1), CVY_ERR_ARG,
                    "pipeline: layer %d is in stage %d, behind one in stage %d", i, next, stage);
        stage = next;
    }
    CVY_REQUIRE(stage + 1 == what->ranks, CVY_ERR_ARG, "pipeline: found %d stages, expected %d, one a rank", stage + 1,
                what->ranks);
    CVY_REQUIRE(what->micro_batches >= 1, CVY_ERR_ARG, "pipeline: micro-batches must be at least 1, got %d",
                what->micro_batches);
    return CVY_OK;
}

cvy_status cvy_closed_form_estimate(const cvy_closed_strategy *strategy, const cvy_closed_case *what,
                                    cvy_closed_form *form_out)
{
    CVY_REQUIRE(what->layers >= 1, CVY_ERR_ARG, "layers must be at least 1, got %d", what->layers);
    CVY_REQUIRE(what->ranks >= 1, CVY_ERR_ARG, "ranks must be at least 1, got %d", what->ranks);
    CVY_REQUIRE(what->batch >= 1.0, CVY_ERR_ARG, "the batch must be at least 1, got %g", what->batch);
    if (strategy->grouped) {
        CVY_REQUIRE(what->group_ranks >= 1 && what->ranks % what->group_ranks == 0, CVY_ERR_ARG,
                    "%s: groups of %d do not divide %d ranks", strategy->name, what->group_ranks, what->ranks);
    }
    if (strategy->staged) {
        CVY_TRY(check_stages(what));
    }
    cvy_closed_form form = {.bubble_s = 0.0};
    strategy->estimate(what, &form);
    *form_out = form;
    return CVY_OK;
}

double cvy_closed_form_compute_s(const cvy_closed_form *form)
{
    return form->phase_s[CVY_PHASE_FORWARD] + form->phase_s[CVY_PHASE_BACKWARD] + form->phase_s[CVY_PHASE_UPDATE] +
           form->bubble_s;
}

double cvy_closed_form_communication_s(const cvy_closed_form *form)
{
    return form->phase_s[CVY_PHASE_HALO] + form->phase_s[CVY_PHASE_REDISTRIBUTE] +
           form->phase_s[CVY_PHASE_GRADIENT_EXCHANGE];
}
