/* What convoy calibrate shows of a calibration. */
#ifndef CVY_CLI_CALIBRATE_H
#define CVY_CLI_CALIBRATE_H

#include "calibrate/calibration.h"
#include "cli/options_common.h"

/** Print what was measured and how good the fits are, within 100 columns. @param[in] path of the machine file */
cvy_status cli_calibration_print(const cvy_calibration *calibration, const char *path);

/** Print the same as JSON. @retval CVY_ERR_MEMORY, CVY_ERR_IO */
cvy_status cli_calibration_print_json(const cvy_calibration *calibration, const char *path);

/**
 * Find the ops of plans of --model with --batch: on one rank, or of every rank as each --strategy cuts it.
 *
 * @param[in]  block         channels of a block of formats
 * @param[out] op_out        released with cvy_free(); untouched, and no ops, without --model
 * @param[out] distance_out  of each, as cvy_schedule_distances() says; released with cvy_free()
 * @retval CVY_ERR_INPUT, CVY_ERR_INFEASIBLE, CVY_ERR_MEMORY
 */
cvy_status cli_calibration_find_ops(const cli_options *options, int block, cvy_op **op_out, double **distance_out,
                                    int *ops_out);

#endif
