/*
 * Mean and deviation are gathered in double, sample by sample, and merged by the formula of Chan, Golub and LeVeque
 * ("Algorithms for computing the sample variance", 1983), which loses nothing where the mean is large.
 */
#include "data/survey.h"

#include <math.h>

#include "base/memory.h"
#include "data/kind.h"

/* One sample, in the making of a survey. */
typedef struct reader {
    const cvy_data *data;
    cvy_split split;
    int64_t channels, pixels;
    float *x;
    void *label;
} reader;

static void merge_channel(const float *x, int64_t pixels, int64_t before, double *mean, double *squares)
{
    double sum = 0, own = 0;
    for (int64_t i = 0; i < pixels; i++) {
        sum += (double)x[i];
    }
    double centre = sum / (double)pixels, step = centre - *mean;
    for (int64_t i = 0; i < pixels; i++) {
        own += ((double)x[i] - centre) * ((double)x[i] - centre);
    }
    double share = 1.0 / ((double)before + 1.0); /* samples are of equal size */
    *mean += step * share;
    *squares += own + step * step * (double)pixels * (double)before * share;
}

static void count_sample(const reader *from, int64_t before, cvy_survey *survey)
{
    for (int64_t c = 0; c < from->channels; c++) {
        const float *x = from->x + c * from->pixels;
        for (int64_t i = 0; i < from->pixels; i++) {
            survey->minimum = fmin(survey->minimum, (double)x[i]);
            survey->maximum = fmax(survey->maximum, (double)x[i]);
        }
        merge_channel(x, from->pixels, before, &survey->mean[c], &survey->std[c]);
    }
}

static void count_label(const reader *from, cvy_survey *survey)
{
    const cvy_data_info *info = &from->data->info;
    const int32_t *class = from->label;
    for (int64_t i = 0; i < cvy_data_count_labels(info); i++) {
        survey->class_count[class[i]]++;
    }
    const float *value = from->label;
    for (int64_t i = 0; i < info->values; i++) {
        survey->lowest[i] = fmin(survey->lowest[i], (double)value[i]);
        survey->highest[i] = fmax(survey->highest[i], (double)value[i]);
    }
}

static cvy_status read_all(const reader *from, const cvy_survey_observer *observer, cvy_survey *survey)
{
    int64_t count = from->data->info.count[from->split];
    survey->minimum = HUGE_VAL;
    survey->maximum = -HUGE_VAL;
    for (int64_t i = 0; i < from->data->info.values; i++) {
        survey->lowest[i] = HUGE_VAL;
        survey->highest[i] = -HUGE_VAL;
    }
    for (int64_t i = 0; i < count; i++) {
        CVY_TRY(from->data->kind->read(from->data->state, from->split, i, from->x, from->label));
        count_sample(from, i, survey);
        count_label(from, survey);
        if (observer && observer->progress) {
            observer->progress(observer->context, from->split, i + 1, count);
        }
    }
    for (int64_t c = 0; c < from->channels; c++) {
        survey->std[c] = sqrt(survey->std[c] / ((double)count * (double)from->pixels));
    }
    return CVY_OK;
}

/* An array of doubles; *failed where there is no memory. */
static double *make_array(int64_t count, bool *failed)
{
    double *array = cvy_calloc((size_t)count, sizeof *array);
    *failed = *failed || !array;
    return array;
}

cvy_status cvy_survey_make(const cvy_data *data, cvy_split split, const cvy_survey_observer *observer,
                           cvy_survey *survey_out)
{
    const cvy_data_info *info = &data->info;
    cvy_survey survey = {.samples = info->count[split]};
    reader from = {.data = data, .split = split, .channels = info->sample.extent[0]};
    bool failed = false;
    *survey_out = survey;
    if (!survey.samples) {
        return CVY_OK;
    }
    from.pixels = cvy_shape_elements(&info->sample) / from.channels;
    from.x = cvy_calloc((size_t)cvy_data_sample_bytes(data), 1);
    from.label = cvy_calloc((size_t)cvy_data_label_bytes(data), 1);
    survey.mean = make_array(from.channels, &failed);
    survey.std = make_array(from.channels, &failed);
    if (info->classes) {
        survey.class_count = cvy_calloc((size_t)info->classes, sizeof *survey.class_count);
    } else {
        survey.lowest = make_array(info->values, &failed);
        survey.highest = make_array(info->values, &failed);
    }
    failed = failed || !from.x || !from.label || (info->classes && !survey.class_count);
    cvy_status status = failed ? CVY_ERR_MEMORY : read_all(&from, observer, &survey);
    cvy_free(from.x);
    cvy_free(from.label);
    if (status != CVY_OK) {
        cvy_survey_clear(&survey);
    }
    *survey_out = survey;
    return status;
}

void cvy_survey_clear(cvy_survey *survey)
{
    cvy_free(survey->mean);
    cvy_free(survey->std);
    cvy_free(survey->class_count);
    cvy_free(survey->lowest);
    cvy_free(survey->highest);
    *survey = (cvy_survey){0};
}
