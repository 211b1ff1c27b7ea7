/*
 * The study. Numbers of ranks are gone through one by one; on each, every strategy is planned once and priced on the
 * machine of every setting. Settings of another batch are planned anew.
 */
#include "oracle/sweep.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/memory.h"
#include "oracle/limits_internal.h"
#include "oracle/sweep_internal.h"

const cvy_sweep_point *cvy_sweep_get_points(const cvy_sweep *sweep, int setting)
{
    return &sweep->point[(size_t)setting * (size_t)sweep->options.rank_counts];
}

const cvy_sweep_value *cvy_sweep_get_value(const cvy_sweep *sweep, int setting)
{
    const cvy_sweep_setting *s = &sweep->setting[setting];
    return s->axis < 0 ? NULL : &sweep->options.axis[s->axis].value[s->value[s->axis]];
}

/* ---- one number of ranks ---- */

static cvy_status estimate(cvy_sweeping *s, const cvy_sweep_scene *scene, int64_t batch, cvy_sweep_choice *choice,
                           cvy_estimate *estimate_out)
{
    const cvy_estimate_question question = {.strategy = choice->strategy,
                                            .recompute = s->sweep->options.oracle.recompute};
    if (choice->why_not[0]) {
        *estimate_out = (cvy_estimate){.strategy = {.mesh.ranks = 0}};
        snprintf(estimate_out->why_not, sizeof estimate_out->why_not, "%s", choice->why_not);
        return CVY_OK;
    }
    cvy_oracle_set_batch(scene->oracle, batch);
    s->sweep->estimates++;
    CVY_TRY(cvy_oracle_estimate_kept(scene->oracle, &question, &choice->kept, estimate_out));
    if (!estimate_out->feasible) {
        estimate_out->strategy = choice->strategy;
    }
    return CVY_OK;
}

static void take_better(const cvy_estimate *estimate, cvy_estimate *best)
{
    bool fits = estimate->feasible && !estimate->over_memory;
    if (fits && (!best->feasible || estimate->iteration_s < best->iteration_s)) {
        *best = *estimate;
    }
}

static cvy_status find_limit(const cvy_sweep_scene *scene, const cvy_estimate *asked, cvy_kept_plans *kept,
                             const char **name_out)
{
    cvy_limit limit[CVY_MAX_LIMITS];
    const cvy_estimate_question question = {.strategy = asked->strategy, .recompute = asked->recompute};
    int count = 0;
    if (asked->feasible) {
        CVY_TRY(cvy_limits_find_kept(scene->oracle, &question, asked, kept, limit, &count));
    }
    *name_out = count ? limit[0].name : "-";
    return CVY_OK;
}

/* A strategy at all settings of a number of ranks. */
static cvy_status price_settings(cvy_sweeping *s, int at, cvy_sweep_choice *choice, bool asked)
{
    const cvy_sweep *sweep = s->sweep;
    for (int i = 0; i < sweep->settings; i++) {
        cvy_sweep_point *point = &sweep->point[(size_t)i * (size_t)sweep->options.rank_counts + (size_t)at];
        cvy_estimate found;
        CVY_TRY(estimate(s, &s->scene[i], point->batch, choice, &found));
        take_better(&found, &point->best);
        if (asked) {
            point->asked = found;
            CVY_TRY(find_limit(&s->scene[i], &point->asked, &choice->kept, &point->limit));
        }
    }
    return CVY_OK;
}

/* Images a second with less and more of each parameter. */
static cvy_status find_elasticities(cvy_sweeping *s, int at, cvy_sweep_choice *choice)
{
    int64_t ranks = s->sweep->options.ranks[at];
    for (int parameter = 0; parameter < CVY_VARIED_COUNT; parameter++) {
        double rate[2] = {0.0, 0.0}, ratio = CVY_SWEEP_PROBE * CVY_SWEEP_PROBE;
        int64_t batch[2] = {0, 0};
        for (int more = 0; more < 2 && parameter < CVY_SWEEP_PROBED; more++) {
            const cvy_sweep_scene *scene = &s->scene[s->sweep->settings + 2 * parameter + more];
            cvy_estimate found;
            CVY_TRY(cvy_sweep_find_batch(s, scene, ranks, &batch[more]));
            CVY_TRY(estimate(s, scene, batch[more], choice, &found));
            rate[more] = found.feasible ? found.images_per_s : 0.0;
        }
        ratio = parameter == CVY_VARIED_BATCH && batch[0] ? (double)batch[1] / (double)batch[0] : ratio;
        s->sweep->elasticity[at][parameter] = cvy_sweep_divide(rate[0], rate[1], ratio);
    }
    return CVY_OK;
}

/* What the search looks at, at the machine's own values; the rest of its strategies is not looked at again. */
static cvy_status look_at_choices(cvy_sweeping *s, int64_t batch)
{
    for (int i = 0; i < s->choices; i++) {
        CVY_TRY(estimate(s, &s->scene[0], batch, &s->choice[i], &s->choice[i].own));
    }
    cvy_sweep_shorten_choices(s);
    return CVY_OK;
}

static cvy_status run_ranks(cvy_sweeping *s, int at)
{
    cvy_sweep *sweep = s->sweep;
    int64_t ranks = sweep->options.ranks[at];
    for (int i = 0; i < sweep->settings; i++) {
        cvy_sweep_point *point = &sweep->point[(size_t)i * (size_t)sweep->options.rank_counts + (size_t)at];
        point->ranks = ranks;
        CVY_TRY(cvy_sweep_find_batch(s, &s->scene[i], ranks, &point->batch));
    }
    CVY_TRY(cvy_sweep_list_choices(s, ranks));
    if (sweep->options.search) {
        CVY_TRY(look_at_choices(s, sweep->point[at].batch));
    }
    for (int i = 0; i < s->choices; i++) {
        CVY_TRY(price_settings(s, at, &s->choice[i], i == 0));
        if (i == 0) {
            CVY_TRY(find_elasticities(s, at, &s->choice[i]));
        }
        cvy_kept_plans_clear(&s->choice[i].kept);
    }
    return CVY_OK;
}

/* ---- all of them ---- */

/* From the fewest ranks on which the strategy is possible. */
static void fill_efficiencies(cvy_sweep *sweep)
{
    for (int i = 0; i < sweep->settings; i++) {
        cvy_sweep_point *point = &sweep->point[(size_t)i * (size_t)sweep->options.rank_counts];
        double image_s_rank = 0.0;
        for (int r = 0; r < sweep->options.rank_counts; r++) {
            const cvy_estimate *e = &point[r].asked;
            bool known = e->feasible && e->images_per_s > 0.0;
            image_s_rank = image_s_rank == 0.0 && known ? (double)point[r].ranks / e->images_per_s : image_s_rank;
            if (known) {
                point[r].ideal_images_per_s = (double)point[r].ranks / image_s_rank;
                point[r].efficiency = e->images_per_s / point[r].ideal_images_per_s;
            }
        }
    }
}

/* A word that is no strategy on any number of ranks is a mistake, not an answer. */
static cvy_status check_strategies(const cvy_sweeping *s)
{
    const cvy_sweep_options *o = &s->sweep->options;
    int64_t space[3];
    cvy_strategy strategy;
    cvy_strategy_find_space(&s->model->layer[0].output, space);
    for (int i = 0; i < o->strategies; i++) {
        cvy_status status = CVY_ERR_INPUT;
        for (int r = o->rank_counts - 1; r >= 0 && status != CVY_OK; r--) {
            status = cvy_strategy_parse(o->strategy[i], o->ranks[r], space, &strategy);
        }
        CVY_TRY(status);
    }
    return CVY_OK;
}

static cvy_status check_ranks(const cvy_sweeping *s)
{
    const cvy_sweep_options *o = &s->sweep->options;
    int64_t devices = cvy_machine_devices(s->machine), most = o->ranks[o->rank_counts - 1];
    CVY_REQUIRE(o->ranks[0] >= 1, CVY_ERR_INPUT, "ranks must be at least 1, got %" PRId64, o->ranks[0]);
    CVY_REQUIRE(most <= devices, CVY_ERR_INPUT, "%" PRId64 " ranks: machine %s has %" PRId64 " device%s", most,
                s->machine->name, devices, devices == 1 ? "" : "s");
    return CVY_OK;
}

static cvy_status run(cvy_sweeping *s)
{
    cvy_sweep *sweep = s->sweep;
    CVY_TRY(check_ranks(s));
    CVY_TRY(check_strategies(s));
    CVY_TRY(cvy_sweep_list_settings(s));
    CVY_TRY(cvy_sweep_set_scenes(s));
    sweep->points = sweep->settings * sweep->options.rank_counts;
    sweep->point = cvy_calloc((size_t)sweep->points, sizeof *sweep->point);
    s->choice = cvy_calloc(CVY_SWEEP_MOST_CHOICES, sizeof *s->choice);
    if (!sweep->point || !s->choice) {
        return CVY_ERR_MEMORY;
    }
    for (int i = 0; i < sweep->options.rank_counts; i++) {
        CVY_TRY(run_ranks(s, i));
        cvy_sweep_clear_choices(s);
    }
    fill_efficiencies(sweep);
    cvy_sweep_name_bottlenecks(sweep);
    return CVY_OK;
}

cvy_status cvy_sweep_create(const cvy_model *model, const cvy_machine *machine, const cvy_sweep_options *options,
                            cvy_sweep **sweep_out)
{
    double begin_s = cvy_clock_s();
    cvy_sweeping s = {.model = model, .machine = machine, .sweep = cvy_calloc(1, sizeof *s.sweep)};
    if (!s.sweep) {
        return CVY_ERR_MEMORY;
    }
    s.sweep->options = *options;
    cvy_status status = run(&s);
    if (status == CVY_OK) {
        s.sweep->sweep_s = cvy_clock_s() - begin_s;
        *sweep_out = s.sweep;
        s.sweep = NULL;
    }
    for (int i = 0; i < s.scenes && s.scene; i++) {
        cvy_oracle_destroy(&s.scene[i].oracle);
    }
    cvy_sweep_clear_choices(&s);
    cvy_free(s.choice);
    cvy_free(s.scene);
    cvy_sweep_destroy(&s.sweep);
    return status;
}

void cvy_sweep_destroy(cvy_sweep **sweep)
{
    if (sweep && *sweep) {
        cvy_free((*sweep)->setting);
        cvy_free((*sweep)->point);
        cvy_free(*sweep);
        *sweep = NULL;
    }
}
