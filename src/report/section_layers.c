/*
 * Layers: a table, and the roofline (Williams, Waterman, Patterson, "Roofline: an insightful visual performance model",
 * 2009) of the device with a mark for each layer. A layer's arithmetic is that of its kernels in forward and backward,
 * over the seconds that the plan gives them.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "oracle/trace_layers.h"
#include "report/parts.h"
#include "report/sections.h"

enum { KINDS = 6, ROOF_POINTS = 33 };

/* ---- the roofline ---- */

/* Kinds of layers that have marks of their own; the last is all others. */
static int find_kind(const char *name)
{
    static const char *const words[KINDS - 1] = {"conv", "dense", "norm", "pool", "relu"};
    for (int i = 0; i < KINDS - 1; i++) {
        if (strstr(name, words[i])) {
            return i;
        }
    }
    return KINDS - 1;
}

static const char *const kind_names[KINDS] = {"convolutions", "dense layers", "norms", "poolings", "relus", "others"};

/* Marks of one kind: operations by byte, operations a second. */
typedef struct marks {
    double *x, *y;
    int count;
} marks;

/* Bytes of an element by those of the tensors that the plan is of. */
static double get_byte_factor(cvy_precision precision)
{
    return precision == CVY_PRECISION_FP16 || precision == CVY_PRECISION_BF16 ? 0.5 : 1.0;
}

/* The roof over what the marks reach, and half an order of magnitude around. */
static void make_roof(const cvy_machine *machine, cvy_precision precision, const marks *kind, double *x, double *y)
{
    const double peak = machine->device.peak_flop_per_s[precision], Bps = machine->device.memory_Bps;
    double low = peak / Bps / 10.0, high = peak / Bps * 10.0;
    for (int k = 0; k < KINDS; k++) {
        for (int i = 0; i < kind[k].count; i++) {
            low = fmin(low, kind[k].x[i] / 2.0);
            high = fmax(high, kind[k].x[i] * 2.0);
        }
    }
    for (int i = 0; i < ROOF_POINTS; i++) {
        x[i] = low * pow(high / low, (double)i / (ROOF_POINTS - 1));
        y[i] = 1e-9 * fmin(peak, x[i] * Bps);
    }
}

static cvy_status draw_roofline(cvy_page *page, const cvy_machine *machine, cvy_precision precision,
                                const marks *kind)
{
    double x[ROOF_POINTS], y[ROOF_POINTS];
    cvy_chart_series of[KINDS + 1];
    int series = 0;
    make_roof(machine, precision, kind, x, y);
    for (int k = 0; k < KINDS; k++) {
        if (kind[k].count > 0) {
            of[series++] = (cvy_chart_series){.name = kind_names[k], .x = kind[k].x, .y = kind[k].y,
                                              .points = kind[k].count, .scattered = true};
        }
    }
    if (series == 0) {
        return CVY_OK;
    }
    of[series++] = (cvy_chart_series){.name = "the device's roof", .x = x, .y = y, .points = ROOF_POINTS,
                                      .ideal = true};
    const cvy_chart chart = {.kind = CVY_CHART_LINES, .title = "Roofline", .x_title = "operations a byte of memory",
                             .y_title = "GFLOP/s", .series = series, .of = of, .log_x = true, .log_y = true,
                             .decades = true};
    return cvy_page_draw(page, &chart, "A mark is a layer: its kernels, forward and backward, in the seconds that the "
                                       "plan expects. On the slope memory limits, under the flat arithmetic; above "
                                       "it are algorithms that save products, such as Winograd's.");
}

static cvy_status report_roofline(cvy_page *page, const cvy_trace *trace, const cvy_layer_cost *cost,
                                  const cvy_machine *machine, cvy_precision precision)
{
    const cvy_model *model = trace->distribution->model;
    marks kind[KINDS] = {{.count = 0}};
    const size_t layers = (size_t)model->layers;
    const double factor = get_byte_factor(precision);
    double *room = cvy_calloc(layers * 2 * KINDS, sizeof *room);
    if (!room) {
        return CVY_ERR_MEMORY;
    }
    for (int k = 0; k < KINDS; k++) {
        kind[k] = (marks){.x = room + layers * 2 * (size_t)k, .y = room + layers * (2 * (size_t)k + 1)};
    }
    for (int i = 0; i < model->layers; i++) {
        marks *m = &kind[find_kind(model->layer[i].kind->name)];
        if (cost[i].flop > 0.0 && cost[i].bytes > 0.0 && cost[i].kernel_s > 0.0) {
            m->x[m->count] = cost[i].flop / (cost[i].bytes * factor);
            m->y[m->count++] = 1e-9 * cost[i].flop / cost[i].kernel_s;
        }
    }
    cvy_status status = machine->device.memory_Bps > 0.0 ? draw_roofline(page, machine, precision, kind) : CVY_OK;
    cvy_free(room);
    return status;
}

/* ---- the table ---- */

static void add_figure(cvy_page *page, double value, const char *(*print)(double, char *))
{
    char text[CVY_UNIT_TEXT];
    cvy_page_cell(page, "%s", value > 0.0 ? print(value, text) : "-");
}

/* A share of the iteration as a number; of each layer on its own stage. */
static void add_layer(cvy_page *page, const cvy_trace *trace, const cvy_layer_cost *cost, int layer)
{
    char cut[CVY_CUT_TEXT], shape[CVY_SHAPE_TEXT], text[CVY_UNIT_TEXT];
    const cvy_distribution *d = trace->distribution;
    const cvy_layer_cost *c = &cost[layer];
    cvy_page_cell(page, "%s", d->model->layer[layer].name);
    cvy_page_cell(page, "%s", d->model->layer[layer].kind->name);
    if (trace->ranks > 1) {
        cvy_page_cell(page, "%d", d->layer[layer].stage);
    }
    cvy_page_cell(page, "%s", cvy_layer_print_cut(&d->layer[layer], cut));
    cvy_page_cell(page, "%s", c->local.dims ? cvy_shape_print(&c->local, shape) : "-");
    add_figure(page, c->forward_s, cvy_print_seconds);
    add_figure(page, c->backward_s, cvy_print_seconds);
    add_figure(page, c->update_s, cvy_print_seconds);
    add_figure(page, c->communication_s, cvy_print_seconds);
    add_figure(page, c->sent_bytes, cvy_print_bytes);
    cvy_page_cell(page, "%s", c->flop > 0.0 ? cvy_print_si(c->flop, "FLOP", text) : "-");
    cvy_page_cell(page, "%s",
                  c->flop > 0.0 && c->kernel_s > 0.0 ? cvy_print_si(c->flop / c->kernel_s, "FLOP/s", text) : "-");
}

static void add_table(cvy_page *page, const cvy_trace *trace, const cvy_layer_cost *cost)
{
    static const cvy_page_column all[] = {{.name = "layer"}, {.name = "kind"}, {.name = "stage", .number = true},
                                          {.name = "cut"}, {.name = "local output"},
                                          {.name = "forward", .number = true}, {.name = "backward", .number = true},
                                          {.name = "update", .number = true},
                                          {.name = "communication", .number = true}, {.name = "sends", .number = true},
                                          {.name = "operations", .number = true}, {.name = "rate", .number = true}};
    enum { ALL = sizeof all / sizeof *all };
    cvy_page_column column[ALL];
    int columns = 0;
    for (int i = 0; i < ALL; i++) {
        if (trace->ranks > 1 || strcmp(all[i].name, "stage") != 0) {
            column[columns++] = all[i];
        }
    }
    cvy_page_begin_table(page, column, columns, "All layers");
    for (int i = 0; i < trace->distribution->model->layers; i++) {
        add_layer(page, trace, cost, i);
    }
    cvy_page_end_table(page);
}

/* ---- what takes most ---- */

enum { LONGEST = 16, LAYER_PARTS = 4 };

static double sum_layer(const cvy_layer_cost *c)
{
    return c->forward_s + c->backward_s + c->update_s + c->communication_s;
}

/* Layers that take most, the longest first; returns how many. */
static int find_longest(const cvy_layer_cost *cost, int layers, int index[LONGEST + 1])
{
    int count = 0;
    for (int i = 0; i < layers; i++) {
        int at = count;
        while (at > 0 && sum_layer(&cost[index[at - 1]]) < sum_layer(&cost[i])) {
            index[at] = index[at - 1];
            at--;
        }
        index[at] = i;
        count += count < LONGEST && sum_layer(&cost[i]) > 0.0;
    }
    return count;
}

static int stack_layer(const cvy_layer_cost *c, int row, double factor, cvy_chart_span *span)
{
    const double part_s[LAYER_PARTS] = {c->forward_s, c->backward_s, c->update_s, c->communication_s};
    double end = 0.0;
    int spans = 0;
    for (int k = 0; k < LAYER_PARTS; k++) {
        if (part_s[k] > 0.0) {
            span[spans++] = (cvy_chart_span){row, k, end, end + factor * part_s[k], CVY_SPAN_WHOLE};
            end += factor * part_s[k];
        }
    }
    return spans;
}

static cvy_status draw_longest(cvy_page *page, const cvy_model *model, const cvy_layer_cost *cost)
{
    static const cvy_chart_series of[LAYER_PARTS] = {
        {.name = "forward", .colour = 1},
        {.name = "backward", .colour = 2},
        {.name = "update", .colour = 3},
        {.name = "communication", .colour = 4, .fill = CVY_FILL_HATCHED},
    };
    int index[LONGEST + 1], spans = 0;
    const char *name[LONGEST];
    char x_title[32];
    cvy_chart_span span[LAYER_PARTS * LONGEST];
    const int rows = find_longest(cost, model->layers, index);
    if (rows == 0) {
        return CVY_OK;
    }
    const cvy_scale scale = cvy_scale_seconds(sum_layer(&cost[index[0]]));
    for (int row = 0; row < rows; row++) {
        name[row] = model->layer[index[row]].name;
        spans += stack_layer(&cost[index[row]], row, scale.factor, &span[spans]);
    }
    snprintf(x_title, sizeof x_title, "%s an iteration", scale.unit);
    const cvy_chart chart = {.kind = CVY_CHART_SPANS, .title = "Layers that take most", .x_title = x_title,
                             .series = LAYER_PARTS, .of = of, .rows = rows, .row = name, .spans = spans, .span = span};
    return cvy_page_draw(page, &chart, "Communication may run beside computing.");
}

cvy_status cvy_report_layers(cvy_page *page, const cvy_trace *trace, const cvy_machine *machine,
                             cvy_precision precision)
{
    cvy_layer_cost *cost;
    CVY_TRY(cvy_trace_sum_layers(trace, &cost));
    cvy_page_section(page, "layers", "Layers");
    cvy_status status = draw_longest(page, trace->distribution->model, cost);
    CVY_TRY_GOTO(status, done, status);
    add_table(page, trace, cost);
    status = report_roofline(page, trace, cost, machine, precision);
done:
    cvy_free(cost);
    return status;
}
