/*
 * A calibration: what was measured of a machine, what was fitted to it, and the machine file that says so, with its
 * table of kernels and its predictors beside it.
 */
#ifndef CVY_CALIBRATE_CALIBRATION_H
#define CVY_CALIBRATE_CALIBRATION_H

#include "base/topology.h"
#include "calibrate/beside.h"
#include "calibrate/fit.h"
#include "calibrate/input.h"
#include "calibrate/network.h"
#include "calibrate/peaks.h"
#include "calibrate/survey.h"
#include "machine/machine.h"

/** Room for a name. */
enum { CVY_CALIBRATION_NAME = 64 };

/** What a calibration knows. Starts from {0}. */
typedef struct cvy_calibration {
    cvy_topology host;
    int threads;
    char date[16];             /**< 2026-11-30 */
    cvy_peaks peaks;
    cvy_kernel_survey survey;
    cvy_fit *fit;              /**< one for each kind and pass that has samples enough, by their numbers */
    int fits;
    cvy_fit_shares shares;     /**< of all other kernels, by all that were measured */
    cvy_fit_score rest;        /**< of these shares, over all that was measured */
    int64_t process_bytes;     /**< resident set of a process that computes, without tensors; 0: unknown */
    cvy_network_profile network; /**< without curves where one rank measured alone */
    cvy_input_rates input;     /**< without rates where they were not measured */
    cvy_beside beside;         /**< without rounds where it was not measured */
} cvy_calibration;

/** A name out of a host's facts, as 2core-avx512-24gb. @return @p name, of CVY_CALIBRATION_NAME bytes */
const char *cvy_calibration_name(const cvy_topology *host, char *name);

/** The device that was measured. */
cvy_fit_device cvy_calibration_device(const cvy_calibration *calibration);

/**
 * Fit each kind and pass of the survey; leaves as many threads set as it was measured with.
 *
 * @retval CVY_ERR_INFEASIBLE nothing was measured
 * @retval CVY_ERR_MEMORY
 */
cvy_status cvy_calibration_fit(cvy_calibration *calibration);

/**
 * Make the machine of a calibration: a device is what one rank has, its threads and its share of the memory; every
 * figure has its source.
 *
 * @param[in]  name         of the machine, and of the folder of files beside its own
 * @param[out] machine_out  released with cvy_machine_destroy()
 * @retval CVY_ERR_MEMORY
 */
cvy_status cvy_calibration_make_machine(const cvy_calibration *calibration, const char *name,
                                        cvy_machine **machine_out);

/** Write the shares of the peaks that kernels reach, and how far off they are, behind a machine's rules. */
cvy_status cvy_calibration_add_rules(const cvy_calibration *calibration, cvy_machine *machine);

/** Whether a file may be written: there is none, or it is a calibration's own. @retval CVY_ERR_INPUT it is not */
cvy_status cvy_calibration_check_target(const char *path);

/**
 * Write PATH (NAME.yaml), and its table of kernels and predictors in a folder NAME.kernels beside it. The machine file
 * comes last, so that it never names what is not there.
 *
 * @retval CVY_ERR_IO, CVY_ERR_MEMORY
 */
cvy_status cvy_calibration_save(const cvy_calibration *calibration, const char *path);

/**
 * Write a machine again, with what was measured between the ranks in place of what it said: its device stays, with the
 * tables and predictors where they are.
 *
 * @param[in,out] machine  read from a file
 * @retval CVY_ERR_IO, CVY_ERR_MEMORY
 */
cvy_status cvy_calibration_extend(const cvy_calibration *calibration, cvy_machine *machine, const char *path);

/**
 * Write a machine again, with the kernels of the survey and what was fitted to them in place of what it said of
 * kernels: peaks, links and all else stay.
 *
 * @param[in,out] machine  of which the survey is
 * @retval CVY_ERR_IO, CVY_ERR_MEMORY
 */
cvy_status cvy_calibration_replace(const cvy_calibration *calibration, cvy_machine *machine, const char *path);

/** Release and empty. */
void cvy_calibration_clear(cvy_calibration *calibration);

#endif
