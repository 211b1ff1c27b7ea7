/* What the files of convoy sweep share: a line made into a study, and how a study is shown. */
#ifndef CVY_CLI_SWEEP_H
#define CVY_CLI_SWEEP_H

#include "cli/planning.h"
#include "oracle/sweep.h"

/** A study with the text that its strategies lie in. */
typedef struct cli_study {
    const cli_problem *problem;
    cvy_sweep_options options;
    char *strategies; /**< owned */
    cvy_sweep *sweep;
} cli_study;

/** Read --ranks, --strategy, --vary, --study and --cross. @retval CVY_ERR_INPUT what was found, what is expected */
cvy_status cli_study_read(const cli_problem *problem, cli_study *study_out);

/** @retval CVY_ERR_INFEASIBLE  the first strategy is possible nowhere; the reason */
cvy_status cli_study_check(const cli_study *study);

/** Release what it owns and empty it. */
void cli_study_clear(cli_study *study);

/** Read "1,2,4" or "1:1024". @retval CVY_ERR_INPUT */
cvy_status cli_parse_ranks(const char *text, int64_t devices, cvy_sweep_options *options);

/** Read "link-bandwidth=x1/4:x4;batch=16,32". @retval CVY_ERR_INPUT */
cvy_status cli_parse_axes(const char *text, const cli_problem *problem, cvy_sweep_options *options);

/** The tables for people, within CLI_WIDTH columns. */
void cli_print_study(const cli_study *study);

/** One line of JSON: a contract with scripts. @retval CVY_ERR_MEMORY, CVY_ERR_IO */
cvy_status cli_print_study_json(const cli_study *study);

/** All points as CSV; docs/sweep.md has the columns. @retval CVY_ERR_MEMORY, CVY_ERR_IO */
cvy_status cli_write_study_csv(const cli_study *study, const char *path);

/** Charts as SVG; where gnuplot is missing a line says so. @retval CVY_ERR_MEMORY, CVY_ERR_IO */
cvy_status cli_write_study_charts(const cli_study *study, const char *path);

#endif
