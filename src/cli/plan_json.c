/* The JSON of convoy plan. Keys and their order are a contract with scripts; others come behind. */
#include <string.h>

#include "cli/plan_output.h"

static json_t *describe_mesh(const cvy_mesh *mesh)
{
    json_t *object = json_object();
    for (int i = 0; i < CVY_AXES; i++) {
        cvy_axis axis = mesh->order[i];
        if (mesh->size[axis] > 1 || (mesh->ranks == 1 && axis == CVY_AXIS_SAMPLE)) {
            json_object_set_new(object, cvy_axis_name(axis), json_integer((json_int_t)mesh->size[axis]));
        }
    }
    return object;
}

json_t *cli_describe_times(const cvy_estimate *e)
{
    json_t *object = json_object();
    for (int i = 0; i < CVY_TIME_PARTS; i++) {
        json_object_set_new(object, cvy_time_part_name(i), cli_json_number(e->part_s[i]));
    }
    return object;
}

static json_t *describe_memory(const cvy_estimate *e)
{
    json_t *object = json_object();
    json_object_set_new(object, "total", json_integer((json_int_t)e->total_bytes));
    for (int i = 0; i < CVY_MEMORY_PARTS; i++) {
        json_object_set_new(object, cvy_memory_part_name(i), json_integer((json_int_t)e->memory_bytes[i]));
    }
    json_object_set_new(object, "capacity", json_integer((json_int_t)e->capacity_bytes));
    return object;
}

static json_t *describe_limits(const cvy_limit *limit, int count)
{
    json_t *list = json_array();
    for (int i = 0; i < count; i++) {
        json_array_append_new(list, json_pack("{s:s, s:o, s:s, s:s}", "name", limit[i].name, "share",
                                              cli_json_number(limit[i].share), "what", limit[i].what, "lift",
                                              limit[i].lift));
    }
    return list;
}

json_t *cli_describe_estimate(const cvy_estimate *e, const cvy_limit *limit, int limits)
{
    char strategy[CLI_STRATEGY_TEXT], family[CVY_STRATEGY_TEXT];
    json_t *why_not = e->feasible && !e->over_memory ? json_null() : json_string(e->why_not);
    cli_print_strategy(&e->strategy, CVY_RECOMPUTE_NONE, strategy);
    json_t *object = json_pack("{s:s, s:o, s:b, s:b, s:o}", "strategy", strategy, "mesh",
                               describe_mesh(&e->strategy.mesh), "feasible", e->feasible, "over_memory",
                               e->feasible && e->over_memory, "why_not", why_not);
    json_t *figures = json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s, s:s, s:I, s:b, s:o}", "iteration_s",
        e->feasible ? cli_json_number(e->iteration_s) : json_null(), "images_per_s",
        e->feasible ? cli_json_number(e->images_per_s) : json_null(), "error_relative",
        cli_json_number(e->error_relative), "breakdown_s", cli_describe_times(e), "exposed_communication_s",
        cli_json_number(e->exposed_communication_s), "memory_bytes", describe_memory(e), "limits",
        describe_limits(limit, limits), "family", cvy_strategy_family(&e->strategy, family), "recompute",
        cvy_recompute_name(e->recompute), "micro_batches", (json_int_t)e->strategy.micro_batches, "managed_memory",
        e->managed_memory, "sent_bytes", cli_json_number(e->sent_bytes));
    if (object && figures) {
        json_object_update(object, figures);
    }
    json_decref(figures);
    return object;
}

/* Time and price, where samples are given. */
static void add_training(const cli_problem *problem, const cvy_estimate *e, json_t *object)
{
    double epoch_s = e->iteration_s * cli_problem_iterations(problem);
    double training_s = epoch_s * (double)problem->options->plan.epochs;
    double usd = cli_problem_price(problem, problem->ranks, training_s);
    if (problem->options->plan.samples && e->feasible) {
        json_object_set_new(object, "epoch_s", cli_json_number(epoch_s));
        json_object_set_new(object, "training_s", cli_json_number(training_s));
        json_object_set_new(object, "price_usd", usd > 0.0 ? cli_json_number(usd) : json_null());
    }
}

static cvy_status describe_candidate(const cli_problem *problem, const cli_answer *answer, int i, json_t **json_out)
{
    const cvy_candidate *candidate = &answer->search->candidate[i];
    cvy_limit limit[CVY_MAX_LIMITS];
    int limits = 0;
    if (candidate->estimate.feasible) {
        bool chosen = candidate == cli_answer_chosen(answer);
        CVY_TRY(cli_answer_limits(problem, answer, candidate, chosen, limit, &limits));
    }
    json_t *object = cli_describe_estimate(&candidate->estimate, limit, limits);
    add_training(problem, &candidate->estimate, object);
    json_object_set_new(object, "pick", json_boolean(i == answer->search->pick));
    json_object_set_new(object, "mix", json_boolean(candidate->choices != NULL));
    json_object_set_new(object, "front", json_boolean(candidate->front));
    if (problem->options->plan.closed_form) {
        json_t *form;
        cvy_status status = cli_describe_closed_form(problem, answer, candidate, &form);
        if (status != CVY_OK) {
            json_decref(object);
            return status;
        }
        json_object_set_new(object, "closed_form", form);
    }
    *json_out = object;
    return CVY_OK;
}

/* Whether the i-th candidate is told: all of them, or --top of those that are possible and of those that are not. */
static bool is_told(const cli_problem *problem, const cvy_search *search, int i, int64_t before[2])
{
    bool feasible = search->candidate[i].estimate.feasible;
    int64_t most = problem->options->plan.top;
    return !most || problem->options->plan.all || before[feasible]++ < most || i == search->pick || i == search->data;
}

cvy_status cli_print_plans_json(const cli_problem *problem, const cli_answer *answer)
{
    const cvy_search *search = answer->search;
    char why[CVY_WHY_TEXT];
    int64_t before[2] = {0, 0};
    json_t *plans = json_array();
    for (int i = 0; i < search->count; i++) {
        json_t *plan;
        if (is_told(problem, search, i, before)) {
            cvy_status status = describe_candidate(problem, answer, i, &plan);
            if (status != CVY_OK) {
                json_decref(plans);
                return status;
            }
            json_array_append_new(plans, plan);
        }
    }
    json_t *pick = answer->found && search->pick >= 0 ? json_string(cvy_limits_say_why(search, why)) : json_null();
    return cli_json_print(json_pack(
        "{s:i, s:s, s:s, s:I, s:I, s:s, s:o, s:I, s:o, s:s, s:o}", "schema", 1, "model", problem->model_text, "machine",
        problem->machine_text, "ranks", (json_int_t)problem->ranks, "global_batch", (json_int_t)problem->batch,
        "precision", cvy_precision_name(problem->oracle.precision), "plans", plans, "configurations",
        (json_int_t)search->configurations, "search_s", cli_json_number(search->search_s), "optimizer",
        cvy_optimizer_find_name(&problem->oracle.optimizer), "why", pick));
}
