/* The table of what took the time. */
#ifndef CVY_CLI_PROFILE_TABLE_H
#define CVY_CLI_PROFILE_TABLE_H

#include "convoy/train.h"

/**
 * Print rows, largest first, within 100 columns; shares are of @p wall_s, and what no row accounts for stands last.
 * Where the rows have floors these stand beside the seconds, with the share of the floor's speed that was reached; of
 * several ranks how many times as long a kind takes on the slowest as on the fastest; and predictions where there are.
 *
 * @param[in] most  rows to print; the others become one; 0: all
 */
void cli_print_profile(const cvy_profile_row *row, int rows, double wall_s, int most);

#endif
