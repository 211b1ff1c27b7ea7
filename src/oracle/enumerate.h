/*
 * All meshes of so many ranks. A block is what shares a sample and a stage: the sizes along depth, height, width and
 * channel, and the channel cut. Around it the other ranks are divided between stages and samples.
 */
#ifndef CVY_ORACLE_ENUMERATE_H
#define CVY_ORACLE_ENUMERATE_H

#include "model/model.h"
#include "plan/strategy.h"

/** Parts of a batch that are tried without stages: a plan grows with them. */
enum { CVY_MOST_ACCUMULATION = 8 };

/** Ranks that share a sample and a stage. */
typedef struct cvy_block {
    int64_t size[CVY_AXES]; /**< 1 along stage and sample */
    int64_t ranks;
    cvy_channel_cut cut;    /**< the first where there is no channel axis */
} cvy_block;

/** The blocks to look at, the smallest first. */
typedef struct cvy_blocks {
    int count, capacity;
    cvy_block *block;
    int64_t left_out; /**< larger ones, beyond the limit */
} cvy_blocks;

/**
 * List the blocks whose ranks divide @p ranks: no axis longer than the input along it, or than the most channels that a
 * layer has. Those along one axis alone are all there, of the others the smallest.
 *
 * @param[in]  whole       outputs are made whole at once: nothing alternates, and to alternate is to cut filters
 * @param[in]  limit       of blocks along several axes
 * @param[out] blocks_out  released with cvy_blocks_clear(); untouched on failure
 * @retval CVY_ERR_MEMORY
 */
cvy_status cvy_blocks_list(const cvy_model *model, int64_t ranks, bool whole, int limit, cvy_blocks *blocks_out);

/** Release and empty. */
void cvy_blocks_clear(cvy_blocks *blocks);

/** How the ranks of a mesh may vary around a block. */
typedef struct cvy_variants {
    const cvy_block *block; /**< borrowed */
    int64_t ranks, batch;
    int max_stages;         /**< places where the model can be cut, and one */
    cvy_strategy strategy;  /**< the one at hand */
} cvy_variants;

/**
 * Begin: no strategy is at hand yet. After that each cvy_variants_next() gives another one, stages, then micro-batches
 * (powers of two), then orders of the pipeline changing.
 */
void cvy_variants_begin(cvy_variants *variants);

/** Go on to the next strategy: false behind the last. */
bool cvy_variants_next(cvy_variants *variants);

/** Stages that a model can have at most: places where one tensor passes, and one. @retval CVY_ERR_MEMORY */
cvy_status cvy_model_count_stages(const cvy_model *model, int *stages_out);

#endif
