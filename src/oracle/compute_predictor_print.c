/*
 * Predictors as YAML; numbers with all their digits, so that what is read back says the same. Those of a layer, most of
 * a file, are one text each and not entries: a machine names dozens of files, which every plan reads.
 */
#include "base/quantity.h"
#include "oracle/compute_predictor.h"

void cvy_predictor_print_row(const char *key, const double *number, int count, cvy_text *text)
{
    cvy_text_add(text, "%s: [", key);
    for (int i = 0; i < count; i++) {
        cvy_text_add(text, "%s%.9g", i ? ", " : "", number[i]);
    }
    cvy_text_add(text, "]\n");
}

void cvy_predictor_print_line(int indent, const double *number, int count, cvy_text *text)
{
    cvy_text_add(text, "%*s", indent, "");
    for (int i = 0; i < count; i++) {
        cvy_text_add(text, "%s%.9g", i ? " " : "", number[i]);
    }
    cvy_text_add(text, "\n");
}

void cvy_predictor_print_names(const char *key, const int *value, const char *(*name)(int value), int count,
                               cvy_text *text)
{
    cvy_text_add(text, "%s: [", key);
    for (int i = 0; i < count; i++) {
        cvy_text_add(text, "%s%s", i ? ", " : "", name(value[i]));
    }
    cvy_text_add(text, "]\n");
}

void cvy_predictor_print(const cvy_predictor_spec *spec, cvy_text *text)
{
    char unit[CVY_QUANTITY_TEXT];
    cvy_text_add(text, "kernel: %s\npass: %s\nprecision: %s\n", cvy_kernel_name(spec->kernel),
                 cvy_op_pass_name(spec->pass), cvy_precision_name(spec->precision));
    cvy_text_add(text, "source: \"%s\"\nerror: %.4g\n", spec->source, spec->error);
    cvy_text_add(text, "peak: %s\n", cvy_quantity_print(spec->peak_flop_per_s, CVY_QUANTITY_RATE, unit));
    cvy_text_add(text, "bandwidth: %s\n", cvy_quantity_print(spec->memory_Bps, CVY_QUANTITY_BANDWIDTH, unit));
    cvy_predictor_print_names("inputs", spec->input, cvy_kernel_feature_name, spec->inputs, text);
    cvy_predictor_print_row("mean", spec->mean, spec->inputs, text);
    cvy_predictor_print_row("deviation", spec->deviation, spec->inputs, text);
    cvy_predictor_print_row("low", spec->low, spec->inputs, text);
    cvy_predictor_print_row("high", spec->high, spec->inputs, text);
    (spec->gaussian ? &cvy_predictor_gaussian : &cvy_predictor_mlp)->print(spec, text);
}
