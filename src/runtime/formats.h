/* Where the formats of a training come from: the run that goes on, what was measured before, or the clock. */
#ifndef CVY_RUNTIME_FORMATS_H
#define CVY_RUNTIME_FORMATS_H

#include "convoy/train.h"
#include "plan/plan.h"

/**
 * Make the plan of a training.
 *
 * A run that is resumed with layout `auto` or `measure` has the formats of its plan.yaml, where this machine has
 * vectors as wide. Otherwise, with one of these and a folder to remember in, formats are those that were measured for
 * this model, batch, threads and kind of processor before (not with `measure`), or are measured now and remembered; of
 * processes that measure at the same time all take the first one's. So the same command makes the same plan. Without
 * such a folder, where nothing can be written in it, or with layout `rule`, they are decided by rule.
 *
 * @param[in]  observer setup is called before the clock is asked; may be NULL
 * @param[in]  wanted   complete but for layouts and formats
 * @param[in]  threads  that are set
 * @param[out] plan_out as of cvy_plan_create()
 */
cvy_status cvy_formats_plan(const cvy_model *model, const cvy_train_options *options,
                            const cvy_train_observer *observer, const cvy_plan_options *wanted, int threads,
                            cvy_plan **plan_out);

#endif
