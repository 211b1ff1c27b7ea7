/*
 * Which strategies are looked at. The search of a study is cheap: data parallelism, and beside it blocks of 2, 4, …
 * ranks along one axis (channels cut by filters or in turn, the longest axis of space, stages), each block taking its
 * share of the samples. All are estimated at the machine's own values; the best few go through all others.
 */
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "oracle/search_internal.h"
#include "oracle/sweep_internal.h"

/*
 * Blocks of more ranks are not looked at; so many are kept, of all and of a kind; one that takes many times as long as
 * the fastest at the machine's own values is given up.
 */
enum { MOST_BLOCK = 64, MOST_KEPT = 4, MOST_OF_A_KIND = 2, HOPELESS = 4 };

static cvy_sweep_choice *add_choice(cvy_sweeping *s, bool given)
{
    cvy_sweep_choice *choice = &s->choice[s->choices++];
    *choice = (cvy_sweep_choice){.given = given};
    return choice;
}

static bool is_there(const cvy_sweeping *s, const cvy_strategy *strategy)
{
    for (int i = 0; i < s->choices; i++) {
        const cvy_strategy *other = &s->choice[i].strategy;
        if (!s->choice[i].why_not[0] && other->channel_cut == strategy->channel_cut &&
            memcmp(other->mesh.size, strategy->mesh.size, sizeof other->mesh.size) == 0) {
            return true;
        }
    }
    return false;
}

static cvy_status add_block(cvy_sweeping *s, int64_t ranks, cvy_axis axis, int64_t block, cvy_channel_cut cut)
{
    int64_t size[CVY_AXES] = {1, 1, 1, 1, 1, 1};
    cvy_strategy strategy = {.channel_cut = cut};
    size[CVY_AXIS_SAMPLE] = ranks / block;
    size[axis] *= block;
    CVY_TRY(cvy_mesh_setup(size, NULL, &strategy.mesh));
    if (s->choices < CVY_SWEEP_MOST_CHOICES && !is_there(s, &strategy)) {
        add_choice(s, false)->strategy = strategy;
    }
    return CVY_OK;
}

static cvy_axis find_longest(const cvy_model *model)
{
    int64_t space[3];
    int longest = 0;
    cvy_strategy_find_space(&model->layer[0].output, space);
    for (int i = 1; i < 3; i++) {
        longest = space[i] > space[longest] ? i : longest;
    }
    return (cvy_axis)(CVY_AXIS_DEPTH + longest);
}

static cvy_status list_search(cvy_sweeping *s, int64_t ranks)
{
    cvy_axis space = find_longest(s->model);
    CVY_TRY(add_block(s, ranks, CVY_AXIS_SAMPLE, 1, CVY_CHANNEL_CUT_ALTERNATE));
    for (int64_t block = 2; block <= ranks && block <= MOST_BLOCK; block *= 2) {
        if (ranks % block == 0) {
            CVY_TRY(add_block(s, ranks, CVY_AXIS_CHANNEL, block, CVY_CHANNEL_CUT_ALTERNATE));
            CVY_TRY(add_block(s, ranks, CVY_AXIS_CHANNEL, block, CVY_CHANNEL_CUT_FILTER));
            CVY_TRY(add_block(s, ranks, space, block, CVY_CHANNEL_CUT_ALTERNATE));
            CVY_TRY(add_block(s, ranks, CVY_AXIS_STAGE, block, CVY_CHANNEL_CUT_ALTERNATE));
        }
    }
    return CVY_OK;
}

cvy_status cvy_sweep_list_choices(cvy_sweeping *s, int64_t ranks)
{
    const cvy_sweep_options *o = &s->sweep->options;
    int64_t space[3];
    cvy_strategy_find_space(&s->model->layer[0].output, space);
    for (int i = 0; i < o->strategies; i++) {
        cvy_sweep_choice *choice = add_choice(s, true);
        cvy_status status = cvy_strategy_parse(o->strategy[i], ranks, space, &choice->strategy);
        if (status == CVY_ERR_INPUT) {
            snprintf(choice->why_not, sizeof choice->why_not, "%s", cvy_error_message());
            status = CVY_OK;
        }
        CVY_TRY(status);
    }
    return o->search ? list_search(s, ranks) : CVY_OK;
}

/* ---- the most promising ---- */

static bool is_faster(const cvy_estimate *a, const cvy_estimate *b)
{
    bool fits = a->feasible && !a->over_memory, other = b->feasible && !b->over_memory;
    return fits != other ? fits : a->iteration_s < b->iteration_s;
}

/* Whether a choice of the search has fewer than so many faster ones before it, of its kind and of all. */
static bool is_promising(const cvy_sweeping *s, int index)
{
    const cvy_sweep_choice *c = &s->choice[index];
    int kind = cvy_strategy_find_kind(&c->strategy), faster = 0, of_kind = 0;
    bool hopeless = false;
    for (int i = 0; i < s->choices; i++) {
        const cvy_sweep_choice *other = &s->choice[i];
        bool better = other->own.feasible && is_faster(&other->own, &c->own), before = better && !other->given;
        hopeless = hopeless || (better && !other->own.over_memory &&
                                c->own.iteration_s > HOPELESS * other->own.iteration_s);
        faster += before;
        of_kind += before && cvy_strategy_find_kind(&other->strategy) == kind;
    }
    return c->own.feasible && !hopeless && faster < MOST_KEPT && of_kind < MOST_OF_A_KIND;
}

void cvy_sweep_shorten_choices(cvy_sweeping *s)
{
    bool keep[CVY_SWEEP_MOST_CHOICES];
    int kept = 0;
    for (int i = 0; i < s->choices; i++) {
        keep[i] = s->choice[i].given || is_promising(s, i);
    }
    for (int i = 0; i < s->choices; i++) {
        if (!keep[i]) {
            cvy_kept_plans_clear(&s->choice[i].kept);
        } else if (kept++ < i) {
            s->choice[kept - 1] = s->choice[i];
        }
    }
    s->choices = kept;
}

void cvy_sweep_clear_choices(cvy_sweeping *s)
{
    for (int i = 0; i < s->choices; i++) {
        cvy_kept_plans_clear(&s->choice[i].kept);
    }
    s->choices = 0;
}
