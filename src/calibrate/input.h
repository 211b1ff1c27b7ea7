/* What a training waits for before it computes: the program's start, files, and the making of samples out of them. */
#ifndef CVY_CALIBRATE_INPUT_H
#define CVY_CALIBRATE_INPUT_H

#include "machine/machine.h"

/** Rates; 0 where one could not be measured. Starts from {0}. */
typedef struct cvy_input_rates {
    double read_Bps;   /**< of files that are not in memory yet, in the folder that was asked about */
    double decode_Bps; /**< bytes of floats that one thread makes out of files in memory: scaled, cropped, mirrored */
    double startup_s;  /**< from the start of the process until it is about to measure */
} cvy_input_rates;

/** Seconds since this process began; 0 where the system does not tell. */
double cvy_input_find_startup_s(void);

/**
 * Measure reading and decoding. Not collective. Writes 30 MB beside @p path, as a CIFAR-10 of noise, and removes them.
 *
 * @param[in]     path       a file that is to be written where data sets lie; need not be there
 * @param[in,out] rates_out  the start-up stays as it is; untouched on failure
 * @retval CVY_ERR_IO, CVY_ERR_MEMORY
 */
cvy_status cvy_input_measure(const char *path, cvy_input_rates *rates_out);

/** Write rates into a machine. @retval CVY_ERR_MEMORY */
cvy_status cvy_input_fill(const cvy_input_rates *rates, const char *date, cvy_machine *machine);

#endif
