/* convoy plan: which way to train a model on a machine, how long it takes, what it needs and what limits it. */
#include "cli/plan_output.h"

static cvy_status show(const cli_problem *problem, const cli_answer *answer)
{
    const cvy_candidate *chosen = cli_answer_chosen(answer);
    if (problem->options->json) {
        CVY_TRY(cli_print_plans_json(problem, answer));
    } else if (chosen || answer->found) {
        CVY_TRY(cli_print_plans(problem, answer));
    }
    if (chosen) {
        CVY_TRY(cli_write_plan_files(problem, answer, chosen));
    }
    return cli_answer_check(problem, answer);
}

static cvy_status answer(cli_problem *problem)
{
    cli_answer answer = {.oracle = NULL};
    CVY_REQUIRE(problem->options->plan.epochs == 1 || problem->options->plan.samples, CVY_ERR_INPUT,
                "--epochs needs --samples, those of an epoch");
    cvy_status status = cli_answer_find(problem, 0, &answer);
    status = status == CVY_OK ? show(problem, &answer) : status;
    cli_answer_clear(&answer);
    return status;
}

static cvy_status run_plan(const cli_command *command, int argc, char **argv)
{
    return cli_problem_run(command, argc, argv, 0, answer);
}

const cli_command cli_plan = {
    .name = "plan",
    .operands = "MODEL",
    .usage = "MODEL --machine MACHINE\n"
             "--plan FILE\n"
             "--list-machines",
    .max_operands = 1,
    .rows = CLI_PLAN,
    .summary = "Rank the ways to train a model on a machine",
    .examples = "  convoy plan resnet50 --machine dgx-a100 --batch 64/rank\n"
                "  convoy plan resnet50 --machine abci --ranks 64 --strategy sample=16,channel=4\n"
                "  convoy plan vgg16 --machine abci --ranks 32 --save plan.yaml\n",
    .run = run_plan,
};
