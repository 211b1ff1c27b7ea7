/*
 * The graph: layers in an order in which every layer comes after its inputs. Layer 0 is the input, the last one the
 * loss. Shapes are of one sample (n = 1); plans scale n.
 */
#ifndef CVY_MODEL_MODEL_H
#define CVY_MODEL_MODEL_H

#include "convoy/model.h"
#include "model/layer.h"
#include "model/names.h"

/** One parameter or persistent statistic. */
typedef struct cvy_parameter {
    char *name;                /**< state_dict key: "layer1.0.conv1.weight" */
    int layer;
    cvy_parameter_spec spec;
} cvy_parameter;

struct cvy_model {
    char *name;
    char *file;                /**< that the layers' lines count in; NULL from the zoo */
    int layers;
    cvy_layer *layer;
    int parameters;            /**< with running statistics */
    cvy_parameter *parameter;
    int layer_capacity, parameter_capacity;
    cvy_names layer_names, parameter_names;
};

/** Start a model with its input layer (layer 0, named "input"). @p input is of one sample, without n: [c,h,w]. */
cvy_status cvy_model_create(const char *name, const cvy_shape *input, cvy_model **model_out);

/** Limits on what a file may ask for; the input layer is not counted. */
enum { CVY_MAX_LAYERS = 20000, CVY_MAX_NAME = 200 };

/** A layer to be. All is borrowed for the call. */
typedef struct cvy_layer_spec {
    const char *kind;             /**< name of a layer kind */
    const char *name;             /**< unique, 1 to CVY_MAX_NAME characters of [A-Za-z0-9_.-] */
    const int *input;             /**< indices of layers */
    int inputs;                   /**< as many as the kind takes */
    const cvy_yaml_node *options; /**< a mapping; NULL where all defaults hold */
    const char *const *skip;      /**< keys of the mapping that are not the kind's, NULL-terminated; may be NULL */
} cvy_layer_spec;

/**
 * Append a layer.
 *
 * @param[out] index_out    its index in the model; may be NULL
 * @retval CVY_ERR_INPUT    unknown kind, name taken, wrong inputs, options or shapes; the message names the layer
 */
cvy_status cvy_model_add(cvy_model *model, const cvy_layer_spec *spec, int *index_out);

/**
 * Append a layer as the zoo does: options as YAML flow text without braces, printf style, e.g.
 * cvy_model_append(m, "conv", "conv1", x, &x, "filters: %d, kernel: 3, padding: 1", filters).
 *
 * @param[in]     name     of the layer
 * @param[in,out] at       in: index of the input; out: index of the new layer
 * @param[in]     options  a blank where all defaults hold
 */
cvy_status cvy_model_append(cvy_model *model, const char *kind, const char *name, int *at, const char *options, ...)
    __attribute__((format(printf, 5, 6)));

/** Append an add layer of two inputs. */
cvy_status cvy_model_append_add(cvy_model *model, const char *name, int first, int second, int *index_out);

/** Append a multiply layer: @p main times @p factors. */
cvy_status cvy_model_append_multiply(cvy_model *model, const char *name, int main, int factors, int *index_out);

/** Append a concat layer of @p inputs inputs. */
cvy_status cvy_model_append_concat(cvy_model *model, const char *name, const int *input, int inputs, int *index_out);

/**
 * Check that a model is whole: the last layer is a loss, every other layer's output is used, the bytes of parameters
 * and of one sample's activations fit 64 bits.
 *
 * @retval CVY_ERR_INPUT the message names the layer
 */
cvy_status cvy_model_finish(cvy_model *model);

/** Index of the layer of a name; -1 if absent. */
int cvy_model_find_layer(const cvy_model *model, const char *name);

/** Index of the parameter of a state_dict key; -1 if absent. */
int cvy_model_find_parameter(const cvy_model *model, const char *name);

/** Index of the parameter that is @p role to the ops of layer @p layer; -1 if it has none. */
int cvy_model_find_role(const cvy_model *model, int layer, cvy_role role);

/** Index of the loss layer's input: the layer whose output is the model's. */
int cvy_model_output(const cvy_model *model);

/** Floating point operations of a layer's share of cvy_model_forward_flop(). */
double cvy_model_layer_flop(const cvy_model *model, int index);

/** A hash of all that the model computes (kinds, options, graph; not names): checkpoints and plans carry it. */
uint64_t cvy_model_hash(const cvy_model *model);

/**
 * Mark the layers that every path from before to after goes through: there the graph can be cut in one tensor.
 *
 * @param[out] narrow_out one for each layer; the caller's array
 */
cvy_status cvy_model_find_narrow(const cvy_model *model, bool *narrow_out);

/** Options of a zoo model, in the order of its table. Values lie in @p options, a struct of the model's. */
typedef struct cvy_zoo_entry {
    const char *name;
    const char *help;          /**< one line: source, canonical parameter count */
    const cvy_field *fields;   /**< as for layers; every model has `classes` or `outputs` where it makes sense */
    size_t options_bytes;
    cvy_status (*build)(const char *name, const void *options, cvy_model **model_out);
} cvy_zoo_entry;

/** The i-th model of the zoo; NULL past the last. */
const cvy_zoo_entry *cvy_zoo_get(int i);

/**
 * Write a model as cvy_model_open() takes it with options that it does not say: those of @p defaults whose key the
 * model of the zoo has and @p text does not give. A file says all by itself and stays as it is, as does what is no
 * model, for cvy_model_open() to word.
 *
 * @param[in]  defaults   "key=value,key=value", as options of zoo models; NULL: none
 * @param[out] text_out   released with cvy_free(); untouched on failure
 * @retval CVY_ERR_INPUT  @p defaults is not of that form, or no model of the zoo has one of its keys
 * @retval CVY_ERR_MEMORY memory is exhausted
 */
cvy_status cvy_model_add_options(const char *text, const char *defaults, char **text_out);

/** Read a model file. See docs/models.md. @retval CVY_ERR_INPUT with file and line */
cvy_status cvy_model_load_yaml(const char *path, cvy_model **model_out);

#endif
