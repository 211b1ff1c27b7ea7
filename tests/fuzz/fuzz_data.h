/* What the harnesses of data sets share: the folder is opened without a model, and its samples are read. */
#ifndef CVY_TESTS_FUZZ_DATA_H
#define CVY_TESTS_FUZZ_DATA_H

#include "data/survey.h"
#include "fuzz/fuzz.h"

enum { FUZZ_SURVEY_BYTES = 4 << 20 };

/** Survey a split that is small; of others read the first sample and the last. */
static inline void fuzz_read_split(const cvy_data *data, cvy_split split)
{
    const cvy_data_info *info = cvy_data_get_info(data);
    int64_t count = info->count[split], bytes = cvy_data_sample_bytes(data);
    FUZZ_REQUIRE(count >= 0 && bytes > 0 && cvy_data_label_bytes(data) > 0);
    cvy_survey survey = {0};
    cvy_status status = CVY_OK;
    if (count <= FUZZ_SURVEY_BYTES / bytes) {
        status = cvy_survey_make(data, split, NULL, &survey);
        FUZZ_REQUIRE(survey.samples == (status == CVY_OK ? count : 0));
        cvy_survey_clear(&survey);
    } else {
        float *x = malloc((size_t)bytes);
        void *label = malloc((size_t)cvy_data_label_bytes(data));
        FUZZ_REQUIRE(x && label);
        for (int64_t i = 0; i < count && status == CVY_OK; i += count > 1 ? count - 1 : 1) {
            status = cvy_data_read(data, split, i, x, label);
        }
        free(label);
        free(x);
    }
    if (status != CVY_OK) {
        fuzz_check_refusal(status, CVY_ERR_DATA);
    }
}

/** Open the harness's folder as a data set of a kind, and read it. */
static inline void fuzz_read_set(const char *kind)
{
    const cvy_data_options options = {.source = fuzz_folder(), .kind = kind};
    cvy_data *data = NULL;
    cvy_status status = cvy_data_open(&options, &data);
    if (status != CVY_OK) {
        FUZZ_REQUIRE(!data);
        fuzz_check_refusal(status, CVY_ERR_DATA);
        return;
    }
    FUZZ_REQUIRE(cvy_data_get_info(data)->count[0] + cvy_data_get_info(data)->count[1] > 0);
    fuzz_read_split(data, CVY_SPLIT_TRAIN);
    fuzz_read_split(data, CVY_SPLIT_TEST);
    cvy_data_close(&data);
}

#endif
