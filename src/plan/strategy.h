/* Strategies as words: a name or a mesh, and what goes with it, from and to the strings that users write. */
#ifndef CVY_PLAN_STRATEGY_H
#define CVY_PLAN_STRATEGY_H

#include "plan/mesh.h"
#include "tensor/shape.h"

/** How the channel axis cuts layers. */
typedef enum cvy_channel_cut {
    CVY_CHANNEL_CUT_ALTERNATE, /**< filter, channel, filter, …: one collective a pair */
    CVY_CHANNEL_CUT_FILTER,    /**< output channels */
    CVY_CHANNEL_CUT_CHANNEL,   /**< input channels */
    CVY_CHANNEL_CUT_COUNT
} cvy_channel_cut;

/** In which order a stage of a pipeline takes its micro-batches. */
typedef enum cvy_pipeline_order {
    CVY_PIPELINE_1F1B,  /**< backward as soon as it can be: the fewest micro-batches in flight */
    CVY_PIPELINE_GPIPE, /**< all forward, then all backward */
    CVY_PIPELINE_COUNT
} cvy_pipeline_order;

/** "alternate", "filter", "channel"; then NULL. */
extern const char *const cvy_channel_cut_names[CVY_CHANNEL_CUT_COUNT + 1];

/** "1f1b", "gpipe"; then NULL. */
extern const char *const cvy_pipeline_order_names[CVY_PIPELINE_COUNT + 1];

/** What a strategy string says. What cannot matter (a cut of channels without the axis) has its first value. */
typedef struct cvy_strategy {
    bool automatic;                /**< the oracle chooses, and the rest says nothing */
    cvy_mesh mesh;
    cvy_channel_cut channel_cut;
    cvy_pipeline_order pipeline;
    int64_t micro_batches;         /**< 0: not said */
} cvy_strategy;

/**
 * Read a strategy string: `serial`, `data`, `spatial`, `filter`, `channel`, `alternating`, `pipeline` (all ranks on one
 * axis), `auto`, or axes of a mesh, slowest first, such as `sample=4,height=2`; behind each but `auto` may come
 * `channel-cut=filter|channel|alternate`, `micro-batches=N`, `pipeline=gpipe|1f1b`, in any order.
 *
 * Not collective.
 *
 * @param[in]  text          what the user wrote
 * @param[in]  ranks         that the strategy is to use, at least 1
 * @param[in]  space         d,h,w of the model's input: `spatial` cuts the longest, of equal ones the first
 * @param[out] strategy_out  untouched on failure
 * @retval CVY_ERR_INPUT an unknown word (the nearest is named), a word given twice, a number that is none, 0 or too
 *                       large, a product that is not @p ranks, an option that nothing uses
 */
cvy_status cvy_strategy_parse(const char *text, int64_t ranks, const int64_t space[3], cvy_strategy *strategy_out);

/** d, h, w of a shape n,c,(d),h,w, as cvy_strategy_parse() asks for them; 1 where it has none. Cannot fail. */
void cvy_strategy_find_space(const cvy_shape *input, int64_t space_out[3]);

/** Room for a printed strategy. */
enum { CVY_STRATEGY_TEXT = 256 };

/**
 * Write a strategy as cvy_strategy_parse() reads it, with the shortest of its names, and without micro-batches where
 * the batch goes through whole and there is no pipeline: "data", "height=4",
 * "sample=4,channel=2,channel-cut=filter,micro-batches=8". Returns @p text.
 */
const char *cvy_strategy_print(const cvy_strategy *strategy, char *text);

/** The family, for tables: "serial", "data", "data+filter", "spatial+pipeline", "auto". Returns @p text. */
const char *cvy_strategy_family(const cvy_strategy *strategy, char *text);

#endif
