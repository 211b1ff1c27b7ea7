/*
 * What measures an op, a fixed piece of work, and time: a table of functions, so that a law may stand where a machine
 * does, in tests.
 */
#ifndef CVY_CALIBRATE_METER_H
#define CVY_CALIBRATE_METER_H

#include "backend/measure.h"
#include "oracle/compute.h"

/** Most bytes that are touched between two runs of an op whose operands may be in a cache then. */
#define CVY_NEARER_BYTES 33554432.0

/** A kernel that was measured, at the speed that the machine had meanwhile. */
typedef struct cvy_metered {
    cvy_kernel_time time;
    cvy_probe_time probe; /**< of the probes beside its runs; zeros: nobody looked */
    double took_s;        /**< of the clock, with all of its runs and what lay between them */
} cvy_metered;

typedef struct cvy_meter {
    void *context;
    /**
     * Seconds of an op as this machine runs it best, after so many other bytes, and how far its runs lie apart. From
     * CVY_FARTHEST_BYTES on, all caches have been emptied of its operands. How long that took is the caller's to say.
     */
    cvy_status (*measure)(void *context, const cvy_op *op, double between_bytes, cvy_metered *metered_out);
    /** Seconds of a piece of work that is always the same: what else runs here shows in it. */
    cvy_status (*probe)(void *context, double *seconds_out);
    /** Seconds since some moment. */
    double (*now_s)(void *context);
} cvy_meter;

/** The meter of this machine. */
typedef struct cvy_machine_meter cvy_machine_meter;

/**
 * Make the meter of this machine, with the threads that are set.
 *
 * An op with weights is measured in each pair of formats that a layout may give it, and by Winograd's algorithm where a
 * backend has it so; the fastest counts, since layouts are chosen by the clock. All others are measured as they are.
 *
 * @param[in]  effort    of an op; borrowed for the call
 * @param[in]  block     channels in a block of formats
 * @param[out] meter_out released with cvy_machine_meter_destroy()
 * @retval CVY_ERR_UNSUPPORTED no backend runs the probe
 * @retval CVY_ERR_MEMORY
 */
cvy_status cvy_machine_meter_create(const cvy_backend_chain *chain, const cvy_measure_effort *effort, int block,
                                    cvy_machine_meter **meter_out);

/** Release; NULL is fine. */
void cvy_machine_meter_destroy(cvy_machine_meter **meter);

/** Its functions; they hold as long as it does. */
cvy_meter cvy_machine_meter_get(cvy_machine_meter *meter);

/** Room for the ways of an op. */
enum { CVY_MAX_WAYS = 8 };

/**
 * The ways in which this machine may run an op: itself first, then in other formats, then by Winograd's algorithm.
 *
 * @param[out] way_out  room for CVY_MAX_WAYS
 * @return how many; 0 where no backend runs it
 */
int cvy_op_find_ways(const cvy_backend_chain *chain, const cvy_op *op, int block, cvy_op *way_out);

#endif
