/*
 * Cross-validation: shapes fall into five parts by their number; each part is predicted by what was fitted to the other
 * four. That way is taken of which the product of the median and the mean of errors is least: the mean alone is led by
 * a few odd shapes, the median alone is blind to them.
 */
#include "calibrate/fit.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/order.h"
#include "base/random.h"

enum { PARTS = 5, NETS_OF_PART = 2 };

void cvy_fit_make_sample(const cvy_op *op, const cvy_kernel_time *time, int shape, cvy_fit_sample *sample_out)
{
    double flop = cvy_op_flop(op), bytes = cvy_op_bytes(op);
    *sample_out = (cvy_fit_sample){.flop = flop, .bytes = bytes, .seconds = time->seconds, .shape = shape,
                                    .kernel = cvy_op_kernel(op)};
    cvy_kernel_get_features(op, flop, bytes, time->distance_bytes, sample_out->feature);
}

const char *cvy_fit_way_name(cvy_fit_way way)
{
    static const char *const name[] = {"roofline", "line", "neighbours", "mlp", "gaussian"};
    return name[way];
}

/* The part that a shape falls into: by chance, and always the same. */
static int find_part(int shape)
{
    return (int)(cvy_random_words(0, CVY_PURPOSE_CALIBRATION, UINT32_MAX, (uint32_t)shape, 0, 0).v[0] % PARTS);
}

/* ---- scores ---- */

typedef struct trial {
    const cvy_fit_sample *sample;
    int count;
    const cvy_fit_device *device;
    cvy_fit_sample *known;               /* of the other parts */
    double *predicted_s[CVY_FIT_WAYS];   /* of each sample; 0: nothing */
    double *error;
} trial;

/* What was fitted to the other parts. */
typedef struct known_fits {
    cvy_fit_shares shares;
    cvy_fit_line line;
    cvy_fit_nets nets;
    cvy_fit_gaussian gaussian;
    bool lined, netted, processed; /* there were samples enough */
} known_fits;

/* Whether something was fitted; too few samples are no failure. */
static cvy_status settle(cvy_status status, bool *fitted_out)
{
    *fitted_out = status == CVY_OK;
    if (status == CVY_ERR_INFEASIBLE) {
        cvy_error_clear();
        return CVY_OK;
    }
    return status;
}

static cvy_status fit_known(const trial *t, int known, known_fits *fits)
{
    CVY_TRY(cvy_fit_shares_find(t->known, known, t->device, &fits->shares));
    CVY_TRY(settle(cvy_fit_line_find(t->known, known, t->device, &fits->line), &fits->lined));
    CVY_TRY(settle(cvy_fit_nets_find(t->known, known, t->device, NETS_OF_PART, &fits->nets), &fits->netted));
    return settle(cvy_fit_gaussian_find(t->known, known, t->device, &fits->gaussian), &fits->processed);
}

/* Predict one part by the others. */
static cvy_status predict_part(trial *t, int part)
{
    known_fits fits = {.nets.nets = 0};
    int known = 0;
    for (int i = 0; i < t->count; i++) {
        if (find_part(t->sample[i].shape) != part) {
            t->known[known++] = t->sample[i];
        }
    }
    cvy_status status = known > 0 ? fit_known(t, known, &fits) : CVY_OK;
    for (int i = 0; i < t->count && known > 0 && status == CVY_OK; i++) {
        const cvy_fit_sample *s = &t->sample[i];
        if (find_part(s->shape) == part) {
            t->predicted_s[CVY_FIT_ROOFLINE][i] = cvy_fit_shares_estimate(&fits.shares, t->device, s->flop, s->bytes);
            t->predicted_s[CVY_FIT_LINE][i] = fits.lined ? cvy_fit_line_estimate(&fits.line, t->device, s) : 0.0;
            t->predicted_s[CVY_FIT_NEIGHBOURS][i] = cvy_fit_neighbours_estimate(t->known, known, t->device, s);
            t->predicted_s[CVY_FIT_MLP][i] = fits.netted ? cvy_fit_nets_estimate(&fits.nets, s).seconds : 0.0;
            t->predicted_s[CVY_FIT_GAUSSIAN][i] =
                fits.processed ? cvy_fit_gaussian_estimate(&fits.gaussian, s).seconds : 0.0;
        }
    }
    cvy_fit_nets_clear(&fits.nets);
    cvy_fit_gaussian_clear(&fits.gaussian);
    return status;
}

/* Errors of predictions; all of them or nothing. @p error has room for as many. */
static cvy_fit_score score(const cvy_fit_sample *sample, const double *predicted_s, int count, double *error)
{
    double off = 0.0, apart = 0.0, middle = 0.0, sum = 0.0;
    for (int i = 0; i < count; i++) {
        middle += log(sample[i].seconds) / count;
    }
    for (int i = 0; i < count; i++) {
        double measured = sample[i].seconds, predicted = predicted_s[i];
        if (predicted <= 0.0) {
            return (cvy_fit_score){0};
        }
        error[i] = fabs(predicted - measured) / measured;
        sum += error[i];
        off += log(predicted / measured) * log(predicted / measured);
        apart += (log(measured) - middle) * (log(measured) - middle);
    }
    cvy_sort_doubles(error, count);
    return (cvy_fit_score){.samples = count,
                           .mape = sum / count,
                           .median = (error[(count - 1) / 2] + error[count / 2]) / 2.0,
                           .high = error[(int)(0.95 * (count - 1) + 0.5)],
                           .r2 = apart > 0.0 ? 1.0 - off / apart : 0.0};
}

/* By what was taken. */
static double estimate(const cvy_fit *fit, const cvy_fit_device *device, const cvy_fit_sample *sample)
{
    switch (fit->best) {
    case CVY_FIT_LINE: return cvy_fit_line_estimate(&fit->line, device, sample);
    case CVY_FIT_MLP: return cvy_fit_nets_estimate(&fit->nets, sample).seconds;
    case CVY_FIT_GAUSSIAN: return cvy_fit_gaussian_estimate(&fit->gaussian, sample).seconds;
    default: return cvy_fit_shares_estimate(&fit->shares, device, sample->flop, sample->bytes);
    }
}

cvy_status cvy_fit_judge(cvy_fit *fit, const cvy_fit_sample *layer, int count, const cvy_fit_device *device)
{
    if (count == 0) {
        return CVY_OK;
    }
    double *room = cvy_calloc(3 * (size_t)count, sizeof *room);
    if (!room) {
        return CVY_ERR_MEMORY;
    }
    double *best_s = room, *roofline_s = room + count, *error = room + 2 * count;
    for (int i = 0; i < count; i++) {
        best_s[i] = estimate(fit, device, &layer[i]);
        roofline_s[i] = cvy_fit_shares_estimate(&fit->shares, device, layer[i].flop, layer[i].bytes);
    }
    fit->layers = score(layer, best_s, count, error);
    fit->layers_by_roofline = score(layer, roofline_s, count, error);
    cvy_free(room);
    return CVY_OK;
}

static cvy_status score_all(trial *t, cvy_fit *fit)
{
    for (int part = 0; part < PARTS; part++) {
        CVY_TRY(predict_part(t, part));
    }
    for (int way = 0; way < CVY_FIT_WAYS; way++) {
        fit->score[way] = score(t->sample, t->predicted_s[way], t->count, t->error);
    }
    static const cvy_fit_way candidate[] = {CVY_FIT_LINE, CVY_FIT_MLP, CVY_FIT_GAUSSIAN}; /* no file has neighbours */
    fit->best = CVY_FIT_ROOFLINE;
    for (size_t i = 0; i < sizeof candidate / sizeof candidate[0]; i++) {
        const cvy_fit_score *best = &fit->score[fit->best], *next = &fit->score[candidate[i]];
        if (next->samples > 0 && next->median * next->mape < best->median * best->mape) {
            fit->best = candidate[i];
        }
    }
    return CVY_OK;
}

cvy_status cvy_fit_run(const cvy_fit_sample *sample, int count, const cvy_fit_device *device, cvy_fit *fit_out)
{
    cvy_fit fit = {.samples = count};
    trial t = {.sample = sample, .count = count, .device = device};
    size_t room = (size_t)count + 1;
    cvy_status status = CVY_ERR_MEMORY;
    t.known = cvy_calloc(room, sizeof *t.known);
    t.error = cvy_calloc(room, sizeof *t.error);
    bool whole = t.known && t.error;
    for (int way = 0; way < CVY_FIT_WAYS; way++) {
        t.predicted_s[way] = cvy_calloc(room, sizeof(double));
        whole = whole && t.predicted_s[way];
    }
    CVY_TRY_GOTO(status, done, whole ? CVY_OK : CVY_ERR_MEMORY);
    CVY_TRY_GOTO(status, done, score_all(&t, &fit));
    CVY_TRY_GOTO(status, done, cvy_fit_shares_find(sample, count, device, &fit.shares));
    if (fit.best == CVY_FIT_LINE) {
        CVY_TRY_GOTO(status, done, cvy_fit_line_find(sample, count, device, &fit.line));
    }
    if (fit.best == CVY_FIT_MLP) {
        CVY_TRY_GOTO(status, done, cvy_fit_nets_find(sample, count, device, CVY_FIT_NETS, &fit.nets));
    }
    if (fit.best == CVY_FIT_GAUSSIAN) {
        CVY_TRY_GOTO(status, done, cvy_fit_gaussian_find(sample, count, device, &fit.gaussian));
    }
    *fit_out = fit;
done:
    cvy_free(t.known);
    cvy_free(t.error);
    for (int way = 0; way < CVY_FIT_WAYS; way++) {
        cvy_free(t.predicted_s[way]);
    }
    return status;
}

void cvy_fit_clear(cvy_fit *fit)
{
    cvy_fit_nets_clear(&fit->nets);
    cvy_fit_gaussian_clear(&fit->gaussian);
    *fit = (cvy_fit){0};
}
