/* What a training says of itself: before the first step on standard error, at the end on standard output. */
#ifndef CVY_CLI_TRAIN_REPORT_H
#define CVY_CLI_TRAIN_REPORT_H

#include "cli/predict.h"
#include "cli/progress.h"

/** Print what is about to run, and warn where it has fewer cores than it could have. */
void cli_print_start(cli_progress *progress, const cvy_train_start *start);

/** Print the result for people: accuracy, time, memory, what took the time, what to run next. */
void cli_print_result(const cli_options *options, const cli_prediction *prediction, const cvy_train_result *result,
                      bool preempted);

/** Print the result as JSON. */
cvy_status cli_print_result_json(const cli_options *options, const cvy_train_result *result, bool preempted);

#endif
