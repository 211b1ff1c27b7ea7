/*
 * convoy fits: whether a model trains in the memory of a rank, and with how large a batch, for each way of making
 * activations again. The largest batch is found by doubling and bisection over estimates, which grow with the batch.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cli/plan_output.h"

enum { WAYS = CVY_RECOMPUTE_ALL + 1, MOST_BATCH = 1 << 24 };

/* One kind of recomputation. */
typedef struct way {
    cvy_recompute recompute;
    cvy_estimate asked;    /* at the batch that was asked for */
    cvy_estimate largest;  /* at the largest that fits */
    int64_t largest_batch; /* 0: none fits */
} way;

static bool does_fit(const cvy_estimate *e) { return e->feasible && !e->over_memory; }

static cvy_status estimate(const cli_problem *problem, const cvy_strategy *strategy, cvy_recompute recompute,
                           int64_t batch, cvy_estimate *estimate_out)
{
    cvy_oracle *oracle = NULL;
    cvy_oracle_options options = problem->oracle;
    const cvy_estimate_question question = {.strategy = *strategy, .recompute = recompute};
    options.batch = batch;
    options.recompute = recompute;
    CVY_TRY(cvy_oracle_create(problem->model, problem->machine, &options, &oracle));
    cvy_status status = cvy_oracle_estimate(oracle, &question, estimate_out);
    cvy_oracle_destroy(&oracle);
    return status;
}

/* The largest multiple of what the strategy shares samples over. */
static cvy_status find_largest(const cli_problem *problem, const cvy_strategy *strategy, way *w)
{
    const int64_t parts = strategy->micro_batches > 1 ? strategy->micro_batches : 1;
    const int64_t unit = strategy->mesh.size[CVY_AXIS_SAMPLE] * parts;
    int64_t fits = 0, step = 1;
    bool growing = true;
    while (growing || step > 0) {
        cvy_estimate found = {.feasible = false};
        int64_t next = fits + step;
        if (next <= MOST_BATCH / unit) {
            CVY_TRY(estimate(problem, strategy, w->recompute, next * unit, &found));
        }
        if (does_fit(&found)) {
            fits = next;
            w->largest = found;
        } else {
            growing = false;
        }
        step = growing ? 2 * step : step / 2;
    }
    w->largest_batch = fits * unit;
    return CVY_OK;
}

static cvy_status choose_strategy(const cli_problem *problem, cvy_strategy *strategy_out)
{
    const int64_t space[3] = {1, 1, 1};
    if (!problem->strategy.automatic) {
        *strategy_out = problem->strategy;
        return CVY_OK;
    }
    return cvy_strategy_parse("data", problem->ranks, space, strategy_out);
}

static cvy_status look(const cli_problem *problem, const cvy_strategy *strategy, way ways[WAYS], int *count_out)
{
    int count = 0;
    for (int i = 0; i < WAYS; i++) {
        cvy_recompute recompute = (cvy_recompute)i;
        if (!problem->fixed_recompute || recompute == problem->oracle.recompute) {
            way *w = &ways[count++];
            *w = (way){.recompute = recompute};
            CVY_TRY(estimate(problem, strategy, recompute, problem->batch, &w->asked));
            CVY_TRY(find_largest(problem, strategy, w));
        }
    }
    *count_out = count;
    return CVY_OK;
}

/* ---- what is said ---- */

static void print_ways(const cli_problem *problem, const way *ways, int count)
{
    char unit[4][CVY_UNIT_TEXT];
    printf("\n%-12s %12s %6s %16s %10s %14s\n", "recompute", "memory", "fits", "largest batch", "a rank",
           "images/s there");
    for (int i = 0; i < count; i++) {
        const way *w = &ways[i];
        printf("%-12s %12s %6s", cvy_recompute_name(w->recompute),
               w->asked.feasible ? cvy_print_bytes((double)w->asked.total_bytes, unit[0]) : "-",
               does_fit(&w->asked) ? "yes" : "no");
        if (w->largest_batch) {
            printf(" %16s %10.6g %14s\n", cvy_print_count(w->largest_batch, unit[1]),
                   (double)w->largest_batch / (double)problem->ranks, cvy_print_rate(w->largest.images_per_s, unit[2]));
        } else {
            printf(" %16s %10s %14s\n", "none", "-", "-");
        }
    }
    printf("memory: of a rank, which has %s; batch %s\n",
           cvy_print_bytes((double)problem->machine->device.memory_bytes, unit[3]),
           cvy_print_count(problem->batch, unit[0]));
}

static json_t *describe_way(const cli_problem *problem, const way *w)
{
    json_t *memory = json_object();
    json_object_set_new(memory, "total", json_integer((json_int_t)w->asked.total_bytes));
    for (int i = 0; i < CVY_MEMORY_PARTS; i++) {
        json_object_set_new(memory, cvy_memory_part_name(i), json_integer((json_int_t)w->asked.memory_bytes[i]));
    }
    return json_pack("{s:s, s:b, s:o, s:I, s:o, s:o}", "recompute", cvy_recompute_name(w->recompute), "fits",
                     does_fit(&w->asked), "memory_bytes", memory, "largest_batch", (json_int_t)w->largest_batch,
                     "largest_batch_per_rank", cli_json_number((double)w->largest_batch / (double)problem->ranks),
                     "images_per_s", w->largest_batch ? cli_json_number(w->largest.images_per_s) : json_null());
}

static cvy_status print_json(const cli_problem *problem, const cvy_strategy *strategy, const way *ways, int count)
{
    char text[CLI_STRATEGY_TEXT];
    bool fits = false;
    json_t *list = json_array();
    for (int i = 0; i < count; i++) {
        fits = fits || does_fit(&ways[i].asked);
        json_array_append_new(list, describe_way(problem, &ways[i]));
    }
    return cli_json_print(json_pack(
        "{s:i, s:s, s:s, s:I, s:I, s:s, s:s, s:I, s:b, s:o}", "schema", 1, "model", problem->model_text, "machine",
        problem->machine_text, "ranks", (json_int_t)problem->ranks, "global_batch", (json_int_t)problem->batch,
        "precision", cvy_precision_name(problem->oracle.precision), "strategy",
        cli_print_strategy(strategy, CVY_RECOMPUTE_NONE, text), "capacity_bytes",
        (json_int_t)problem->machine->device.memory_bytes, "fits", fits, "ways", list));
}

/* Where data parallelism does not fit, perhaps another strategy does. */
static cvy_status look_elsewhere(const cli_problem *problem, bool *found_out)
{
    cli_options options = *problem->options;
    cli_problem other = *problem;
    cli_answer answer = {.oracle = NULL};
    char strategy[CLI_STRATEGY_TEXT], unit[CVY_UNIT_TEXT];
    options.plan.objective = CVY_OBJECTIVE_MEMORY;
    other.options = &options;
    *found_out = false;
    if (!problem->strategy.automatic || problem->ranks == 1) {
        return CVY_OK;
    }
    cvy_status status = cli_answer_find(&other, 0, &answer);
    const cvy_candidate *chosen = status == CVY_OK ? cli_answer_chosen(&answer) : NULL;
    if (chosen) {
        const cvy_estimate *e = &chosen->estimate;
        fprintf(problem->options->json ? stderr : stdout,
                "data does not fit at this batch; %s does, with %s a rank and %.3g images/s\n",
                cli_print_strategy(&e->strategy, e->recompute, strategy),
                cvy_print_bytes((double)e->total_bytes, unit), e->images_per_s);
        *found_out = true;
    }
    cli_answer_clear(&answer);
    return status;
}

static cvy_status judge(const cli_problem *problem, const cvy_strategy *strategy, const way *ways, int count)
{
    char text[CLI_STRATEGY_TEXT], unit[CVY_UNIT_TEXT];
    int64_t largest = 0;
    bool found;
    for (int i = 0; i < count; i++) {
        if (does_fit(&ways[i].asked)) {
            return CVY_OK;
        }
        largest = ways[i].largest_batch > largest ? ways[i].largest_batch : largest;
    }
    CVY_TRY(look_elsewhere(problem, &found));
    if (found) {
        return CVY_OK;
    }
    cli_print_strategy(strategy, CVY_RECOMPUTE_NONE, text);
    CVY_REQUIRE(ways[0].asked.feasible, CVY_ERR_INFEASIBLE, "strategy %s on %" PRId64 " ranks: %s", text,
                problem->ranks, ways[0].asked.why_not);
    cvy_print_bytes((double)problem->machine->device.memory_bytes, unit);
    return largest ? cvy_fail(CVY_ERR_INFEASIBLE, "%s at batch %" PRId64 " does not fit in %s a rank with %s; batch %"
                              PRId64 " does", problem->model_text, problem->batch, unit, text, largest)
                   : cvy_fail(CVY_ERR_INFEASIBLE, "%s does not fit in %s a rank with %s, at any batch",
                              problem->model_text, unit, text);
}

static cvy_status answer(cli_problem *problem)
{
    char text[CLI_STRATEGY_TEXT];
    cvy_strategy strategy;
    way ways[WAYS];
    int count;
    CVY_REQUIRE(problem->machine->device.memory_bytes > 0, CVY_ERR_INPUT,
                "machine %s does not say how much memory a device has: give --max-memory", problem->machine->name);
    CVY_TRY(choose_strategy(problem, &strategy));
    CVY_TRY(look(problem, &strategy, ways, &count));
    if (problem->options->json) {
        CVY_TRY(print_json(problem, &strategy, ways, count));
    } else {
        cli_print_setting(problem);
        printf("strategy %s\n", cli_print_strategy(&strategy, CVY_RECOMPUTE_NONE, text));
        print_ways(problem, ways, count);
    }
    return judge(problem, &strategy, ways, count);
}

static cvy_status run_fits(const cli_command *command, int argc, char **argv)
{
    return cli_problem_run(command, argc, argv, 1, answer);
}

const cli_command cli_fits = {
    .name = "fits",
    .operands = "MODEL",
    .usage = "MODEL --machine MACHINE",
    .max_operands = 1,
    .rows = CLI_FITS,
    .summary = "Say whether a model fits in memory, and with how large a batch",
    .examples = "  convoy fits resnet152 --machine abci --batch 64\n"
                "  convoy fits cosmoflow:size=256 --machine dgx-a100 --strategy height=4\n",
    .run = run_fits,
};
