/*
 * The pace of a machine while it was measured: kernels that were measured while it was slow, or fast, are told as they
 * would be at its usual pace, by the probes beside them.
 */
#ifndef CVY_CALIBRATE_PACE_H
#define CVY_CALIBRATE_PACE_H

#include "calibrate/meter.h"

/** A kernel's time of measuring, and the probe in it. */
typedef struct cvy_pace_spell {
    double probe_s, took_s;
} cvy_pace_spell;

/** What the probes of all kernels say together. Starts from {0}; released with cvy_pace_clear(). */
typedef struct cvy_pace {
    cvy_pace_spell *spell;
    int spells, capacity;
    double usual_s;                     /**< once it is settled */
    double probe_time_s2, mean_time_s2; /**< sums of probes by the time that their kernels took */
} cvy_pace;

/** Take in what is beside a kernel; nothing where no probe was. @retval CVY_ERR_MEMORY */
cvy_status cvy_pace_add(cvy_pace *pace, const cvy_metered *metered);

/** All is taken in: what follows may be asked. */
void cvy_pace_settle(cvy_pace *pace);

void cvy_pace_clear(cvy_pace *pace);

/**
 * Seconds that the probe takes usually: in half of the time that was measured it took no longer. It is a median as that
 * of a run's probes, and that of a run's iterations, which are held against what is told at it.
 */
double cvy_pace_probe_s(const cvy_pace *pace);

/** What interrupts short work adds to it, as a share: by how much the mean of the probe's runs is above the middle. */
double cvy_pace_interruptions(const cvy_pace *pace);

/**
 * A kernel's time at the usual pace and without interruptions.
 *
 * t = seconds / probe beside it * usual probe / (1 + interruptions * min(1, seconds / 5 ms)): the middle of the runs of
 * a kernel of microseconds was not interrupted; of one that takes much longer than what lies between two interruptions,
 * each run was, by their share. 5 ms is what lies between those of a busy host (200 a second: timers, other guests); on
 * a calm machine their share is next to nothing, and so is what is told apart here.
 */
cvy_kernel_time cvy_pace_correct(const cvy_pace *pace, const cvy_metered *metered);

#endif
