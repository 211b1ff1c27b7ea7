/*
 * Ensembles of small nets (Hansen and Salamon, "Neural network ensembles", 1990): each begins elsewhere, so that they
 * agree where samples are and part where there are none. Targets far from the others are those of kernels that run by
 * plain loops, or of a disturbed clock; they count as if they lay at the end of the whiskers of a box plot (Tukey).
 */
#include "calibrate/fit.h"

#include <math.h>

#include "base/memory.h"
#include "calibrate/net_trainer.h"

_Static_assert((int)CVY_FIT_NET_LAYERS == (int)CVY_NET_HIDDEN + 1, "a net has its hidden layers and the last");

/*
 * By trial on 17765 kernels of 65 kinds and passes: half of the steps leave layers of models 4 % further off, twice as
 * many change nothing; without decay, which pulls towards no more than a line, errors on shapes held out are a tenth
 * larger.
 */
static const cvy_net_recipe recipe = {.steps = 400, .learning_rate = 5e-3, .weight_decay = 1.0};

/* Samples as a trainer takes them. */
typedef struct lesson {
    int count, inputs;
    float *x, *y;
    double middle; /* what was taken off the targets */
} lesson;

static void clear_lesson(lesson *l)
{
    cvy_free(l->x);
    cvy_free(l->y);
}

static cvy_status make_lesson(const cvy_fit_sample *sample, int count, const cvy_fit_device *device,
                              const cvy_fit_inputs *inputs, lesson *l)
{
    double value[CVY_KERNEL_FEATURES];
    double *target = cvy_calloc((size_t)count, sizeof *target);
    *l = (lesson){.count = count, .inputs = inputs->count};
    l->x = cvy_calloc((size_t)count * (size_t)inputs->count, sizeof *l->x);
    l->y = cvy_calloc((size_t)count, sizeof *l->y);
    if (!target || !l->x || !l->y) {
        cvy_free(target);
        return CVY_ERR_MEMORY;
    }
    for (int i = 0; i < count; i++) {
        target[i] = cvy_fit_target(device, &sample[i]);
    }
    double low, high;
    cvy_fit_find_whiskers(target, count, &low, &high);
    l->middle = target[count / 2];
    cvy_free(target);
    for (int i = 0; i < count; i++) {
        double said = fmax(low, fmin(high, cvy_fit_target(device, &sample[i])));
        l->y[i] = (float)(said - l->middle);
        cvy_fit_inputs_get(inputs, &sample[i], value);
        for (int k = 0; k < inputs->count; k++) {
            l->x[i * inputs->count + k] = (float)value[k];
        }
    }
    return CVY_OK;
}

/* Point at the layers of a net's numbers, and put back what was taken off the targets. */
static void point_layers(double *number, int inputs, double middle, cvy_predictor_layer *layer)
{
    for (int i = 0; i < CVY_FIT_NET_LAYERS; i++) {
        int outputs = i + 1 < CVY_FIT_NET_LAYERS ? CVY_NET_WIDTH : 1;
        double *bias = number + outputs * inputs;
        layer[i] = (cvy_predictor_layer){.inputs = inputs, .outputs = outputs, .weight = number, .bias = bias};
        if (i + 1 == CVY_FIT_NET_LAYERS) {
            bias[0] += middle;
        }
        number = bias + outputs;
        inputs = outputs;
    }
}

static cvy_status train(const lesson *l, int nets, cvy_fit_nets *out)
{
    cvy_net_trainer *trainer = NULL;
    int numbers = cvy_net_count_numbers(l->inputs);
    out->number = cvy_calloc((size_t)nets * (size_t)numbers, sizeof *out->number);
    cvy_status status = out->number ? CVY_OK : CVY_ERR_MEMORY;
    CVY_TRY(status);
    CVY_TRY(cvy_net_trainer_create(&recipe, l->inputs, l->count, &trainer));
    for (int i = 0; i < nets && status == CVY_OK; i++) {
        double *number = out->number + i * numbers;
        status = cvy_net_trainer_run(trainer, l->x, l->y, l->count, (uint64_t)i + 1, number);
        point_layers(number, l->inputs, l->middle, &out->layer[i * CVY_FIT_NET_LAYERS]);
    }
    out->nets = nets;
    cvy_net_trainer_destroy(&trainer);
    return status;
}

cvy_status cvy_fit_nets_find(const cvy_fit_sample *sample, int count, const cvy_fit_device *device, int nets,
                             cvy_fit_nets *nets_out)
{
    cvy_fit_nets made = {0};
    lesson l = {0};
    cvy_status status;
    cvy_fit_inputs_find(sample, count, &made.inputs);
    CVY_REQUIRE(made.inputs.count > 0 && count >= CVY_FIT_NETS_LEAST, CVY_ERR_INFEASIBLE, "%d samples for nets", count);
    CVY_TRY_GOTO(status, done, make_lesson(sample, count, device, &made.inputs, &l));
    CVY_TRY_GOTO(status, done, train(&l, nets, &made));
    const cvy_predictor_spec spec = cvy_fit_nets_spec(&made, device);
    CVY_TRY_GOTO(status, done, cvy_predictor_create(&spec, &made.predictor));
    *nets_out = made;
    made = (cvy_fit_nets){0};
done:
    clear_lesson(&l);
    cvy_fit_nets_clear(&made);
    return status;
}

cvy_predictor_spec cvy_fit_nets_spec(const cvy_fit_nets *nets, const cvy_fit_device *device)
{
    const cvy_fit_inputs *inputs = &nets->inputs;
    return (cvy_predictor_spec){.precision = CVY_PRECISION_FP32, .peak_flop_per_s = device->peak_flop_per_s,
                                .memory_Bps = device->memory_Bps, .inputs = inputs->count, .input = inputs->feature,
                                .mean = inputs->mean, .deviation = inputs->deviation, .low = inputs->low,
                                .high = inputs->high, .nets = nets->nets, .layers = CVY_FIT_NET_LAYERS,
                                .layer = nets->layer};
}

cvy_prediction cvy_fit_nets_estimate(const cvy_fit_nets *nets, const cvy_fit_sample *sample)
{
    return cvy_predictor_run(nets->predictor, sample->feature, sample->flop, sample->bytes);
}

void cvy_fit_nets_clear(cvy_fit_nets *nets)
{
    cvy_predictor_destroy(&nets->predictor);
    cvy_free(nets->number);
    *nets = (cvy_fit_nets){0};
}
