/* Kinds of steps by name: what profiles and predictions are summed up by, in the same words. */
#ifndef CVY_PLAN_STEP_KIND_H
#define CVY_PLAN_STEP_KIND_H

#include "plan/schedule.h"

/** Room for the name of a kind. */
enum { CVY_STEP_KIND_TEXT = 64 };

/**
 * Name what a step does, whatever its layer: "convolution+relu forward", "all-reduce gradients over sample", "halo over
 * height", "send to the next stage", "batch". Cannot fail.
 *
 * @param[in]  schedule  that the step is of
 * @param[out] text      of CVY_STEP_KIND_TEXT bytes
 * @return text
 */
const char *cvy_step_print_kind(const cvy_schedule *schedule, const cvy_step *step, char *text);

/** Whether a step is communication, or moves what is communicated: halos, redistributions, gradient exchange. */
bool cvy_step_communicates(const cvy_step *step);

#endif
