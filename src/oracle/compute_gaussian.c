/*
 * Gaussian processes. What is said of an op is the mean of all functions that are as smooth as the likeness says and
 * pass the samples as near as the noise says (Rasmussen and Williams, "Gaussian processes for machine learning", 2006,
 * algorithm 2.1, equation 2.26), times the base. How far these functions spread there, beside how far they spread at a
 * sample that is left out (their equation 5.12), says how much more or less than usually it may be off.
 *
 * A file has the samples; what is made of them, a factor and an inverse, is made when it is read.
 */
#include <math.h>

#include "base/cholesky.h"
#include "base/memory.h"
#include "oracle/compute_predictor.h"

/* What a file may have: products of any of them are numbers. */
static const double most_sd = 1e3, least_noise = 1e-4, least_length = 1e-3, most_length = 1e6, most_input = 1e3;

typedef struct cvy_gaussian {
    cvy_cost_sum base;
    int samples, inputs;
    double middle, spread2, slope2, noise2;
    float inverse_length[CVY_PREDICTOR_MAX_INPUTS], length2[CVY_PREDICTOR_MAX_INPUTS];
    float *scaled;   /**< owned: input / length, samples side by side */
    double *weight;  /**< of each sample's likeness, in the mean */
    double *inverse; /**< of the covariance of the samples */
    double usual_sd; /**< at a sample that is left out */
} cvy_gaussian;

/* ---- evaluation ---- */

/* With the first so many samples; loops run over samples, which vectors do. */
static void compare(const cvy_gaussian *g, const float *input, int samples, double *likeness)
{
    float square[CVY_GAUSSIAN_MAX_SAMPLES] = {0}, product[CVY_GAUSSIAN_MAX_SAMPLES] = {0};
    for (int k = 0; k < g->inputs; k++) {
        const float *row = g->scaled + (long)k * g->samples;
        float x = input[k] * g->inverse_length[k], back = x * g->length2[k];
        for (int i = 0; i < samples; i++) {
            float apart = row[i] - x;
            square[i] += apart * apart;
            product[i] += back * row[i];
        }
    }
    for (int i = 0; i < samples; i++) {
        float d = fminf(sqrtf(3.0f * square[i]), 80.0f); /* beyond, exp(-d) is as good as 0 */
        likeness[i] = g->spread2 * (double)((1.0f + d) * expf(-d)) + g->slope2 * (double)product[i];
    }
}

/* What is left of the variance behind the samples, with the noise. */
static double find_variance(const cvy_gaussian *g, const float *input, const double *likeness)
{
    double told[CVY_GAUSSIAN_MAX_SAMPLES] = {0}, own = g->spread2, explained = 0.0;
    for (int k = 0; k < g->inputs; k++) {
        own += g->slope2 * (double)(input[k] * input[k]);
    }
    for (int i = 0; i < g->samples; i++) { /* pairs once, by half of the inverse */
        const double *row = g->inverse + (long)i * g->samples;
        for (int k = 0; k < i; k++) {
            told[k] += row[k] * likeness[i];
        }
        explained += row[i] * likeness[i] * likeness[i];
    }
    for (int i = 0; i < g->samples; i++) {
        explained += 2.0 * told[i] * likeness[i];
    }
    return fmax(own - explained, 0.0) + g->noise2;
}

static void run_gaussian(const cvy_predictor *p, const cvy_predictor_question *q, cvy_prediction *said)
{
    static const double bound = 20.0; /* e^20: whatever a file has, a time stays a time */
    const cvy_gaussian *g = p->gaussian;
    double likeness[CVY_GAUSSIAN_MAX_SAMPLES], log_ratio = g->middle;
    compare(g, q->input, g->samples, likeness);
    for (int i = 0; i < g->samples; i++) {
        log_ratio += g->weight[i] * likeness[i];
    }
    log_ratio = fmax(-bound, fmin(bound, log_ratio));
    said->seconds = exp(log_ratio) * cvy_cost_sum_get(&g->base, q->feature, q->flop, q->bytes);
    if (q->with_error) {
        said->error = p->error * sqrt(find_variance(g, q->input, likeness)) / g->usual_sd;
    }
}

/* ---- making ---- */

/* The covariance of the samples, the noise on its diagonal. */
static void fill_covariance(const cvy_gaussian *g, const double *input, double *covariance)
{
    float x[CVY_PREDICTOR_MAX_INPUTS];
    for (int i = 0; i < g->samples; i++) {
        double *row = covariance + (long)i * g->samples;
        for (int k = 0; k < g->inputs; k++) {
            x[k] = (float)input[i * g->inputs + k];
        }
        compare(g, x, i + 1, row);
        row[i] += g->noise2;
        for (int k = 0; k < i; k++) {
            covariance[(long)k * g->samples + i] = row[k];
        }
    }
}

/* From the covariance to weights and the inverse. @p covariance is overwritten */
static cvy_status solve(cvy_gaussian *g, const double *target, double *covariance)
{
    double log_sd = 0.0;
    bool factored = cvy_cholesky_factor(covariance, g->samples);
    CVY_REQUIRE(factored, CVY_ERR_INFEASIBLE, "samples are more alike than their noise of %.3g lets tell apart",
                sqrt(g->noise2));
    for (int i = 0; i < g->samples; i++) {
        g->weight[i] = target[i] - g->middle;
    }
    cvy_cholesky_solve(covariance, g->samples, g->weight);
    cvy_cholesky_invert(covariance, g->samples, g->inverse);
    for (int i = 0; i < g->samples; i++) {
        log_sd -= 0.5 * log(g->inverse[(long)i * g->samples + i]) / g->samples;
    }
    g->usual_sd = exp(log_sd);
    CVY_REQUIRE(isfinite(log_sd), CVY_ERR_INFEASIBLE, "samples say nothing finite");
    return CVY_OK;
}

static cvy_status make_gaussian(const cvy_predictor_spec *predictor, cvy_predictor *p)
{
    const cvy_gaussian_spec *spec = predictor->gaussian;
    const size_t n = (size_t)spec->samples;
    cvy_gaussian *g = p->gaussian = cvy_calloc(1, sizeof *g);
    double *covariance = cvy_calloc(n * n, sizeof *covariance);
    cvy_status status = CVY_ERR_MEMORY;
    CVY_TRY_GOTO(status, done, g && covariance ? CVY_OK : CVY_ERR_MEMORY);
    *g = (cvy_gaussian){.base = spec->base, .samples = spec->samples, .inputs = predictor->inputs,
                       .middle = spec->middle, .spread2 = spec->likeness.spread * spec->likeness.spread,
                       .slope2 = spec->likeness.slope * spec->likeness.slope,
                       .noise2 = spec->likeness.noise * spec->likeness.noise};
    g->scaled = cvy_calloc(n * (size_t)g->inputs, sizeof *g->scaled);
    g->weight = cvy_calloc(n, sizeof *g->weight);
    g->inverse = cvy_calloc(n * n, sizeof *g->inverse);
    CVY_TRY_GOTO(status, done, g->scaled && g->weight && g->inverse ? CVY_OK : CVY_ERR_MEMORY);
    for (int k = 0; k < g->inputs; k++) {
        double length = spec->likeness.length[k];
        g->inverse_length[k] = (float)(1.0 / length);
        g->length2[k] = (float)(length * length);
        for (int i = 0; i < g->samples; i++) {
            g->scaled[k * g->samples + i] = (float)(spec->input[i * g->inputs + k] / length);
        }
    }
    fill_covariance(g, spec->input, covariance);
    status = solve(g, spec->target, covariance);
done:
    cvy_free(covariance);
    return status;
}

static void clear_gaussian(cvy_predictor *p)
{
    cvy_gaussian *g = p->gaussian;
    if (g) {
        cvy_free(g->scaled);
        cvy_free(g->weight);
        cvy_free(g->inverse);
    }
    cvy_free(g);
    p->gaussian = NULL;
}

/* ---- files ---- */

static cvy_status read_base(const cvy_yaml_node *node, cvy_cost_sum *base)
{
    const cvy_yaml_node *list = NULL;
    CVY_TRY(cvy_predictor_find_key(node, "costs", "a list of costs", &list));
    int count = cvy_yaml_size(list);
    if (cvy_yaml_node_kind(list) != CVY_YAML_SEQUENCE || count < 1 || count > CVY_KERNEL_COSTS) {
        return cvy_yaml_fail(list, "costs: expected a list of 1 to %d costs", (int)CVY_KERNEL_COSTS);
    }
    for (int i = 0; i < count; i++) {
        CVY_TRY(cvy_predictor_read_word(cvy_yaml_item(list, i), "costs", cvy_kernel_cost_name, CVY_KERNEL_COSTS,
                                        &base->cost[i]));
    }
    base->costs = count;
    return cvy_predictor_read_numbers(node, "seconds", count, 0.0, base->seconds);
}

static cvy_status read_real(const cvy_yaml_node *node, const char *key, double minimum, double maximum,
                            double *value_out)
{
    const cvy_yaml_node *value = NULL;
    CVY_TRY(cvy_predictor_find_key(node, key, "a number", &value));
    return cvy_yaml_get_real(value, key, minimum, maximum, value_out);
}

static cvy_status read_likeness(const cvy_yaml_node *node, int inputs, cvy_likeness *likeness)
{
    const cvy_yaml_node *lengths = NULL;
    CVY_TRY(cvy_predictor_find_key(node, "lengths", "a number of each input", &lengths));
    CVY_TRY(cvy_yaml_get_reals(lengths, "lengths", inputs, least_length, most_length, likeness->length));
    CVY_TRY(read_real(node, "spread", 0.0, most_sd, &likeness->spread));
    CVY_TRY(read_real(node, "slope", 0.0, most_sd, &likeness->slope));
    return read_real(node, "noise", least_noise, most_sd, &likeness->noise);
}

/* As many as there are targets. */
static cvy_status read_samples(const cvy_yaml_node *node, int inputs, cvy_gaussian_spec *spec, double **owned_out)
{
    const cvy_yaml_node *targets = NULL, *samples = NULL;
    CVY_TRY(cvy_predictor_find_key(node, "targets", "a number of each sample", &targets));
    CVY_TRY(cvy_predictor_find_key(node, "samples", "the inputs of each", &samples));
    int count = cvy_yaml_count_reals(targets);
    if (count < 1 || count > CVY_GAUSSIAN_MAX_SAMPLES) {
        return cvy_yaml_fail(targets, "targets: found %d, expected 1 to %d", count, (int)CVY_GAUSSIAN_MAX_SAMPLES);
    }
    double *number = *owned_out = cvy_calloc((size_t)count * (size_t)(inputs + 1), sizeof *number);
    if (!number) {
        return CVY_ERR_MEMORY;
    }
    spec->samples = count;
    spec->target = number;
    spec->input = number + count;
    CVY_TRY(cvy_yaml_get_reals(targets, "targets", count, -most_sd, most_sd, number));
    return cvy_yaml_get_reals(samples, "samples", count * inputs, -most_input, most_input, number + count);
}

static cvy_status read_gaussian(const cvy_yaml_node *node, cvy_predictor *p)
{
    static const char *const keys[] = {"costs", "seconds", "middle", "lengths", "spread",
                                       "slope", "noise",   "targets", "samples", NULL};
    cvy_gaussian_spec spec = {.samples = 0};
    const cvy_predictor_spec all = {.inputs = p->inputs, .gaussian = &spec};
    double *owned = NULL;
    cvy_status status;
    if (cvy_yaml_node_kind(node) != CVY_YAML_MAPPING) {
        return cvy_yaml_fail(node, "gaussian-process: expected a mapping of costs, a likeness and samples");
    }
    CVY_TRY(cvy_yaml_check_keys(node, keys));
    CVY_TRY(read_base(node, &spec.base));
    CVY_TRY(read_real(node, "middle", -most_sd, most_sd, &spec.middle));
    CVY_TRY(read_likeness(node, p->inputs, &spec.likeness));
    CVY_TRY_GOTO(status, done, read_samples(node, p->inputs, &spec, &owned));
    status = make_gaussian(&all, p);
    if (status == CVY_ERR_INFEASIBLE) {
        cvy_error_clear();
        status = cvy_yaml_fail(node, "gaussian-process: samples are too much alike for a noise of %g",
                               spec.likeness.noise);
    }
done:
    cvy_free(owned);
    return status;
}

static void print_gaussian(const cvy_predictor_spec *predictor, cvy_text *text)
{
    const cvy_gaussian_spec *spec = predictor->gaussian;
    const cvy_likeness *likeness = &spec->likeness;
    const int inputs = predictor->inputs;
    cvy_text_add(text, "gaussian-process:\n");
    cvy_predictor_print_names("  costs", spec->base.cost, cvy_kernel_cost_name, spec->base.costs, text);
    cvy_predictor_print_row("  seconds", spec->base.seconds, spec->base.costs, text);
    cvy_text_add(text, "  middle: %.9g\n", spec->middle);
    cvy_predictor_print_row("  lengths", likeness->length, inputs, text);
    cvy_text_add(text, "  spread: %.9g\n  slope: %.9g\n  noise: %.9g\n  targets: |\n", likeness->spread,
                 likeness->slope, likeness->noise);
    cvy_predictor_print_line(4, spec->target, spec->samples, text);
    cvy_text_add(text, "  samples: |\n");
    for (int i = 0; i < spec->samples; i++) {
        cvy_predictor_print_line(4, spec->input + i * inputs, inputs, text);
    }
}

const cvy_predictor_kind cvy_predictor_gaussian = {.key = "gaussian-process", .is = "a mapping",
                                                   .read = read_gaussian, .make = make_gaussian, .run = run_gaussian,
                                                   .print = print_gaussian, .clear = clear_gaussian};
