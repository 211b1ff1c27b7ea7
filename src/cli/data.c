/*
 * convoy data check: every sample of a folder is read, without a model; what is damaged is named, what is whole is
 * counted. The means and deviations are what --mean and --std of a training take.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cli/json_output.h"
#include "cli/options_common.h"
#include "cli/progress.h"
#include "data/survey.h"

static const char *const target_name[] = {
    [CVY_TARGET_CLASS] = "classes", [CVY_TARGET_VALUES] = "values", [CVY_TARGET_MAP] = "map"};
static const char *const split_name[] = {[CVY_SPLIT_TRAIN] = "train", [CVY_SPLIT_TEST] = "test"};

static void handle_progress(void *context, cvy_split split, int64_t done, int64_t count)
{
    cli_progress_count(context, split_name[split], done, count);
}

/* The least and the most samples (of maps: positions) that a class has, and how many classes have none. */
static void print_classes(const cvy_survey *survey, int64_t classes, const char *what)
{
    char count[3][CVY_UNIT_TEXT];
    int64_t least = survey->class_count[0], most = least, absent = 0;
    for (int64_t i = 0; i < classes; i++) {
        int64_t samples = survey->class_count[i];
        least = samples < least ? samples : least;
        most = samples > most ? samples : most;
        absent += samples == 0;
    }
    printf("  classes       %s, of %s to %s %s", cvy_print_count(classes, count[0]), cvy_print_count(least, count[1]),
           cvy_print_count(most, count[2]), what);
    printf(absent ? "; %" PRId64 " without any\n" : "\n", absent);
}

/* "0.4914,0.4822,0.4465", as --mean takes it; the first 16 channels. */
static void print_channels(const char *title, const double *value, int64_t channels)
{
    enum { SHOWN = 16 };
    printf("  %-13s ", title);
    for (int64_t i = 0; i < channels && i < SHOWN; i++) {
        printf("%s%.4g", i ? "," : "", value[i]);
    }
    puts(channels > SHOWN ? ",…" : "");
}

static void print_targets(const cvy_survey *survey, int64_t values)
{
    for (int64_t i = 0; i < values; i++) {
        printf("  target %-6" PRId64 " %.4g to %.4g\n", i, survey->lowest[i], survey->highest[i]);
    }
}

static void print_report(const char *source, const cvy_data *data, const cvy_survey survey[2])
{
    const cvy_data_info *info = cvy_data_get_info(data);
    char shape[CVY_SHAPE_TEXT], count[CVY_UNIT_TEXT];
    printf("%s: %s, samples of %s\n", source, cvy_data_kind_name(data), cvy_shape_print(&info->sample, shape));
    for (int i = 0; i < 2; i++) {
        printf("%s\n  samples       %s\n", split_name[i], cvy_print_count(survey[i].samples, count));
        if (!survey[i].samples) {
            continue;
        }
        printf("  range         %.4g to %.4g\n", survey[i].minimum, survey[i].maximum);
        print_channels("mean", survey[i].mean, info->sample.extent[0]);
        print_channels("std", survey[i].std, info->sample.extent[0]);
        if (info->classes) {
            print_classes(&survey[i], info->classes, info->target == CVY_TARGET_MAP ? "positions" : "samples");
        } else {
            print_targets(&survey[i], info->values);
        }
    }
    puts("every sample can be read");
}

static json_t *make_numbers(const double *value, int64_t count)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < count; i++) {
        json_array_append_new(list, cli_json_number(value[i]));
    }
    return list;
}

static json_t *make_integers(const int64_t *value, int64_t count)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < count; i++) {
        json_array_append_new(list, json_integer((json_int_t)value[i]));
    }
    return list;
}

static json_t *describe_split(const cvy_data_info *info, cvy_split split, const cvy_survey *survey)
{
    json_t *object = json_pack("{s:s, s:I}", "split", split_name[split], "samples", (json_int_t)survey->samples);
    if (!survey->samples) {
        return object;
    }
    json_object_set_new(object, "minimum", cli_json_number(survey->minimum));
    json_object_set_new(object, "maximum", cli_json_number(survey->maximum));
    json_object_set_new(object, "mean", make_numbers(survey->mean, info->sample.extent[0]));
    json_object_set_new(object, "std", make_numbers(survey->std, info->sample.extent[0]));
    if (info->classes) {
        json_object_set_new(object, "class_counts", make_integers(survey->class_count, info->classes));
    } else {
        json_object_set_new(object, "target_minimum", make_numbers(survey->lowest, info->values));
        json_object_set_new(object, "target_maximum", make_numbers(survey->highest, info->values));
    }
    return object;
}

static cvy_status print_json(const char *source, const cvy_data *data, const cvy_survey survey[2])
{
    const cvy_data_info *info = cvy_data_get_info(data);
    return cli_json_print(json_pack(
        "{s:s, s:s, s:o, s:s, s:I, s:[o, o]}", "data", source, "kind", cvy_data_kind_name(data), "sample",
        make_integers(info->sample.extent, info->sample.dims), "target",
        target_name[info->target], "outputs", (json_int_t)(info->classes ? info->classes : info->values), "splits",
        describe_split(info, CVY_SPLIT_TRAIN, &survey[CVY_SPLIT_TRAIN]),
        describe_split(info, CVY_SPLIT_TEST, &survey[CVY_SPLIT_TEST])));
}

static cvy_status check_data(const char *source, const cli_options *options)
{
    cli_progress progress;
    const cvy_survey_observer observer = {.context = &progress, .progress = handle_progress};
    const cvy_data_options wanted = {.source = source, .kind = options->train.data_kind};
    cvy_survey survey[2] = {{0}};
    cvy_data *data = NULL;
    CVY_TRY(cvy_data_open(&wanted, &data));
    cli_progress_init(options->quiet, &progress);
    cvy_status status = CVY_OK;
    for (int i = 0; i < 2 && status == CVY_OK; i++) {
        status = cvy_survey_make(data, (cvy_split)i, &observer, &survey[i]);
    }
    cli_progress_clear(&progress);
    if (status == CVY_OK && options->json) {
        status = print_json(source, data, survey);
    } else if (status == CVY_OK) {
        print_report(source, data, survey);
    }
    cvy_survey_clear(&survey[0]);
    cvy_survey_clear(&survey[1]);
    cvy_data_close(&data);
    return status;
}

static cvy_status run_data(const cli_command *command, int argc, char **argv)
{
    cli_options options = cli_options_init;
    cvy_parsed_options parsed;
    cvy_status status = cli_parse(command, argc, argv, &options, &parsed);
    if (status == CVY_OK && !parsed.help) {
        bool check = parsed.operands == 2 && strcmp(parsed.operand[0], "check") == 0;
        status = check ? check_data(parsed.operand[1], &options)
                       : cvy_fail(CVY_ERR_INPUT, "convoy data takes check and a folder: convoy data check DIR");
    }
    cvy_parsed_options_clear(&parsed);
    return status;
}

const cli_command cli_data = {
    .name = "data",
    .operands = "check DIR",
    .max_operands = 2,
    .rows = CLI_DATA,
    .summary = "Check a data set: name what is damaged, count the rest",
    .examples = "  convoy data check cifar/\n"
                "  convoy data check volumes/ --json\n",
    .run = run_data,
};
