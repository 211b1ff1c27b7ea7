/* A row for each layer: sums over the steps that belong to it, in the schedule of the stage that has it. */
#include "cli/why.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "cli/json_output.h"
#include "cli/planning.h"
#include "oracle/trace_layers.h"

enum { NAME_WIDTH = 25 };

static const char *print_figure(double value, const char *(*print)(double, char *), char *text)
{
    return value > 0.0 ? print(value, text) : "-";
}

static void print_figures(const cvy_layer_cost *row)
{
    char unit[4][CVY_UNIT_TEXT];
    printf(" %9s %9s %9s %9s\n", print_figure(row->forward_s, cvy_print_seconds, unit[0]),
           print_figure(row->backward_s, cvy_print_seconds, unit[1]),
           print_figure(row->communication_s, cvy_print_seconds, unit[2]),
           print_figure(row->sent_bytes, cvy_print_bytes, unit[3]));
}

/* Why axes do not cut layers: each reason once, with its layers. */
static void print_reasons(const cvy_distribution *d)
{
    enum { INDENT = 4 };
    bool headed = false;
    for (int axis = 0; axis < CVY_AXES; axis++) {
        for (int i = 0; i < d->model->layers; i++) {
            const char *why = d->layer[i].why_whole[axis];
            cvy_text layers = {0};
            bool told = false;
            for (int k = 0; why && k < i; k++) {
                told = told || (d->layer[k].why_whole[axis] && strcmp(d->layer[k].why_whole[axis], why) == 0);
            }
            for (int k = i; why && !told && k < d->model->layers; k++) {
                const char *same = d->layer[k].why_whole[axis];
                if (same && strcmp(same, why) == 0) {
                    cvy_text_add(&layers, "%s%s", layers.length ? ", " : "", d->model->layer[k].name);
                }
            }
            if (layers.data) {
                printf("%s  %s: %s\n%*s", headed ? "" : "\nnot cut\n", cvy_axis_name((cvy_axis)axis), why, INDENT, "");
                cli_print_wrapped(INDENT, layers.data);
                headed = true;
            }
            cvy_text_destroy(&layers);
        }
    }
}

cvy_status cli_print_layers(const cvy_trace *trace)
{
    char name[NAME_WIDTH + 1], cut[CVY_CUT_TEXT], shape[CVY_SHAPE_TEXT];
    cvy_layer_cost *rows;
    const cvy_distribution *d = trace->distribution;
    const cvy_model *model = d->model;
    const bool staged = trace->ranks > 1;
    CVY_TRY(cvy_trace_sum_layers(trace, &rows));
    if (staged) {
        int micro_batches = (int)trace->estimate.strategy.micro_batches;
        printf("\nlocal outputs are a micro-batch's, of %d in an iteration\n", micro_batches);
    }
    printf("\n%-*s %-14s %-17s %9s %9s %9s %9s\n", NAME_WIDTH, "layer", "cut", "local output", "forward", "backward",
           "comm.", "sends");
    for (int i = 0; i < model->layers; i++) {
        if (staged && i == d->stages[d->layer[i].stage]) {
            printf("stage %d\n", d->layer[i].stage);
        }
        printf("%-*s %-14s %-17s", NAME_WIDTH, cli_print_layer_name(model->layer[i].name, NAME_WIDTH, name),
               cvy_layer_print_cut(&d->layer[i], cut),
               rows[i].local.dims ? cvy_shape_print(&rows[i].local, shape) : "-");
        print_figures(&rows[i]);
    }
    if (rows[model->layers].communication_s > 0.0) {
        printf("%-*s %-14s %-17s", NAME_WIDTH, "(of no one layer)", "", "");
        print_figures(&rows[model->layers]);
    }
    print_reasons(d);
    cvy_free(rows);
    return CVY_OK;
}

static json_t *describe_layer(const cvy_distribution *d, int index, const cvy_layer_cost *row)
{
    char cut[CVY_CUT_TEXT];
    const cvy_layer_distribution *layer = &d->layer[index];
    json_t *local = json_array(), *reasons = json_object();
    for (int i = 0; i < row->local.dims; i++) {
        json_array_append_new(local, json_integer((json_int_t)row->local.extent[i]));
    }
    for (int axis = 0; axis < CVY_AXES; axis++) {
        if (layer->why_whole[axis]) {
            json_object_set_new(reasons, cvy_axis_name((cvy_axis)axis), json_string(layer->why_whole[axis]));
        }
    }
    return json_pack("{s:s, s:s, s:i, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "name", d->model->layer[index].name,
                     "kind", d->model->layer[index].kind->name, "stage", layer->stage, "cut",
                     cvy_layer_print_cut(layer, cut), "local_output", local, "forward_s",
                     cli_json_number(row->forward_s), "backward_s",
                     cli_json_number(row->backward_s), "update_s", cli_json_number(row->update_s), "communication_s",
                     cli_json_number(row->communication_s), "sent_bytes", cli_json_number(row->sent_bytes), "not_cut",
                     reasons);
}

cvy_status cli_describe_layers(const cvy_trace *trace, json_t **list_out)
{
    cvy_layer_cost *rows;
    const cvy_distribution *d = trace->distribution;
    CVY_TRY(cvy_trace_sum_layers(trace, &rows));
    json_t *list = json_array();
    for (int i = 0; i < d->model->layers; i++) {
        json_array_append_new(list, describe_layer(d, i, &rows[i]));
    }
    cvy_free(rows);
    CVY_REQUIRE(list, CVY_ERR_MEMORY, "no memory for the JSON of the layers");
    *list_out = list;
    return CVY_OK;
}
