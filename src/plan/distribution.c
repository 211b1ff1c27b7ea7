/*
 * Layers are gone through in the model's order: what a layer's producers leave decides what it can take. Space first,
 * then channels, axis by axis and each for itself: placements along different axes split different dimensions.
 */
#include "plan/distribution.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "plan/halo.h"
#include "plan/stages.h"

const char *const cvy_cut_names[] = {"whole", "filter", "channel", "group", "follow", NULL};

/* Why a layer is whole. */
static const char few_rows[] = "fewer rows than ranks";
static const char only_padding[] = "windows of one rank would lie in the padding alone";
static const char few_channels[] = "fewer channels than ranks";
static const char few_groups[] = "fewer groups than ranks";
static const char wants_samples[] = "it needs whole samples";
static const char wants_channels[] = "it needs all channels of a sample";
static const char whole_input[] = "its input is whole";
static const char not_cut[] = "it is not to be cut";
static const char odd_inputs[] = "its inputs are too narrow, or cut into too many stretches";

/* A layer while its distribution is found. */
typedef struct dividing {
    cvy_distribution *d;
    const cvy_layer *layer;
    const cvy_shape *x; /* of its first input */
    cvy_layer_distribution *own;
    cvy_op op; /* of its forward pass; kind CVY_OP_KIND_COUNT where it has none */
    const cvy_layer_choice *choice;
} dividing;

static int64_t count_parts(const cvy_distribution *d, cvy_axis axis) { return d->strategy.mesh.size[axis]; }

int cvy_distribution_dim(cvy_axis axis, int dims)
{
    if (axis == CVY_AXIS_CHANNEL) {
        return dims >= 2 ? 1 : 0;
    }
    int dim = dims - 1 - (CVY_AXIS_WIDTH - (int)axis);
    return axis >= CVY_AXIS_DEPTH && dim >= 2 ? dim : -1;
}

static int64_t get_extent(const cvy_shape *shape, cvy_axis axis)
{
    int dim = cvy_distribution_dim(axis, shape->dims);
    return dim >= 0 ? shape->extent[dim] : 1;
}

static bool is_split(unsigned axes, cvy_axis axis) { return (axes & CVY_AXIS_BIT(axis)) != 0; }

static const cvy_layer_distribution *get_producer(const dividing *v, int i)
{
    return &v->d->layer[v->layer->input[i]];
}

static const cvy_shape *get_input(const dividing *v, int i) { return &v->d->model->layer[v->layer->input[i]].output; }

/* ---- space ---- */

/* What a kind of op makes of space that is split. */
typedef enum space_habit {
    SPACE_WHOLE,   /* positions of y depend on all of x */
    SPACE_FOLLOWS, /* on the same position */
    SPACE_WINDOW,  /* on positions around it */
    SPACE_SUMS     /* y is a sum over all of x, so of each rank's share */
} space_habit;

/* Whether a transposed convolution leaves positions that no tap reaches: a rank's rows could begin with them. */
static bool leaves_gaps(const cvy_window *window)
{
    bool gaps = false;
    for (int at = 0; at < 3; at++) {
        gaps = gaps || window->dilation[at] * (window->kernel[at] - 1) < window->stride[at] - 1;
    }
    return gaps;
}

static space_habit find_space_habit(const dividing *v)
{
    switch (v->op.kind) {
    case CVY_OP_CONVOLUTION:
    case CVY_OP_POOL_MAX:
    case CVY_OP_POOL_AVERAGE: return SPACE_WINDOW;
    case CVY_OP_POOL_GLOBAL: return SPACE_SUMS;
    case CVY_OP_DENSE:
    case CVY_OP_POOL_ADAPTIVE:
    case CVY_OP_GROUP_NORM:
    case CVY_OP_SOFT_DICE:
    case CVY_OP_MEAN_SQUARED_ERROR:
    case CVY_OP_KIND_COUNT: return SPACE_WHOLE;
    case CVY_OP_TRANSPOSED_CONVOLUTION: return leaves_gaps(&v->op.params.window.window) ? SPACE_WHOLE : SPACE_WINDOW;
    default: return SPACE_FOLLOWS;
    }
}

/* Whether every input that has this axis comes split along it; the factors of a multiply have none. */
static bool all_inputs_split(const dividing *v, cvy_axis axis)
{
    for (int i = 0; i < v->layer->inputs; i++) {
        if (get_extent(get_input(v, i), axis) > 1 && !is_split(get_producer(v, i)->output_split, axis)) {
            return false;
        }
    }
    return is_split(get_producer(v, 0)->output_split, axis);
}

/* Whether the first and the last rank reach rows of x: between them lies nothing but rows. */
static bool reaches_rows(const dividing *v, cvy_axis axis)
{
    bool transposed = v->op.kind == CVY_OP_TRANSPOSED_CONVOLUTION, reaches = true;
    int64_t parts = count_parts(v->d, axis), x = get_extent(v->x, axis), y = get_extent(&v->layer->output, axis);
    const cvy_halo_axis sliding = {.window = &v->op.params.window.window, .axis = (int)axis - CVY_AXIS_DEPTH,
                                   .extent = transposed ? y : x};
    for (int end = 0; end < 2; end++) {
        cvy_interval outputs = cvy_intervals_share(y, parts, end ? parts - 1 : 0).at[0];
        cvy_interval rows = (transposed ? cvy_halo_window_dy : cvy_halo_window_x)(&sliding, outputs).rows;
        reaches = reaches && rows.end > rows.begin;
    }
    return reaches;
}

static const char *why_space_whole(const dividing *v, cvy_axis axis, space_habit habit)
{
    int64_t parts = count_parts(v->d, axis);
    if (habit == SPACE_WHOLE) {
        return wants_samples;
    }
    if (!is_split(v->choice->space, axis)) {
        return not_cut;
    }
    if (!all_inputs_split(v, axis)) {
        return whole_input;
    }
    bool few = get_extent(v->x, axis) < parts ||
               (habit == SPACE_WINDOW && get_extent(&v->layer->output, axis) < parts);
    if (!few && habit == SPACE_WINDOW && !reaches_rows(v, axis)) {
        return only_padding;
    }
    return few ? few_rows : NULL;
}

static void divide_space(dividing *v, cvy_axis axis)
{
    space_habit habit = find_space_habit(v);
    unsigned bit = CVY_AXIS_BIT(axis);
    v->own->why_whole[axis] = why_space_whole(v, axis, habit);
    if (v->own->why_whole[axis]) {
        return;
    }
    v->own->input_split |= bit;
    v->own->gradient_axes |= bit;
    if (habit == SPACE_SUMS) {
        v->own->raw_partial |= bit;
        return;
    }
    v->own->raw_split |= bit;
    v->own->output_split |= bit;
    if (v->op.kind == CVY_OP_MULTIPLY) {
        v->own->dx1_partial |= bit; /* a factor's gradient sums over space */
    }
}

/* ---- channels ---- */

static cvy_placement split_channels(const dividing *v, int64_t channels, int64_t unit)
{
    cvy_placement placement = cvy_placement_replicate(1);
    (void)cvy_placement_split(1, channels, unit, count_parts(v->d, CVY_AXIS_CHANNEL), &placement); /* unit divides */
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
static int find_split_input(const dividing *v)
{
    for (int i = 0; i < v->layer->inputs; i++) {
        if (is_split(get_producer(v, i)->output_split, CVY_AXIS_CHANNEL)) {
            return i;
        }
    }
    return -1;
}

static void leave_channels_split(dividing *v)
{
    v->own->raw_split |= CVY_AXIS_BIT(CVY_AXIS_CHANNEL);
    if (!v->d->options.whole_channels) {
        v->own->output_split |= CVY_AXIS_BIT(CVY_AXIS_CHANNEL);
    }
}

static void cut_filters(dividing *v)
{
    v->own->cut = CVY_CUT_FILTER;
    v->own->output_channels = split_channels(v, v->layer->output.extent[1], 1);
    v->own->dx_partial |= CVY_AXIS_BIT(CVY_AXIS_CHANNEL);
    leave_channels_split(v);
}

static void cut_channels(dividing *v)
{
    int64_t filters = v->layer->output.extent[1];
    bool rests_split = !v->d->options.whole_channels && filters >= count_parts(v->d, CVY_AXIS_CHANNEL) &&
                       v->d->strategy.channel_cut == CVY_CHANNEL_CUT_CHANNEL;
    int from = find_split_input(v);
    v->own->cut = CVY_CUT_CHANNEL;
    v->own->input_split |= CVY_AXIS_BIT(CVY_AXIS_CHANNEL);
    v->own->input_channels = from >= 0 ? get_producer(v, from)->output_channels : split_channels(v, v->x->extent[1], 1);
    v->own->raw_partial |= CVY_AXIS_BIT(CVY_AXIS_CHANNEL);
    if (rests_split) {
        v->own->output_channels = split_channels(v, filters, 1);
        v->own->output_split |= CVY_AXIS_BIT(CVY_AXIS_CHANNEL);
    }
}

/* Groups are divided among the ranks; as their input comes where its borders are borders of groups. */
static void cut_groups(dividing *v)
{
    int64_t groups = v->op.params.window.groups;
    int64_t channels = v->x->extent[1] / groups, filters = v->layer->output.extent[1] / groups;
    if (groups < count_parts(v->d, CVY_AXIS_CHANNEL)) {
        v->own->why_whole[CVY_AXIS_CHANNEL] = few_groups;
        return;
    }
    int from = find_split_input(v);
    v->own->cut = CVY_CUT_GROUP;
    v->own->input_split |= CVY_AXIS_BIT(CVY_AXIS_CHANNEL);
    v->own->input_channels = split_channels(v, v->x->extent[1], channels);
    v->own->output_channels = split_channels(v, v->layer->output.extent[1], filters);
    if (from >= 0) {
        const cvy_placement *given = &get_producer(v, from)->output_channels;
        if (scale_channels(given, channels, filters, &v->own->output_channels)) {
            v->own->input_channels = *given;
        }
    }
    leave_channels_split(v);
}

/* A layer with weights, by what the strategy and the choice ask for; the other cut where there are too few. */
static void cut_weights(dividing *v)
{
    const cvy_distribution *d = v->d;
    int64_t parts = count_parts(d, CVY_AXIS_CHANNEL);
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
        v->own->why_whole[CVY_AXIS_CHANNEL] = not_cut;
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
static bool concat_channels(dividing *v)
{
    for (int i = 0; i < v->layer->inputs; i++) {
        if (get_input(v, i)->extent[1] < count_parts(v->d, CVY_AXIS_CHANNEL)) {
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
static bool flatten_channels(dividing *v)
{
    int64_t positions = cvy_shape_elements(v->x) / v->x->extent[1];
    v->own->output_channels = v->own->input_channels;
    return scale_channels(&v->own->input_channels, 1, positions, &v->own->output_channels);
}

/* A layer that takes channels one by one. */
static void follow_channels(dividing *v)
{
    unsigned bit = CVY_AXIS_BIT(CVY_AXIS_CHANNEL);
    int from = find_split_input(v);
    bool fits = true;
    if (from < 0) {
        v->own->why_whole[CVY_AXIS_CHANNEL] = whole_input;
        return;
    }
    v->own->input_split |= bit;
    v->own->input_channels = get_producer(v, from)->output_channels;
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

static void divide_channels(dividing *v)
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

/* ---- the whole ---- */

static void divide_source(cvy_distribution *d)
{
    const cvy_layer *input = &d->model->layer[0];
    for (int axis = CVY_AXIS_DEPTH; axis <= CVY_AXIS_WIDTH; axis++) {
        int64_t parts = count_parts(d, (cvy_axis)axis);
        if (parts > 1 && get_extent(&input->output, (cvy_axis)axis) >= parts) {
            d->layer[0].output_split |= CVY_AXIS_BIT(axis);
            d->layer[0].raw_split |= CVY_AXIS_BIT(axis);
        } else if (parts > 1) {
            d->layer[0].why_whole[axis] = few_rows;
        }
    }
}

static void divide_layer(cvy_distribution *d, int index, const cvy_layer_choice *choice)
{
    const cvy_layer *layer = &d->model->layer[index];
    dividing v = {.d = d, .layer = layer, .own = &d->layer[index], .choice = choice,
                  .x = &d->model->layer[layer->input[0]].output, .op = {.kind = CVY_OP_KIND_COUNT}};
    if (layer->kind->make_op) {
        layer->kind->make_op(layer, v.x, CVY_PASS_FORWARD, &v.op);
    }
    for (int axis = CVY_AXIS_DEPTH; axis <= CVY_AXIS_WIDTH; axis++) {
        if (count_parts(d, (cvy_axis)axis) > 1) {
            divide_space(&v, (cvy_axis)axis);
        }
    }
    if (count_parts(d, CVY_AXIS_CHANNEL) > 1) {
        divide_channels(&v);
    }
}

/*
 * A sum over channels that would rest split, but that everybody takes whole, is made whole at once: one exchange, not
 * two.
 */
static void join_sums(cvy_distribution *d)
{
    unsigned bit = CVY_AXIS_BIT(CVY_AXIS_CHANNEL);
    for (int i = d->model->layers - 1; i > 0; i--) {
        const cvy_layer *consumer = &d->model->layer[i];
        for (int k = 0; k < consumer->inputs; k++) {
            d->layer[consumer->input[k]].taken_split |= d->layer[i].input_split;
        }
    }
    for (int i = 1; i < d->model->layers; i++) {
        if ((d->layer[i].raw_partial & bit) && !(d->layer[i].taken_split & bit)) {
            d->layer[i].output_split &= ~bit;
        }
    }
}

/* Every axis must cut something: else its ranks would only do the same twice. */
static cvy_status check_axes(const cvy_distribution *d)
{
    unsigned used = 0;
    for (int i = 1; i < d->model->layers; i++) {
        used |= d->layer[i].input_split | d->layer[i].raw_split;
    }
    for (int axis = CVY_AXIS_DEPTH; axis < CVY_AXES; axis++) {
        if (count_parts(d, (cvy_axis)axis) > 1 && !is_split(used, (cvy_axis)axis)) {
            const char *why = d->layer[0].why_whole[axis] ? d->layer[0].why_whole[axis] : d->layer[1].why_whole[axis];
            return cvy_fail(CVY_ERR_INFEASIBLE, "%s=%" PRId64 " cuts no layer: layer %s: %s",
                            cvy_axis_name((cvy_axis)axis), count_parts(d, (cvy_axis)axis), d->model->layer[1].name,
                            why ? why : wants_samples);
        }
    }
    return CVY_OK;
}

static cvy_status check_batch(const cvy_distribution *d)
{
    int64_t samples = count_parts(d, CVY_AXIS_SAMPLE), batch = d->options.batch;
    int64_t parts = d->strategy.micro_batches > 1 ? d->strategy.micro_batches : 1;
    CVY_REQUIRE(batch >= samples, CVY_ERR_INFEASIBLE,
                "sample=%" PRId64 " needs a batch of at least %" PRId64 ", got %" PRId64, samples, samples, batch);
    CVY_REQUIRE(batch / samples >= parts, CVY_ERR_INFEASIBLE,
                "%" PRId64 " samples a rank (a batch of %" PRId64 ") cannot go in %" PRId64 " micro-batches",
                batch / samples, batch, parts);
    return CVY_OK;
}

/* Stages of equal floating point operations, cut where one tensor passes; forward and both gradients, so 3 times. */
static cvy_status balance_stages(cvy_distribution *d)
{
    int layers = d->model->layers, stages = (int)count_parts(d, CVY_AXIS_STAGE);
    double slowest;
    cvy_status status = CVY_ERR_MEMORY;
    double *work = cvy_calloc((size_t)layers * 2, sizeof *work);
    bool *narrow = cvy_calloc((size_t)layers, sizeof *narrow);
    if (!work || !narrow) {
        goto done;
    }
    CVY_TRY_GOTO(status, done, cvy_model_find_narrow(d->model, narrow));
    for (int i = 1; i < layers; i++) {
        work[i] = cvy_model_layer_flop(d->model, i);
        work[layers + i] = narrow[i - 1] && i > 1 ? 0.0 : INFINITY;
    }
    cvy_chain chain = {.layers = layers, .layer_s = work, .cut_s = work + layers};
    status = cvy_stages_balance(&chain, stages, d->stages, &slowest);
done:
    cvy_free(narrow);
    cvy_free(work);
    return status;
}

static cvy_status divide_stages(cvy_distribution *d, const int *given)
{
    int stages = (int)count_parts(d, CVY_AXIS_STAGE), layers = d->model->layers;
    CVY_REQUIRE(stages <= layers, CVY_ERR_INFEASIBLE, "stage=%d needs as many layers, %s has %d", stages,
                cvy_model_name(d->model), layers);
    d->stages = cvy_calloc((size_t)stages + 1, sizeof *d->stages);
    if (!d->stages) {
        return CVY_ERR_MEMORY;
    }
    d->stages[stages] = layers;
    if (given) {
        memcpy(d->stages, given, ((size_t)stages + 1) * sizeof *given);
    } else if (stages > 1) {
        CVY_TRY(balance_stages(d));
    }
    for (int stage = 0; stage < stages; stage++) {
        for (int i = d->stages[stage]; i < d->stages[stage + 1]; i++) {
            d->layer[i].stage = stage;
        }
    }
    return CVY_OK;
}

static cvy_status divide(cvy_distribution *d, const cvy_distribution_options *options)
{
    static const cvy_layer_choice open = {.cut = -1, .space = CVY_AXIS_SPACE};
    CVY_TRY(check_batch(d));
    CVY_TRY(divide_stages(d, options->stages));
    divide_source(d);
    for (int i = 1; i < d->model->layers; i++) {
        divide_layer(d, i, options->choices ? &options->choices[i] : &open);
    }
    join_sums(d);
    return check_axes(d);
}

cvy_status cvy_distribution_create(const cvy_model *model, const cvy_strategy *strategy,
                                   const cvy_distribution_options *options, cvy_distribution **distribution_out)
{
    cvy_distribution *d = cvy_calloc(1, sizeof *d);
    if (!d) {
        return CVY_ERR_MEMORY;
    }
    d->model = model;
    d->strategy = *strategy;
    d->options = *options;
    d->options.choices = NULL;
    d->options.stages = NULL;
    d->layer = cvy_calloc((size_t)model->layers, sizeof *d->layer);
    cvy_status status = d->layer ? divide(d, options) : CVY_ERR_MEMORY;
    if (status != CVY_OK) {
        cvy_distribution_destroy(&d);
        return status;
    }
    *distribution_out = d;
    return CVY_OK;
}

void cvy_distribution_destroy(cvy_distribution **distribution)
{
    if (distribution && *distribution) {
        cvy_free((*distribution)->layer);
        cvy_free((*distribution)->stages);
        cvy_free(*distribution);
        *distribution = NULL;
    }
}
