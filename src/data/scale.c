/*
 * Scaling: x becomes (x - mean) / std, channel by channel, in single precision and in this order of operations, so that
 * images get the very bits that torchvision's ToTensor and Normalize give them.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/text.h"
#include "data/kind.h"

/* Read the number that a list goes on with; *text moves behind it and its comma. */
static bool read_number(const char **text, float *value_out)
{
    char *end;
    double value = strtod(*text, &end);
    if (end == *text || (*end != ',' && *end != '\0') || !isfinite(value) || !isfinite((float)value)) {
        return false;
    }
    bool more = *end == ',';
    *text = end + more;
    *value_out = (float)value;
    return !more || **text != '\0';
}

/* Read a list of one number, or of one a channel, into @p value. */
static cvy_status read_list(const char *option, const char *text, int64_t channels, float *value)
{
    char word[CVY_WORD_TEXT];
    const char *rest = text;
    int64_t count = 0;
    bool fine = *rest != '\0';
    while (fine && *rest && count < channels) {
        fine = read_number(&rest, &value[count++]);
    }
    CVY_REQUIRE(fine && !*rest && (count == 1 || count == channels), CVY_ERR_INPUT,
                "%s: expected one number, or %" PRId64 " with commas between, one a channel, found '%s'", option,
                channels, cvy_print_word(text, word));
    for (int64_t i = count; i < channels; i++) {
        value[i] = value[0];
    }
    return CVY_OK;
}

/* The kind's own scale, which is one for all channels or suits their count. */
static void take_default(const cvy_data_scale *scale, int64_t channels, cvy_data *data)
{
    bool fits = scale->channels == 1 || scale->channels == channels;
    for (int64_t i = 0; i < channels; i++) {
        int64_t from = scale->channels == 1 ? 0 : i;
        data->mean[i] = fits ? (float)scale->mean[from] : 0.0f;
        data->std[i] = fits ? (float)scale->std[from] : 1.0f;
    }
}

cvy_status cvy_data_choose_scale(const cvy_data_options *options, cvy_data *data)
{
    int64_t channels = data->info.sample.extent[0];
    if (!options->mean && !options->std && !data->kind->scale.channels) {
        return CVY_OK;
    }
    data->mean = cvy_calloc((size_t)channels, sizeof *data->mean);
    data->std = cvy_calloc((size_t)channels, sizeof *data->std);
    if (!data->mean || !data->std) {
        return CVY_ERR_MEMORY;
    }
    take_default(&data->kind->scale, channels, data);
    if (options->mean) {
        CVY_TRY(read_list("mean", options->mean, channels, data->mean));
    }
    if (options->std) {
        CVY_TRY(read_list("std", options->std, channels, data->std));
    }
    for (int64_t i = 0; i < channels; i++) {
        CVY_REQUIRE(data->std[i] > 0.0f, CVY_ERR_INPUT, "std: expected numbers above 0, found %g",
                    (double)data->std[i]);
    }
    return CVY_OK;
}

void cvy_data_apply_scale(const cvy_data *data, int64_t pixels, float *x)
{
    if (!data->mean) {
        return;
    }
    int64_t channels = data->info.sample.extent[0];
    for (int64_t c = 0; c < channels; c++) {
        float mean = data->mean[c], std = data->std[c];
        for (int64_t i = 0; i < pixels; i++) {
            x[c * pixels + i] = (x[c * pixels + i] - mean) / std;
        }
    }
}
