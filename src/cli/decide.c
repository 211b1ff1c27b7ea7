/*
 * Every rank reads the same line and the same plan file; what the oracle finds, it finds on the first rank alone, since
 * searches on several would take the cores from each other, and tells the others.
 */
#include "cli/decide.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cli/planning.h"
#include "cli/ranks.h"

/* ---- a plan file ---- */

/* What a plan decides beyond what it shares with a line is not to be said again: it would do nothing, in silence. */
static cvy_status check_undecided(const cli_options *o)
{
    const struct {
        bool given;
        const char *name;
    } decided[] = {
        {o->strategy != NULL, "strategy"},
        {o->micro_batches != 0, "micro-batches"},
        {o->recompute != 0, "recompute"},
        {o->plan.norm_axes != NULL, "norm-axes"},
        {o->plan.bucket != NULL, "bucket"},
        {o->plan.shard_optimizer, "shard-optimizer"},
    };
    for (size_t i = 0; i < sizeof decided / sizeof decided[0]; i++) {
        CVY_REQUIRE(!decided[i].given, CVY_ERR_INPUT, "--%s: the plan of --plan has decided it", decided[i].name);
    }
    return CVY_OK;
}

/* What the plan says of a training becomes what the line has where it says nothing. */
static cvy_status lay_under(const char *path, const cvy_plan_decisions *plan, cli_options *options)
{
    const char *optimizer = cvy_optimizer_find_name(&plan->optimizer);
    int index = 0;
    CVY_REQUIRE(plan->precision == CVY_PRECISION_FP32 || plan->precision == CVY_PRECISION_FP64, CVY_ERR_UNSUPPORTED,
                "%s: precision %s: training computes in fp32 or fp64", path, cvy_precision_name(plan->precision));
    CVY_REQUIRE(plan->strategy.mesh.ranks == cli_ranks_count(), CVY_ERR_INPUT,
                "%s: the plan is for %" PRId64 " ranks, found %d: start it with mpiexec -n %" PRId64, path,
                plan->strategy.mesh.ranks, cli_ranks_count(), plan->strategy.mesh.ranks);
    while (strcmp(cvy_optimizer_names[index], optimizer) != 0) { /* the option's choices are these names */
        index++;
    }
    options->model = plan->model;
    options->train.batch = plan->batch;
    options->train.optimizer = (cvy_optimizer_name)index;
    options->precision = plan->precision == CVY_PRECISION_FP64 ? CLI_FP64 : CLI_FP32;
    return CVY_OK;
}

static cvy_status check_alike(const char *path, const cli_options *plan, const cli_options *line)
{
    const int optimizer = plan->train.optimizer;
    CVY_REQUIRE(plan->train.batch == line->train.batch, CVY_ERR_INPUT,
                "--batch: the plan %s is for batch %" PRId64 ", found %" PRId64, path, plan->train.batch,
                line->train.batch);
    CVY_REQUIRE(plan->precision == line->precision, CVY_ERR_INPUT, "--precision: the plan %s is for %s", path,
                plan->precision == CLI_FP64 ? "fp64" : "fp32");
    CVY_REQUIRE(plan->train.optimizer == line->train.optimizer, CVY_ERR_INPUT,
                "--optimizer: the plan %s is for %s, found %s", path, cvy_optimizer_names[optimizer],
                cvy_optimizer_names[line->train.optimizer]);
    return CVY_OK;
}

cvy_status cli_decide_plan(const cli_command *command, int argc, char **argv, cli_options *options,
                           cvy_parsed_options *parsed, cli_decision *decision)
{
    cli_options under = cli_options_init;
    if (!options->train.plan) {
        return CVY_OK;
    }
    const char *model = parsed->operands ? parsed->operand[0] : options->model;
    CVY_TRY(check_undecided(options));
    CVY_TRY(cvy_plan_file_load(options->train.plan, model, &decision->file));
    CVY_TRY(lay_under(options->train.plan, &decision->file.decisions, &under));
    *options = under;
    cvy_parsed_options_clear(parsed);
    CVY_TRY(cli_parse(command, argc, argv, options, parsed));
    options->strategy = cvy_strategy_print(&decision->file.decisions.strategy, decision->strategy);
    options->train.strategy = options->strategy;
    return check_alike(options->train.plan, &under, options);
}

/* ---- a strategy ---- */

/* What the oracle found, as it goes to the other ranks. */
typedef struct finding {
    char strategy[CVY_STRATEGY_TEXT];
    int32_t recompute;
} finding;

/* The best that a strategy's words say: a mix of cuts layer by layer is a matter for plan files. */
static const cvy_candidate *choose(const cli_answer *answer)
{
    const cvy_candidate *pick = cli_answer_chosen(answer);
    for (int i = 0; pick && pick->choices && i < answer->search->count; i++) {
        const cvy_candidate *other = &answer->search->candidate[i];
        pick = other->fits && !other->choices ? other : pick;
    }
    return pick;
}

static void tell(const cli_problem *problem, const cvy_candidate *found)
{
    char words[CLI_STRATEGY_TEXT], unit[CVY_UNIT_TEXT];
    fprintf(stderr, "auto: %s (predicted %s an iteration on %s; see convoy plan %s --machine %s --ranks %" PRId64
            " --batch %" PRId64 ")\n", cli_print_candidate(found, words),
            cvy_print_seconds(found->estimate.iteration_s, unit), problem->machine->name, problem->model_text,
            problem->machine_text, problem->ranks, problem->batch);
}

static cvy_status search(const cli_problem *problem, cli_answer *answer, finding *finding_out)
{
    CVY_TRY(cli_answer_find(problem, 0, answer));
    CVY_TRY(cli_answer_check(problem, answer));
    const cvy_candidate *found = choose(answer);
    cvy_strategy_print(&found->estimate.strategy, finding_out->strategy);
    finding_out->recompute = found->estimate.recompute;
    if (!problem->options->quiet) {
        tell(problem, found);
    }
    return CVY_OK;
}

void cli_decide_question(const cli_options *options, const char *strategy, char batch[CLI_BATCH_TEXT],
                         cli_options *asked_out)
{
    snprintf(batch, CLI_BATCH_TEXT, "%" PRId64, options->train.batch);
    *asked_out = *options;
    asked_out->plan.batch = batch;
    asked_out->plan.strategy = strategy;
    asked_out->plan.ranks = cli_ranks_count();
    asked_out->plan.micro_batches = options->micro_batches;
    asked_out->plan.precision = options->precision == CLI_FP64 ? CVY_PRECISION_FP64 : CVY_PRECISION_FP32;
    asked_out->plan.recompute = options->recompute ? options->recompute + 1 : 0;
}

static cvy_status ask_oracle(const cli_options *options, finding *finding_out)
{
    static const cli_command planning = {.name = "plan"};
    char batch[CLI_BATCH_TEXT];
    cli_options asked;
    cli_problem problem = {.options = NULL};
    cli_answer answer = {.oracle = NULL};
    cli_decide_question(options, "auto", batch, &asked);
    asked.plan.machine = options->plan.machine ? options->plan.machine : CLI_DEFAULT_MACHINE;
    cvy_status status = cli_problem_open(&planning, &asked, options->model, 0, &problem);
    status = status == CVY_OK ? search(&problem, &answer, finding_out) : status;
    cli_answer_clear(&answer);
    cli_problem_clear(&problem);
    return status;
}

static cvy_status find_best(cli_options *options, cli_decision *decision)
{
    finding found = {.recompute = 0};
    CVY_TRY(cli_ranks_agree(cli_ranks_speak() ? ask_oracle(options, &found) : CVY_OK));
    CVY_TRY(cli_ranks_broadcast(&found, sizeof found));
    memcpy(decision->strategy, found.strategy, sizeof decision->strategy);
    options->strategy = options->train.strategy = decision->strategy;
    options->recompute = found.recompute;
    options->train.recompute = cvy_recompute_name((cvy_recompute)found.recompute);
    return CVY_OK;
}

/* ---- buckets ---- */

static cvy_status read_bucket(const cli_options *options, int64_t *bytes_out)
{
    cvy_machine *machine = NULL;
    CVY_TRY(cvy_machine_open(options->plan.machine, &machine));
    *bytes_out = machine->execution.bucket_bytes;
    cvy_machine_destroy(&machine);
    return CVY_OK;
}

/* A machine file may know which bucket is fastest there; one that says nothing leaves the usual one. */
static cvy_status find_bucket(cli_options *options)
{
    int64_t bytes = 0;
    if (!options->plan.machine || options->plan.bucket || options->train.plan) {
        return CVY_OK;
    }
    CVY_TRY(cli_ranks_agree(cli_ranks_speak() ? read_bucket(options, &bytes) : CVY_OK));
    CVY_TRY(cli_ranks_broadcast(&bytes, sizeof bytes));
    options->train.bucket_bytes = bytes > 0 ? bytes : options->train.bucket_bytes;
    return CVY_OK;
}

cvy_status cli_decide_strategy(cvy_status mine, const cvy_model *model, cli_options *options, cli_decision *decision)
{
    int64_t space[3];
    cvy_strategy strategy = {.automatic = false};
    if (mine == CVY_OK && options->strategy) {
        cvy_strategy_find_space(&model->layer[0].output, space);
        mine = cvy_strategy_parse(options->strategy, cli_ranks_count(), space, &strategy);
    }
    CVY_TRY(cli_ranks_agree(mine));
    CVY_TRY(find_bucket(options));
    return strategy.automatic ? find_best(options, decision) : CVY_OK;
}

void cli_decision_clear(cli_decision *decision) { cvy_plan_file_clear(&decision->file); }

cvy_status cli_decide_line(const cli_command *command, int argc, char **argv, cli_options *options,
                           cvy_parsed_options *parsed, cli_decision *decision)
{
    CVY_TRY(cli_parse(command, argc, argv, options, parsed));
    if (parsed->help) {
        return CVY_OK;
    }
    CVY_TRY(cli_decide_plan(command, argc, argv, options, parsed, decision));
    if (parsed->operands) {
        options->model = parsed->operand[0];
    }
    CVY_REQUIRE(options->model, CVY_ERR_INPUT,
                "convoy %s needs a model: convoy %s MODEL; see convoy model --list", command->name, command->name);
    return CVY_OK;
}
