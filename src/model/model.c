/*
 * The graph grows by one layer at a time: a layer is checked, its shapes are known and its parameters are listed before
 * the next one comes, so whatever goes wrong is said of the layer that is at fault. A model under construction is
 * always a valid beginning: a layer that fails leaves no trace.
 */
#include "model/model.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"

/* Put the place of a layer in front of the words of a failure: file and line where there is one, and its name. */
static cvy_status fail_at_layer(const cvy_model *model, const cvy_layer *layer, cvy_status status)
{
    if (model->file) {
        return cvy_fail_within(status, "%s:%d: layer %s", model->file, layer->line, layer->name);
    }
    return cvy_fail_within(status, "layer %s", layer->name);
}

static bool is_name(const char *name)
{
    size_t length = strnlen(name, CVY_MAX_NAME + 1);
    return length >= 1 && length <= CVY_MAX_NAME &&
           strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-") == length;
}

static cvy_status find_kind(const char *name, const cvy_layer_kind **kind_out)
{
    enum { MOST = 100 };
    const char *names[MOST + 1];
    char word[CVY_WORD_TEXT];
    int count = 0;
    *kind_out = cvy_layer_kind_find(name);
    if (*kind_out) {
        return CVY_OK;
    }
    for (const cvy_layer_kind *kind; count < MOST && (kind = cvy_layer_kind_get(count)); count++) {
        names[count] = kind->name;
    }
    names[count] = NULL;
    const char *nearest = cvy_nearest(name, names);
    return cvy_fail(CVY_ERR_INPUT, "unknown kind '%s'%s%s%s", cvy_print_word(name, word),
                    nearest ? "; did you mean '" : ": docs/models.md lists them", nearest ? nearest : "",
                    nearest ? "'?" : "");
}

/* Kind and inputs: what can be said of a layer before its options. */
static cvy_status check_place(const cvy_model *model, const cvy_layer_kind *kind, const int *input, int inputs)
{
    CVY_REQUIRE((kind->flow == CVY_FLOW_SOURCE) == (model->layers == 0), CVY_ERR_INPUT,
                "a layer of kind %s cannot stand here: the input is the first layer, and the only one of its kind",
                kind->name);
    CVY_REQUIRE(inputs >= kind->min_inputs, CVY_ERR_INPUT, "found %d inputs, expected at least %d for kind %s", inputs,
                kind->min_inputs, kind->name);
    CVY_REQUIRE(inputs <= kind->max_inputs, CVY_ERR_INPUT, "found %d inputs, expected at most %d for kind %s", inputs,
                kind->max_inputs, kind->name);
    for (int i = 0; i < inputs; i++) {
        CVY_REQUIRE(input[i] >= 0 && input[i] < model->layers, CVY_ERR_INPUT,
                    "input %d of %d layers: no such layer yet", input[i], model->layers);
        const cvy_layer *source = &model->layer[input[i]];
        CVY_REQUIRE(source->kind->flow != CVY_FLOW_LOSS, CVY_ERR_INPUT, "takes the loss layer %s as input",
                    source->name);
    }
    return CVY_OK;
}

static cvy_status parse_options(cvy_layer *layer, const cvy_yaml_node *options, const char *const *skip)
{
    char owner[CVY_MAX_NAME + 16];
    snprintf(owner, sizeof owner, "layer %s", layer->name);
    layer->options = cvy_calloc(1, layer->kind->options_bytes);
    if (!layer->options) {
        return CVY_ERR_MEMORY;
    }
    return cvy_fields_parse(layer->kind->fields, options, owner, skip, layer->options);
}

static void drop_parameters(cvy_model *model, int first)
{
    while (model->parameters > first) {
        cvy_free(model->parameter[--model->parameters].name);
    }
}

static cvy_status add_parameter(cvy_model *model, const cvy_layer *layer, const cvy_parameter_spec *spec)
{
    char key[CVY_MAX_NAME + 32];
    CVY_TRY(cvy_shape_check(&spec->shape, spec->suffix));
    CVY_TRY(cvy_array_reserve(&model->parameter, model->parameters, &model->parameter_capacity,
                              sizeof *model->parameter));
    snprintf(key, sizeof key, "%s.%s", layer->name, spec->suffix);
    char *name = cvy_strdup(key);
    if (!name) {
        return CVY_ERR_MEMORY;
    }
    model->parameter[model->parameters++] = (cvy_parameter){.name = name, .layer = layer->index, .spec = *spec};
    return CVY_OK;
}

/* Shapes and parameters that follow from options and inputs. */
static cvy_status derive(cvy_model *model, cvy_layer *layer)
{
    cvy_parameter_spec spec[CVY_MAX_LAYER_PARAMETERS];
    cvy_shape input[CVY_MAX_INPUTS] = {{0}};
    int count = 0;
    for (int i = 0; i < layer->inputs; i++) {
        input[i] = model->layer[layer->input[i]].output;
    }
    CVY_TRY(layer->kind->infer(layer, input, &layer->output));
    CVY_TRY(cvy_shape_check(&layer->output, "output"));
    if (layer->kind->parameters) {
        CVY_TRY(layer->kind->parameters(layer, input, spec, &count));
    }
    for (int i = 0; i < count; i++) {
        CVY_TRY(add_parameter(model, layer, &spec[i]));
    }
    layer->parameters = count;
    return CVY_OK;
}

/* Make a layer and its parameters known; all that can fail comes first. */
static cvy_status publish(cvy_model *model, const cvy_layer *layer)
{
    CVY_TRY(cvy_names_reserve(&model->parameter_names, layer->parameters));
    CVY_TRY(cvy_names_reserve(&model->layer_names, 1));
    for (int i = layer->first_parameter; i < model->parameters; i++) {
        cvy_names_add(&model->parameter_names, model->parameter[i].name, i);
    }
    cvy_names_add(&model->layer_names, layer->name, layer->index);
    model->layer[model->layers++] = *layer;
    return CVY_OK;
}

static void clear_layer(cvy_layer *layer)
{
    cvy_free(layer->name);
    cvy_free(layer->options);
    *layer = (cvy_layer){0};
}

static cvy_status check_new(const cvy_model *model, const char *name, const cvy_yaml_node *options)
{
    char word[CVY_WORD_TEXT];
    const char *problem = NULL;
    CVY_REQUIRE(model->layers <= CVY_MAX_LAYERS, CVY_ERR_INPUT, "more than %d layers", (int)CVY_MAX_LAYERS);
    if (!is_name(name)) {
        problem = "expected 1 to 200 of letters, digits, '_', '.', '-'";
    } else if (cvy_model_find_layer(model, name) >= 0) {
        problem = "the name is taken";
    }
    if (!problem) {
        return CVY_OK;
    }
    cvy_print_word(name, word);
    return options ? cvy_yaml_fail(options, "layer '%s': %s", word, problem)
                   : cvy_fail(CVY_ERR_INPUT, "layer '%s': %s", word, problem);
}

cvy_status cvy_model_add(cvy_model *model, const cvy_layer_spec *spec, int *index_out)
{
    cvy_status status;
    CVY_TRY(check_new(model, spec->name, spec->options));
    CVY_TRY(cvy_array_reserve(&model->layer, model->layers, &model->layer_capacity, sizeof *model->layer));
    cvy_layer layer = {.name = cvy_strdup(spec->name),
                       .index = model->layers,
                       .line = spec->options ? cvy_yaml_line(spec->options) : 0,
                       .inputs = spec->inputs,
                       .first_parameter = model->parameters};
    if (!layer.name) {
        return CVY_ERR_MEMORY;
    }
    CVY_TRY_GOTO(status, place, find_kind(spec->kind, &layer.kind));
    CVY_TRY_GOTO(status, place, check_place(model, layer.kind, spec->input, spec->inputs));
    for (int i = 0; i < spec->inputs; i++) {
        layer.input[i] = spec->input[i];
    }
    CVY_TRY_GOTO(status, done, parse_options(&layer, spec->options, spec->skip)); /* names place and layer itself */
    CVY_TRY_GOTO(status, place, derive(model, &layer));
    CVY_TRY_GOTO(status, done, publish(model, &layer));
    if (index_out) {
        *index_out = layer.index;
    }
    return CVY_OK;
place:
    status = fail_at_layer(model, &layer, status);
done:
    drop_parameters(model, layer.first_parameter);
    clear_layer(&layer);
    return status;
}

cvy_status cvy_model_append(cvy_model *model, const char *kind, const char *name, int *at, const char *options, ...)
{
    cvy_status status = CVY_ERR_MEMORY;
    cvy_yaml *yaml = NULL;
    char text[512];
    va_list arguments;
    va_start(arguments, options);
    text[0] = '{';
    int length = 1 + vsnprintf(text + 1, sizeof text - 2, options, arguments);
    va_end(arguments);
    CVY_REQUIRE(length >= 1 && length <= (int)sizeof text - 2, CVY_ERR_ARG, "layer %s: options are too long", name);
    text[length++] = '}';
    CVY_TRY_GOTO(status, done, cvy_yaml_parse(NULL, text, (size_t)length, &yaml));
    const cvy_layer_spec spec = {.kind = kind,
                                 .name = name,
                                 .input = at,
                                 .inputs = strcmp(kind, "input") != 0,
                                 .options = cvy_yaml_root(yaml)};
    CVY_TRY_GOTO(status, done, cvy_model_add(model, &spec, at));
done:
    cvy_yaml_destroy(&yaml);
    return status;
}

cvy_status cvy_model_append_add(cvy_model *model, const char *name, int first, int second, int *index_out)
{
    const int input[] = {first, second};
    return cvy_model_add(model, &(cvy_layer_spec){.kind = "add", .name = name, .input = input, .inputs = 2}, index_out);
}

cvy_status cvy_model_append_multiply(cvy_model *model, const char *name, int main, int factors, int *index_out)
{
    const int input[] = {main, factors};
    const cvy_layer_spec spec = {.kind = "multiply", .name = name, .input = input, .inputs = 2};
    return cvy_model_add(model, &spec, index_out);
}

cvy_status cvy_model_append_concat(cvy_model *model, const char *name, const int *input, int inputs, int *index_out)
{
    const cvy_layer_spec spec = {.kind = "concat", .name = name, .input = input, .inputs = inputs};
    return cvy_model_add(model, &spec, index_out);
}

cvy_status cvy_model_create(const char *name, const cvy_shape *input, cvy_model **model_out)
{
    cvy_status status = CVY_ERR_MEMORY;
    char list[CVY_SHAPE_TEXT];
    int length = 0, at = -1;
    list[0] = '\0';
    for (int i = 0; i < input->dims && i < CVY_MAX_DIMS; i++) {
        length += snprintf(list + length, sizeof list - (size_t)length, "%s%" PRId64, i ? ", " : "", input->extent[i]);
    }
    cvy_model *model = cvy_calloc(1, sizeof *model);
    if (!model || !(model->name = cvy_strdup(name))) {
        goto done;
    }
    CVY_TRY_GOTO(status, done, cvy_model_append(model, "input", "input", &at, "shape: [%s]", list));
    *model_out = model;
    model = NULL;
done:
    cvy_model_destroy(&model);
    return status;
}

void cvy_model_destroy(cvy_model **model)
{
    cvy_model *gone = *model;
    if (!gone) {
        return;
    }
    for (int i = 0; i < gone->layers; i++) {
        clear_layer(&gone->layer[i]);
    }
    drop_parameters(gone, 0);
    cvy_names_clear(&gone->layer_names);
    cvy_names_clear(&gone->parameter_names);
    cvy_free(gone->layer);
    cvy_free(gone->parameter);
    cvy_free(gone->file);
    cvy_free(gone->name);
    cvy_free(gone);
    *model = NULL;
}

int cvy_model_find_layer(const cvy_model *model, const char *name) { return cvy_names_find(&model->layer_names, name); }

int cvy_model_find_parameter(const cvy_model *model, const char *name)
{
    return cvy_names_find(&model->parameter_names, name);
}

int cvy_model_find_role(const cvy_model *model, int layer, cvy_role role)
{
    const cvy_layer *l = &model->layer[layer];
    for (int i = l->first_parameter; i < l->first_parameter + l->parameters; i++) {
        if (model->parameter[i].spec.role == role) {
            return i;
        }
    }
    return -1;
}

int cvy_model_output(const cvy_model *model) { return model->layer[model->layers - 1].input[0]; }

const char *cvy_model_name(const cvy_model *model) { return model->name; }
