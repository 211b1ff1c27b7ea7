/*
 * Sums of squares of whole tensors where ranks have parts of them: along channels and stages, or of an update that is
 * shared out. Each sum has a place of its own, the same on all ranks. A rank writes the places of what it holds; of
 * copies, the first rank along the axes on which there are any. Places of others are never written and stay 0, as
 * memory that persists is born. The sums of all ranks are added up over the whole mesh at once, so that all get the
 * same bits.
 */
#include "plan/builder.h"

static bool are_shared(const cvy_builder *b)
{
    const int64_t *size = b->seat.size;
    bool parts = size[CVY_AXIS_STAGE] * size[CVY_AXIS_CHANNEL] > 1;
    bool shares = b->plan->options.parallel.shard_optimizer && size[CVY_AXIS_SAMPLE] > 1;
    return (parts || shares) && !cvy_optimizer_is_local(&b->plan->options.optimizer);
}

static bool is_updated(const cvy_builder *b, int parameter)
{
    return b->model->parameter[parameter].spec.trainable && b->parameter_gradient[parameter] >= 0;
}

bool cvy_totals_have(const cvy_builder *b, int parameter)
{
    return are_shared(b) ? b->model->parameter[parameter].spec.trainable : is_updated(b, parameter);
}

/* Axes along which ranks have copies of what this one updates of a parameter. */
static unsigned find_copies(const cvy_builder *b, int parameter)
{
    unsigned parts = CVY_AXIS_BIT(CVY_AXIS_STAGE);
    int shard = b->shard_of[parameter];
    bool cut = b->seat.size[CVY_AXIS_CHANNEL] > 1 &&
               cvy_distribution_parameter(b->seat.distribution, parameter).placing == CVY_PLACING_SPLIT;
    parts |= cut ? CVY_AXIS_BIT(CVY_AXIS_CHANNEL) : 0;
    parts |= shard >= 0 ? b->shard[shard].axes : 0;
    return ~parts;
}

bool cvy_totals_count(const cvy_builder *b, int parameter)
{
    bool counts = is_updated(b, parameter);
    for (int axis = 0; counts && are_shared(b) && axis < CVY_AXES; axis++) {
        bool copies = find_copies(b, parameter) & CVY_AXIS_BIT(axis);
        counts = !copies || b->seat.coordinate[axis] == 0;
    }
    return counts;
}

cvy_status cvy_totals_add(cvy_builder *b, cvy_content content, int64_t count, bool persistent, int *index_out)
{
    cvy_buffer totals = {.role = CVY_BUFFER_WORKSPACE,
                         .content = content,
                         .layer = -1,
                         .parameter = -1,
                         .part = -1,
                         .tensor = {.shape = CVY_SHAPE(count), .dtype = CVY_F64},
                         .alias_of = -1,
                         .persistent = persistent};
    return cvy_builder_add_buffer(b, &totals, index_out);
}

cvy_status cvy_totals_persist(cvy_builder *b)
{
    const cvy_optimizer *optimizer = &b->plan->options.optimizer;
    int64_t clipped = 0, adapted = 0;
    b->own_squares[CVY_TOTALS_CLIP] = b->own_squares[CVY_TOTALS_NORMS] = -1;
    for (int i = 0; i < b->model->parameters; i++) {
        const cvy_parameter_spec *spec = &b->model->parameter[i].spec;
        clipped += spec->trainable && optimizer->clip_norm > 0.0;
        adapted += spec->trainable && cvy_optimizer_adapts(optimizer, spec->shape.dims) ? 2 : 0;
    }
    if (!are_shared(b)) {
        return CVY_OK;
    }
    if (clipped > 0) {
        CVY_TRY(cvy_totals_add(b, CVY_CONTENT_SQUARES, clipped, true, &b->own_squares[CVY_TOTALS_CLIP]));
    }
    return adapted > 0 ? cvy_totals_add(b, CVY_CONTENT_SQUARES, adapted, true, &b->own_squares[CVY_TOTALS_NORMS])
                       : CVY_OK;
}

cvy_status cvy_totals_open(cvy_builder *b, cvy_totals which, int64_t slots, int *squares_out)
{
    *squares_out = b->own_squares[which];
    return *squares_out >= 0 ? CVY_OK : cvy_totals_add(b, CVY_CONTENT_SQUARES, slots, false, squares_out);
}

cvy_status cvy_totals_close(cvy_builder *b, int *squares)
{
    int own = *squares;
    if (!b->schedule->buffer[own].persistent) {
        return CVY_OK;
    }
    unsigned axes = 0;
    for (int axis = 0; axis < CVY_AXES; axis++) {
        axes |= b->seat.size[axis] > 1 ? CVY_AXIS_BIT(axis) : 0;
    }
    CVY_TRY(cvy_totals_add(b, CVY_CONTENT_SQUARES, b->schedule->buffer[own].tensor.shape.extent[0], false, squares));
    cvy_exchange_spec spec = {
        .step = {CVY_STEP_COLLECTIVE, CVY_PHASE_GRADIENT_EXCHANGE, -1},
        .exchange = {.collective = CVY_COLLECTIVE_ALL_REDUCE, .axes = axes, .bucket = -1, .sum = true,
                     .bytes = b->schedule->buffer[own].bytes, .first_message = b->schedule->messages},
        .uses = 2,
        .use = {{.buffer = own, .access = CVY_ACCESS_READ}, {.buffer = *squares, .access = CVY_ACCESS_WRITE}},
    };
    return cvy_builder_add_exchange(b, &spec);
}
