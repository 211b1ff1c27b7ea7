/*
 * A mix: which cut each layer takes on a given mesh, where one cut for all of them is not the best.
 */
#ifndef CVY_ORACLE_MIX_H
#define CVY_ORACLE_MIX_H

#include "oracle/bound.h"

/**
 * Choose cuts layer by layer, by dynamic programming over the places where one tensor passes. Takes the bound's block.
 *
 * @param[in]  strategy     with ranks along depth to channel
 * @param[out] choices_out  one for each layer, cvy_free(); NULL where nothing is better than one cut for all
 * @retval CVY_ERR_MEMORY
 */
cvy_status cvy_mix_find(cvy_bound *bound, const cvy_strategy *strategy, cvy_layer_choice **choices_out);

#endif
