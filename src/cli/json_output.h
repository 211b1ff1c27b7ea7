/* JSON on standard output. */
#ifndef CVY_CLI_JSON_OUTPUT_H
#define CVY_CLI_JSON_OUTPUT_H

#include "base/json.h"
#include "convoy/train.h"

/** A number; null for NaN and infinity, which JSON lacks. */
json_t *cli_json_number(double value);

/** The rows of a profile. */
json_t *cli_json_profile(const cvy_profile_row *row, int rows);

/** The rows of a profile with their shares of @p wall_s and their floors. */
json_t *cli_json_steps(const cvy_profile_row *row, int rows, double wall_s);

/**
 * Print an object on one line and release it.
 *
 * @param[in] object  NULL where memory was exhausted
 * @retval CVY_ERR_MEMORY, CVY_ERR_IO
 */
cvy_status cli_json_print(json_t *object);

#endif
