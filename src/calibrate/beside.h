/*
 * What ranks do to each other, and an exchange to what is computed beside it, over pieces of work as long as a step of
 * a training: kernels are measured one by one, and this is what comes on top.
 */
#ifndef CVY_CALIBRATE_BESIDE_H
#define CVY_CALIBRATE_BESIDE_H

#include "backend/backend.h"
#include "calibrate/network.h"

/** What was found. Starts from {0}: nothing was measured. */
typedef struct cvy_beside {
    int rounds;               /**< over which medians were taken */
    double lockstep;          /**< time of work that all ranks do at once, by what its kernels take alone; from 1 */
    double spread;            /**< standard deviation of the time of such work by its mean: of one rank from round to
                                   round; of several what explains how long all wait for the slowest */
    double exchange_slowdown; /**< time of an all-reduce beside computing, by its time alone; from 1; 0: one rank */
    double compute_slowdown;  /**< time of computing beside it, by its time without; from 1; 0: one rank */
} cvy_beside;

/**
 * Measure, in a second or two, with the threads that are set. Collective: all ranks get the same.
 *
 * The exchange makes progress each few milliseconds, as it does between the steps of backward.
 *
 * @param[in] network  of the same ranks; NULL, or without curves: one rank
 * @retval CVY_ERR_UNSUPPORTED no backend multiplies matrices
 * @retval CVY_ERR_RANK, CVY_ERR_MEMORY
 */
cvy_status cvy_beside_measure(cvy_comm *comm, const cvy_backend_chain *chain, const cvy_network_profile *network,
                              cvy_beside *beside_out);

/** Sum up rounds of work. @param[in] seconds of each rank, round by round @param[in] expected_s of its kernels */
void cvy_beside_sum_up(const double *seconds, const double *expected_s, int rounds, int ranks, cvy_beside *beside);

/** Write what was found into a machine. @retval CVY_ERR_MEMORY */
cvy_status cvy_beside_fill(const cvy_beside *beside, const char *date, cvy_machine *machine);

#endif
