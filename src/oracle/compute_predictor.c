/*
 * Predictors: an op becomes features, of which a kind of predictor makes the time. Far from what was measured a
 * prediction goes with the base that the kind has: a feature beyond all that was measured counts as the last that was.
 */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "oracle/compute_predictor.h"

static cvy_prediction ask(const cvy_predictor *p, const double *feature, double flop, double bytes, bool with_error)
{
    float input[CVY_PREDICTOR_MAX_INPUTS];
    const cvy_predictor_question question = {feature, input, flop, bytes, with_error};
    cvy_prediction prediction = {.roof = p->roof, .inside = true};
    for (int i = 0; i < p->inputs; i++) {
        double value = feature[p->input[i]], near = fmax(p->low[i], fmin(p->high[i], value));
        prediction.inside = prediction.inside && value == near;
        input[i] = (float)((near - p->mean[i]) / p->deviation[i]);
    }
    p->kind->run(p, &question, &prediction);
    return prediction;
}

cvy_prediction cvy_predictor_run(const cvy_predictor *predictor, const double *feature, double flop, double bytes)
{
    return ask(predictor, feature, flop, bytes, true);
}

double cvy_predictor_get_s(const cvy_predictor *predictor, const double *feature, double flop, double bytes)
{
    return ask(predictor, feature, flop, bytes, false).seconds;
}

int cvy_predictor_kernel(const cvy_predictor *predictor) { return predictor->kernel; }

cvy_op_pass cvy_predictor_pass(const cvy_predictor *predictor) { return predictor->pass; }

cvy_precision cvy_predictor_precision(const cvy_predictor *predictor) { return predictor->precision; }

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
    p->kind = spec->gaussian ? &cvy_predictor_gaussian : &cvy_predictor_mlp;
    CVY_TRY_GOTO(status, done, p->kind->make(spec, p));
    *predictor_out = p;
    p = NULL;
done:
    cvy_predictor_destroy(&p);
    return status;
}

void cvy_predictor_destroy(cvy_predictor **predictor)
{
    if (*predictor && (*predictor)->kind) {
        (*predictor)->kind->clear(*predictor);
    }
    cvy_free(*predictor);
    *predictor = NULL;
}
