/* Formats out of a saved plan. The file may have been edited, cut off or be of another model: nothing is believed. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/yaml.h"
#include "plan/layout.h"

static cvy_status read_format(const cvy_yaml_node *entry, const char *key, cvy_format *format)
{
    const cvy_yaml_node *node = cvy_yaml_find(entry, key);
    const char *name = node ? cvy_yaml_text(node) : NULL;
    if (!name || !cvy_format_find(name, format)) {
        return cvy_yaml_fail(node ? node : entry, "%s: found '%.40s', expected the name of a format", key,
                             name ? name : "nothing");
    }
    return CVY_OK;
}

/* The passes that go by Winograd's algorithm: those of a convolution, each once; without the key none. */
static cvy_status read_winograd(const cvy_yaml_node *entry, uint32_t *passes_out)
{
    static const cvy_op_pass known[] = {CVY_PASS_FORWARD, CVY_PASS_BACKWARD_DATA, CVY_PASS_BACKWARD_WEIGHTS};
    const cvy_yaml_node *list = cvy_yaml_find(entry, "winograd");
    *passes_out = 0;
    if (!list) {
        return CVY_OK;
    }
    if (cvy_yaml_node_kind(list) != CVY_YAML_SEQUENCE) {
        return cvy_yaml_fail(list, "winograd: expected a list of passes");
    }
    for (int i = 0; i < cvy_yaml_size(list); i++) {
        const char *name = cvy_yaml_text(cvy_yaml_item(list, i));
        uint32_t found = 0;
        for (size_t k = 0; name && k < sizeof known / sizeof known[0]; k++) {
            found |= strcmp(name, cvy_op_pass_name(known[k])) == 0 ? 1u << known[k] : 0;
        }
        if (!found || *passes_out & found) {
            return cvy_yaml_fail(list, "winograd: found '%.40s', expected passes of a convolution, each once",
                                 name ? name : "a list");
        }
        *passes_out |= found;
    }
    return CVY_OK;
}

static cvy_status check_formats(const cvy_yaml_node *entry, const cvy_model *model, const cvy_layer *layer,
                                const cvy_layer_formats *formats)
{
    const cvy_layer *source = &model->layer[layer->inputs > 0 ? layer->input[0] : layer->index];
    cvy_tensor x = {.shape = source->output, .dtype = CVY_F32, .format = formats->input};
    cvy_tensor y = {.shape = layer->output, .dtype = CVY_F32, .format = formats->output};
    if (!cvy_tensor_format_fits(&x) || !cvy_tensor_format_fits(&y)) {
        return cvy_yaml_fail(entry, "layer %s cannot take %s and give %s", layer->name,
                             cvy_format_name(formats->input), cvy_format_name(formats->output));
    }
    int parameter = cvy_model_find_role(model, layer->index, CVY_ROLE_W);
    const cvy_format of_weights[] = {formats->weight, formats->weight_backward, formats->gradient};
    for (int i = 0; parameter >= 0 && i < 3; i++) {
        const cvy_parameter_spec *spec = &model->parameter[parameter].spec;
        cvy_tensor w = {.shape = spec->shape, .dtype = CVY_F32, .format = of_weights[i], .grouped = spec->groups > 1};
        if (w.grouped) {
            w.shape.dims++; /* whether a format fits is a matter of dimensions alone */
        }
        if (!cvy_tensor_format_fits(&w)) {
            return cvy_yaml_fail(entry, "layer %s cannot have weights in %s", layer->name,
                                 cvy_format_name(of_weights[i]));
        }
    }
    return CVY_OK;
}

static cvy_status read_layer(const cvy_yaml_node *entry, const cvy_model *model, int index, cvy_layer_formats *formats)
{
    const cvy_layer *layer = &model->layer[index];
    const cvy_yaml_node *name =
        cvy_yaml_node_kind(entry) == CVY_YAML_MAPPING ? cvy_yaml_find(entry, "layer") : NULL;
    if (!name || !cvy_yaml_text(name) || strcmp(cvy_yaml_text(name), layer->name) != 0) {
        return cvy_yaml_fail(entry, "expected the formats of layer %s", layer->name);
    }
    *formats = (cvy_layer_formats){0};
    CVY_TRY(read_format(entry, "input", &formats->input));
    CVY_TRY(read_format(entry, "output", &formats->output));
    if (layer->parameters > 0) {
        CVY_TRY(read_format(entry, "weight", &formats->weight));
        CVY_TRY(read_format(entry, "weight-backward", &formats->weight_backward));
        CVY_TRY(read_format(entry, "gradient", &formats->gradient));
        CVY_TRY(read_winograd(entry, &formats->winograd));
    }
    if (formats->winograd && cvy_layout_find_kind(model, layer) != CVY_OP_CONVOLUTION) {
        return cvy_yaml_fail(entry, "layer %s is no convolution: it cannot go by Winograd's algorithm", layer->name);
    }
    return check_formats(entry, model, layer, formats);
}

static cvy_status read_formats(const cvy_yaml_node *root, const cvy_model *model, int block,
                               cvy_layer_formats *formats_out)
{
    char hash[20];
    int64_t found;
    if (cvy_yaml_node_kind(root) != CVY_YAML_MAPPING) {
        return cvy_yaml_fail(root, "expected a plan: a mapping");
    }
    const cvy_yaml_node *of_model = cvy_yaml_find(root, "model-hash");
    const cvy_yaml_node *of_block = cvy_yaml_find(root, "block");
    const cvy_yaml_node *list = cvy_yaml_find(root, "formats");
    snprintf(hash, sizeof hash, "%016" PRIx64, cvy_model_hash(model));
    if (!of_model || !cvy_yaml_text(of_model) || strcmp(cvy_yaml_text(of_model), hash) != 0) {
        return cvy_yaml_fail(of_model ? of_model : root, "the plan is of another model than %s", cvy_model_name(model));
    }
    if (!of_block || !list || cvy_yaml_node_kind(list) != CVY_YAML_SEQUENCE) {
        return cvy_yaml_fail(root, "expected a plan with block and a list of formats");
    }
    CVY_TRY(cvy_yaml_get_int(of_block, "block", 8, 16, &found));
    if (found != block) {
        return cvy_yaml_fail(of_block, "the plan is for vectors of %d floats, this machine has %d", (int)found, block);
    }
    if (cvy_yaml_size(list) != model->layers) {
        return cvy_yaml_fail(list, "found formats of %d layers, expected %d", cvy_yaml_size(list), model->layers);
    }
    for (int i = 0; i < model->layers; i++) {
        CVY_TRY(read_layer(cvy_yaml_item(list, i), model, i, &formats_out[i]));
    }
    return CVY_OK;
}

cvy_status cvy_plan_load_formats(const char *path, const cvy_model *model, int block, cvy_layer_formats *formats_out)
{
    cvy_yaml *yaml = NULL;
    CVY_TRY(cvy_yaml_load(path, &yaml));
    cvy_status status = read_formats(cvy_yaml_root(yaml), model, block, formats_out);
    cvy_yaml_destroy(&yaml);
    return status;
}
