/* Channels: layers with weights are cut by filters, channels or groups; the others follow what they are given. */
#include "plan/distribution_internal.h"

/* Why a layer is whole. */
static const char few_channels[] = "fewer channels than ranks";
static const char few_groups[] = "fewer groups than ranks";
static const char wants_channels[] = "it needs all channels of a sample";
static const char odd_inputs[] = "its inputs are too narrow, or cut into too many stretches";

static cvy_placement split_channels(const cvy_dividing *v, int64_t channels, int64_t unit)
{
    cvy_placement placement = cvy_placement_replicate(1);
    int64_t parts = cvy_dividing_parts(v->d, CVY_AXIS_CHANNEL);
    (void)cvy_placement_split(1, channels, unit, parts, &placement); /* unit divides */
    return placement;
}

/* The same shares of another tensor, with @p to elements for each @p from. False where borders do not fit. */
static bool scale_channels(const cvy_placement *placement, int64_t from, int64_t to, cvy_placement *scaled_out)
{
    cvy_placement scaled = *placement;
    for (int i = 0; i < scaled.segments; i++) {
        cvy_segment *s = &scaled.segment[i];
        if (s->border || s->begin % from || s->extent % from || s->unit % from) {
            return false;
        }
        s->begin = s->begin / from * to;
        s->extent = s->extent / from * to;
        s->unit = s->unit / from * to;
    }
    *scaled_out = scaled;
    return true;
}

/* The first input that comes split along the channels; -1 where none does. */
static int find_split_input(const cvy_dividing *v)
{
    for (int i = 0; i < v->layer->inputs; i++) {
        if (cvy_axes_have(cvy_dividing_producer(v, i)->output_split, CVY_AXIS_CHANNEL)) {
            return i;
        }
    }
    return -1;
}

static void leave_channels_split(cvy_dividing *v)
{
    v->own->raw_split |= CVY_AXIS_BIT(CVY_AXIS_CHANNEL);
    if (!v->d->options.whole_channels) {
        v->own->output_split |= CVY_AXIS_BIT(CVY_AXIS_CHANNEL);
    }
}

static void cut_filters(cvy_dividing *v)
{
    v->own->cut = CVY_CUT_FILTER;
    v->own->output_channels = split_channels(v, v->layer->output.extent[1], 1);
    v->own->dx_partial |= CVY_AXIS_BIT(CVY_AXIS_CHANNEL);
    leave_channels_split(v);
}

static void cut_channels(cvy_dividing *v)
{
    int64_t filters = v->layer->output.extent[1];
    bool rests_split = !v->d->options.whole_channels && filters >= cvy_dividing_parts(v->d, CVY_AXIS_CHANNEL) &&
                       v->d->strategy.channel_cut == CVY_CHANNEL_CUT_CHANNEL;
    int from = find_split_input(v);
    v->own->cut = CVY_CUT_CHANNEL;
    v->own->input_split |= CVY_AXIS_BIT(CVY_AXIS_CHANNEL);
    v->own->input_channels = from >= 0 ? cvy_dividing_producer(v, from)->output_channels
                                       : split_channels(v, v->x->extent[1], 1);
    v->own->raw_partial |= CVY_AXIS_BIT(CVY_AXIS_CHANNEL);
    if (rests_split) {
        v->own->output_channels = split_channels(v, filters, 1);
        v->own->output_split |= CVY_AXIS_BIT(CVY_AXIS_CHANNEL);
    }
}

/* Groups are divided among the ranks; as their input comes where its borders are borders of groups. */
static void cut_groups(cvy_dividing *v)
{
    int64_t groups = v->op.params.window.groups;
    int64_t channels = v->x->extent[1] / groups, filters = v->layer->output.extent[1] / groups;
    if (groups < cvy_dividing_parts(v->d, CVY_AXIS_CHANNEL)) {
        v->own->why_whole[CVY_AXIS_CHANNEL] = few_groups;
        return;
    }
    int from = find_split_input(v);
    v->own->cut = CVY_CUT_GROUP;
    v->own->input_split |= CVY_AXIS_BIT(CVY_AXIS_CHANNEL);
    v->own->input_channels = split_channels(v, v->x->extent[1], channels);
    v->own->output_channels = split_channels(v, v->layer->output.extent[1], filters);
    if (from >= 0) {
        const cvy_placement *given = &cvy_dividing_producer(v, from)->output_channels;
        if (scale_channels(given, channels, filters, &v->own->output_channels)) {
            v->own->input_channels = *given;
        }
    }
    leave_channels_split(v);
}

/* A layer with weights, by what the strategy and the choice ask for; the other cut where there are too few. */
static void cut_weights(cvy_dividing *v)
{
    const cvy_distribution *d = v->d;
    int64_t parts = cvy_dividing_parts(d, CVY_AXIS_CHANNEL);
    bool can_filter = v->layer->output.extent[1] >= parts, can_channel = v->x->extent[1] >= parts;
    bool arrives_split = find_split_input(v) >= 0;
    int cut = v->choice->cut;
    if (cut < 0) {
        static const int asked[] = {[CVY_CHANNEL_CUT_FILTER] = CVY_CUT_FILTER,
                                    [CVY_CHANNEL_CUT_CHANNEL] = CVY_CUT_CHANNEL};
        bool alternates = d->strategy.channel_cut == CVY_CHANNEL_CUT_ALTERNATE;
        cut = alternates ? (arrives_split ? CVY_CUT_CHANNEL : CVY_CUT_FILTER) : asked[d->strategy.channel_cut];
    }
    if (cut == CVY_CUT_WHOLE || (d->options.whole_dense && v->op.kind == CVY_OP_DENSE)) {
        v->own->why_whole[CVY_AXIS_CHANNEL] = CVY_NOT_CUT;
        return;
    }
    bool by_filter = cut == CVY_CUT_FILTER ? can_filter : !can_channel && can_filter && !d->options.whole_channels;
    bool by_channel = cut == CVY_CUT_CHANNEL ? can_channel : !can_filter && can_channel && !d->options.whole_channels;
    if (by_filter) {
        cut_filters(v);
    } else if (by_channel) {
        cut_channels(v);
    } else {
        v->own->why_whole[CVY_AXIS_CHANNEL] = few_channels;
    }
}

/* Inputs one behind the other: each rank holds its share of each. None may be too narrow to share. */
static bool concat_channels(cvy_dividing *v)
{
    for (int i = 0; i < v->layer->inputs; i++) {
        if (cvy_dividing_input(v, i)->extent[1] < cvy_dividing_parts(v->d, CVY_AXIS_CHANNEL)) {
            return false;
        }
        cvy_placement share = cvy_distribution_input(v->d, v->layer->index, i, CVY_AXIS_CHANNEL);
        if (i == 0) {
            v->own->output_channels = share;
        } else if (v->own->output_channels.segments + share.segments > CVY_MAX_INTERVALS ||
                   cvy_placement_concat(&v->own->output_channels, &share) != CVY_OK) {
            return false;
        }
    }
    return true;
}

/* A view of a sample as a vector: the channels' shares in elements. Split space was made whole before. */
static bool flatten_channels(cvy_dividing *v)
{
    int64_t positions = cvy_shape_elements(v->x) / v->x->extent[1];
    v->own->output_channels = v->own->input_channels;
    return scale_channels(&v->own->input_channels, 1, positions, &v->own->output_channels);
}

/* A layer that takes channels one by one. */
static void follow_channels(cvy_dividing *v)
{
    unsigned bit = CVY_AXIS_BIT(CVY_AXIS_CHANNEL);
    int from = find_split_input(v);
    bool fits = true;
    if (from < 0) {
        v->own->why_whole[CVY_AXIS_CHANNEL] = CVY_WHOLE_INPUT;
        return;
    }
    v->own->input_split |= bit;
    v->own->input_channels = cvy_dividing_producer(v, from)->output_channels;
    v->own->output_channels = v->own->input_channels;
    if (v->layer->kind->flow == CVY_FLOW_CONCAT) {
        fits = concat_channels(v);
    } else if (v->layer->kind->flow == CVY_FLOW_VIEW) {
        fits = flatten_channels(v);
    } else if (v->op.kind == CVY_OP_GROUP_NORM) {
        fits = scale_channels(&v->own->input_channels, v->x->extent[1] / v->op.params.group.groups, 1,
                              &v->own->output_channels);
        v->own->output_channels = v->own->input_channels;
    }
    if (!fits) {
        v->own->input_split &= ~bit;
        v->own->why_whole[CVY_AXIS_CHANNEL] = v->op.kind == CVY_OP_GROUP_NORM ? wants_channels : odd_inputs;
        return;
    }
    v->own->cut = CVY_CUT_FOLLOW;
    leave_channels_split(v);
}

void cvy_divide_channels(cvy_dividing *v)
{
    switch (v->op.kind) {
    case CVY_OP_CONVOLUTION:
    case CVY_OP_TRANSPOSED_CONVOLUTION:
        if (v->op.params.window.groups > 1) {
            cut_groups(v);
            return;
        }
        cut_weights(v);
        return;
    case CVY_OP_DENSE: cut_weights(v); return;
    case CVY_OP_LOCAL_RESPONSE_NORM:
    case CVY_OP_SOFTMAX_CROSS_ENTROPY:
    case CVY_OP_MEAN_SQUARED_ERROR:
    case CVY_OP_SOFT_DICE: v->own->why_whole[CVY_AXIS_CHANNEL] = wants_channels; return;
    default: follow_channels(v); return;
    }
}
