/* What the files of convoy report share: a subject, looked at and put on a page. */
#ifndef CVY_CLI_REPORT_H
#define CVY_CLI_REPORT_H

#include "cli/planning.h"
#include "report/run_page.h"
#include "report/sections.h"

/** What a run adds to the page of its plan; empty for a plan. */
typedef struct cli_measured_mark {
    const char *name;
    double images_per_s; /**< 0: nothing was measured */
} cli_measured_mark;

/**
 * Put a plan on a page: the plans of the answer, and the chosen one in depth.
 *
 * @param[in] mark  stands beside the scaling curves
 * @retval CVY_ERR_INFEASIBLE  nothing fits; the page has the reasons all the same
 */
cvy_status cli_report_plans(cvy_page *page, const cli_problem *problem, const cli_answer *answer,
                            const cli_measured_mark *mark);

/** The page of a plan, from a problem to the file. */
cvy_status cli_report_problem(const cli_problem *problem, const char *path);

/** What a run's metrics.jsonl says of its course. */
typedef struct cli_run_metrics {
    int steps, step_capacity, epochs, epoch_capacity;
    cvy_run_note *step, *epoch;
} cli_run_metrics;

/**
 * Read RUN/metrics.jsonl.
 *
 * @param[out] metrics_out  released with cli_run_metrics_clear(); untouched on failure
 * @retval CVY_ERR_INPUT    there is none, or it is too large
 */
cvy_status cli_run_metrics_load(const char *run, cli_run_metrics *metrics_out);

/** Release what it owns and empty it. */
void cli_run_metrics_clear(cli_run_metrics *metrics);

/** The page of a run; --machine, where it is given, is what its plan is priced on. @retval CVY_ERR_INPUT no run */
cvy_status cli_report_run(const char *run, const cli_options *options, const char *path);

/** The page of a table of measurements, as convoy compare --measured takes it. @retval CVY_ERR_INPUT as that says */
cvy_status cli_report_measured(const char *file, const cli_options *options, const char *path);

/** The page of a study: as convoy sweep takes the line, with its strategies. */
cvy_status cli_report_study(const cli_problem *problem, const char *path);

#endif
