/* The way of every command that plans: the line is parsed, made into a question, and answered; all is released. */
#include <stdio.h>

#include "cli/json_output.h"
#include "cli/planning.h"

static cvy_status list_machines(bool json)
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

cvy_status cli_problem_run(const cli_command *command, int argc, char **argv, int64_t ranks, cli_answerer *answer)
{
    cli_options options = cli_options_init;
    cvy_parsed_options parsed;
    cli_problem problem = {.options = NULL};
    cvy_status status = cli_parse(command, argc, argv, &options, &parsed);
    if (status == CVY_OK && options.plan.list_machines && !parsed.help) {
        status = list_machines(options.json);
    } else if (status == CVY_OK && !parsed.help) {
        status = cli_problem_open(command, &options, parsed.operands ? parsed.operand[0] : NULL, ranks, &problem);
        status = status == CVY_OK ? answer(&problem) : status;
    }
    cli_problem_clear(&problem);
    cvy_parsed_options_clear(&parsed);
    return status;
}
