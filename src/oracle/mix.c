/*
 * Units are the stretches between places where one tensor passes; layers without weights belong to the unit before
 * them, so that how a unit leaves its output follows from its own cut. Inside a unit all layers are cut alike, or in
 * turn by filters and by channels. What a unit costs depends on its own cut and on that of the unit before it, from
 * which its input comes: a distribution in which units take two cuts in turn gives that for every second unit at once,
 * so the square of the cuts is enough distributions for all pairs in all units.
 *
 * Space cannot be split again once it is whole, so it is split up to some unit, and in the first one, else the axis
 * would cut nothing. What the change costs is told by one distribution for each place.
 */
#include "oracle/mix.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"

enum { WHOLE, FILTER, CUTS = 5 };

enum { TURNS = 2, STATES = 2 * CUTS, PERIOD = 4 };

/* Of a unit's layers with weights: the first, third, …, and the others. */
static const int cuts[CUTS][TURNS] = {{CVY_CUT_WHOLE, CVY_CUT_WHOLE},
                                      {CVY_CUT_FILTER, CVY_CUT_FILTER},
                                      {CVY_CUT_CHANNEL, CVY_CUT_CHANNEL},
                                      {CVY_CUT_FILTER, CVY_CUT_CHANNEL},
                                      {CVY_CUT_CHANNEL, CVY_CUT_FILTER}};

/* A mix that gains less by the bounds is none. */
static const double least_gain = 1e-6;

typedef struct mixing {
    cvy_bound *bound;
    const cvy_model *model;
    const cvy_strategy *strategy;
    cvy_block block;
    int units, choices_of_cut; /* 1 where no channels are cut */
    bool space;                /* some of it is split */
    int *unit, *turn;          /* of each layer */
    cvy_layer_choice *choice;  /* of each layer, while distributions are tried */
    double *layer_s;
    double *cost;   /* by unit, space, cut before, own cut */
    double *change; /* by unit: to have space whole from there on; what the second one's cost has already */
    double *best;   /* by unit and state */
    int *from;
} mixing;

static double *find_cost(const mixing *m, int unit, int space, int before, int own)
{
    return &m->cost[((unit * 2 + space) * CUTS + before) * CUTS + own];
}

/* A new unit begins at a layer with weights behind a narrow place. */
static cvy_status find_units(mixing *m)
{
    bool *narrow = cvy_calloc((size_t)m->model->layers, sizeof *narrow);
    if (!narrow) {
        return CVY_ERR_MEMORY;
    }
    cvy_status status = cvy_model_find_narrow(m->model, narrow);
    bool weights = false, pending = false; /* the unit has some; a narrow place has come since */
    int turn = 0;
    m->units = 1;
    for (int i = 0; i < m->model->layers; i++) {
        bool own = m->model->layer[i].parameters > 0;
        pending = pending || (i > 1 && narrow[i - 1]);
        bool joins = i > 0 && !narrow[i - 1]; /* a branch goes on beside it */
        if (own && weights && pending && !joins) {
            m->units++;
            weights = pending = false;
            turn = 0;
        }
        m->turn[i] = turn % TURNS;
        turn += cvy_op_has_weights(cvy_bound_get_kind(m->bound, i));
        weights = weights || own;
        m->unit[i] = m->units - 1;
    }
    cvy_free(narrow);
    return status;
}

/* Where no channels are cut, as the strategy says. */
static int get_cut(const mixing *m, int layer, int cut)
{
    return m->choices_of_cut > 1 ? cuts[cut][m->turn[layer]] : -1;
}

/* Seconds of each unit under some choices, or INFINITY where they cannot be. */
static cvy_status estimate_units(mixing *m, const cvy_layer_choice *choices, double *unit_s)
{
    cvy_status status = cvy_bound_enter(m->bound, &m->block, choices);
    for (int i = 0; i < m->units; i++) {
        unit_s[i] = status == CVY_OK ? 0.0 : INFINITY;
    }
    if (status != CVY_OK) {
        return status == CVY_ERR_INFEASIBLE ? CVY_OK : status;
    }
    cvy_bound_estimate_layers(m->bound, m->strategy, m->layer_s);
    for (int i = 0; i < m->model->layers; i++) {
        unit_s[m->unit[i]] += m->layer_s[i];
    }
    return CVY_OK;
}

/* Units take the cuts of a pattern, again and again: what each costs behind the one before it. */
static cvy_status try_pattern(mixing *m, int space, const int pattern[PERIOD], double *unit_s)
{
    for (int layer = 0; layer < m->model->layers; layer++) {
        m->choice[layer].cut = get_cut(m, layer, pattern[m->unit[layer] % PERIOD]);
        m->choice[layer].space = space || (m->space && m->unit[layer] == 0) ? CVY_AXIS_SPACE : 0;
    }
    CVY_TRY(estimate_units(m, m->choice, unit_s));
    for (int unit = 0; unit < m->units; unit++) {
        int before = unit ? pattern[(unit - 1) % PERIOD] : 0; /* in front of the first there is none */
        *find_cost(m, unit, space, before, pattern[unit % PERIOD]) = unit_s[unit];
    }
    return CVY_OK;
}

/* Every pair in turn. An axis that cuts nothing cannot be, so two whole units have two cut ones behind them. */
static cvy_status fill_costs(mixing *m, int space, double *unit_s)
{
    int count = m->choices_of_cut;
    for (int i = 0; i < count * count; i++) {
        const int pair[2] = {i % count, i / count};
        const int pattern[PERIOD] = {pair[0], pair[1], pair[0], pair[1]};
        CVY_TRY(try_pattern(m, space, pattern, unit_s));
    }
    for (int shift = 0; count > 1 && shift < PERIOD; shift++) {
        int pattern[PERIOD];
        for (int i = 0; i < PERIOD; i++) {
            pattern[(i + shift) % PERIOD] = i < 2 ? WHOLE : FILTER;
        }
        CVY_TRY(try_pattern(m, space, pattern, unit_s));
    }
    return CVY_OK;
}

static cvy_status fill_changes(mixing *m, double *unit_s)
{
    int cut = m->choices_of_cut > 1 ? FILTER : 0;
    for (int unit = 2; m->space && unit < m->units; unit++) {
        for (int layer = 0; layer < m->model->layers; layer++) {
            m->choice[layer] = (cvy_layer_choice){get_cut(m, layer, cut), m->unit[layer] < unit ? CVY_AXIS_SPACE : 0};
        }
        CVY_TRY(estimate_units(m, m->choice, unit_s));
        double whole = *find_cost(m, unit, 0, cut, cut);
        m->change[unit] = isfinite(whole) && isfinite(unit_s[unit]) ? fmax(unit_s[unit] - whole, 0.0) : INFINITY;
    }
    return CVY_OK;
}

/* The cheapest way to a state of a unit: 0 to CUTS - 1 with whole space, then the same with split space. */
static void reach(mixing *m, int unit, int space, int own)
{
    int state = space * CUTS + own;
    double *best = &m->best[unit * STATES + state];
    *best = INFINITY;
    for (int before_space = space; before_space <= (m->space ? 1 : 0); before_space++) {
        for (int before = 0; before < m->choices_of_cut; before++) {
            double way = m->best[(unit - 1) * STATES + before_space * CUTS + before] +
                         *find_cost(m, unit, space, before, own) +
                         (before_space > space ? m->change[unit] : 0.0);
            if (way < *best) {
                *best = way;
                m->from[unit * STATES + state] = before_space * CUTS + before;
            }
        }
    }
}

/* States of the last unit back to the first; seconds of all. */
static double go_back(mixing *m)
{
    int state = 0;
    for (int i = 1; i < STATES; i++) {
        const double *last = &m->best[(m->units - 1) * STATES];
        state = last[i] < last[state] ? i : state;
    }
    double best_s = m->best[(m->units - 1) * STATES + state];
    for (int unit = m->units - 1; unit >= 0; unit--) {
        for (int layer = 0; layer < m->model->layers; layer++) {
            if (m->unit[layer] == unit) {
                m->choice[layer].cut = get_cut(m, layer, state % CUTS);
                m->choice[layer].space = state >= CUTS ? CVY_AXIS_SPACE : 0;
            }
        }
        state = m->from[unit * STATES + state];
    }
    return best_s;
}

/* Whether a unit may be in a state; unit @p cut_unit must be cut, if it is one. */
static bool may_be(const mixing *m, int unit, int state, int cut_unit)
{
    int space = state / CUTS, own = state % CUTS;
    bool kept = unit > 0 || m->space == (space == 1); /* space is split in the first */
    return kept && own < m->choices_of_cut && (m->space || !space) && (unit != cut_unit || own != WHOLE);
}

static double choose_with(mixing *m, int cut_unit)
{
    for (int unit = 0; unit < m->units; unit++) {
        for (int state = 0; state < STATES; state++) {
            m->best[unit * STATES + state] = INFINITY;
            if (!may_be(m, unit, state, cut_unit)) {
                continue;
            }
            if (unit == 0) {
                m->best[state] = *find_cost(m, 0, state / CUTS, 0, state % CUTS);
            } else {
                reach(m, unit, state / CUTS, state % CUTS);
            }
        }
    }
    return go_back(m);
}

static bool is_all_whole(const mixing *m)
{
    for (int i = 1; i < m->model->layers; i++) {
        if (m->choice[i].cut != CVY_CUT_WHOLE) {
            return false;
        }
    }
    return true;
}

/* An axis must cut something: where nothing is best, the one unit that costs least. */
static double choose(mixing *m)
{
    double best_s = choose_with(m, -1);
    if (!is_all_whole(m)) {
        return best_s;
    }
    int best = 0;
    best_s = INFINITY;
    for (int unit = 0; unit < m->units; unit++) {
        double with_s = choose_with(m, unit);
        best = with_s < best_s ? unit : best;
        best_s = fmin(best_s, with_s);
    }
    return choose_with(m, best);
}

static cvy_status mix(mixing *m, bool *mixed_out)
{
    CVY_TRY(find_units(m));
    size_t units = (size_t)m->units;
    double *unit_s = cvy_calloc(units, sizeof *unit_s);
    m->cost = cvy_calloc(units * 2 * CUTS * CUTS, sizeof *m->cost);
    m->change = cvy_calloc(units, sizeof *m->change);
    m->best = cvy_calloc(units * STATES, sizeof *m->best);
    m->from = cvy_calloc(units * STATES, sizeof *m->from);
    cvy_status status = CVY_ERR_MEMORY;
    if (!unit_s || !m->cost || !m->change || !m->best || !m->from) {
        goto done;
    }
    CVY_TRY_GOTO(status, done, fill_costs(m, 0, unit_s));
    CVY_TRY_GOTO(status, done, m->space ? fill_costs(m, 1, unit_s) : CVY_OK);
    CVY_TRY_GOTO(status, done, fill_changes(m, unit_s));
    CVY_TRY_GOTO(status, done, estimate_units(m, NULL, unit_s));
    double uniform_s = 0.0;
    for (int i = 0; i < m->units; i++) {
        uniform_s += unit_s[i];
    }
    *mixed_out = choose(m) < uniform_s * (1.0 - least_gain);
done:
    cvy_free(unit_s);
    return status;
}

cvy_status cvy_mix_find(cvy_bound *bound, const cvy_strategy *strategy, cvy_layer_choice **choices_out)
{
    const int64_t *size = strategy->mesh.size;
    const cvy_model *model = cvy_bound_get_model(bound);
    mixing m = {.bound = bound, .model = model, .strategy = strategy, .choices_of_cut = CUTS,
                .block = {.size = {1, 1, size[CVY_AXIS_DEPTH], size[CVY_AXIS_HEIGHT], size[CVY_AXIS_WIDTH],
                                   size[CVY_AXIS_CHANNEL]},
                          .cut = strategy->channel_cut}};
    int64_t space = size[CVY_AXIS_DEPTH] * size[CVY_AXIS_HEIGHT] * size[CVY_AXIS_WIDTH];
    m.block.ranks = space * size[CVY_AXIS_CHANNEL];
    m.space = space > 1;
    m.choices_of_cut = size[CVY_AXIS_CHANNEL] > 1 ? CUTS : 1;
    m.unit = cvy_calloc((size_t)model->layers, sizeof *m.unit);
    m.turn = cvy_calloc((size_t)model->layers, sizeof *m.turn);
    m.choice = cvy_calloc((size_t)model->layers, sizeof *m.choice);
    m.layer_s = cvy_calloc((size_t)model->layers, sizeof *m.layer_s);
    bool mixed = false;
    cvy_status status = m.unit && m.turn && m.choice && m.layer_s ? mix(&m, &mixed) : CVY_ERR_MEMORY;
    *choices_out = NULL;
    if (status == CVY_OK && mixed) {
        *choices_out = m.choice;
        m.choice = NULL;
    }
    cvy_free(m.unit);
    cvy_free(m.turn);
    cvy_free(m.choice);
    cvy_free(m.layer_s);
    cvy_free(m.cost);
    cvy_free(m.change);
    cvy_free(m.best);
    cvy_free(m.from);
    return status;
}
