/* Stages of a pipeline: where to cut a chain of layers so that the slowest stage is as fast as can be. */
#ifndef CVY_PLAN_STAGES_H
#define CVY_PLAN_STAGES_H

#include "base/error.h"

/** A chain of layers with the seconds of each. Borrowed. */
typedef struct cvy_chain {
    int layers;
    const double *layer_s; /**< of each layer, at least 0 */
    const double *cut_s;   /**< of a cut in front of each layer, paid by the stages at both sides; the first is not
                                looked at; INFINITY where no cut may be. NULL: cuts cost nothing */
} cvy_chain;

/**
 * Cut a chain into stages of at least one layer each, exactly: the largest stage's seconds are the least possible.
 *
 * Not collective. Takes time in the square of the layers, or less.
 *
 * @param[in]  stages       at least 1
 * @param[out] first_out    @p stages + 1: the first layer of each, then all layers; untouched on failure
 * @param[out] slowest_out  seconds of the slowest stage, its cuts included; untouched on failure
 * @retval CVY_ERR_INFEASIBLE  fewer layers, or places to cut, than stages need
 * @retval CVY_ERR_MEMORY
 */
cvy_status cvy_stages_balance(const cvy_chain *chain, int stages, int *first_out, double *slowest_out);

/** Seconds of the stage of layers [begin, end): its layers and the cuts at its ends. */
double cvy_stages_seconds(const cvy_chain *chain, int begin, int end);

#endif
