/* Predictors from files, which are of outside origin: sizes are bounded, what is not right is refused by its line. */
#include <string.h>

#include "base/memory.h"
#include "oracle/compute_predictor.h"

static const char *name_kernel(int kernel) { return cvy_kernel_name(kernel); }
static const char *name_pass(int pass) { return cvy_op_pass_name((cvy_op_pass)pass); }
static const char *name_precision(int precision) { return cvy_precision_name((cvy_precision)precision); }

cvy_status cvy_predictor_find_key(const cvy_yaml_node *mapping, const char *key, const char *expected,
                                  const cvy_yaml_node **node_out)
{
    const cvy_yaml_node *node = cvy_yaml_find(mapping, key);
    if (!node) {
        return cvy_yaml_fail(mapping, "%s: missing; it is %s", key, expected);
    }
    *node_out = node;
    return CVY_OK;
}

cvy_status cvy_predictor_read_word(const cvy_yaml_node *node, const char *what, const char *(*name)(int value),
                                   int count, int *value_out)
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

cvy_status cvy_predictor_read_numbers(const cvy_yaml_node *mapping, const char *key, int count, double minimum,
                                      double *value_out)
{
    const cvy_yaml_node *list = NULL;
    CVY_TRY(cvy_predictor_find_key(mapping, key, "a list of numbers", &list));
    return cvy_yaml_get_reals(list, key, count, minimum, CVY_PREDICTOR_MOST, value_out);
}

static cvy_status read_head(const cvy_yaml_node *root, cvy_predictor *p)
{
    static const char *const keys[] = {"kernel", "pass",      "precision", "source", "error", "peak", "bandwidth",
                                       "inputs", "mean",      "deviation", "low",    "high",  "nets",
                                       "gaussian-process", NULL};
    const cvy_yaml_node *node = NULL;
    int pass = 0, precision = 0;
    if (cvy_yaml_node_kind(root) != CVY_YAML_MAPPING) {
        return cvy_yaml_fail(root, "expected a mapping that describes a predictor");
    }
    CVY_TRY(cvy_yaml_check_keys(root, keys));
    CVY_TRY(cvy_predictor_find_key(root, "kernel", "a kind of op", &node));
    CVY_TRY(cvy_predictor_read_word(node, "kernel", name_kernel, CVY_KERNEL_COUNT, &p->kernel));
    CVY_TRY(cvy_predictor_find_key(root, "pass", "a pass of it", &node));
    CVY_TRY(cvy_predictor_read_word(node, "pass", name_pass, CVY_PASS_COUNT, &pass));
    CVY_TRY(cvy_predictor_find_key(root, "precision", "what its numbers are", &node));
    CVY_TRY(cvy_predictor_read_word(node, "precision", name_precision, CVY_PRECISION_COUNT, &precision));
    p->pass = (cvy_op_pass)pass;
    p->precision = (cvy_precision)precision;
    CVY_TRY(cvy_predictor_find_key(root, "error", "its relative error on kernels that it was not fitted to", &node));
    CVY_TRY(cvy_yaml_get_real(node, "error", 0.0, 10.0, &p->error));
    CVY_TRY(cvy_predictor_find_key(root, "peak", "the rate of the device that was measured", &node));
    CVY_TRY(cvy_yaml_get_quantity(node, "peak", CVY_QUANTITY_RATE, 1e6, 1e18, &p->roof.flop_per_s));
    CVY_TRY(cvy_predictor_find_key(root, "bandwidth", "that of the device that was measured", &node));
    return cvy_yaml_get_quantity(node, "bandwidth", CVY_QUANTITY_BANDWIDTH, 1e3, 1e16, &p->roof.Bps);
}

static cvy_status read_inputs(const cvy_yaml_node *root, cvy_predictor *p)
{
    const cvy_yaml_node *list = NULL;
    CVY_TRY(cvy_predictor_find_key(root, "inputs", "a list of features", &list));
    int count = cvy_yaml_size(list);
    if (cvy_yaml_node_kind(list) != CVY_YAML_SEQUENCE || count < 1 || count > CVY_PREDICTOR_MAX_INPUTS) {
        return cvy_yaml_fail(list, "inputs: expected a list of 1 to %d features", (int)CVY_PREDICTOR_MAX_INPUTS);
    }
    for (int i = 0; i < count; i++) {
        CVY_TRY(cvy_predictor_read_word(cvy_yaml_item(list, i), "inputs", cvy_kernel_feature_name, CVY_KERNEL_FEATURES,
                          &p->input[i]));
    }
    p->inputs = count;
    CVY_TRY(cvy_predictor_read_numbers(root, "mean", count, -CVY_PREDICTOR_MOST, p->mean));
    CVY_TRY(cvy_predictor_read_numbers(root, "deviation", count, 1e-9, p->deviation));
    CVY_TRY(cvy_predictor_read_numbers(root, "low", count, -CVY_PREDICTOR_MOST, p->low));
    return cvy_predictor_read_numbers(root, "high", count, -CVY_PREDICTOR_MOST, p->high);
}

/* By the key that is there; where there is none, what is missing is said of the first kind. */
static cvy_status read_body(const cvy_yaml_node *root, cvy_predictor *p)
{
    static const cvy_predictor_kind *const kinds[] = {&cvy_predictor_gaussian, &cvy_predictor_mlp};
    enum { KINDS = sizeof kinds / sizeof kinds[0] };
    const cvy_yaml_node *node = NULL;
    int last = KINDS - 1;
    for (int i = 0; i < last; i++) {
        last = cvy_yaml_find(root, kinds[i]->key) ? i : last;
    }
    const cvy_predictor_kind *kind = kinds[last];
    CVY_TRY(cvy_predictor_find_key(root, kind->key, kind->is, &node));
    for (int i = 0; i < KINDS; i++) {
        if (i != last && cvy_yaml_find(root, kinds[i]->key)) {
            return cvy_yaml_fail(node, "%s: there is %s as well; a predictor is one of them", kind->key, kinds[i]->key);
        }
    }
    p->kind = kind;
    return kind->read(node, p);
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
    CVY_TRY_GOTO(status, done, read_body(cvy_yaml_root(yaml), predictor));
    *predictor_out = predictor;
    predictor = NULL;
done:
    cvy_predictor_destroy(&predictor);
    cvy_yaml_destroy(&yaml);
    return status;
}
