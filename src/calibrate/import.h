/*
 * Kernels that were measured elsewhere: a table of their times takes the place of a survey, so that predictors are
 * fitted for a machine that is not here.
 */
#ifndef CVY_CALIBRATE_IMPORT_H
#define CVY_CALIBRATE_IMPORT_H

#include "calibrate/survey.h"

/**
 * Read a table: CSV with a line of names. `kernel`, `pass` and `seconds` must be there; the other columns are numbers
 * that are 1 (0 of `pad`, `bias` and `error`) where the column or the cell is missing:
 *
 *   kernel     a kind of op, as in machine files: convolution, dense, batch-norm, max-pool, relu, add, sgd, ...
 *   pass       forward, backward-data, backward-weights, backward, update, ...
 *   seconds    of one run
 *   n c d h w  samples, channels and positions of the input; d of volumes alone, h and w not of dense layers; of an
 *              optimizer n is the parameters
 *   f          filters of a convolution, outputs of a dense layer, channels of a concat
 *   kd kh kw   window; stride: its step; pad: on every side; g: groups
 *   bias       1: the op adds a bias, or finds its gradient
 *   error      relative, of the seconds
 *
 * Formats are plain, numbers are f32.
 *
 * @param[out] survey_out      released with cvy_kernel_survey_clear(), also after a failure
 * @retval CVY_ERR_INPUT       "FILE:LINE: ...": what is no table, or no op
 * @retval CVY_ERR_MEMORY
 */
cvy_status cvy_import_kernels(const char *path, cvy_kernel_survey *survey_out);

#endif
