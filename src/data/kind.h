/* What kinds of data sets share: the object behind cvy_data, checks against the model, and the scale of grey. */
#ifndef CVY_DATA_KIND_H
#define CVY_DATA_KIND_H

#include "data/data.h"

struct cvy_data {
    const cvy_data_kind *kind;
    void *state;                 /**< the kind's own */
    cvy_data_info info;
};

/**
 * Check that a data set's samples are what the model takes.
 *
 * @param[in] what    file, folder or synthetic set, for the message
 * @param[in] found   shape of its samples
 * @retval CVY_ERR_DATA another shape; the message says which model options fit
 */
cvy_status cvy_data_check_sample(const char *what, const cvy_shape *found, const cvy_data_options *options);

/** Check that the model's loss takes what @p what offers; @retval CVY_ERR_DATA it does not */
cvy_status cvy_data_check_target(const char *what, cvy_target offered, const cvy_data_options *options);

/** How many of @p found samples a user's limit leaves: all where it is 0. */
static inline int64_t cvy_data_limit(int64_t found, int64_t limit) { return limit && limit < found ? limit : found; }

/**
 * Scale ink of 0 (paper) to 1 by the mean and standard deviation of MNIST's training pixels, as nearly everybody does;
 * the synthetic digits share the scale, so that a model trained on one reads the other.
 */
static inline float cvy_data_normalise_ink(double ink) { return (float)((ink - 0.1307) / 0.3081); }

#endif
