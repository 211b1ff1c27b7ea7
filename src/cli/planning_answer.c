/*
 * Answers to a question: of one strategy, beside data parallelism, or of a search; and what of an answer is looked at.
 */
#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "cli/planning.h"

static cvy_status estimate(const cli_problem *problem, cli_answer *answer, const cvy_strategy *strategy)
{
    bool asked = answer->given.count == 0;
    const cvy_plan_decisions *d = &problem->file.decisions;
    cvy_candidate *candidate = &answer->candidate[answer->given.count++];
    cvy_estimate_question question = {.strategy = *strategy,
                                      .recompute = problem->oracle.recompute,
                                      .choices = asked ? d->choices : NULL,
                                      .stages = asked ? d->stages : NULL};
    CVY_TRY(cvy_oracle_estimate(answer->oracle, &question, &candidate->estimate));
    if (!candidate->estimate.feasible) {
        candidate->estimate.strategy = *strategy;
    }
    candidate->bound_s = candidate->estimate.iteration_s;
    return CVY_OK;
}

static bool is_data(const cvy_strategy *strategy)
{
    return strategy->mesh.size[CVY_AXIS_SAMPLE] == strategy->mesh.ranks;
}

/* One strategy, with data parallelism to hold it against. */
static cvy_status estimate_given(const cli_problem *problem, cli_answer *answer)
{
    const int64_t space[3] = {1, 1, 1};
    cvy_strategy data;
    answer->given = (cvy_search){.candidate = answer->candidate, .pick = -1, .data = -1};
    answer->search = &answer->given;
    CVY_TRY(estimate(problem, answer, &problem->strategy));
    if (!is_data(&problem->strategy)) {
        CVY_TRY(cvy_strategy_parse("data", problem->ranks, space, &data));
        CVY_TRY(estimate(problem, answer, &data));
    }
    answer->given.data = answer->given.count - 1;
    answer->given.configurations = answer->given.count;
    return CVY_OK;
}

cvy_status cli_answer_find(const cli_problem *problem, int simulations, cli_answer *answer)
{
    *answer = (cli_answer){.oracle = NULL};
    CVY_TRY(cvy_oracle_create(problem->model, problem->machine, &problem->oracle, &answer->oracle));
    if (!problem->strategy.automatic) {
        return estimate_given(problem, answer);
    }
    const cvy_search_options options = {.ranks = problem->ranks,
                                        .objective = (cvy_objective)problem->options->plan.objective,
                                        .simulations = simulations,
                                        .mix = true,
                                        .fixed_recompute = problem->fixed_recompute};
    CVY_TRY(cvy_search_create(answer->oracle, &options, &answer->found));
    answer->search = answer->found;
    return CVY_OK;
}

void cli_answer_clear(cli_answer *answer)
{
    cvy_search_destroy(&answer->found);
    cvy_oracle_destroy(&answer->oracle);
    answer->search = NULL;
}

cvy_estimate_question cli_answer_question(const cli_problem *problem, const cvy_candidate *candidate)
{
    bool of_file = problem->file.decisions.stages &&
                   memcmp(candidate->estimate.strategy.mesh.size, problem->strategy.mesh.size,
                          sizeof problem->strategy.mesh.size) == 0;
    return (cvy_estimate_question){
        .strategy = candidate->estimate.strategy,
        .recompute = candidate->estimate.recompute,
        .choices = of_file ? problem->file.decisions.choices : candidate->choices,
        .stages = of_file ? problem->file.decisions.stages : NULL,
    };
}

cvy_status cli_answer_limits(const cli_problem *problem, const cli_answer *answer, const cvy_candidate *candidate,
                             bool what_if, cvy_limit *limit_out, int *count_out)
{
    cvy_estimate_question question = cli_answer_question(problem, candidate);
    cvy_trace *trace = NULL;
    if (what_if && !question.stages && question.strategy.mesh.size[CVY_AXIS_STAGE] > 1) {
        CVY_TRY(cvy_oracle_trace(answer->oracle, &question, &trace));
        question.stages = trace->distribution->stages;
    }
    cvy_status status =
        cvy_limits_find(answer->oracle, &question, &candidate->estimate, what_if, limit_out, count_out);
    cvy_trace_destroy(&trace);
    return status;
}

const cvy_candidate *cli_answer_chosen(const cli_answer *answer)
{
    const cvy_search *search = answer->search;
    int index = answer->found ? search->pick : 0;
    return index >= 0 && search->candidate[index].estimate.feasible ? &search->candidate[index] : NULL;
}

cvy_status cli_answer_check(const cli_problem *problem, const cli_answer *answer)
{
    const cvy_search *search = answer->search;
    char text[CLI_STRATEGY_TEXT], unit[2][CVY_UNIT_TEXT];
    const cvy_estimate *least = NULL;
    if (cli_answer_chosen(answer)) {
        return CVY_OK;
    }
    if (!answer->found) {
        const cvy_estimate *asked = &search->candidate[0].estimate;
        return cvy_fail(CVY_ERR_INFEASIBLE, "strategy %s on %" PRId64 " ranks: %s",
                        cli_print_strategy(&asked->strategy, asked->recompute, text), problem->ranks, asked->why_not);
    }
    for (int i = 0; i < search->count; i++) {
        const cvy_estimate *e = &search->candidate[i].estimate;
        least = e->feasible && (!least || e->total_bytes < least->total_bytes) ? e : least;
    }
    if (least) {
        return cvy_fail(CVY_ERR_INFEASIBLE, "%s at batch %" PRId64 " fits %" PRId64 " rank%s of %s in no way: the "
                        "least is %s with %s of %s", problem->model_text, problem->batch, problem->ranks,
                        problem->ranks == 1 ? "" : "s", problem->machine->name,
                        cli_print_strategy(&least->strategy, least->recompute, text),
                        cvy_print_bytes((double)least->total_bytes, unit[0]),
                        cvy_print_bytes((double)least->capacity_bytes, unit[1]));
    }
    return cvy_fail(CVY_ERR_INFEASIBLE, "no strategy trains %s at batch %" PRId64 " on %" PRId64 " ranks%s%s",
                    problem->model_text, problem->batch, problem->ranks, search->count ? ": " : "",
                    search->count ? search->candidate[0].estimate.why_not : "");
}
