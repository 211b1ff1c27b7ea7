/* Whether a data set suits the model: one line that says what to change. */
#include "data/kind.h"

#include <inttypes.h>
#include <stdio.h>

/* The options that give a zoo model such an input: "channels=1,size=28"; only squares and cubes have them. */
static const char *suggest_options(const cvy_shape *sample, char text[CVY_SHAPE_TEXT])
{
    for (int i = 2; i < sample->dims; i++) {
        if (sample->extent[i] != sample->extent[1]) {
            return "a model of that input";
        }
    }
    snprintf(text, CVY_SHAPE_TEXT, "a model of that input, as with options channels=%" PRId64 ",size=%" PRId64,
             sample->extent[0], sample->extent[1]);
    return text;
}

cvy_status cvy_data_check_sample(const char *what, const cvy_shape *found, const cvy_data_options *options)
{
    char has[CVY_SHAPE_TEXT], takes[CVY_SHAPE_TEXT], advice[CVY_SHAPE_TEXT];
    CVY_REQUIRE(!options->sample.dims || cvy_shape_equal(found, &options->sample), CVY_ERR_DATA,
                "%s: samples are %s, but the model takes %s; use %s", what, cvy_shape_print(found, has),
                cvy_shape_print(&options->sample, takes), suggest_options(found, advice));
    return CVY_OK;
}

cvy_status cvy_data_check_target(const char *what, cvy_target offered, const cvy_data_options *options)
{
    static const char *const word[] = {[CVY_TARGET_CLASS] = "classes",
                                       [CVY_TARGET_VALUES] = "values",
                                       [CVY_TARGET_MAP] = "a class for each position"};
    CVY_REQUIRE(!options->sample.dims || offered == options->target, CVY_ERR_DATA,
                "%s: labels are %s, but the model's loss takes %s; use a model with another loss", what, word[offered],
                word[options->target]);
    return CVY_OK;
}

cvy_status cvy_data_check_label(const char *what, int64_t index, int64_t label, const cvy_data_options *options)
{
    bool known = label >= 0 && label < options->classes;
    CVY_REQUIRE(known || options->sample.dims, CVY_ERR_DATA,
                "%s: sample %" PRId64 " has label %" PRId64 ", expected 0 to %" PRId64, what, index, label,
                options->classes - 1);
    CVY_REQUIRE(known, CVY_ERR_DATA,
                "%s: sample %" PRId64 " has label %" PRId64 ", but the model has %" PRId64
                " classes, labels 0 to %" PRId64 "; give the model more with option classes",
                what, index, label, options->classes, options->classes - 1);
    return CVY_OK;
}
