/*
 * What a block's ranks send each other: between layers whose placements differ, at the borders of split space, for the
 * statistics of batch norms, and over all ranks the gradients. Of a tensor that several layers take whole, or give
 * parts of a gradient to, one exchange is counted: a plan may do no better.
 */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "oracle/bound_internal.h"
#include "oracle/estimate_internal.h"

/* One layer while its sendings are found. */
typedef struct looking {
    cvy_bound *bound;
    int layer, to; /* for which layer things are sent: another one, where its consumers take it otherwise */
    const cvy_layer_distribution *own;
    const cvy_bound_share *share;
} looking;

static unsigned list_axes(const cvy_bound *bound, unsigned among)
{
    unsigned axes = 0;
    for (int axis = CVY_AXIS_DEPTH; axis < CVY_AXES; axis++) {
        axes |= bound->block.size[axis] > 1 ? CVY_AXIS_BIT(axis) : 0;
    }
    return axes & among;
}

static double multiply(const int64_t *extents, int dims)
{
    double elements = 1.0;
    for (int dim = 1; dim < dims; dim++) {
        elements *= (double)extents[dim];
    }
    return elements;
}

/* Elements of a layer's output as others find it, but whole along some axes. */
static double count_output(const cvy_bound *bound, int layer, unsigned whole)
{
    const cvy_shape *shape = &bound->model->layer[layer].output;
    int64_t extents[CVY_MAX_DIMS];
    memcpy(extents, bound->share[layer].output, sizeof extents);
    for (int axis = CVY_AXIS_DEPTH; axis < CVY_AXES; axis++) {
        int dim = cvy_distribution_dim((cvy_axis)axis, shape->dims);
        if (dim >= 0 && whole & CVY_AXIS_BIT(axis)) {
            extents[dim] = shape->extent[dim];
        }
    }
    return multiply(extents, shape->dims);
}

static cvy_status add_link(cvy_bound *bound, int sending, int layer, const cvy_bound_sending *what)
{
    CVY_TRY(cvy_array_reserve(&bound->link, bound->links, &bound->link_capacity, sizeof *bound->link));
    bound->link[bound->links++] = (cvy_bound_link){sending, layer, what->times[0] + what->times[1]};
    return CVY_OK;
}

/* Equal ones are one that happens more often. */
static cvy_status add_sending(cvy_bound *bound, int layer, const cvy_bound_sending *what)
{
    for (int i = 0; i < bound->sendings; i++) {
        cvy_bound_sending *known = &bound->sending[i];
        if (known->collective == what->collective && known->axes == what->axes &&
            known->sample_bytes == what->sample_bytes && known->fixed_bytes == what->fixed_bytes) {
            known->times[0] += what->times[0];
            known->times[1] += what->times[1];
            return add_link(bound, i, layer, what);
        }
    }
    CVY_TRY(cvy_array_reserve(&bound->sending, bound->sendings, &bound->sending_capacity, sizeof *what));
    bound->sending[bound->sendings] = *what;
    return add_link(bound, bound->sendings++, layer, what);
}

/* A collective over axes, of so many elements a sample; nothing where there are no axes. */
static cvy_status add_collective(const looking *at, cvy_collective collective, unsigned axes, double elements,
                                 bool backward)
{
    if (!axes) {
        return CVY_OK;
    }
    cvy_bound_sending what = {.collective = collective, .axes = axes,
                              .sample_bytes = elements * at->bound->item_bytes};
    what.times[backward] = 1.0;
    return add_sending(at->bound, at->to, &what);
}

/* From what the op leaves to what others find. The gradient of a sum that is split is gathered. */
static cvy_status add_output(const looking *at)
{
    int dims = at->bound->model->layer[at->layer].output.dims;
    double raw = multiply(at->share->raw, dims), output = multiply(at->share->output, dims);
    const cvy_layer_distribution *own = at->own;
    unsigned all = list_axes(at->bound, ~0u);
    unsigned scattered = own->raw_partial & own->output_split & all;
    CVY_TRY(add_collective(at, CVY_COLLECTIVE_ALL_REDUCE, own->raw_partial & ~own->output_split & all, raw, false));
    CVY_TRY(add_collective(at, CVY_COLLECTIVE_REDUCE_SCATTER, scattered, raw, false));
    CVY_TRY(add_collective(at, CVY_COLLECTIVE_ALL_GATHER, scattered, raw, true));
    return add_collective(at, CVY_COLLECTIVE_ALL_GATHER, own->raw_split & ~own->output_split & all, output, false);
}

static void find_edges(cvy_bound *bound)
{
    unsigned all = list_axes(bound, ~0u);
    memset(bound->edge, 0, (size_t)bound->model->layers * sizeof *bound->edge);
    for (int layer = 1; layer < bound->model->layers; layer++) {
        const cvy_layer *l = &bound->model->layer[layer];
        const cvy_layer_distribution *own = &bound->distribution->layer[layer];
        for (int i = 0; i < l->inputs; i++) {
            cvy_bound_edge *edge = &bound->edge[l->input[i]];
            unsigned split = bound->distribution->layer[l->input[i]].output_split;
            edge->first = edge->first ? edge->first : layer;
            edge->gathered |= split & ~own->input_split & all;
            edge->sliced |= ~split & own->input_split & all;
            edge->summed |= (i == 0 ? own->dx_partial : i == 1 ? own->dx1_partial : 0) & all;
        }
    }
}

/* From what a producer leaves to what its consumers take, all of them together, and back. */
static cvy_status add_edges(const looking *at)
{
    const cvy_bound *bound = at->bound;
    const cvy_bound_edge *edge = &bound->edge[at->layer];
    unsigned split = at->own->output_split;
    CVY_TRY(add_collective(at, CVY_COLLECTIVE_ALL_GATHER, edge->gathered,
                           count_output(bound, at->layer, edge->gathered), false));
    if (at->layer == 0) {
        return CVY_OK;
    }
    unsigned scattered = edge->summed & split, summed = edge->summed & ~split;
    double output = count_output(bound, at->layer, 0);
    bool shares = bound->machine->execution.shard_sums && summed == CVY_AXIS_BIT(CVY_AXIS_CHANNEL);
    CVY_TRY(add_collective(at, CVY_COLLECTIVE_REDUCE_SCATTER, scattered, count_output(bound, at->layer, scattered),
                           true));
    CVY_TRY(add_collective(at, CVY_COLLECTIVE_ALL_REDUCE, summed,
                           output / (shares ? (double)bound->block.size[CVY_AXIS_CHANNEL] : 1.0), true));
    return add_collective(at, CVY_COLLECTIVE_ALL_GATHER, edge->sliced & ~edge->summed, output, true);
}

/* Rows of x that the first rank's outputs reach and others hold; of dy as many windows, and no more bytes. */
static cvy_status add_halos(const looking *at)
{
    const cvy_bound *bound = at->bound;
    const cvy_layer *l = &bound->model->layer[at->layer];
    const cvy_shape *x = l->inputs ? &bound->model->layer[l->input[0]].output : NULL;
    for (int axis = CVY_AXIS_DEPTH; x && axis <= CVY_AXIS_WIDTH; axis++) {
        int dim = cvy_distribution_dim((cvy_axis)axis, x->dims);
        if (!(at->share->halos & CVY_AXIS_BIT(axis))) {
            continue;
        }
        int64_t held = (x->extent[dim] + bound->block.size[axis] - 1) / bound->block.size[axis];
        double rows = (double)(at->share->input[0][dim] - held);
        double row = multiply(at->share->input[0], x->dims) / (double)at->share->input[0][dim];
        double row_y = multiply(at->share->raw, x->dims) / (double)at->share->raw[dim];
        if (rows > 0.0) {
            cvy_bound_sending what = {.collective = CVY_COLLECTIVE_POINT_TO_POINT, .axes = CVY_AXIS_BIT(axis),
                                      .sample_bytes = rows * row * bound->item_bytes, .times = {1.0, 0.0}};
            CVY_TRY(add_sending(at->bound, at->to, &what));
        }
        if (rows > 0.0 && l->input[0] > 0) {
            cvy_bound_sending what = {.collective = CVY_COLLECTIVE_POINT_TO_POINT, .axes = CVY_AXIS_BIT(axis),
                                      .sample_bytes = fmin(row, row_y) * bound->item_bytes, .times = {0.0, 1.0}};
            CVY_TRY(add_sending(at->bound, at->to, &what));
        }
    }
    return CVY_OK;
}

/* Over which axes a batch norm takes its statistics; those of samples are not looked at. */
static unsigned find_norm_axes(const cvy_bound *bound, int layer)
{
    unsigned together = bound->options.norms_given                  ? bound->options.norm_axes
                        : bound->machine->execution.local_norms ? 0
                                                                : CVY_AXIS_SPACE;
    return bound->table.kind[layer] == CVY_OP_BATCH_NORM ? together : 0;
}

/* Two numbers a channel each way; where samples' ranks join in, it is no longer the block's affair, and not counted. */
static cvy_status add_statistics(const looking *at)
{
    unsigned together = find_norm_axes(at->bound, at->layer);
    bool alone = !(together & CVY_AXIS_BIT(CVY_AXIS_SAMPLE));
    unsigned axes = alone ? list_axes(at->bound, together) & at->own->input_split & CVY_AXIS_SPACE : 0;
    cvy_bound_sending what = {.collective = CVY_COLLECTIVE_ALL_REDUCE, .axes = axes,
                              .fixed_bytes = 2.0 * 4.0 * (double)at->share->vector_extent, .times = {1.0, 1.0}};
    return axes ? add_sending(at->bound, at->to, &what) : CVY_OK;
}

/* As backward comes by: a bucket is full once it has enough bytes. */
static void add_gradient(cvy_bound *bound, unsigned axes, double items)
{
    double enough = (double)(bound->options.bucket_bytes < 0 ? bound->machine->execution.bucket_bytes
                                                              : bound->options.bucket_bytes);
    int set = 0;
    while (set < bound->gradients && bound->gradient[set].axes != axes && set < CVY_BOUND_AXES_SETS - 1) {
        set++;
    }
    if (set == bound->gradients) {
        bound->gradient[bound->gradients++] = (cvy_bound_gradients){.axes = axes};
    }
    cvy_bound_gradients *all = &bound->gradient[set];
    all->buckets += all->open_items == 0.0;
    all->items += items;
    all->tensors++;
    all->open_items += items;
    if (enough > 0.0 && all->open_items * bound->item_bytes >= enough) {
        all->open_items = 0.0;
    }
}

unsigned cvy_bound_find_gradient_axes(const cvy_bound *bound, int layer)
{
    unsigned axes = bound->distribution->layer[layer].gradient_axes | CVY_AXIS_BIT(CVY_AXIS_SAMPLE);
    return axes & ~find_norm_axes(bound, layer); /* along those they are summed already */
}

static void add_gradients(cvy_bound *bound, int layer)
{
    const cvy_layer *l = &bound->model->layer[layer];
    unsigned axes = cvy_bound_find_gradient_axes(bound, layer);
    for (int i = l->first_parameter; i < l->first_parameter + l->parameters; i++) {
        const cvy_parameter *p = &bound->model->parameter[i];
        if (p->spec.trainable && axes) {
            add_gradient(bound, axes, (double)cvy_shape_elements(&p->spec.shape) * cvy_bound_find_part(bound, i));
        }
    }
}

cvy_status cvy_bound_find_sendings(cvy_bound *bound)
{
    bound->sendings = bound->links = bound->gradients = 0;
    find_edges(bound);
    for (int layer = 0; layer < bound->model->layers; layer++) {
        looking at = {bound, layer, layer, &bound->distribution->layer[layer], &bound->share[layer]};
        if (bound->block.ranks > 1) {
            CVY_TRY(add_output(&at));
            CVY_TRY(add_halos(&at));
            CVY_TRY(add_statistics(&at));
            at.to = bound->edge[layer].first;
            CVY_TRY(add_edges(&at));
        }
    }
    for (int layer = bound->model->layers - 1; layer >= 0; layer--) {
        add_gradients(bound, layer);
    }
    return CVY_OK;
}

/* ---- seconds ---- */

/* What an exchange takes at least: a link that saves up while nothing is sent may spare what its bucket holds. */
static double find_least(const cvy_bound *bound, const cvy_network_cost *cost)
{
    bool saves = cost->level >= 0 && bound->machine->level[cost->level].burst_bytes > 0;
    return cost->seconds - (saves ? fmin(cost->bytes_s, cvy_machine_bucket(bound->machine)) : 0.0);
}

static double price_halo(cvy_bound *bound, const cvy_bound_sending *what, double bytes)
{
    cvy_message message[2] = {{.bytes = (int64_t)bytes}, {.bytes = (int64_t)bytes, .receive = true}};
    cvy_network_cost cost;
    for (int axis = 0; axis < CVY_AXES; axis++) {
        message[0].peer_offset[axis] = message[1].peer_offset[axis] = what->axes >> axis & 1;
    }
    cvy_network_estimate_messages(&bound->block_network, message, 2, CVY_TRAFFIC_SPACE, &cost);
    return find_least(bound, &cost);
}

double cvy_bound_count_pieces(const cvy_bound *bound)
{
    double gathers = 0.0;
    for (int i = 0; i < bound->sendings; i++) {
        const cvy_bound_sending *what = &bound->sending[i];
        bool counts = what->collective == CVY_COLLECTIVE_ALL_GATHER && what->axes == CVY_AXIS_BIT(CVY_AXIS_CHANNEL);
        gathers += counts ? what->times[0] : 0.0;
    }
    return gathers * (double)bound->block.size[CVY_AXIS_CHANNEL];
}

void cvy_bound_price_sendings(cvy_bound *bound, int64_t samples, double seconds_out[2])
{
    seconds_out[0] = seconds_out[1] = 0.0;
    for (int i = 0; i < bound->sendings; i++) {
        cvy_bound_sending *what = &bound->sending[i];
        double bytes = what->fixed_bytes + what->sample_bytes * (double)samples;
        if (what->collective == CVY_COLLECTIVE_POINT_TO_POINT) {
            what->seconds = price_halo(bound, what, bytes);
        } else {
            cvy_network_request request = {.collective = what->collective, .axes = what->axes, .bytes = bytes,
                                           .traffic = cvy_network_traffic(CVY_PHASE_REDISTRIBUTE, what->axes)};
            cvy_network_cost cost;
            cvy_network_estimate_collective(&bound->block_network, &request, &cost);
            what->seconds = find_least(bound, &cost);
        }
        seconds_out[0] += what->times[0] * what->seconds;
        seconds_out[1] += what->times[1] * what->seconds;
    }
}

double cvy_bound_price_transfers(cvy_bound *bound, const cvy_strategy *strategy, double samples)
{
    int64_t borders = strategy->mesh.size[CVY_AXIS_STAGE] - 1;
    if (borders < 1 || borders > bound->borders) {
        return 0.0;
    }
    double bytes = bound->border[borders - 1] / (double)borders * samples * bound->item_bytes;
    cvy_message message = {.bytes = (int64_t)bytes, .peer_offset = {[CVY_AXIS_STAGE] = 1}};
    cvy_network_cost cost;
    cvy_network_estimate_messages(&bound->network, &message, 1, cvy_network_traffic(CVY_PHASE_REDISTRIBUTE, 1), &cost);
    return 2.0 * (double)borders * find_least(bound, &cost);
}

double cvy_bound_price_gradients(cvy_bound *bound, const cvy_strategy *strategy)
{
    double seconds = 0.0, stages = (double)strategy->mesh.size[CVY_AXIS_STAGE];
    bool leaders = cvy_strategy_is_among(bound->machine->execution.leader_exchange, cvy_strategy_find_name(strategy));
    for (int i = 0; i < bound->gradients; i++) {
        const cvy_bound_gradients *what = &bound->gradient[i];
        double bytes = what->items * bound->item_bytes / stages;
        double buckets = stages > 1.0 ? 1.0 : (double)what->buckets;
        if (cvy_mesh_group_size(&strategy->mesh, what->axes) > 1) {
            cvy_network_request request = {.collective = CVY_COLLECTIVE_ALL_REDUCE, .axes = what->axes,
                                           .traffic = CVY_TRAFFIC_GRADIENTS, .bytes = bytes / buckets,
                                           .tensors = (int)(what->tensors / (buckets * stages)) * (leaders ? 2 : 1),
                                           .leaders = leaders};
            cvy_network_cost cost;
            cvy_network_estimate_collective(&bound->network, &request, &cost);
            seconds += buckets * find_least(bound, &cost);
        }
    }
    return seconds;
}
