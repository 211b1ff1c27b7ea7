/* Random sizes: a stream of Philox words for each drawing, so that a drawing does not depend on those before it. */
#ifndef CVY_CALIBRATE_DICE_H
#define CVY_CALIBRATE_DICE_H

#include <math.h>
#include <stdbool.h>

#include "base/random.h"

/** Where a stream stands. */
typedef struct cvy_dice {
    uint64_t seed;
    uint32_t owner, index, attempt; /**< what is drawn, the how-many-eth of it, and the how-many-eth try */
    uint32_t next;
} cvy_dice;

/** A number in (0, 1). */
static inline double cvy_dice_unit(cvy_dice *dice)
{
    cvy_words words = cvy_random_words(dice->seed, CVY_PURPOSE_CALIBRATION, dice->owner, dice->index, dice->attempt,
                                       dice->next++);
    return cvy_random_unit_double(words.v[0], words.v[1]);
}

/** True with a probability. */
static inline bool cvy_dice_chance(cvy_dice *dice, double probability) { return cvy_dice_unit(dice) < probability; }

/** A whole number from @p least to @p most, each alike. */
static inline int64_t cvy_dice_even(cvy_dice *dice, int64_t least, int64_t most)
{
    return least + (int64_t)floor(cvy_dice_unit(dice) * (double)(most - least + 1));
}

/** A whole number from @p least to @p most, its logarithm even: as many from 1 to 2 as from 100 to 200. */
static inline int64_t cvy_dice_log(cvy_dice *dice, int64_t least, int64_t most)
{
    double value = (double)least * exp(cvy_dice_unit(dice) * log((double)(most + 1) / (double)least));
    return value < (double)most ? (int64_t)value : most;
}

#endif
