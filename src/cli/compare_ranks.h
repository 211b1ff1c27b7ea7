/* The ranks of a run beside each other, for convoy compare RUN. */
#ifndef CVY_CLI_COMPARE_RANKS_H
#define CVY_CLI_COMPARE_RANKS_H

#include "cli/run_profile.h"

/** Seconds of an iteration over the kinds that have a prediction. */
typedef struct cli_run_sums {
    double predicted_s, measured_s;
    double excess_s, lack_s; /**< predicted beyond measured, kind by kind; and the reverse */
    double unpredicted_s;    /**< measured, of kinds without a prediction */
} cli_run_sums;

/** Sum up a rank; below 0: each kind where it took longest. */
cli_run_sums cli_run_sum(const cli_run_profile *profile, int rank);

/** Print a line for each rank, and with @p all a table of each one's kinds. Nothing where ranks are not told apart. */
void cli_print_run_ranks(const cli_run_profile *profile, bool all);

/** All of that, as an array; NULL without memory. */
json_t *cli_describe_run_ranks(const cli_run_profile *profile);

#endif
