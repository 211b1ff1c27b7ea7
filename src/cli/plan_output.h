/* How convoy plan shows its answer, and what it and convoy why write into files. */
#ifndef CVY_CLI_PLAN_OUTPUT_H
#define CVY_CLI_PLAN_OUTPUT_H

#include "cli/json_output.h"
#include "cli/planning.h"

/** The ranked table, the pick and its limits, what is not possible. */
cvy_status cli_print_plans(const cli_problem *problem, const cli_answer *answer);

/** The same as one line of JSON: a contract with scripts. */
cvy_status cli_print_plans_json(const cli_problem *problem, const cli_answer *answer);

/** A strategy with all its figures as an object of that JSON; NULL where memory is exhausted. */
json_t *cli_describe_estimate(const cvy_estimate *estimate, const cvy_limit *limit, int limits);

/** The parts of an iteration in seconds, by name: its breakdown_s. */
json_t *cli_describe_times(const cvy_estimate *estimate);

/** Closed forms beside estimates, of the strategies that have one. */
cvy_status cli_print_closed_forms(const cli_problem *problem, const cli_answer *answer);

/** The closed form of a strategy as JSON; null where it has none. */
cvy_status cli_describe_closed_form(const cli_problem *problem, const cli_answer *answer,
                                    const cvy_candidate *candidate, json_t **json_out);

/** Write --save and --timeline of a candidate, where they are given. @retval CVY_ERR_IO, CVY_ERR_MEMORY */
cvy_status cli_write_plan_files(const cli_problem *problem, const cli_answer *answer, const cvy_candidate *chosen);

/** Write a predicted iteration as a Chrome trace: a process a stage, a thread a stream. @retval CVY_ERR_IO */
cvy_status cli_write_trace(const cvy_trace *trace, const char *path);

#endif
