/*
 * How far away an op's operands are when it runs: the bytes that steps have touched since somebody last touched them
 * (the reuse distance of Mattson, Gecsei, Slutz, Traiger, "Evaluation techniques for storage hierarchies", 1970, with
 * repeated bytes counted as often as they are touched). Of a distance below a cache's size they are still there.
 */
#ifndef CVY_ORACLE_DISTANCE_H
#define CVY_ORACLE_DISTANCE_H

#include "plan/schedule.h"

/**
 * Find the distance of each step of a schedule, in an iteration that follows another one.
 *
 * A step's is the geometric mean over the bytes of its operands, its own bytes included, each at most
 * CVY_FARTHEST_BYTES. Memory counts by where it lies: what shares a place is near to what lay there before.
 *
 * @param[out] distance_out bytes, one a step; 0 of steps that touch nothing
 * @retval CVY_ERR_MEMORY
 */
cvy_status cvy_schedule_distances(const cvy_schedule *schedule, double *distance_out);

#endif
