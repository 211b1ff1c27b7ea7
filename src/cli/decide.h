/* How the ranks of a run divide the work: as the line says, as a plan file says, or as the oracle finds best. */
#ifndef CVY_CLI_DECIDE_H
#define CVY_CLI_DECIDE_H

#include "cli/options_common.h"
#include "plan/plan_file.h"

/** A small cluster of CPUs: what --strategy auto reckons with where nobody says better. */
#define CLI_DEFAULT_MACHINE "ethernet-cpu"

/** What was decided. Options borrow texts of it. */
typedef struct cli_decision {
    cvy_plan_file file;               /**< of --plan; empty otherwise */
    char strategy[CVY_STRATEGY_TEXT]; /**< of --plan, or that --strategy auto stands for */
} cli_decision;

/**
 * Lay the plan file of --plan under the line: its model, batch, precision and optimizer hold where the line says none.
 * Nothing happens where there is none.
 *
 * @param[in,out] options, parsed  of the line, which is parsed once more
 * @param[in,out] decision         empty; released with cli_decision_clear() after the options, on failure too
 * @retval CVY_ERR_INPUT       no plan; it is for other ranks; the line contradicts it
 * @retval CVY_ERR_UNSUPPORTED a precision that nothing here computes in
 */
cvy_status cli_decide_plan(const cli_command *command, int argc, char **argv, cli_options *options,
                           cvy_parsed_options *parsed, cli_decision *decision);

/**
 * Decide the strategy of options whose model is known: `auto` becomes the best one that the oracle finds, and is told;
 * another is held against the ranks. Where --machine names a file that tells a bucket and --bucket none, that holds.
 * Collective.
 *
 * @param[in] mine              how things went so far; all ranks end here where one failed
 * @param[in] model             as opened; NULL where it was not
 * @retval CVY_ERR_INPUT        no strategy of so many ranks, or no such machine
 * @retval CVY_ERR_INFEASIBLE   nothing fits
 */
cvy_status cli_decide_strategy(cvy_status mine, const cvy_model *model, cli_options *options, cli_decision *decision);

/** Room for the words of a batch. */
enum { CLI_BATCH_TEXT = 24 };

/**
 * Make the line of convoy plan that asks about a training: its batch, precision, recomputation and micro-batches, on
 * the ranks that there are. Recomputation that the training was not told is left open.
 *
 * @param[in]  strategy   borrowed by the line
 * @param[out] batch      room that the line borrows, too
 * @param[out] asked_out  without a plan file; the machine is as in @p options
 */
void cli_decide_question(const cli_options *options, const char *strategy, char batch[CLI_BATCH_TEXT],
                         cli_options *asked_out);

void cli_decision_clear(cli_decision *decision);

/**
 * From the line of a command that takes a model and a plan file to options that are whole but for a strategy that is
 * still to be found; or to help, which is printed: `help` of @p parsed then says that the command is done.
 *
 * @retval CVY_ERR_INPUT as cli_parse() and cli_decide_plan() say, or no model
 */
cvy_status cli_decide_line(const cli_command *command, int argc, char **argv, cli_options *options,
                           cvy_parsed_options *parsed, cli_decision *decision);

#endif
