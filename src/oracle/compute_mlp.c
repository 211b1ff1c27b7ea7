/*
 * Predictors: multi-layer perceptrons fitted to measured kernels. An op becomes features, a net makes of them the
 * logarithm of its time by the roofline of the device that was measured, so that far from what was measured a
 * prediction goes with the roofline: a feature beyond all that was measured counts as the last that was. Several nets
 * of unlike beginnings are an ensemble: their median is the answer, what they lie apart is part of its error. Inputs
 * and shape of the nets as spec/scaling-model.md 1.4.
 */
#include "oracle/compute_mlp.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/order.h"

/* ---- evaluation ---- */

/* Relu between layers; the last one, of one output, is linear. Column by column, so that vectors do the sums. */
static float run_net(const cvy_mlp_net *net, const float *input)
{
    float values[2][CVY_MLP_MAX_WIDTH];
    const float *x = input;
    for (int i = 0; i < net->layers; i++) {
        const cvy_mlp_layer *l = &net->layer[i];
        float *y = values[i % 2];
        memcpy(y, l->bias, sizeof *y * (size_t)l->outputs);
        for (int k = 0; k < l->inputs; k++) {
            const float *column = l->weight + k * l->outputs;
            for (int o = 0; o < l->outputs; o++) {
                y[o] += column[o] * x[k];
            }
        }
        for (int o = 0; o < l->outputs && i + 1 < net->layers; o++) {
            y[o] = y[o] > 0.0f ? y[o] : 0.0f;
        }
        x = y;
    }
    return x[0];
}

cvy_prediction cvy_predictor_run(const cvy_predictor *p, const double *feature, double flop, double bytes)
{
    static const double bound = 20.0; /* e^20: whatever weights a file has, a time stays a time */
    float input[CVY_PREDICTOR_MAX_INPUTS];
    double said[CVY_MLP_MAX_NETS];
    cvy_prediction prediction = {.roof = p->roof, .inside = true};
    for (int i = 0; i < p->inputs; i++) {
        double value = feature[p->input[i]], near = fmax(p->low[i], fmin(p->high[i], value));
        prediction.inside = prediction.inside && value == near;
        input[i] = (float)((near - p->mean[i]) / p->deviation[i]);
    }
    for (int i = 0; i < p->nets; i++) {
        said[i] = exp(fmax(-bound, fmin(bound, (double)run_net(&p->net[i], input))));
    }
    cvy_sort_doubles(said, p->nets);
    double middle = (said[(p->nets - 1) / 2] + said[p->nets / 2]) / 2.0;
    double apart = (said[p->nets - 1] - said[0]) / 2.0 / middle;
    prediction.seconds = middle * fmax(flop / p->roof.flop_per_s, bytes / p->roof.Bps);
    prediction.error = fmax(p->error, apart);
    return prediction;
}

int cvy_predictor_kernel(const cvy_predictor *predictor) { return predictor->kernel; }

cvy_op_pass cvy_predictor_pass(const cvy_predictor *predictor) { return predictor->pass; }

cvy_precision cvy_predictor_precision(const cvy_predictor *predictor) { return predictor->precision; }

/* ---- making ---- */

cvy_status cvy_mlp_layer_set(const cvy_predictor_layer *numbers, cvy_mlp_layer *layer)
{
    int inputs = numbers->inputs, outputs = numbers->outputs;
    layer->inputs = inputs;
    layer->outputs = outputs;
    layer->weight = cvy_calloc((size_t)outputs * (size_t)(inputs + 1), sizeof *layer->weight);
    if (!layer->weight) {
        return CVY_ERR_MEMORY;
    }
    layer->bias = layer->weight + inputs * outputs;
    for (int o = 0; o < outputs; o++) {
        for (int k = 0; k < inputs; k++) {
            layer->weight[k * outputs + o] = (float)numbers->weight[o * inputs + k];
        }
        layer->bias[o] = (float)numbers->bias[o];
    }
    return CVY_OK;
}

cvy_status cvy_predictor_create(const cvy_predictor_spec *spec, cvy_predictor **predictor_out)
{
    const size_t numbers = sizeof(double) * (size_t)spec->inputs;
    cvy_status status = CVY_ERR_MEMORY;
    cvy_predictor *p = cvy_calloc(1, sizeof *p);
    if (!p) {
        return status;
    }
    p->kernel = spec->kernel;
    p->pass = spec->pass;
    p->precision = spec->precision;
    p->error = spec->error;
    p->roof = (cvy_roof){spec->peak_flop_per_s, spec->memory_Bps};
    p->inputs = spec->inputs;
    memcpy(p->input, spec->input, sizeof(int) * (size_t)spec->inputs);
    memcpy(p->mean, spec->mean, numbers);
    memcpy(p->deviation, spec->deviation, numbers);
    memcpy(p->low, spec->low, numbers);
    memcpy(p->high, spec->high, numbers);
    p->nets = spec->nets;
    for (int i = 0; i < spec->nets * spec->layers; i++) {
        cvy_mlp_net *net = &p->net[i / spec->layers];
        net->layers = spec->layers;
        CVY_TRY_GOTO(status, done, cvy_mlp_layer_set(&spec->layer[i], &net->layer[i % spec->layers]));
    }
    status = CVY_OK;
    *predictor_out = p;
    p = NULL;
done:
    cvy_predictor_destroy(&p);
    return status;
}

void cvy_predictor_destroy(cvy_predictor **predictor)
{
    cvy_predictor *old = *predictor;
    for (int i = 0; old && i < old->nets; i++) {
        for (int k = 0; k < old->net[i].layers; k++) {
            cvy_free(old->net[i].layer[k].weight);
        }
    }
    cvy_free(old);
    *predictor = NULL;
}
