/*
 * A block's first rank: which extents each layer's tensors have there, and so which ops it runs. Balanced shares are
 * largest on the first rank, so its sums are bounds of the slowest one's. A halo'd input has the rows that the first
 * rank's outputs reach.
 */
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "base/order.h"
#include "oracle/bound_internal.h"

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static int64_t greatest(int64_t a, int64_t b) { return a > b ? a : b; }

static int64_t share_first(int64_t extent, int64_t parts) { return (extent + parts - 1) / parts; }

/* What the first rank has of channels that are split: of each stretch its share. */
static int64_t share_channels(const cvy_placement *placement)
{
    int64_t channels = 0;
    for (int i = 0; i < placement->segments; i++) {
        const cvy_segment *s = &placement->segment[i];
        channels += s->border ? s->border[1] - s->border[0]
                              : s->unit * share_first(s->extent / s->unit, placement->parts);
    }
    return channels;
}

/* Extents of a tensor that is cut along some axes; space is cut balanced. */
static void cut_shape(const cvy_bound *bound, const cvy_shape *shape, unsigned split, const cvy_placement *channels,
                      int64_t extents_out[CVY_MAX_DIMS])
{
    memcpy(extents_out, shape->extent, sizeof shape->extent);
    for (int axis = CVY_AXIS_DEPTH; axis <= CVY_AXIS_WIDTH; axis++) {
        int dim = cvy_distribution_dim((cvy_axis)axis, shape->dims);
        if (dim >= 0 && split & CVY_AXIS_BIT(axis)) {
            extents_out[dim] = share_first(shape->extent[dim], bound->block.size[axis]);
        }
    }
    if (split & CVY_AXIS_BIT(CVY_AXIS_CHANNEL)) {
        extents_out[cvy_distribution_dim(CVY_AXIS_CHANNEL, shape->dims)] = share_channels(channels);
    }
}

/* Input i; of a concat each has channels of its own. */
static void cut_input(const cvy_bound *bound, int layer, int i, int64_t extents_out[CVY_MAX_DIMS])
{
    const cvy_layer *l = &bound->model->layer[layer];
    const cvy_layer_distribution *own = &bound->distribution->layer[layer];
    const cvy_placement *channels = &own->input_channels;
    cvy_placement concat;
    if (l->kind->flow == CVY_FLOW_CONCAT && own->input_split & CVY_AXIS_BIT(CVY_AXIS_CHANNEL)) {
        concat = cvy_distribution_input(bound->distribution, layer, i, CVY_AXIS_CHANNEL);
        channels = &concat;
    }
    cut_shape(bound, &bound->model->layer[l->input[i]].output, own->input_split, channels, extents_out);
}

/* Rows of x that the first outputs reach. */
static void add_halo(const cvy_bound *bound, int layer, cvy_bound_share *share)
{
    const cvy_layer *l = &bound->model->layer[layer];
    const cvy_shape *x = &bound->model->layer[l->input[0]].output;
    cvy_op op = {.kind = CVY_OP_KIND_COUNT};
    for (int axis = CVY_AXIS_DEPTH; axis <= CVY_AXIS_WIDTH; axis++) {
        if (bound->block.size[axis] == 1 || !cvy_distribution_has_halo(bound->distribution, layer, (cvy_axis)axis)) {
            continue;
        }
        if (op.kind == CVY_OP_KIND_COUNT) {
            l->kind->make_op(l, x, CVY_PASS_FORWARD, &op);
        }
        share->halos |= CVY_AXIS_BIT(axis);
        const cvy_window *w = &op.params.window.window;
        int at = axis - CVY_AXIS_DEPTH, dim = cvy_distribution_dim((cvy_axis)axis, x->dims);
        if (op.kind != CVY_OP_TRANSPOSED_CONVOLUTION) {
            int64_t rows = (share->raw[dim] - 1) * w->stride[at] + w->dilation[at] * (w->kernel[at] - 1) + 1;
            share->input[0][dim] = greatest(1, least(rows - w->before[at], x->extent[dim]));
        }
    }
}

static void cut_parameters(const cvy_bound *bound, int layer, cvy_bound_share *share)
{
    const cvy_layer *l = &bound->model->layer[layer];
    share->weights_dim = -1;
    for (int i = l->first_parameter; i < l->first_parameter + l->parameters; i++) {
        const cvy_shape *shape = &bound->model->parameter[i].spec.shape;
        cvy_placement placement = cvy_distribution_parameter(bound->distribution, i);
        bool split = placement.placing == CVY_PLACING_SPLIT;
        int64_t extent = split ? share_channels(&placement) : shape->extent[0];
        if (shape->dims == 1) {
            share->vector_extent = extent;
        } else if (split) {
            share->weights_dim = placement.dim;
            share->weights_extent = extent;
        }
    }
}

static void hash_share(cvy_bound_share *share)
{
    const int64_t *word = (const int64_t *)share->input;
    size_t words = sizeof share->input / sizeof *word + 2 * CVY_MAX_DIMS; /* raw and output lie behind */
    uint64_t hash = UINT64_C(0x9E3779B97F4A7C15);
    for (size_t i = 0; i < words; i++) {
        hash = (hash ^ (uint64_t)word[i]) * UINT64_C(0xBF58476D1CE4E5B9);
        hash ^= hash >> 29;
    }
    const int64_t rest[] = {share->weights_dim, share->weights_extent, share->vector_extent, share->slices};
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++) {
        hash = (hash ^ (uint64_t)rest[i]) * UINT64_C(0xBF58476D1CE4E5B9);
        hash ^= hash >> 29;
    }
    share->hash = hash;
}

static void cut_layer(const cvy_bound *bound, int layer, cvy_bound_share *share)
{
    const cvy_distribution *d = bound->distribution;
    const cvy_layer_distribution *own = &d->layer[layer];
    const cvy_layer *l = &bound->model->layer[layer];
    memset(share, 0, sizeof *share);
    for (int i = 0; i < l->inputs; i++) {
        cut_input(bound, layer, i, share->input[i]);
    }
    cut_shape(bound, &l->output, own->raw_split & ~own->raw_partial, &own->output_channels, share->raw);
    cut_shape(bound, &l->output, own->output_split, &own->output_channels, share->output);
    cut_parameters(bound, layer, share);
    if (!share->vector_extent) { /* statistics go by the output */
        share->vector_extent = share->raw[1];
    }
    share->slices = cvy_distribution_slices(d, layer);
    share->groups = own->cut == CVY_CUT_GROUP ? bound->block.size[CVY_AXIS_CHANNEL] : 1;
    add_halo(bound, layer, share);
    hash_share(share);
}

/* ---- ops ---- */

static void set_extents(cvy_tensor *tensor, const int64_t *extents)
{
    for (int dim = 1; dim < tensor->shape.dims; dim++) {
        tensor->shape.extent[dim] = extents[dim];
    }
}

/* With groups the dimension in front counts them, and what is cut is whole groups. */
static void set_weights(cvy_tensor *tensor, const cvy_bound_share *share)
{
    if (share->weights_dim < 0) {
        return;
    }
    int dim = share->weights_dim;
    if (tensor->grouped) {
        int64_t each = tensor->shape.extent[dim + 1];
        tensor->shape.extent[0] = greatest(1, share->weights_extent / greatest(1, each));
    } else if (dim < tensor->shape.dims) {
        tensor->shape.extent[dim] = greatest(1, share->weights_extent);
    }
}

static void localise(const cvy_bound_op *of, const cvy_bound_share *share, cvy_op *op_out)
{
    *op_out = of->op;
    for (int i = 0; i < op_out->operands; i++) {
        cvy_tensor *tensor = &op_out->operand[i].tensor;
        switch (of->like[i]) {
        case CVY_LIKE_WHOLE:
        case CVY_LIKE_SAMPLES: break;
        case CVY_LIKE_OUTPUT: set_extents(tensor, share->raw); break;
        case CVY_LIKE_WEIGHTS: set_weights(tensor, share); break;
        case CVY_LIKE_VECTOR: tensor->shape.extent[0] = greatest(1, share->vector_extent); break;
        default: set_extents(tensor, share->input[of->like[i] - CVY_LIKE_INPUT]); break;
        }
    }
    if (share->groups > 1 && cvy_op_convolves(op_out->kind)) {
        int64_t *groups = &op_out->params.window.groups;
        *groups = greatest(1, (*groups + share->groups - 1) / share->groups);
    }
}

/* The place of a hash: of its kernel, or a free one. Models with more kernels than places are none. */
static int *find_slot(cvy_bound *bound, uint64_t hash)
{
    uint64_t at = hash % CVY_BOUND_SLOTS;
    while (bound->slot[at] > 0 && bound->kernel[bound->slot[at] - 1].hash != hash) {
        at = (at + 1) % CVY_BOUND_SLOTS;
    }
    return &bound->slot[at];
}

static cvy_status add_kernel(cvy_bound *bound, const cvy_bound_piece *piece, int *index_out)
{
    const cvy_bound_op *of = &bound->table.op[piece->op];
    const cvy_bound_share *share = &bound->share[piece->layer];
    uint64_t hash = (of->hash ^ share->hash) * UINT64_C(0x9E3779B97F4A7C15);
    hash ^= hash >> 32;
    int *slot = find_slot(bound, hash);
    if (*slot == 0) {
        CVY_REQUIRE(bound->kernels < CVY_BOUND_SLOTS - 1, CVY_ERR_UNSUPPORTED,
                    "the model has more than %d unlike steps", CVY_BOUND_SLOTS - 1);
        CVY_TRY(cvy_array_reserve(&bound->kernel, bound->kernels, &bound->kernel_capacity, sizeof *bound->kernel));
        cvy_bound_kernel *kernel = &bound->kernel[bound->kernels++];
        *kernel = (cvy_bound_kernel){.of = of, .hash = hash, .slices = (double)share->slices};
        localise(of, share, &kernel->op);
        *slot = bound->kernels;
    }
    *index_out = *slot - 1;
    bound->kernel[*index_out].times[piece->set] += 1.0;
    return CVY_OK;
}

/* ---- memory ---- */

static double multiply(const int64_t *extents, int dims)
{
    double elements = 1.0;
    for (int dim = 1; dim < dims; dim++) {
        elements *= (double)extents[dim];
    }
    return elements;
}

double cvy_bound_find_part(const cvy_bound *bound, int parameter)
{
    const cvy_parameter *p = &bound->model->parameter[parameter];
    const cvy_bound_share *share = &bound->share[p->layer];
    const cvy_shape *shape = &p->spec.shape;
    if (shape->dims == 1) {
        return (double)share->vector_extent / (double)shape->extent[0];
    }
    int dim = share->weights_dim;
    return dim < 0 ? 1.0 : (double)share->weights_extent / (double)shape->extent[dim];
}

/* Elements of a sample: as consumers find them; of a gradient perhaps less, as a consumer leaves its part. */
static double count_held(const cvy_bound *bound, const cvy_bound_held *held)
{
    const cvy_layer *layer = &bound->model->layer[held->layer];
    double elements = multiply(bound->share[held->layer].output, layer->output.dims);
    const cvy_layer *consumer = held->content == CVY_CONTENT_OUTPUT_GRADIENT && held->consumer >= 0
                                    ? &bound->model->layer[held->consumer] : NULL;
    for (int i = 0; consumer && i < consumer->inputs; i++) {
        if (consumer->input[i] == held->layer) {
            double own = multiply(bound->share[held->consumer].input[i], layer->output.dims);
            elements = own < elements ? own : elements;
        }
    }
    return elements;
}

static void add_memory(cvy_bound *bound)
{
    for (int r = 0; r < CVY_RECOMPUTE_COUNT; r++) {
        bound->fixed_bytes[r] = bound->state_bytes[r] = bound->sample_bytes[r] = 0.0;
        for (int i = 0; i < bound->table.held[r]; i++) {
            const cvy_bound_held *held = &bound->table.held_buffer[r][i];
            if (held->parameter >= 0) {
                bool gradient = held->content == CVY_CONTENT_GRADIENT;
                double *bytes = held->content == CVY_CONTENT_MOMENT ? &bound->state_bytes[r] : &bound->fixed_bytes[r];
                *bytes += (gradient ? bound->item_bytes : bound->weight_bytes) * held->elements *
                          cvy_bound_find_part(bound, held->parameter);
            } else {
                bound->sample_bytes[r] += bound->item_bytes * count_held(bound, held);
            }
        }
    }
}

/* What passes where a stage may end; so many stages pass no less than the narrowest of those places. */
static void find_borders(cvy_bound *bound)
{
    bound->borders = 0;
    for (int layer = 1; layer < bound->model->layers; layer++) {
        if (bound->region[layer] != bound->region[layer - 1]) {
            int dims = bound->model->layer[layer - 1].output.dims;
            bound->border[bound->borders++] = multiply(bound->share[layer - 1].output, dims);
        }
    }
    cvy_sort_doubles(bound->border, bound->borders);
    for (int i = 1; i < bound->borders; i++) {
        bound->border[i] += bound->border[i - 1];
    }
}

cvy_status cvy_bound_cut(cvy_bound *bound)
{
    bound->kernels = 0;
    memset(bound->slot, 0, sizeof bound->slot);
    for (int layer = 0; layer < bound->model->layers; layer++) {
        cut_layer(bound, layer, &bound->share[layer]);
    }
    for (int i = 0; i < bound->table.pieces; i++) {
        CVY_TRY(add_kernel(bound, &bound->table.piece[i], &bound->piece_kernel[i]));
    }
    add_memory(bound);
    find_borders(bound);
    return CVY_OK;
}
