/*
 * A small product of matrices, always the same, run beside what is measured. Whatever makes a machine slow for some
 * milliseconds (a neighbour on its cores or its memory, its clock rate) makes both slow, so that a kernel is known
 * better against the probe than by the clock alone.
 */
#ifndef CVY_BACKEND_PROBE_H
#define CVY_BACKEND_PROBE_H

#include "backend/backend.h"

typedef struct cvy_probe cvy_probe;

/** What a few runs of a probe took, some tenths of a millisecond, behind one that brings it back into caches. */
typedef struct cvy_probe_time {
    double seconds; /**< of the middle run: how fast the machine computes */
    double mean_s;  /**< of all: with what interrupted some of them */
} cvy_probe_time;

/**
 * Make a probe, with the threads that are set. Not collective.
 *
 * @param[in]  chain     copied
 * @param[out] probe_out released with cvy_probe_destroy()
 * @retval CVY_ERR_UNSUPPORTED no backend multiplies matrices
 * @retval CVY_ERR_MEMORY
 */
cvy_status cvy_probe_create(const cvy_backend_chain *chain, cvy_probe **probe_out);

/** Release; NULL is fine. */
void cvy_probe_destroy(cvy_probe **probe);

/** Run the probe now: it is as warm as ever, whatever ran before it. */
cvy_status cvy_probe_run(cvy_probe *probe, cvy_probe_time *time_out);

#endif
