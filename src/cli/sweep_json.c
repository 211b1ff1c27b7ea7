/* The JSON of convoy sweep. Keys and their order are a contract with scripts; others come behind. */
#include <math.h>
#include <string.h>

#include "cli/plan_output.h"
#include "cli/sweep.h"

static json_t *describe_values(const cli_study *s, int setting)
{
    const cvy_sweep_setting *at = &s->sweep->setting[setting];
    json_t *object = json_object();
    for (int i = 0; i < s->options.axes; i++) {
        const cvy_sweep_axis *axis = &s->sweep->options.axis[i];
        if (at->value[i] >= 0) {
            json_object_set_new(object, cvy_varied_names[axis->parameter],
                                json_string(axis->value[at->value[i]].text));
        }
    }
    return object;
}

static json_t *describe_figures(const cvy_sweep_setting *setting)
{
    json_t *object = json_pack("{s:s}", "precision", cvy_precision_name(setting->precision));
    static const char *const names[] = {[CVY_VARIED_ARITHMETIC] = "peak_flop_per_s",
                                        [CVY_VARIED_MEMORY_BANDWIDTH] = "memory_Bps",
                                        [CVY_VARIED_LINK_BANDWIDTH] = "link_Bps",
                                        [CVY_VARIED_LINK_LATENCY] = "link_latency_s",
                                        [CVY_VARIED_MEMORY] = "capacity_bytes"};
    for (int i = CVY_VARIED_ARITHMETIC; i <= CVY_VARIED_MEMORY; i++) {
        json_object_set_new(object, names[i], cli_json_number(setting->figure[i]));
    }
    return object;
}

/* The first strategy at a point. */
static json_t *describe_asked(const cvy_sweep_point *point)
{
    const cvy_estimate *e = &point->asked;
    if (!e->feasible) {
        return json_pack("{s:b, s:s}", "feasible", false, "why_not", e->why_not);
    }
    return json_pack("{s:b, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:s}", "feasible", true, "over_memory",
                     e->over_memory, "iteration_s", cli_json_number(e->iteration_s), "images_per_s",
                     cli_json_number(e->images_per_s), "ideal_images_per_s",
                     cli_json_number(point->ideal_images_per_s), "efficiency", cli_json_number(point->efficiency),
                     "error_relative", cli_json_number(e->error_relative), "breakdown_s", cli_describe_times(e),
                     "exposed_communication_s", cli_json_number(e->exposed_communication_s), "memory_bytes",
                     (json_int_t)e->total_bytes, "limit", point->limit);
}

static json_t *describe_best(const cvy_estimate *best)
{
    char strategy[CLI_STRATEGY_TEXT], family[CVY_STRATEGY_TEXT];
    if (!best->feasible) {
        return json_null();
    }
    return json_pack("{s:s, s:s, s:s, s:o, s:o, s:I}", "strategy",
                     cli_print_strategy(&best->strategy, CVY_RECOMPUTE_NONE, strategy), "family",
                     cvy_strategy_family(&best->strategy, family), "recompute", cvy_recompute_name(best->recompute),
                     "iteration_s", cli_json_number(best->iteration_s), "images_per_s",
                     cli_json_number(best->images_per_s), "memory_bytes", (json_int_t)best->total_bytes);
}

static json_t *describe_points(const cli_study *s)
{
    json_t *list = json_array();
    for (int i = 0; i < s->sweep->points; i++) {
        const cvy_sweep_point *point = &s->sweep->point[i];
        int setting = i / s->options.rank_counts;
        json_array_append_new(list, json_pack("{s:o, s:I, s:I, s:o, s:o, s:o}", "varied", describe_values(s, setting),
                                              "ranks", (json_int_t)point->ranks, "global_batch",
                                              (json_int_t)point->batch, "machine",
                                              describe_figures(&s->sweep->setting[setting]), "estimate",
                                              describe_asked(point), "best", describe_best(&point->best)));
    }
    return list;
}

static json_t *describe_elasticities(const cvy_sweep *sweep)
{
    json_t *list = json_array();
    for (int r = 0; r < sweep->options.rank_counts; r++) {
        json_t *object = json_pack("{s:I}", "ranks", (json_int_t)sweep->options.ranks[r]);
        for (int i = 0; i < CVY_VARIED_MEMORY; i++) {
            json_object_set_new(object, cvy_varied_names[i], cli_json_number(sweep->elasticity[r][i]));
        }
        json_array_append_new(list, object);
    }
    return list;
}

static json_t *describe_bottleneck(const cvy_sweep_bottleneck *b)
{
    json_t *parameter = b->parameter < CVY_VARIED_COUNT ? json_string(cvy_varied_names[b->parameter]) : json_null();
    return json_pack("{s:o, s:I, s:o, s:s}", "parameter", parameter, "ranks", (json_int_t)b->ranks, "elasticity",
                     cli_json_number(b->elasticity), "sentence", b->sentence);
}

cvy_status cli_print_study_json(const cli_study *s)
{
    const cli_problem *p = s->problem;
    const cvy_sweep *sweep = s->sweep;
    return cli_json_print(json_pack(
        "{s:i, s:s, s:s, s:s, s:I, s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:I, s:o}", "schema", 1, "model", p->model_text,
        "machine", p->machine_text, "scaling", p->batch_per_rank ? "weak" : "strong", "batch", (json_int_t)p->batch,
        "precision", cvy_precision_name(p->oracle.precision), "optimizer",
        cvy_optimizer_find_name(&p->oracle.optimizer), "strategy", s->options.strategy[0], "points",
        describe_points(s), "elasticities", describe_elasticities(sweep), "device",
        describe_bottleneck(&sweep->device), "cluster", describe_bottleneck(&sweep->cluster), "estimates",
        (json_int_t)sweep->estimates, "sweep_s", cli_json_number(sweep->sweep_s)));
}
