/* What is in a data set: every sample is read once and counted. */
#ifndef CVY_DATA_SURVEY_H
#define CVY_DATA_SURVEY_H

#include "data/data.h"

/** What one split holds. Numbers are as the kind reads them, before mean and std of cvy_data_options. */
typedef struct cvy_survey {
    int64_t samples;
    double minimum, maximum;      /**< of all elements */
    double *mean, *std;           /**< [c]: of each channel, over all samples */
    int64_t *class_count;         /**< [classes]: samples of each, of maps positions; NULL of a regression */
    double *lowest, *highest;     /**< [values]: range of each target of a regression; NULL of classes */
} cvy_survey;

/** Told now and then how many samples have been read; may be NULL. */
typedef struct cvy_survey_observer {
    void *context;
    void (*progress)(void *context, cvy_split split, int64_t done, int64_t count);
} cvy_survey_observer;

/**
 * Read every sample of a split.
 *
 * Not collective.
 * @param[in]  observer    may be NULL
 * @param[out] survey_out  released with cvy_survey_clear(); of an empty split all 0
 * @retval CVY_ERR_DATA    the first sample that cannot be read; file and sample are named
 */
cvy_status cvy_survey_make(const cvy_data *data, cvy_split split, const cvy_survey_observer *observer,
                           cvy_survey *survey_out);

/** Release what a survey owns, and empty it. */
void cvy_survey_clear(cvy_survey *survey);

#endif
