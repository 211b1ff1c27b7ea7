/*
 * Ensembles of multi-layer perceptrons. A net makes of an op's inputs the logarithm of its time by the roofline of the
 * device that was measured. Several nets of unlike beginnings are an ensemble: their median is the answer, what they
 * lie apart is part of its error. Inputs and shape of the nets as spec/scaling-model.md 1.4. A line is a net of one
 * layer.
 */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/order.h"
#include "oracle/compute_predictor.h"

/* ---- evaluation ---- */

/* Relu between layers; the last one, of one output, is linear. Column by column, so that vectors do the sums. */
static float run_net(const cvy_mlp_net *net, const float *input)
{
    float values[2][CVY_MLP_MAX_WIDTH];
    const float *x = input;
    for (int i = 0; i < net->layers; i++) {
        const cvy_mlp_layer *l = &net->layer[i];
        float *y = values[i % 2];
        memcpy(y, l->bias, sizeof *y * (size_t)l->outputs);
        for (int k = 0; k < l->inputs; k++) {
            const float *column = l->weight + k * l->outputs;
            for (int o = 0; o < l->outputs; o++) {
                y[o] += column[o] * x[k];
            }
        }
        for (int o = 0; o < l->outputs && i + 1 < net->layers; o++) {
            y[o] = y[o] > 0.0f ? y[o] : 0.0f;
        }
        x = y;
    }
    return x[0];
}

static void run_nets(const cvy_predictor *p, const cvy_predictor_question *q, cvy_prediction *said_out)
{
    static const double bound = 20.0; /* e^20: whatever weights a file has, a time stays a time */
    double said[CVY_MLP_MAX_NETS];
    int nets = p->mlp.nets;
    for (int i = 0; i < nets; i++) {
        said[i] = exp(fmax(-bound, fmin(bound, (double)run_net(&p->mlp.net[i], q->input))));
    }
    cvy_sort_doubles(said, nets);
    double middle = (said[(nets - 1) / 2] + said[nets / 2]) / 2.0;
    double apart = (said[nets - 1] - said[0]) / 2.0 / middle;
    said_out->seconds = middle * fmax(q->flop / p->roof.flop_per_s, q->bytes / p->roof.Bps);
    said_out->error = fmax(p->error, apart);
}

/* ---- making ---- */

/* Take a layer's numbers, turned as they are summed. */
static cvy_status set_layer(const cvy_predictor_layer *numbers, cvy_mlp_layer *layer)
{
    int inputs = numbers->inputs, outputs = numbers->outputs;
    layer->inputs = inputs;
    layer->outputs = outputs;
    layer->weight = cvy_calloc((size_t)outputs * (size_t)(inputs + 1), sizeof *layer->weight);
    if (!layer->weight) {
        return CVY_ERR_MEMORY;
    }
    layer->bias = layer->weight + inputs * outputs;
    for (int o = 0; o < outputs; o++) {
        for (int k = 0; k < inputs; k++) {
            layer->weight[k * outputs + o] = (float)numbers->weight[o * inputs + k];
        }
        layer->bias[o] = (float)numbers->bias[o];
    }
    return CVY_OK;
}

static cvy_status make_nets(const cvy_predictor_spec *spec, cvy_predictor *p)
{
    p->mlp.nets = spec->nets;
    for (int i = 0; i < spec->nets * spec->layers; i++) {
        cvy_mlp_net *net = &p->mlp.net[i / spec->layers];
        net->layers = spec->layers;
        CVY_TRY(set_layer(&spec->layer[i], &net->layer[i % spec->layers]));
    }
    return CVY_OK;
}

static void clear_nets(cvy_predictor *p)
{
    for (int i = 0; i < p->mlp.nets; i++) {
        for (int k = 0; k < p->mlp.net[i].layers; k++) {
            cvy_free(p->mlp.net[i].layer[k].weight);
        }
    }
}

/* ---- files ---- */

static cvy_status read_layer(const cvy_yaml_node *node, int inputs, cvy_mlp_layer *layer)
{
    static const char *const keys[] = {"weights", "biases", NULL};
    const cvy_yaml_node *biases = NULL;
    if (cvy_yaml_node_kind(node) != CVY_YAML_MAPPING) {
        return cvy_yaml_fail(node, "layers: expected a mapping of weights and biases");
    }
    CVY_TRY(cvy_yaml_check_keys(node, keys));
    CVY_TRY(cvy_predictor_find_key(node, "biases", "a list of numbers, one an output", &biases));
    int outputs = cvy_yaml_count_reals(biases);
    if (outputs < 1 || outputs > CVY_MLP_MAX_WIDTH) {
        return cvy_yaml_fail(biases, "biases: found %d, expected 1 to %d", outputs, (int)CVY_MLP_MAX_WIDTH);
    }
    size_t numbers = (size_t)outputs * (size_t)(inputs + 1);
    double *number = cvy_calloc(numbers, sizeof *number);
    double *bias = number + (number ? outputs * inputs : 0);
    const cvy_predictor_layer read = {inputs, outputs, number, bias};
    const double least = -CVY_PREDICTOR_MOST;
    cvy_status status = number ? CVY_OK : CVY_ERR_MEMORY;
    CVY_TRY_GOTO(status, done, status);
    CVY_TRY_GOTO(status, done, cvy_predictor_read_numbers(node, "weights", outputs * inputs, least, number));
    CVY_TRY_GOTO(status, done, cvy_predictor_read_numbers(node, "biases", outputs, least, bias));
    status = set_layer(&read, layer);
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

static cvy_status read_nets(const cvy_yaml_node *list, cvy_predictor *p)
{
    int count = cvy_yaml_size(list);
    if (cvy_yaml_node_kind(list) != CVY_YAML_SEQUENCE || count < 1 || count > CVY_MLP_MAX_NETS) {
        return cvy_yaml_fail(list, "nets: expected a list of 1 to %d nets", (int)CVY_MLP_MAX_NETS);
    }
    for (int i = 0; i < count; i++) {
        p->mlp.nets = i + 1;
        CVY_TRY(read_net(cvy_yaml_item(list, i), p->inputs, &p->mlp.net[i]));
    }
    return CVY_OK;
}

static void print_layer(const cvy_predictor_layer *layer, bool first, cvy_text *text)
{
    cvy_text_add(text, "%s weights: |\n", first ? "  - -" : "    -");
    for (int o = 0; o < layer->outputs; o++) {
        cvy_predictor_print_line(8, layer->weight + o * layer->inputs, layer->inputs, text);
    }
    cvy_text_add(text, "      biases: |\n");
    cvy_predictor_print_line(8, layer->bias, layer->outputs, text);
}

static void print_nets(const cvy_predictor_spec *spec, cvy_text *text)
{
    cvy_text_add(text, "nets:\n");
    for (int i = 0; i < spec->nets * spec->layers; i++) {
        print_layer(&spec->layer[i], i % spec->layers == 0, text);
    }
}

const cvy_predictor_kind cvy_predictor_mlp = {.key = "nets", .is = "a list of nets, each a list of layers",
                                              .read = read_nets, .make = make_nets, .run = run_nets,
                                              .print = print_nets, .clear = clear_nets};
