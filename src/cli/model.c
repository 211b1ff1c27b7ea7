/* convoy model: what a model is made of, layer by layer, and what the zoo offers. Needs no library that computes. */
#include "model/model.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cli/fields.h"
#include "cli/json_output.h"
#include "cli/options_common.h"

enum { NAME_WIDTH = 34 };

/* Trainable numbers of a layer. */
static int64_t count_parameters(const cvy_model *model, int layer)
{
    const cvy_layer *at = &model->layer[layer];
    int64_t count = 0;
    for (int i = 0; i < at->parameters; i++) {
        const cvy_parameter_spec *spec = &model->parameter[at->first_parameter + i].spec;
        count += spec->trainable ? cvy_shape_elements(&spec->shape) : 0;
    }
    return count;
}

/* A name that is too long loses its beginning: the end tells layers apart. */
static void print_layer(const cvy_model *model, int index, int64_t batch)
{
    const cvy_layer *layer = &model->layer[index];
    char shape[CVY_SHAPE_TEXT], count[CVY_UNIT_TEXT], name[NAME_WIDTH + 1];
    cvy_shape output = layer->output;
    int64_t parameters = count_parameters(model, index);
    size_t length = strlen(layer->name);
    bool cut = length > NAME_WIDTH;
    output.extent[0] = batch;
    snprintf(name, sizeof name, "%s%s", cut ? "..." : "", cut ? layer->name + length - (NAME_WIDTH - 3) : layer->name);
    printf("%-*s %-22s %-17s %12s %11.4g\n", NAME_WIDTH, name, layer->kind->name, cvy_shape_print(&output, shape),
           parameters ? cvy_print_count(parameters, count) : "-",
           cvy_model_layer_flop(model, index) * (double)batch * 1e-6);
}

static void print_table(const cvy_model *model, int64_t batch)
{
    char count[CVY_UNIT_TEXT], unit[2][CVY_UNIT_TEXT];
    double flop = cvy_model_forward_flop(model) * (double)batch;
    printf("%-*s %-22s %-17s %12s %11s\n", NAME_WIDTH, "layer", "kind", "output (n first)", "parameters", "MFLOP");
    for (int i = 0; i < model->layers; i++) {
        print_layer(model, i, batch);
    }
    printf("\n%s: %s parameters (%s in fp32)\n", cvy_model_name(model),
           cvy_print_count(cvy_model_parameters(model), count),
           cvy_print_bytes(4.0 * (double)cvy_model_parameters(model), unit[0]));
    printf("forward pass of %" PRId64 " sample%s: %s (a multiply-add counts 2)\n", batch, batch == 1 ? "" : "s",
           cvy_print_si(flop, "FLOP", unit[1]));
}

static json_t *describe_layer(const cvy_model *model, int index)
{
    const cvy_layer *layer = &model->layer[index];
    json_t *output = json_array();
    for (int i = 1; i < layer->output.dims; i++) {
        json_array_append_new(output, json_integer((json_int_t)layer->output.extent[i]));
    }
    return json_pack("{s:s, s:s, s:o, s:I, s:o}", "name", layer->name, "kind", layer->kind->name, "output", output,
                     "parameters", (json_int_t)count_parameters(model, index), "forward_flop",
                     cli_json_number(cvy_model_layer_flop(model, index)));
}

/* The keys are a contract with scripts; all figures are of one sample. */
static cvy_status print_json(const cvy_model *model)
{
    json_t *layers = json_array();
    for (int i = 0; i < model->layers; i++) {
        json_array_append_new(layers, describe_layer(model, i));
    }
    return cli_json_print(json_pack("{s:s, s:I, s:o, s:o}", "name", cvy_model_name(model), "parameters",
                                    (json_int_t)cvy_model_parameters(model), "forward_flop",
                                    cli_json_number(cvy_model_forward_flop(model)), "layers", layers));
}

static void print_zoo(void)
{
    const cvy_zoo_entry *entry;
    char text[64];
    for (int i = 0; (entry = cvy_zoo_get(i)); i++) {
        printf("%-17s %s\n", entry->name, entry->help);
        for (const cvy_field *field = entry->fields; field && field->name; field++) {
            printf("    %-16s %-13s %s", field->name, cli_print_field_default(field, text, sizeof text),
                   field->help ? field->help : "");
            for (int k = 0; field->type == CVY_FIELD_CHOICE && field->choices[k]; k++) {
                printf("%s%s", k ? ", " : ": ", field->choices[k]);
            }
            printf("\n");
        }
    }
    printf("\nOptions follow the name: resnet50:size=226,classes=10\n");
}

static cvy_status print_zoo_json(void)
{
    const cvy_zoo_entry *entry;
    char text[64];
    json_t *list = json_array();
    for (int i = 0; (entry = cvy_zoo_get(i)); i++) {
        json_t *options = json_array();
        for (const cvy_field *field = entry->fields; field && field->name; field++) {
            cli_print_field_default(field, text, sizeof text);
            json_array_append_new(options, json_pack("{s:s, s:s, s:s}", "name", field->name, "default", text, "help",
                                                     field->help ? field->help : ""));
        }
        json_array_append_new(list, json_pack("{s:s, s:s, s:o}", "name", entry->name, "help", entry->help, "options",
                                              options));
    }
    return cli_json_print(list);
}

static cvy_status print_model(const cli_options *options)
{
    cvy_model *model = NULL;
    cvy_status status = CVY_OK;
    CVY_TRY(cvy_model_open(options->model, &model));
    if (options->json) {
        status = print_json(model);
    } else {
        print_table(model, options->train.batch);
    }
    cvy_model_destroy(&model);
    return status;
}

static cvy_status run_model(const cli_command *command, int argc, char **argv)
{
    cli_options options = cli_options_init;
    cvy_parsed_options parsed;
    cvy_status status = cli_parse(command, argc, argv, &options, &parsed);
    if (status != CVY_OK || parsed.help) {
        goto done;
    }
    if (options.list) {
        if (options.json) {
            status = print_zoo_json();
        } else {
            print_zoo();
        }
        goto done;
    }
    if (parsed.operands) {
        options.model = parsed.operand[0];
    }
    CVY_REQUIRE_GOTO(status, done, options.model, CVY_ERR_INPUT,
                     "convoy model needs a model: a name of the zoo (convoy model --list) or a YAML file");
    status = print_model(&options);
done:
    cvy_parsed_options_clear(&parsed);
    return status;
}

const cli_command cli_model = {
    .name = "model",
    .operands = "MODEL",
    .usage = "MODEL\n"
             "--list",
    .max_operands = 1,
    .rows = CLI_MODEL,
    .summary = "Print the layers, parameters and operations of a model",
    .examples = "  convoy model --list\n"
                "  convoy model resnet50:classes=10\n"
                "  convoy model models/mine.yaml --json\n",
    .run = run_model,
};
