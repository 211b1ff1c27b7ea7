/* Predictors from files, which are of outside origin: sizes are bounded, what is not right is refused by its line. */
#include <string.h>

#include "base/memory.h"
#include "base/yaml.h"
#include "oracle/compute_mlp.h"

#define MOST 1e9 /* of any number in a file: all are floats; what overflows in sums is bounded behind them */

static const char *name_kernel(int kernel) { return cvy_kernel_name(kernel); }
static const char *name_pass(int pass) { return cvy_op_pass_name((cvy_op_pass)pass); }
static const char *name_precision(int precision) { return cvy_precision_name((cvy_precision)precision); }

static cvy_status find_key(const cvy_yaml_node *mapping, const char *key, const char *expected,
                           const cvy_yaml_node **node_out)
{
    const cvy_yaml_node *node = cvy_yaml_find(mapping, key);
    if (!node) {
        return cvy_yaml_fail(mapping, "%s: missing; it is %s", key, expected);
    }
    *node_out = node;
    return CVY_OK;
}

static cvy_status read_word(const cvy_yaml_node *node, const char *what, const char *(*name)(int value), int count,
                            int *value_out)
{
    char word[CVY_WORD_TEXT], list[600];
    const char *text = cvy_yaml_text(node), *words[CVY_KERNEL_COUNT + 1];
    for (int i = 0; i < count; i++) {
        words[i] = name(i);
        if (text && strcmp(text, words[i]) == 0) {
            *value_out = i;
            return CVY_OK;
        }
    }
    words[count] = NULL;
    return cvy_yaml_fail(node, "%s: found '%s', expected one of %s", what,
                         cvy_print_word(text ? text : "a list or mapping", word),
                         cvy_print_words(words, list, sizeof list));
}

static cvy_status read_numbers(const cvy_yaml_node *mapping, const char *key, int count, double minimum,
                               double *value_out)
{
    const cvy_yaml_node *list = NULL;
    CVY_TRY(find_key(mapping, key, "a list of numbers", &list));
    return cvy_yaml_get_reals(list, key, count, minimum, MOST, value_out);
}

static cvy_status read_head(const cvy_yaml_node *root, cvy_predictor *p)
{
    static const char *const keys[] = {"kernel", "pass",   "precision", "source",    "error", "peak", "bandwidth",
                                       "inputs", "mean",   "deviation", "low",       "high",  "nets", NULL};
    const cvy_yaml_node *node = NULL;
    int pass = 0, precision = 0;
    if (cvy_yaml_node_kind(root) != CVY_YAML_MAPPING) {
        return cvy_yaml_fail(root, "expected a mapping that describes a predictor");
    }
    CVY_TRY(cvy_yaml_check_keys(root, keys));
    CVY_TRY(find_key(root, "kernel", "a kind of op", &node));
    CVY_TRY(read_word(node, "kernel", name_kernel, CVY_KERNEL_COUNT, &p->kernel));
    CVY_TRY(find_key(root, "pass", "a pass of it", &node));
    CVY_TRY(read_word(node, "pass", name_pass, CVY_PASS_COUNT, &pass));
    CVY_TRY(find_key(root, "precision", "what its numbers are", &node));
    CVY_TRY(read_word(node, "precision", name_precision, CVY_PRECISION_COUNT, &precision));
    p->pass = (cvy_op_pass)pass;
    p->precision = (cvy_precision)precision;
    CVY_TRY(find_key(root, "error", "its relative error on kernels that it was not fitted to", &node));
    CVY_TRY(cvy_yaml_get_real(node, "error", 0.0, 10.0, &p->error));
    CVY_TRY(find_key(root, "peak", "the rate of the device that was measured", &node));
    CVY_TRY(cvy_yaml_get_quantity(node, "peak", CVY_QUANTITY_RATE, 1e6, 1e18, &p->roof.flop_per_s));
    CVY_TRY(find_key(root, "bandwidth", "that of the device that was measured", &node));
    return cvy_yaml_get_quantity(node, "bandwidth", CVY_QUANTITY_BANDWIDTH, 1e3, 1e16, &p->roof.Bps);
}

static cvy_status read_inputs(const cvy_yaml_node *root, cvy_predictor *p)
{
    const cvy_yaml_node *list = NULL;
    CVY_TRY(find_key(root, "inputs", "a list of features", &list));
    int count = cvy_yaml_size(list);
    if (cvy_yaml_node_kind(list) != CVY_YAML_SEQUENCE || count < 1 || count > CVY_PREDICTOR_MAX_INPUTS) {
        return cvy_yaml_fail(list, "inputs: expected a list of 1 to %d features", (int)CVY_PREDICTOR_MAX_INPUTS);
    }
    for (int i = 0; i < count; i++) {
        CVY_TRY(read_word(cvy_yaml_item(list, i), "inputs", cvy_kernel_feature_name, CVY_KERNEL_FEATURES,
                          &p->input[i]));
    }
    p->inputs = count;
    CVY_TRY(read_numbers(root, "mean", count, -MOST, p->mean));
    CVY_TRY(read_numbers(root, "deviation", count, 1e-9, p->deviation));
    CVY_TRY(read_numbers(root, "low", count, -MOST, p->low));
    return read_numbers(root, "high", count, -MOST, p->high);
}

static cvy_status read_layer(const cvy_yaml_node *node, int inputs, cvy_mlp_layer *layer)
{
    static const char *const keys[] = {"weights", "biases", NULL};
    const cvy_yaml_node *biases = NULL;
    if (cvy_yaml_node_kind(node) != CVY_YAML_MAPPING) {
        return cvy_yaml_fail(node, "layers: expected a mapping of weights and biases");
    }
    CVY_TRY(cvy_yaml_check_keys(node, keys));
    CVY_TRY(find_key(node, "biases", "a list of numbers, one an output", &biases));
    int outputs = cvy_yaml_count_reals(biases);
    if (outputs < 1 || outputs > CVY_MLP_MAX_WIDTH) {
        return cvy_yaml_fail(biases, "biases: found %d, expected 1 to %d", outputs, (int)CVY_MLP_MAX_WIDTH);
    }
    size_t numbers = (size_t)outputs * (size_t)(inputs + 1);
    double *number = cvy_calloc(numbers, sizeof *number);
    const cvy_predictor_layer read = {inputs, outputs, number, number + outputs * inputs};
    cvy_status status = number ? CVY_OK : CVY_ERR_MEMORY;
    CVY_TRY_GOTO(status, done, status);
    CVY_TRY_GOTO(status, done, read_numbers(node, "weights", outputs * inputs, -MOST, number));
    CVY_TRY_GOTO(status, done, read_numbers(node, "biases", outputs, -MOST, number + outputs * inputs));
    status = cvy_mlp_layer_set(&read, layer);
done:
    cvy_free(number);
    return status;
}

static cvy_status read_net(const cvy_yaml_node *list, int inputs, cvy_mlp_net *n)
{
    int count = cvy_yaml_size(list);
    if (cvy_yaml_node_kind(list) != CVY_YAML_SEQUENCE || count < 1 || count > CVY_MLP_MAX_LAYERS) {
        return cvy_yaml_fail(list, "nets: expected lists of 1 to %d layers", (int)CVY_MLP_MAX_LAYERS);
    }
    for (int i = 0; i < count; i++) {
        n->layers = i + 1; /* what has been taken is released even where reading ends here */
        CVY_TRY(read_layer(cvy_yaml_item(list, i), inputs, &n->layer[i]));
        inputs = n->layer[i].outputs;
    }
    return inputs == 1 ? CVY_OK : cvy_yaml_fail(list, "nets: the last layer has %d outputs, expected 1", inputs);
}

static cvy_status read_nets(const cvy_yaml_node *root, cvy_predictor *p)
{
    const cvy_yaml_node *list = NULL;
    CVY_TRY(find_key(root, "nets", "a list of nets, each a list of layers", &list));
    int count = cvy_yaml_size(list);
    if (cvy_yaml_node_kind(list) != CVY_YAML_SEQUENCE || count < 1 || count > CVY_MLP_MAX_NETS) {
        return cvy_yaml_fail(list, "nets: expected a list of 1 to %d nets", (int)CVY_MLP_MAX_NETS);
    }
    for (int i = 0; i < count; i++) {
        p->nets = i + 1;
        CVY_TRY(read_net(cvy_yaml_item(list, i), p->inputs, &p->net[i]));
    }
    return CVY_OK;
}

cvy_status cvy_predictor_load(const char *path, cvy_predictor **predictor_out)
{
    cvy_yaml *yaml = NULL;
    cvy_status status = CVY_ERR_MEMORY;
    cvy_predictor *predictor = cvy_calloc(1, sizeof *predictor);
    if (!predictor) {
        return status;
    }
    CVY_TRY_GOTO(status, done, cvy_yaml_load(path, &yaml));
    CVY_TRY_GOTO(status, done, read_head(cvy_yaml_root(yaml), predictor));
    CVY_TRY_GOTO(status, done, read_inputs(cvy_yaml_root(yaml), predictor));
    CVY_TRY_GOTO(status, done, read_nets(cvy_yaml_root(yaml), predictor));
    *predictor_out = predictor;
    predictor = NULL;
done:
    cvy_predictor_destroy(&predictor);
    cvy_yaml_destroy(&yaml);
    return status;
}
