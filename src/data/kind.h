/* What kinds of data sets share: the object behind cvy_data, checks against the model, and scales. */
#ifndef CVY_DATA_KIND_H
#define CVY_DATA_KIND_H

#include "data/data.h"

/* Classes that a set may have where no model says how many. */
enum { CVY_DATA_MAX_CLASSES = 1 << 20 };

struct cvy_data {
    const cvy_data_kind *kind;
    void *state;                 /**< the kind's own */
    cvy_data_info info;
    float *mean, *std;           /* [c]; NULL: samples stay as the kind reads them */
    cvy_augmentation augmentation;
    uint64_t seed;
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

/** Check that label @p label of sample @p index is one of the model's; @retval CVY_ERR_DATA it is not */
cvy_status cvy_data_check_label(const char *what, int64_t index, int64_t label, const cvy_data_options *options);

/** Bytes of 0 to 255 as numbers of 0 to 1, divided in single precision as torchvision's ToTensor does. */
static inline void cvy_data_scale_bytes(const unsigned char *byte, int64_t count, float *x_out)
{
    for (int64_t i = 0; i < count; i++) {
        x_out[i] = (float)byte[i] / 255.0f;
    }
}

/** How many of @p found samples a user's limit leaves: all where it is 0. */
static inline int64_t cvy_data_limit(int64_t found, int64_t limit) { return limit && limit < found ? limit : found; }

/**
 * The scale of ink of 0 (paper) to 1: mean and standard deviation of MNIST's training pixels, as nearly everybody takes
 * them; the synthetic digits share it, so that a model trained on one reads the other.
 */
#define CVY_DATA_SCALE_INK {.channels = 1, .mean = {0.1307}, .std = {0.3081}}

/**
 * Choose the scale of a set that has been opened: the user's, else the kind's.
 *
 * @param[in,out] data  kind and info are read, mean and std are set; both released with cvy_free()
 * @retval CVY_ERR_INPUT no list of numbers, too many or too few, or a deviation that is not above 0
 */
cvy_status cvy_data_choose_scale(const cvy_data_options *options, cvy_data *data);

/** Scale one sample, or a slab of one, of so many pixels a channel, in place. */
void cvy_data_apply_scale(const cvy_data *data, int64_t pixels, float *x);

#endif
