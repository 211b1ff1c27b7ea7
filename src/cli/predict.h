/* What the oracle says that a run takes, kind of step by kind of step, to stand beside what a clock says. */
#ifndef CVY_CLI_PREDICT_H
#define CVY_CLI_PREDICT_H

#include "cli/decide.h"
#include "oracle/estimate.h"
#include "plan/step_kind.h"

/** A kind of step on the slowest rank of a stage, in an iteration. */
typedef struct cli_predicted_kind {
    char name[CVY_STEP_KIND_TEXT];
    int stage;
    double calls, seconds; /**< seconds of all calls */
} cli_predicted_kind;

/** An iteration, and all kinds of all stages; empty where nothing was predicted. */
typedef struct cli_prediction {
    const char *machine;        /**< as it was asked for; borrowed from the options and the decision */
    double iteration_s, error_relative;
    int64_t memory_bytes;       /**< of the rank with most */
    char why_not[CVY_WHY_TEXT]; /**< why nothing is predicted where there is no schedule; empty else */
    cvy_mesh mesh;
    int kinds;
    cli_predicted_kind *kind;
} cli_prediction;

/**
 * Predict a run whose options are whole: on the machine of the line, else of its plan file, else that `--strategy auto`
 * has reckoned with. Without any nothing is predicted, nor, which is told, where the machine's software has no schedule
 * for the strategy, or a machine that the line does not name is not here. The first rank does it for all. Collective.
 *
 * @param[out] prediction_out  empty on ranks that do not speak; released with cli_prediction_clear(), on failure too
 * @retval CVY_ERR_INPUT       the machine of the line is not known, is wrong, or has fewer devices than there are ranks
 * @retval CVY_ERR_MEMORY
 */
cvy_status cli_predict(const cli_options *options, const cli_decision *decision, cli_prediction *prediction_out);

/**
 * Predict a run as a line of convoy plan asks for it, with what runs do where the line leaves it open. Not collective.
 *
 * @param[in]  asked           with its machine, ranks, batch and strategy, or a plan file; borrowed by the prediction
 * @param[in]  model           as in cli_problem_open()
 * @param[in]  bucket_bytes    of the run, where the line says none
 * @param[out] prediction_out  released with cli_prediction_clear(); untouched on failure. A strategy without a schedule
 *                             is an answer: `why_not` says why
 * @retval CVY_ERR_INPUT       as cli_problem_open() says
 */
cvy_status cli_predict_line(const cli_options *asked, const char *model, int64_t bucket_bytes,
                            cli_prediction *prediction_out);

/**
 * Write `predicted_s` of rows: as many calls as were measured, each of the mean predicted seconds of a call of that
 * kind on the stage of the row's rank. Rows of kinds that the prediction has not, or gives no time, stay as they are.
 */
void cli_predict_rows(const cli_prediction *prediction, cvy_profile_row *row, int rows);

/**
 * What is predicted of a row's kind on a rank: the row's own prediction, as the stage of the rank has it; 0 where there
 * is none.
 */
double cli_predict_rank(const cli_prediction *prediction, const cvy_profile_row *row, int64_t rank);

void cli_prediction_clear(cli_prediction *prediction);

#endif
