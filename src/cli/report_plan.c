/* The page of a plan: what convoy plan and convoy why say, with the scaling of the model around it. */
#include <inttypes.h>
#include <stdio.h>

#include "base/memory.h"
#include "base/text.h"
#include "cli/report.h"

enum { SHOWN = 10 };

/* Names of all candidates of an answer. */
typedef struct names {
    char (*text)[CLI_STRATEGY_TEXT];
    const char **name;
} names;

static void clear_names(names *n)
{
    cvy_free(n->text);
    cvy_free(n->name);
}

static cvy_status name_candidates(const cvy_search *search, names *n)
{
    *n = (names){.text = cvy_calloc((size_t)search->count + 1, sizeof *n->text),
                 .name = cvy_calloc((size_t)search->count + 1, sizeof *n->name)};
    if (!n->text || !n->name) {
        clear_names(n);
        return CVY_ERR_MEMORY;
    }
    for (int i = 0; i < search->count; i++) {
        n->name[i] = cli_print_candidate(&search->candidate[i], n->text[i]);
    }
    return CVY_OK;
}

/* ---- what stands above ---- */

static void add_facts(cvy_page *page, const cvy_estimate *e)
{
    char text[CVY_UNIT_TEXT];
    cvy_page_begin_facts(page);
    cvy_page_fact(page, "iteration", "%s \xc2\xb1 %.0f %%", cvy_print_seconds(e->iteration_s, text),
                  100.0 * e->error_relative);
    cvy_page_fact(page, "images/s", "%s", cvy_print_rate(e->images_per_s, text));
    cvy_page_fact(page, "memory of a rank", "%s", cvy_print_bytes((double)e->total_bytes, text));
    cvy_page_fact(page, "communication that shows", "%.0f %%",
                  e->iteration_s > 0.0 ? 100.0 * e->exposed_communication_s / e->iteration_s : 0.0);
    cvy_page_fact(page, "a rank sends", "%s", cvy_print_bytes(e->sent_bytes, text));
    cvy_page_end_facts(page);
}

static void add_summary(cvy_page *page, const cli_answer *answer, const cvy_candidate *chosen)
{
    char strategy[CLI_STRATEGY_TEXT], why[CVY_WHY_TEXT];
    const cvy_search *search = answer->search;
    cvy_page_section(page, "summary", "Summary");
    if (!chosen) {
        cvy_page_say(page, "No plan fits: see the reasons below.");
        return;
    }
    cvy_page_say(page, "%s: %s", answer->found ? "The pick" : "The strategy", cli_print_candidate(chosen, strategy));
    add_facts(page, &chosen->estimate);
    if (answer->found) {
        cvy_page_say(page, "%s.", cvy_limits_say_why(search, why));
    }
}

/* ---- the chosen plan in depth ---- */

static cvy_status add_trace(cvy_page *page, const cli_problem *problem, const cvy_trace *trace)
{
    CVY_TRY(cvy_report_timeline(page, trace));
    CVY_TRY(cvy_report_layers(page, trace, problem->machine, problem->oracle.precision));
    return cvy_report_traffic(page, trace);
}

static cvy_status add_depth(cvy_page *page, const cli_problem *problem, const cli_answer *answer,
                            const cvy_candidate *chosen)
{
    const cvy_estimate_question question = cli_answer_question(problem, chosen);
    cvy_limit limit[CVY_MAX_LIMITS];
    int limits;
    cvy_trace *trace = NULL;
    CVY_TRY(cli_answer_limits(problem, answer, chosen, true, limit, &limits));
    cvy_report_limits(page, limit, limits);
    CVY_TRY(cvy_oracle_trace(answer->oracle, &question, &trace));
    cvy_status status = add_trace(page, problem, trace);
    cvy_trace_destroy(&trace);
    return status;
}

/* ---- how it scales ---- */

/* Powers of two up to what the machine has, and some way beyond the ranks of the plan, which are among them. */
static void choose_ranks(const cli_problem *problem, cvy_sweep_options *o)
{
    enum { BEYOND = 8 };
    const int64_t devices = cvy_machine_devices(problem->machine);
    const int64_t most = devices < BEYOND * problem->ranks ? devices : BEYOND * problem->ranks;
    for (int64_t ranks = 1; ranks <= most && o->rank_counts < CVY_SWEEP_MOST_RANKS; ranks *= 2) {
        if (problem->ranks > ranks / 2 && problem->ranks < ranks) {
            o->ranks[o->rank_counts++] = problem->ranks;
        }
        o->ranks[o->rank_counts++] = ranks;
    }
    if (o->ranks[o->rank_counts - 1] < problem->ranks) {
        o->ranks[o->rank_counts++] = problem->ranks;
    }
}

static cvy_status add_scaling(cvy_page *page, const cli_problem *problem, const cvy_candidate *chosen,
                              const cli_measured_mark *mark)
{
    cvy_sweep_options o = {.oracle = problem->oracle, .batch_per_rank = problem->batch_per_rank, .strategies = 1,
                           .strategy = {"data"}, .search = true};
    cvy_scaling_mark marks[2] = {{"this plan", (double)problem->ranks, chosen->estimate.images_per_s}};
    cvy_sweep *sweep = NULL;
    int count = 1;
    o.batch = o.batch_per_rank ? problem->batch / problem->ranks : problem->batch;
    choose_ranks(problem, &o);
    if (o.rank_counts < 2) {
        return CVY_OK; /* nothing to scale over */
    }
    if (mark && mark->images_per_s > 0.0) {
        marks[count++] = (cvy_scaling_mark){mark->name, (double)problem->ranks, mark->images_per_s};
    }
    CVY_TRY(cvy_sweep_create(problem->model, problem->machine, &o, &sweep));
    cvy_status status = cvy_report_scaling(page, sweep, marks, count);
    cvy_sweep_destroy(&sweep);
    return status;
}

/* ---- all of it ---- */

cvy_status cli_report_plans(cvy_page *page, const cli_problem *problem, const cli_answer *answer,
                            const cli_measured_mark *mark)
{
    names n;
    const cvy_candidate *chosen = cli_answer_chosen(answer);
    CVY_TRY(name_candidates(answer->search, &n));
    const cvy_ranked_plans plans = {.search = answer->search, .name = n.name, .most = SHOWN};
    cvy_status status = cvy_report_plans(page, &plans);
    CVY_TRY_GOTO(status, done, status);
    CVY_TRY_GOTO(status, done, cvy_report_memory(page, &plans));
    if (chosen) {
        CVY_TRY_GOTO(status, done, add_depth(page, problem, answer, chosen));
        CVY_TRY_GOTO(status, done, add_scaling(page, problem, chosen, mark));
    }
    cvy_page_section(page, "configuration", "Configuration");
    status = cvy_report_machine(page, problem->machine);
done:
    clear_names(&n);
    return status;
}

/* ---- the page ---- */

static void begin_page(const cli_problem *problem, cvy_page *page)
{
    char title[160], subtitle[320], count[3][CVY_UNIT_TEXT];
    snprintf(title, sizeof title, "Plan of %.60s on %.60s", problem->model_text, problem->machine->name);
    snprintf(subtitle, sizeof subtitle, "%s of %s %.80s, batch %s, %s, %s", cvy_print_count(problem->ranks, count[0]),
             cvy_print_count(cvy_machine_devices(problem->machine), count[1]), problem->machine->device.name,
             cvy_print_count(problem->batch, count[2]), cvy_precision_name(problem->oracle.precision),
             cvy_optimizer_find_name(&problem->oracle.optimizer));
    cvy_page_begin(title, subtitle, page);
}

cvy_status cli_report_problem(const cli_problem *problem, const char *path)
{
    cvy_page page;
    cli_answer answer;
    cvy_status status = cli_answer_find(problem, 0, &answer);
    begin_page(problem, &page);
    if (status == CVY_OK) {
        add_summary(&page, &answer, cli_answer_chosen(&answer));
        status = cli_report_plans(&page, problem, &answer, NULL);
    }
    status = status == CVY_OK ? cvy_page_save(&page, path) : status;
    status = status == CVY_OK ? cli_answer_check(problem, &answer) : status;
    cvy_page_clear(&page);
    cli_answer_clear(&answer);
    return status;
}
