/* What the files of convoy report share: a subject, looked at and put on a page. */
#ifndef CVY_CLI_REPORT_H
#define CVY_CLI_REPORT_H

#include "cli/planning.h"
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

/** The page of a study: as convoy sweep takes the line, with its strategies. */
cvy_status cli_report_study(const cli_problem *problem, const char *path);

#endif
