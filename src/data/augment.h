/*
 * Augmentation: what happens to a training sample anew each epoch. A function of (seed, epoch, sample) alone.
 */
#ifndef CVY_DATA_AUGMENT_H
#define CVY_DATA_AUGMENT_H

#include "data/data.h"

/** What was drawn for one sample in one epoch. */
typedef struct cvy_augment_draw {
    int64_t shift[3];    /**< d,h,w: the place that the first element is taken from; beyond the border are zeros */
    bool flip;           /**< mirror w, after the shift */
} cvy_augment_draw;

/**
 * Check an augmentation against the samples that it is to change.
 *
 * @param[in] map        of labels, which are to move with the sample; without dimensions: there is none
 * @retval CVY_ERR_INPUT padding that is negative or as large as a side, a probability that is not within 0 to 1, a map
 *                       that has not the sample's positions
 */
cvy_status cvy_augment_check(const cvy_augmentation *augmentation, const cvy_shape *sample, const cvy_shape *map);

/** Draw for sample @p index. Cannot fail. */
cvy_augment_draw cvy_augment_choose(const cvy_augmentation *augmentation, uint64_t seed, uint32_t epoch, int64_t index,
                                    int dims);

/** Change one sample of shape [c,(d),h,w], in place. Cannot fail. */
void cvy_augment_apply(const cvy_augment_draw *draw, const cvy_shape *sample, float *x);

/** Change the labels of a sample, [h,w] or [d,h,w], as the sample; class 0 moves in from beyond the border. */
void cvy_augment_apply_map(const cvy_augment_draw *draw, const cvy_shape *map, int32_t *label);

#endif
