/*
 * Model files: a name, the shape of a sample, a list of layers. Layers stand after their inputs, so a file that can be
 * read has no cycle. docs/models.md is the manual.
 */
#include <stddef.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "base/utf8.h"
#include "model/model.h"

typedef struct header {
    cvy_shape input;
} header;

static const cvy_field header_fields[] = {
    {.name = "input", .type = CVY_FIELD_SHAPE, .offset = offsetof(header, input), .required = true, .minimum = 1,
     .maximum = 1e9, .help = "the shape of a sample: [c, h, w], [c, d, h, w] or [c]"},
    {0},
};
static const char *const header_keys[] = {"name", "layers", NULL};
static const char *const layer_keys[] = {"name", "kind", "input", NULL};

/* A required text of a mapping. */
static cvy_status get_text(const cvy_yaml_node *mapping, const char *key, const char *help, const char **text_out)
{
    const cvy_yaml_node *node = cvy_yaml_find(mapping, key);
    if (!node) {
        return cvy_yaml_fail(mapping, "%s: missing; it is %s", key, help);
    }
    *text_out = cvy_yaml_text(node);
    return *text_out && **text_out ? CVY_OK : cvy_yaml_fail(node, "%s: expected %s", key, help);
}

/* The line of a layer that stands too late to be an input; 0 where the file has none of that name. */
static int find_later(const cvy_yaml_node *layers, const char *name)
{
    for (int i = 0; i < cvy_yaml_size(layers); i++) {
        const cvy_yaml_node *node = cvy_yaml_find(cvy_yaml_item(layers, i), "name");
        const char *text = node ? cvy_yaml_text(node) : NULL;
        if (text && strcmp(text, name) == 0) {
            return cvy_yaml_line(node);
        }
    }
    return 0;
}

static cvy_status fail_input(const cvy_model *model, const cvy_yaml_node *layers, const cvy_yaml_node *node,
                             const char *layer)
{
    char word[CVY_WORD_TEXT], own[CVY_WORD_TEXT];
    const char *name = cvy_yaml_text(node);
    cvy_print_word(layer, own);
    if (!name) {
        return cvy_yaml_fail(node, "layer %s: input: expected the name of a layer", own);
    }
    int line = find_later(layers, name);
    if (line) {
        return cvy_yaml_fail(node, "layer %s: input '%s' stands on line %d: layers stand after their inputs, "
                             "without a cycle", own, cvy_print_word(name, word), line);
    }
    const char **names = cvy_calloc((size_t)model->layers + 1, sizeof *names);
    if (!names) {
        return CVY_ERR_MEMORY;
    }
    for (int i = 0; i < model->layers; i++) {
        names[i] = model->layer[i].name;
    }
    const char *nearest = cvy_nearest(name, names);
    cvy_status status = cvy_yaml_fail(node, "layer %s: no layer '%s' to take as input%s%s%s", own,
                                      cvy_print_word(name, word), nearest ? "; did you mean '" : "",
                                      nearest ? nearest : "", nearest ? "'?" : "");
    cvy_free(names);
    return status;
}

/* Inputs by name; without `input`, the layer before. */
static cvy_status find_inputs(const cvy_model *model, const cvy_yaml_node *layers, const cvy_yaml_node *layer,
                              const char *name, int input[CVY_MAX_INPUTS], int *count_out)
{
    const cvy_yaml_node *node = cvy_yaml_find(layer, "input");
    bool list = node && cvy_yaml_node_kind(node) == CVY_YAML_SEQUENCE;
    int count = list ? cvy_yaml_size(node) : 1;
    if (count < 1 || count > CVY_MAX_INPUTS) {
        char word[CVY_WORD_TEXT];
        return cvy_yaml_fail(node, "layer %s: input: found %d names, expected 1 to %d", cvy_print_word(name, word),
                             count, (int)CVY_MAX_INPUTS);
    }
    input[0] = model->layers - 1;
    for (int i = 0; node && i < count; i++) {
        const cvy_yaml_node *entry = list ? cvy_yaml_item(node, i) : node;
        const char *source = cvy_yaml_text(entry);
        input[i] = source ? cvy_model_find_layer(model, source) : -1;
        if (input[i] < 0) {
            return fail_input(model, layers, entry, name);
        }
    }
    *count_out = count;
    return CVY_OK;
}

static cvy_status add_layer(cvy_model *model, const cvy_yaml_node *layers, const cvy_yaml_node *layer)
{
    int input[CVY_MAX_INPUTS];
    cvy_layer_spec spec = {.input = input, .options = layer, .skip = layer_keys};
    if (cvy_yaml_node_kind(layer) != CVY_YAML_MAPPING) {
        return cvy_yaml_fail(layer, "layers: expected a mapping with name, kind and options");
    }
    CVY_TRY(get_text(layer, "name", "the layer's name", &spec.name));
    CVY_TRY(get_text(layer, "kind", "a kind of layer, as in docs/models.md", &spec.kind));
    CVY_TRY(find_inputs(model, layers, layer, spec.name, input, &spec.inputs));
    return cvy_model_add(model, &spec, NULL);
}

static cvy_status start(const cvy_yaml_node *root, const char *path, const cvy_yaml_node **layers_out,
                        cvy_model **model_out)
{
    const char *name = NULL;
    header head = {{0}};
    CVY_TRY(cvy_fields_parse(header_fields, root, NULL, header_keys, &head));
    CVY_TRY(get_text(root, "name", "the model's name", &name));
    if (!cvy_utf8_is_line(name, 200)) { /* it is printed in tables and files */
        return cvy_yaml_fail(cvy_yaml_find(root, "name"), "name: expected at most 200 bytes, no control characters");
    }
    const cvy_yaml_node *layers = cvy_yaml_find(root, "layers");
    if (!layers || cvy_yaml_node_kind(layers) != CVY_YAML_SEQUENCE || !cvy_yaml_size(layers)) {
        return cvy_yaml_fail(layers ? layers : root, "layers: expected a list of layers");
    }
    if (cvy_yaml_size(layers) > CVY_MAX_LAYERS) {
        return cvy_yaml_fail(layers, "layers: found %d, expected at most %d", cvy_yaml_size(layers),
                             (int)CVY_MAX_LAYERS);
    }
    memmove(head.input.extent, head.input.extent + 1, (size_t)--head.input.dims * sizeof head.input.extent[0]);
    cvy_status status = cvy_model_create(name, &head.input, model_out);
    if (status != CVY_OK) {
        return cvy_fail_within(status, "%s:%d", path, cvy_yaml_line(cvy_yaml_find(root, "input")));
    }
    (*model_out)->file = cvy_strdup(path);
    *layers_out = layers;
    return (*model_out)->file ? CVY_OK : CVY_ERR_MEMORY;
}

cvy_status cvy_model_load_yaml(const char *path, cvy_model **model_out)
{
    cvy_status status;
    cvy_model *model = NULL;
    cvy_yaml *yaml = NULL;
    const cvy_yaml_node *layers = NULL;
    CVY_TRY(cvy_yaml_load(path, &yaml));
    CVY_TRY_GOTO(status, done, start(cvy_yaml_root(yaml), path, &layers, &model));
    for (int i = 0; i < cvy_yaml_size(layers); i++) {
        CVY_TRY_GOTO(status, done, add_layer(model, layers, cvy_yaml_item(layers, i)));
    }
    CVY_TRY_GOTO(status, done, cvy_model_finish(model));
    *model_out = model;
    model = NULL;
done:
    cvy_model_destroy(&model);
    cvy_yaml_destroy(&yaml);
    return status;
}
