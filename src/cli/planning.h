/* What the commands that plan share: a command line made into a question, its answers, and how figures are shown. */
#ifndef CVY_CLI_PLANNING_H
#define CVY_CLI_PLANNING_H

#include "cli/options_common.h"
#include "oracle/limits.h"
#include "plan/plan_file.h"

/** What is asked. */
typedef struct cli_problem {
    const cli_options *options;
    const char *model_text, *machine_text; /**< as they were asked for */
    cvy_model *model;
    cvy_machine *machine;                  /**< with the memory that a rank may take */
    cvy_plan_file file;                    /**< of --plan; empty otherwise */
    int64_t ranks, batch;
    bool batch_per_rank;                   /**< the batch grows with the ranks */
    cvy_strategy strategy;                 /**< automatic: what is best */
    cvy_oracle_options oracle;
    cvy_scratch_book *scratch;             /**< of the oracle's; NULL where the machine is no such as this one */
    bool fixed_recompute;
    double price_usd_per_h;                /**< of a device; 0: unknown */
} cli_problem;

/**
 * Make a question of a command line: open the model and the machine, or the plan file that names them.
 *
 * @param[in]  options     borrowed, must outlive the problem
 * @param[in]  model       the operand; NULL: that of the options
 * @param[in]  ranks       where --ranks is not given; 0: all of the machine
 * @param[out] problem_out released with cli_problem_clear(), also after a failure
 * @retval CVY_ERR_INPUT   one line: what was found, what is expected
 */
cvy_status cli_problem_open(const cli_command *command, const cli_options *options, const char *model, int64_t ranks,
                            cli_problem *problem_out);

/** Release what a problem owns, and empty it. */
void cli_problem_clear(cli_problem *problem);

/** Answer a problem: find, print, and say by the status whether there is an answer. */
typedef cvy_status cli_answerer(cli_problem *problem);

/**
 * Run a command that plans, from its line to its answer. Help and --list-machines, where they are asked for, are all.
 *
 * @param[in] ranks   as in cli_problem_open()
 * @param[in] answer  called with the problem that the line asks
 * @retval CVY_ERR_INPUT as cli_parse() and cli_problem_open() say; else what @p answer says
 */
cvy_status cli_problem_run(const cli_command *command, int argc, char **argv, int64_t ranks, cli_answerer *answer);

/** Read "4096" or "32/rank"; @p per_rank_out may be NULL. @retval CVY_ERR_INPUT */
cvy_status cli_parse_batch(const char *text, int64_t ranks, int64_t *batch_out, bool *per_rank_out);

/** Read "25MB" of an option; nothing is changed where it is NULL. @retval CVY_ERR_INPUT */
cvy_status cli_parse_size(const char *option, const char *text, int64_t *bytes_out);

/** Read a strategy for a number of ranks, with --micro-batches. @retval CVY_ERR_INPUT */
cvy_status cli_parse_strategy(const cli_problem *problem, const char *text, int64_t ranks,
                              cvy_strategy *strategy_out);

/** What the oracle options of a command line are, but for batch and precision. @retval CVY_ERR_INPUT */
cvy_status cli_parse_oracle_options(const cli_options *options, cvy_oracle_options *oracle_out);

/** Strategies with their estimates: of a search, or of one strategy, beside data parallelism. */
typedef struct cli_answer {
    cvy_oracle *oracle;
    const cvy_search *search; /**< one of those below */
    cvy_search *found;        /**< NULL where one strategy was asked for */
    cvy_search given;
    cvy_candidate candidate[2];
} cli_answer;

/**
 * Answer a problem.
 *
 * @param[in]  simulations  of a search, at most; 0: its default
 * @param[out] answer_out   released with cli_answer_clear(), also after a failure
 */
cvy_status cli_answer_find(const cli_problem *problem, int simulations, cli_answer *answer_out);

void cli_answer_clear(cli_answer *answer);

/** The question that a candidate answers. */
cvy_estimate_question cli_answer_question(const cli_problem *problem, const cvy_candidate *candidate);

/**
 * Limits of a candidate, as cvy_limits_find() finds them; changes keep the stages that the estimate found.
 *
 * @param[out] limit_out  room for CVY_MAX_LIMITS
 */
cvy_status cli_answer_limits(const cli_problem *problem, const cli_answer *answer, const cvy_candidate *candidate,
                             bool what_if, cvy_limit *limit_out, int *count_out);

/** What the user asked to look at: the strategy given, else the pick; NULL where nothing fits. */
const cvy_candidate *cli_answer_chosen(const cli_answer *answer);

/** @retval CVY_ERR_INFEASIBLE why there is nothing to choose */
cvy_status cli_answer_check(const cli_problem *problem, const cli_answer *answer);

/** Devices of a number of ranks for so many hours; 0 where the price is unknown. */
double cli_problem_price(const cli_problem *problem, int64_t ranks, double seconds);

/** Iterations of an epoch of --samples. */
double cli_problem_iterations(const cli_problem *problem);

/* ---- as people read it ---- */

/** Lines are no wider. */
enum { CLI_WIDTH = 100, CLI_STRATEGY_TEXT = CVY_STRATEGY_TEXT + 32 };

/** "sample=4,height=2 mix recompute cheap": a candidate, as below; a mix cuts layer by layer. Returns @p text. */
const char *cli_print_candidate(const cvy_candidate *candidate, char *text);

/** "sample=4,height=2 recompute cheap": without what goes without saying. Returns @p text, of CLI_STRATEGY_TEXT. */
const char *cli_print_strategy(const cvy_strategy *strategy, cvy_recompute recompute, char *text);

/** "resnet50 on abci: 64 of 4,352 V100-SXM2-16GB, batch 2,048 (32 a rank), fp32, momentum", ended. */
void cli_print_setting(const cli_problem *problem);

/** Words from column @p indent on, broken before CLI_WIDTH, the first line without the indent. */
void cli_print_wrapped(int indent, const char *words);

/** A strategy in a column of @p width; where it is longer, on a line of its own with blanks for the column below. */
void cli_print_column(int width, const char *words);

/** Limits, one a line with its number, and what would lift it. */
void cli_print_limits(const cvy_limit *limit, int count);

/** "USD 12.30"; "-" where it is 0. @p text takes CVY_UNIT_TEXT bytes. */
const char *cli_print_price(double usd, char *text);

/** The last @p width characters of a layer's name, which tell layers apart. @p text takes width + 1 bytes. */
const char *cli_print_layer_name(const char *name, int width, char *text);

#endif
