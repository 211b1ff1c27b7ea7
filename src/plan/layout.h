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

/** The tensor of a layer's output for @p batch samples. */
cvy_tensor cvy_layout_output(const cvy_layer *layer, int64_t batch, cvy_dtype dtype, cvy_format format);

/** A parameter's tensor as ops see it: with the leading g where the layer has groups. */
cvy_tensor cvy_layout_parameter(const cvy_parameter *parameter, cvy_dtype dtype, cvy_format format);

#endif
