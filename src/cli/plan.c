/* convoy plan: which way to train a model on a machine, how long it takes, what it needs and what limits it. */
#include <stdio.h>

#include "base/json.h"
#include "cli/plan_output.h"

static cvy_status print_machines(bool json)
{
    enum { INDENT = 15 };
    cvy_machine_names names = {0};
    CVY_TRY(cvy_machine_list(&names));
    json_t *list = json ? json_array() : NULL;
    for (int i = 0; i < names.count; i++) {
        const cvy_machine_entry *entry = &names.entry[i];
        if (json) {
            json_array_append_new(list, json_pack("{s:s, s:s}", "name", entry->name, "summary", entry->summary));
        } else {
            printf("%-*s", INDENT, entry->name);
            cli_print_wrapped(INDENT, entry->summary);
        }
    }
    cvy_machine_names_clear(&names);
    return json ? cli_json_print(list) : CVY_OK;
}

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

static cvy_status run_plan(const cli_command *command, int argc, char **argv)
{
    cli_options options = cli_options_init;
    cvy_parsed_options parsed;
    cli_problem problem = {.options = NULL};
    cli_answer answer = {.oracle = NULL};
    cvy_status status = cli_parse(command, argc, argv, &options, &parsed);
    if (status != CVY_OK || parsed.help) {
        goto done;
    }
    if (options.plan.list_machines) {
        status = print_machines(options.json);
        goto done;
    }
    CVY_REQUIRE_GOTO(status, done, options.plan.epochs == 1 || options.plan.samples, CVY_ERR_INPUT,
                     "--epochs needs --samples, those of an epoch");
    CVY_TRY_GOTO(status, done, cli_problem_open(command, &options, parsed.operands ? parsed.operand[0] : NULL, 0,
                                                &problem));
    CVY_TRY_GOTO(status, done, cli_answer_find(&problem, 0, &answer));
    status = show(&problem, &answer);
done:
    cli_answer_clear(&answer);
    cli_problem_clear(&problem);
    cvy_parsed_options_clear(&parsed);
    return status;
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
