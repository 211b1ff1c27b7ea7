/* From the first thing that ranks do together to the last somebody looks out for lost ones (comm/watch.h). */
#ifndef CVY_RUNTIME_LOOKOUT_H
#define CVY_RUNTIME_LOOKOUT_H

#include "comm/watch.h"
#include "convoy/train.h"

typedef struct cvy_lookout {
    const cvy_train_options *options;
    const cvy_train_observer *observer;
    cvy_watch *watch;
} cvy_lookout;

/**
 * Wait until all ranks are here, and watch them from then on. Collective, as is all below. Where a rank does not come
 * the run is abandoned.
 *
 * @param[in]  options     borrowed until the stop: comm, timeout_s and abandon
 * @param[in]  observer    warning alone is called, on the first rank; may be NULL
 * @param[out] lookout_out stays where it is until cvy_lookout_stop(), which is due after a failure, too
 */
cvy_status cvy_lookout_begin(const cvy_train_options *options, const cvy_train_observer *observer,
                             cvy_lookout *lookout_out);

/**
 * The same, and see that the ranks were asked for the same.
 *
 * @param[in]  options     as above; the others are compared
 * @param[in]  observer    warning alone is called, on the first rank; may be NULL
 * @param[out] lookout_out stays where it is until cvy_lookout_stop(), which is due after a failure, too
 * @retval CVY_ERR_INPUT a rank has another model or other options; both are named
 */
cvy_status cvy_lookout_start(const cvy_model *model, const cvy_train_options *options,
                             const cvy_train_observer *observer, cvy_lookout *lookout_out);

/** Stop watching. @return @p status with its words; where it is CVY_OK, what stopping says */
cvy_status cvy_lookout_stop(cvy_lookout *lookout, cvy_status status);

#endif
