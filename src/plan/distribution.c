/*
 * Layers are gone through in the model's order: what a layer's producers leave decides what it can take. Space first,
 * then channels, axis by axis and each for itself: placements along different axes split different dimensions.
 */
#include "plan/distribution_internal.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "plan/stages.h"

const char *const cvy_cut_names[] = {"whole", "filter", "channel", "group", "follow", NULL};

int cvy_distribution_dim(cvy_axis axis, int dims)
{
    if (axis == CVY_AXIS_CHANNEL) {
        return dims >= 2 ? 1 : 0;
    }
    int dim = dims - 1 - (CVY_AXIS_WIDTH - (int)axis);
    return axis >= CVY_AXIS_DEPTH && dim >= 2 ? dim : -1;
}

static void divide_source(cvy_distribution *d)
{
    const cvy_layer *input = &d->model->layer[0];
    for (int axis = CVY_AXIS_DEPTH; axis <= CVY_AXIS_WIDTH; axis++) {
        int64_t parts = cvy_dividing_parts(d, (cvy_axis)axis);
        if (parts > 1 && cvy_dividing_extent(&input->output, (cvy_axis)axis) >= parts) {
            d->layer[0].output_split |= CVY_AXIS_BIT(axis);
            d->layer[0].raw_split |= CVY_AXIS_BIT(axis);
        } else if (parts > 1) {
            d->layer[0].why_whole[axis] = CVY_FEW_ROWS;
        }
    }
}

static void divide_layer(cvy_distribution *d, int index, const cvy_layer_choice *choice)
{
    const cvy_layer *layer = &d->model->layer[index];
    cvy_dividing v = {.d = d, .layer = layer, .own = &d->layer[index], .choice = choice,
                      .x = &d->model->layer[layer->input[0]].output, .op = {.kind = CVY_OP_KIND_COUNT}};
    if (layer->kind->make_op) {
        layer->kind->make_op(layer, v.x, CVY_PASS_FORWARD, &v.op);
    }
    for (int axis = CVY_AXIS_DEPTH; axis <= CVY_AXIS_WIDTH; axis++) {
        if (cvy_dividing_parts(d, (cvy_axis)axis) > 1) {
            cvy_divide_space(&v, (cvy_axis)axis);
        }
    }
    if (cvy_dividing_parts(d, CVY_AXIS_CHANNEL) > 1) {
        cvy_divide_channels(&v);
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
        int64_t parts = cvy_dividing_parts(d, (cvy_axis)axis);
        if (parts > 1 && !cvy_axes_have(used, (cvy_axis)axis)) {
            const char *why = d->layer[0].why_whole[axis] ? d->layer[0].why_whole[axis] : d->layer[1].why_whole[axis];
            return cvy_fail(CVY_ERR_INFEASIBLE, "%s=%" PRId64 " cuts no layer: layer %s: %s",
                            cvy_axis_name((cvy_axis)axis), parts, d->model->layer[1].name,
                            why ? why : CVY_WANTS_SAMPLES);
        }
    }
    return CVY_OK;
}

static cvy_status check_batch(const cvy_distribution *d)
{
    int64_t samples = cvy_dividing_parts(d, CVY_AXIS_SAMPLE), batch = d->options.batch;
    int64_t parts = d->strategy.micro_batches > 1 ? d->strategy.micro_batches : 1;
    CVY_REQUIRE(batch >= samples, CVY_ERR_INFEASIBLE,
                "sample=%" PRId64 " needs a batch of at least %" PRId64 ", got %" PRId64, samples, samples, batch);
    CVY_REQUIRE(batch / samples >= parts, CVY_ERR_INFEASIBLE,
                "%" PRId64 " samples a rank (a batch of %" PRId64 ") cannot go in %" PRId64 " micro-batches",
                batch / samples, batch, parts);
    return CVY_OK;
}

cvy_status cvy_distribution_balance(const cvy_model *model, const double *weight, int stages, int *first_out)
{
    double slowest;
    cvy_status status = CVY_ERR_MEMORY;
    double *cut = cvy_calloc((size_t)model->layers, sizeof *cut);
    bool *narrow = cvy_calloc((size_t)model->layers, sizeof *narrow);
    if (!cut || !narrow) {
        goto done;
    }
    CVY_TRY_GOTO(status, done, cvy_model_find_narrow(model, narrow));
    for (int i = 1; i < model->layers; i++) {
        cut[i] = narrow[i - 1] && i > 1 ? 0.0 : INFINITY;
    }
    cvy_chain chain = {.layers = model->layers, .layer_s = weight, .cut_s = cut};
    status = cvy_stages_balance(&chain, stages, first_out, &slowest);
done:
    cvy_free(narrow);
    cvy_free(cut);
    return status;
}

/* By floating point operations of forward: those of backward are twice as many, layer by layer. */
static cvy_status balance_flop(cvy_distribution *d, int stages)
{
    double *flop = cvy_calloc((size_t)d->model->layers, sizeof *flop);
    if (!flop) {
        return CVY_ERR_MEMORY;
    }
    for (int i = 1; i < d->model->layers; i++) {
        flop[i] = cvy_model_layer_flop(d->model, i);
    }
    cvy_status status = cvy_distribution_balance(d->model, flop, stages, d->stages);
    cvy_free(flop);
    return status;
}

static cvy_status divide_stages(cvy_distribution *d, const int *given)
{
    int stages = (int)cvy_dividing_parts(d, CVY_AXIS_STAGE), layers = d->model->layers;
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
        CVY_TRY(balance_flop(d, stages));
    }
    for (int stage = 0; stage < stages; stage++) {
        for (int i = d->stages[stage]; i < d->stages[stage + 1]; i++) {
            d->layer[i].stage = stage;
        }
    }
    return CVY_OK;
}

static cvy_status keep_choices(cvy_distribution *d, const cvy_layer_choice *choices)
{
    const size_t layers = (size_t)d->model->layers;
    if (!choices) {
        return CVY_OK;
    }
    d->choices = cvy_calloc(layers, sizeof *choices);
    if (!d->choices) {
        return CVY_ERR_MEMORY;
    }
    memcpy(d->choices, choices, layers * sizeof *choices);
    return CVY_OK;
}

static cvy_status divide(cvy_distribution *d, const cvy_distribution_options *options)
{
    static const cvy_layer_choice open = {.cut = -1, .space = CVY_AXIS_SPACE};
    CVY_TRY(check_batch(d));
    CVY_TRY(divide_stages(d, options->stages));
    divide_source(d);
    CVY_TRY(keep_choices(d, options->choices));
    for (int i = 1; i < d->model->layers; i++) {
        divide_layer(d, i, d->choices ? &d->choices[i] : &open);
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
        cvy_free((*distribution)->choices);
        cvy_free(*distribution);
        *distribution = NULL;
    }
}
