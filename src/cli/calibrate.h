/* What convoy calibrate shows of a calibration. */
#ifndef CVY_CLI_CALIBRATE_H
#define CVY_CLI_CALIBRATE_H

#include "calibrate/calibration.h"
#include "cli/options_common.h"

/** Print what was measured and how good the fits are, within 100 columns. @param[in] path of the machine file */
cvy_status cli_calibration_print(const cvy_calibration *calibration, const char *path);

/** Print the same as JSON. @retval CVY_ERR_MEMORY, CVY_ERR_IO */
cvy_status cli_calibration_print_json(const cvy_calibration *calibration, const char *path);

#endif
