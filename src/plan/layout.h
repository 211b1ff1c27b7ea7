/* Formats are part of the plan: which format each tensor has, and where a reorder stands between two. */
#ifndef CVY_PLAN_LAYOUT_H
#define CVY_PLAN_LAYOUT_H

#include "plan/plan.h"

/**
 * Decide all formats of a model.
 *
 * @param[in]  options      layout, block, dtype, batch and backends are used
 * @param[out] formats_out  one for each layer; the caller's array
 */
cvy_status cvy_layout_decide(const cvy_model *model, const cvy_plan_options *options, cvy_layer_formats *formats_out);

/** What is asked of the backends about one layer. */
typedef struct cvy_layout_question {
    const cvy_model *model;
    const cvy_plan_options *options; /**< batch, dtype and backends */
    const cvy_layer *layer;          /**< with weights */
    bool needs_dx;                   /**< its input is not the batch itself */
} cvy_layout_question;

/** Make the op of a pass of such a layer in given formats; roles as its signature has them. */
void cvy_layout_make_op(const cvy_layout_question *question, cvy_op_pass pass, const cvy_layer_formats *formats,
                        cvy_format weight, cvy_op *op_out);

/**
 * Fill the weight formats of a convolution that go with its formats of x and y where no backend can be asked; plain
 * where these are not blocked.
 *
 * @param[in]     block     channels in a block: 8 or 16
 * @param[in,out] formats   its `input` and `output` are looked at
 */
void cvy_layout_rule_weights(int block, cvy_op_kind kind, bool depthwise, cvy_layer_formats *formats);

/** The kind of a layer's op where it has weights; of all others CVY_OP_KIND_COUNT. */
cvy_op_kind cvy_layout_find_kind(const cvy_model *model, const cvy_layer *layer);

/** The tensor of a layer's output for @p batch samples. */
cvy_tensor cvy_layout_output(const cvy_layer *layer, int64_t batch, cvy_dtype dtype, cvy_format format);

/** A parameter's tensor as ops see it: with the leading g where the layer has groups. */
cvy_tensor cvy_layout_parameter(const cvy_parameter *parameter, cvy_dtype dtype, cvy_format format);

#endif
