/* What a trace says of each layer. */
#ifndef CVY_ORACLE_TRACE_LAYERS_H
#define CVY_ORACLE_TRACE_LAYERS_H

#include "oracle/estimate.h"

/** What a layer takes and sends in an iteration, on the slowest rank of the stage that has it. */
typedef struct cvy_layer_cost {
    double forward_s, backward_s, update_s, communication_s; /**< backward: recomputation, too */
    double sent_bytes;
    double kernel_s, flop, bytes; /**< of its kernels in forward and backward; bytes at the tensors' precision */
    cvy_shape local;              /**< what a rank holds of its output, of the samples that go through at once */
} cvy_layer_cost;

/**
 * Sum the steps of a feasible trace by layer.
 *
 * @param[out] costs_out  one for each layer, then what belongs to none: cvy_free(); untouched on failure
 * @retval CVY_ERR_MEMORY
 */
cvy_status cvy_trace_sum_layers(const cvy_trace *trace, cvy_layer_cost **costs_out);

/** Room for the words of a cut. */
enum { CVY_CUT_TEXT = 64 };

/** "height,filter": the axes of space, and how channels are cut; "-": nothing but samples is. Returns @p text. */
const char *cvy_layer_print_cut(const cvy_layer_distribution *layer, char *text);

#endif
