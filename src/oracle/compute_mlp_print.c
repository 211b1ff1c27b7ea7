/*
 * Predictors as YAML; numbers with all their digits, so that what is read back says the same. Those of a layer, most of
 * a file, are one text each and not entries: a machine names dozens of files, which every plan reads.
 */
#include "base/quantity.h"
#include "oracle/compute.h"

static void print_row(const char *key, const double *number, int count, cvy_text *text)
{
    cvy_text_add(text, "%s: [", key);
    for (int i = 0; i < count; i++) {
        cvy_text_add(text, "%s%.9g", i ? ", " : "", number[i]);
    }
    cvy_text_add(text, "]\n");
}

static void print_line(const double *number, int count, cvy_text *text)
{
    for (int i = 0; i < count; i++) {
        cvy_text_add(text, "%s%.9g", i ? " " : "        ", number[i]);
    }
    cvy_text_add(text, "\n");
}

static void print_layer(const cvy_predictor_layer *layer, bool first, cvy_text *text)
{
    cvy_text_add(text, "%s weights: |\n", first ? "  - -" : "    -");
    for (int o = 0; o < layer->outputs; o++) {
        print_line(layer->weight + o * layer->inputs, layer->inputs, text);
    }
    cvy_text_add(text, "      biases: |\n");
    print_line(layer->bias, layer->outputs, text);
}

void cvy_predictor_print(const cvy_predictor_spec *spec, cvy_text *text)
{
    char unit[CVY_QUANTITY_TEXT];
    cvy_text_add(text, "kernel: %s\npass: %s\nprecision: %s\n", cvy_kernel_name(spec->kernel),
                 cvy_op_pass_name(spec->pass), cvy_precision_name(spec->precision));
    cvy_text_add(text, "source: \"%s\"\nerror: %.4g\n", spec->source, spec->error);
    cvy_text_add(text, "peak: %s\n", cvy_quantity_print(spec->peak_flop_per_s, CVY_QUANTITY_RATE, unit));
    cvy_text_add(text, "bandwidth: %s\n", cvy_quantity_print(spec->memory_Bps, CVY_QUANTITY_BANDWIDTH, unit));
    cvy_text_add(text, "inputs: [");
    for (int i = 0; i < spec->inputs; i++) {
        cvy_text_add(text, "%s%s", i ? ", " : "", cvy_kernel_feature_name(spec->input[i]));
    }
    cvy_text_add(text, "]\n");
    print_row("mean", spec->mean, spec->inputs, text);
    print_row("deviation", spec->deviation, spec->inputs, text);
    print_row("low", spec->low, spec->inputs, text);
    print_row("high", spec->high, spec->inputs, text);
    cvy_text_add(text, "nets:\n");
    for (int i = 0; i < spec->nets * spec->layers; i++) {
        print_layer(&spec->layer[i], i % spec->layers == 0, text);
    }
}
