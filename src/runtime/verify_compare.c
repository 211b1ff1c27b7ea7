/*
 * Two runs compared, tensor by tensor. Double precision has fixed bounds; single precision is held to the serial run's
 * own noise, since normalisation and decisions amplify rounding (docs/runs.md), and no bound holds for all nets.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "runtime/verify.h"

static const double GRADIENT_BOUND = 1e-10, WEIGHT_BOUND = 1e-9; /* in double, by the largest element */
static const double NOISE_FACTOR = 10.0, SINGLE_BOUND = 1e-5;    /* in single, by the norm */
static const double WEAK_NOISE = 1e-3;                           /* where a hundredth of a tensor passes */

static double element(const void *value, cvy_dtype dtype, int64_t i)
{
    return dtype == CVY_F64 ? ((const double *)value)[i] : (double)((const float *)value)[i];
}

/* Of two figures the larger; what is no number is larger than all. */
static double worse(double a, double b) { return b <= a || isnan(a) ? a : b; }

/* A tensor beside what it should be. */
typedef struct measure {
    double largest, expected_largest; /* of the differences; of what it should be */
    double distance, expected_norm;   /* L2 */
    double count;
} measure;

static measure measure_tensor(const void *found, const void *expected, cvy_dtype dtype, int64_t count)
{
    measure m = {.count = (double)count};
    for (int64_t i = 0; i < count; i++) {
        double a = element(found, dtype, i), b = element(expected, dtype, i), difference = fabs(a - b);
        m.largest = worse(m.largest, difference);
        m.expected_largest = fmax(m.expected_largest, fabs(b));
        m.distance += difference * difference;
        m.expected_norm += b * b;
    }
    m.distance = sqrt(m.distance);
    m.expected_norm = sqrt(m.expected_norm);
    return m;
}

/*
 * What is 0 but for rounding is measured by what it was summed from: the gradient of a bias before a norm, the running
 * mean of what has none, and the gradient of a norm's weight where all that follows are norms, which take it away. That
 * one sums the numbers of its bias's times some of size 1.
 */
typedef struct yardstick {
    const char *end, *beside; /* of the names of a parameter, and of the one of its layer that it is measured by */
    double share;
    bool root;   /* by the root of that one */
    bool vector; /* parameters of one dimension alone: a norm's */
} yardstick;

static const yardstick yardsticks[] = {
    {"bias", "weight", 1e-3, false, false},
    {"running_mean", "running_var", 1e-3, true, false},
    {"weight", "bias", 1.0, false, true},
};

/* The parameter that another is measured by; -1 where the yardstick is not for it, or there is none. */
static int find_beside(const cvy_model *model, int parameter, const yardstick *by)
{
    const char *name = model->parameter[parameter].name;
    size_t length = strlen(name), stem = length - strlen(by->end);
    bool fits = !by->vector || model->parameter[parameter].spec.shape.dims == 1;
    if (!fits || length < strlen(by->end) || strcmp(name + stem, by->end) != 0) {
        return -1;
    }
    for (int i = 0; i < model->parameters; i++) {
        const char *beside = model->parameter[i].name;
        if (strncmp(beside, name, stem) == 0 && strcmp(beside + stem, by->beside) == 0) {
            return i;
        }
    }
    return -1;
}

/* The least that a tensor's differences are measured by, as the root mean square of its elements. */
static double find_least_unit(const cvy_model *model, void *const *expected, cvy_dtype dtype, int parameter)
{
    double least = 0.0;
    for (size_t i = 0; i < sizeof yardsticks / sizeof yardsticks[0]; i++) {
        int beside = find_beside(model, parameter, &yardsticks[i]);
        if (beside >= 0 && expected[beside]) {
            int64_t count = cvy_shape_elements(&model->parameter[beside].spec.shape);
            measure m = measure_tensor(expected[beside], expected[beside], dtype, count);
            double size = m.expected_norm / sqrt(m.count);
            least = yardsticks[i].share * (yardsticks[i].root ? sqrt(size) : size);
        }
    }
    return least;
}

/* One kind of tensors of both runs, and what is allowed. */
typedef struct comparison {
    const char *what; /* "gradient" */
    void *const *found, *const *expected;
    const double *noise; /* NULL: double precision */
    double bound;        /* of double precision */
    cvy_dtype dtype;
} comparison;

/* What came of one tensor. */
typedef struct verdict {
    double relative; /* by the largest element */
    double share;    /* of what is allowed */
    double noise;    /* by the norm */
} verdict;

static verdict judge(const cvy_model *model, const comparison *c, int parameter)
{
    verdict v = {0};
    if (!c->found[parameter] || !c->expected[parameter]) {
        v.share = c->found[parameter] == c->expected[parameter] ? 0.0 : HUGE_VAL; /* one of them has none */
        return v;
    }
    int64_t count = cvy_shape_elements(&model->parameter[parameter].spec.shape);
    double least = find_least_unit(model, c->expected, c->dtype, parameter);
    measure m = measure_tensor(c->found[parameter], c->expected[parameter], c->dtype, count);
    double unit = fmax(m.expected_largest, least), norm = fmax(m.expected_norm, least * sqrt(m.count));
    v.relative = m.largest == 0.0 ? 0.0 : m.largest / unit;
    if (c->noise) {
        double allowed = fmax(NOISE_FACTOR * c->noise[parameter], SINGLE_BOUND * norm);
        v.share = m.distance == 0.0 ? 0.0 : m.distance / allowed;
        v.noise = norm > 0.0 ? c->noise[parameter] / norm : 0.0;
    } else {
        v.share = v.relative / c->bound;
    }
    return v;
}

static void note_failure(cvy_verification *v, const char *what, const char *name, const verdict *found)
{
    if (!(found->share <= 1.0) && !v->why[0]) {
        snprintf(v->why, sizeof v->why, "%s of %s: off by %.2g of its largest element, %.3g times what is allowed",
                 what, name, found->relative, found->share);
    }
}

static void compare_layer(const cvy_model *model, const comparison *gradients, const comparison *weights, int layer,
                          cvy_verification *v)
{
    const cvy_layer *l = &model->layer[layer];
    cvy_layer_difference *row = &v->layer[v->layers++];
    snprintf(row->layer, sizeof row->layer, "%s", l->name);
    for (int i = l->first_parameter; i < l->first_parameter + l->parameters; i++) {
        const char *name = model->parameter[i].name;
        verdict gradient = judge(model, gradients, i), weight = judge(model, weights, i);
        row->gradient_relative = worse(row->gradient_relative, gradient.relative);
        row->weight_relative = worse(row->weight_relative, weight.relative);
        row->share = worse(row->share, worse(gradient.share, weight.share));
        v->noise = fmax(v->noise, fmax(gradient.noise, weight.noise));
        note_failure(v, gradients->what, name, &gradient);
        note_failure(v, weights->what, name, &weight);
    }
    v->gradient_relative = worse(v->gradient_relative, row->gradient_relative);
    v->weight_relative = worse(v->weight_relative, row->weight_relative);
}

static void compare_losses(const cvy_verify_record *tried, const cvy_verify_record *serial,
                           const cvy_verify_noise *noise, cvy_verification *v)
{
    for (int64_t i = 0; i < v->steps; i++) {
        double difference = fabs(tried->loss[i] - serial->loss[i]), unit = fabs(serial->loss[i]);
        double bound = v->double_precision ? WEIGHT_BOUND * unit
                                           : fmax(NOISE_FACTOR * noise->loss[i], SINGLE_BOUND * unit);
        v->loss_relative = worse(v->loss_relative, difference == 0.0 ? 0.0 : difference / unit);
        if (!(difference <= bound) && !v->why[0]) {
            snprintf(v->why, sizeof v->why, "the loss of step %lld: %.9g, the serial run has %.9g", (long long)i,
                     tried->loss[i], serial->loss[i]);
        }
    }
}

static int compare_rows(const void *a, const void *b)
{
    const cvy_layer_difference *x = a, *y = b;
    double first = isnan(x->share) ? HUGE_VAL : x->share, second = isnan(y->share) ? HUGE_VAL : y->share;
    return first != second ? (first < second) - (first > second) : strcmp(x->layer, y->layer);
}

cvy_status cvy_verify_compare(const cvy_model *model, const cvy_verify_record *tried, const cvy_verify_record *serial,
                              const cvy_verify_noise *noise, cvy_verification *v)
{
    const bool exact = v->double_precision;
    const comparison gradients = {"the gradient", tried->gradient, serial->gradient, exact ? NULL : noise->gradient,
                                  GRADIENT_BOUND, serial->dtype};
    const comparison weights = {"the value", tried->weight, serial->weight, exact ? NULL : noise->weight, WEIGHT_BOUND,
                                serial->dtype};
    v->loss_relative = v->gradient_relative = v->weight_relative = v->noise = 0.0;
    v->shakes = noise->shakes;
    v->why[0] = '\0';
    v->layers = 0;
    if (!v->layer) {
        v->layer = cvy_calloc((size_t)model->layers, sizeof *v->layer);
        if (!v->layer) {
            return CVY_ERR_MEMORY;
        }
    }
    memset(v->layer, 0, (size_t)model->layers * sizeof *v->layer);
    compare_losses(tried, serial, noise, v);
    for (int i = 0; i < model->layers; i++) {
        if (model->layer[i].parameters > 0) {
            compare_layer(model, &gradients, &weights, i, v);
        }
    }
    qsort(v->layer, (size_t)v->layers, sizeof *v->layer, compare_rows);
    v->weak = v->noise > WEAK_NOISE;
    v->replicas_identical = tried->replicas_identical;
    if (!v->replicas_identical && !v->why[0]) {
        snprintf(v->why, sizeof v->why, "%s", tried->why_not);
    }
    v->pass = !v->why[0];
    return CVY_OK;
}

/* ---- noise ---- */

cvy_status cvy_verify_noise_create(const cvy_model *model, int64_t steps, cvy_verify_noise *noise_out)
{
    cvy_verify_noise noise = {.gradient = cvy_calloc((size_t)model->parameters + 1, sizeof(double)),
                              .weight = cvy_calloc((size_t)model->parameters + 1, sizeof(double)),
                              .loss = cvy_calloc((size_t)steps + 1, sizeof(double))};
    bool there = noise.gradient && noise.weight && noise.loss;
    *noise_out = noise;
    return there ? CVY_OK : CVY_ERR_MEMORY;
}

static void raise_noise(const cvy_model *model, void *const *serial, void *const *shaken, cvy_dtype dtype,
                        double *noise)
{
    for (int i = 0; i < model->parameters; i++) {
        if (serial[i] && shaken[i]) {
            int64_t count = cvy_shape_elements(&model->parameter[i].spec.shape);
            noise[i] = fmax(noise[i], measure_tensor(shaken[i], serial[i], dtype, count).distance);
        }
    }
}

void cvy_verify_add_noise(const cvy_model *model, const cvy_verify_record *serial, const cvy_verify_record *shaken,
                          int64_t steps, cvy_verify_noise *noise)
{
    raise_noise(model, serial->gradient, shaken->gradient, serial->dtype, noise->gradient);
    raise_noise(model, serial->weight, shaken->weight, serial->dtype, noise->weight);
    for (int64_t i = 0; i < steps; i++) {
        noise->loss[i] = fmax(noise->loss[i], fabs(shaken->loss[i] - serial->loss[i]));
    }
    noise->shakes++;
}

void cvy_verify_noise_clear(cvy_verify_noise *noise)
{
    cvy_free(noise->gradient);
    cvy_free(noise->weight);
    cvy_free(noise->loss);
    *noise = (cvy_verify_noise){0};
}
