/* From points to series. Numbers of ranks stand along x: as numbers where laws are powers, else as words. */
#include "report/sweep_charts_internal.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"

enum { PARTS = 5, LINES = 12, NAME_TEXT = 64, TITLE_TEXT = 240 };

typedef cvy_sweep_drawing drawing;

static void begin_drawing(const cvy_sweep *sweep, const char *title, drawing *d)
{
    *d = (drawing){.sweep = sweep, .title = title, .ranks = sweep->options.rank_counts};
    for (int i = 0; i < d->ranks; i++) {
        d->x[i] = (double)sweep->options.ranks[i];
        snprintf(d->text[i], sizeof d->text[i], "%" PRId64, sweep->options.ranks[i]);
        d->label[i] = d->text[i];
    }
}

static cvy_status keep_chart(drawing *d, const char *name, const cvy_chart *chart)
{
    char prefix[16];
    const cvy_chart_frame frame = {.width = CVY_CHART_WIDTH, .height = CVY_CHART_HEIGHT, .prefix = prefix};
    cvy_text svg = {0};
    snprintf(prefix, sizeof prefix, "s%d-", d->charts.count); /* charts may be joined into one document */
    cvy_status status = cvy_chart_draw_in(chart, &frame, &svg);
    if (status != CVY_OK) {
        cvy_text_destroy(&svg);
        return status;
    }
    char *document = cvy_text_take(&svg);
    if (!document) {
        return CVY_ERR_MEMORY;
    }
    snprintf(d->charts.chart[d->charts.count].name, sizeof d->charts.chart[0].name, "%s", name);
    d->charts.chart[d->charts.count++].svg = document;
    return CVY_OK;
}

cvy_status cvy_sweep_add_chart(drawing *d, const char *name, const char *what, const cvy_chart *chart)
{
    char title[TITLE_TEXT];
    cvy_chart titled = *chart;
    snprintf(title, sizeof title, d->page ? "%s" : "%s: %.150s", what, d->title);
    title[0] = (char)(d->page ? toupper((unsigned char)title[0]) : title[0]);
    titled.title = title;
    return d->page ? cvy_page_draw(d->page, &titled, NULL) : keep_chart(d, name, &titled);
}

/* A chart over all numbers of ranks. */
static cvy_status add_chart(drawing *d, const char *name, const char *what, const cvy_chart *chart)
{
    cvy_chart over_ranks = *chart;
    over_ranks.x_title = "ranks";
    over_ranks.points = d->ranks;
    return cvy_sweep_add_chart(d, name, what, &over_ranks);
}

static double get_known(const cvy_estimate *e, double value) { return e->feasible ? value : NAN; }

/* ---- the machine as it is ---- */

static cvy_status draw_time(drawing *d)
{
    static const char *const names[PARTS] = {"forward", "backward", "communication", "update", "rest"};
    static const cvy_chart_fill fills[PARTS] = {[2] = CVY_FILL_HATCHED, [PARTS - 1] = CVY_FILL_HOLLOW};
    double y[PARTS][CVY_SWEEP_MOST_RANKS];
    cvy_chart_series of[PARTS];
    const cvy_sweep_point *point = cvy_sweep_get_points(d->sweep, 0);
    for (int i = 0; i < d->ranks; i++) {
        const cvy_estimate *e = &point[i].asked;
        double part_s[PARTS] = {e->part_s[CVY_PHASE_FORWARD],
                                e->part_s[CVY_PHASE_BACKWARD] + e->part_s[CVY_PHASE_RECOMPUTE],
                                e->exposed_communication_s, e->part_s[CVY_PHASE_UPDATE], e->iteration_s};
        for (int k = 0; k < PARTS; k++) {
            part_s[PARTS - 1] -= k < PARTS - 1 ? part_s[k] : 0.0;
            y[k][i] = get_known(e, 1e3 * fmax(part_s[k], 0.0));
        }
    }
    for (int k = 0; k < PARTS; k++) {
        of[k] = (cvy_chart_series){.name = names[k], .y = y[k], .fill = fills[k]};
    }
    const cvy_chart chart = {.kind = CVY_CHART_STACKED, .y_title = "ms an iteration", .label = d->label,
                             .series = PARTS, .of = of};
    return add_chart(d, "time", "time of an iteration", &chart);
}

static cvy_status draw_throughput(drawing *d)
{
    double predicted[CVY_SWEEP_MOST_RANKS], ideal[CVY_SWEEP_MOST_RANKS], best[CVY_SWEEP_MOST_RANKS];
    const cvy_sweep_options *o = &d->sweep->options;
    const cvy_sweep_point *point = cvy_sweep_get_points(d->sweep, 0);
    for (int i = 0; i < d->ranks; i++) {
        predicted[i] = get_known(&point[i].asked, point[i].asked.images_per_s);
        ideal[i] = get_known(&point[i].asked, point[i].ideal_images_per_s);
        best[i] = get_known(&point[i].best, point[i].best.images_per_s);
    }
    const cvy_chart_series of[] = {{.name = o->strategy[0], .y = predicted},
                                   {.name = "ideal", .y = ideal, .ideal = true},
                                   {.name = "best that fits", .y = best}};
    const cvy_chart chart = {.kind = CVY_CHART_LINES, .y_title = "images/s", .x = d->x, .log_x = true, .log_y = true,
                             .series = o->search || o->strategies > 1 ? 3 : 2, .of = of};
    return add_chart(d, "throughput", "images a second", &chart);
}

/* ---- beside other values ---- */

static void name_setting(const cvy_sweep *sweep, int setting, char *text)
{
    const cvy_sweep_setting *at = &sweep->setting[setting];
    snprintf(text, NAME_TEXT, "%s %s", cvy_varied_names[sweep->options.axis[at->axis].parameter],
             cvy_sweep_get_value(sweep, setting)->text);
}

/* The machine as it is, and the first and the last value of each parameter. */
static int pick_settings(const cvy_sweep *sweep, int setting[LINES])
{
    int count = 1, first = 1;
    setting[0] = 0;
    for (int i = 0; i < sweep->options.axes && !sweep->options.cross && count + 2 <= LINES; i++) {
        int values = sweep->options.axis[i].values;
        setting[count++] = first;
        if (values > 1) {
            setting[count++] = first + values - 1;
        }
        first += values;
    }
    return count;
}

static cvy_status draw_efficiency(drawing *d)
{
    double y[LINES][CVY_SWEEP_MOST_RANKS];
    char name[LINES][NAME_TEXT] = {"as it is"};
    int setting[LINES], count = pick_settings(d->sweep, setting);
    cvy_chart_series of[LINES];
    for (int k = 0; k < count; k++) {
        const cvy_sweep_point *point = cvy_sweep_get_points(d->sweep, setting[k]);
        for (int i = 0; i < d->ranks; i++) {
            y[k][i] = get_known(&point[i].asked, point[i].efficiency);
        }
        if (k > 0) {
            name_setting(d->sweep, setting[k], name[k]);
        }
        of[k] = (cvy_chart_series){.name = name[k], .y = y[k]};
    }
    const cvy_chart chart = {.kind = CVY_CHART_LINES, .y_title = "efficiency", .x = d->x, .log_x = true,
                             .series = count, .of = of};
    return add_chart(d, "efficiency", "efficiency", &chart);
}

static cvy_status draw_elasticities(drawing *d)
{
    double y[CVY_VARIED_MEMORY][CVY_SWEEP_MOST_RANKS];
    cvy_chart_series of[CVY_VARIED_MEMORY];
    for (int k = 0; k < CVY_VARIED_MEMORY; k++) {
        for (int i = 0; i < d->ranks; i++) {
            y[k][i] = d->sweep->elasticity[i][k];
        }
        of[k] = (cvy_chart_series){.name = cvy_varied_names[k], .y = y[k]};
    }
    const cvy_chart chart = {.kind = CVY_CHART_BARS, .y_title = "% more images/s by 1 % more", .label = d->label,
                             .series = CVY_VARIED_MEMORY, .of = of};
    return add_chart(d, "elasticity", "elasticity", &chart);
}

static cvy_status draw_figure(drawing *d, cvy_sweep_figure figure)
{
    const cvy_sweep_options *o = &d->sweep->options;
    switch (figure) {
    case CVY_SWEEP_TIME: return draw_time(d);
    case CVY_SWEEP_THROUGHPUT: return draw_throughput(d);
    case CVY_SWEEP_EFFICIENCY: return draw_efficiency(d);
    case CVY_SWEEP_ELASTICITY: return draw_elasticities(d);
    case CVY_SWEEP_BEST: break;
    }
    return o->search || o->strategies > 1 ? cvy_sweep_draw_regions(d) : CVY_OK;
}

static cvy_status draw_all(drawing *d)
{
    cvy_status status = CVY_OK;
    for (int figure = CVY_SWEEP_TIME; figure <= CVY_SWEEP_BEST && status == CVY_OK; figure++) {
        status = draw_figure(d, (cvy_sweep_figure)figure);
    }
    return status;
}

cvy_status cvy_sweep_charts_add(const cvy_sweep *sweep, cvy_sweep_figure figure, cvy_page *page)
{
    drawing d;
    begin_drawing(sweep, "", &d);
    d.page = page;
    return draw_figure(&d, figure);
}

cvy_status cvy_sweep_charts_draw(const cvy_sweep *sweep, const char *title, cvy_sweep_charts *charts_out)
{
    drawing d;
    CVY_REQUIRE(cvy_chart_is_possible(), CVY_ERR_UNSUPPORTED, "no charts: gnuplot is not installed");
    begin_drawing(sweep, title, &d);
    cvy_status status = draw_all(&d);
    if (status != CVY_OK) {
        cvy_sweep_charts_clear(&d.charts);
        return status;
    }
    *charts_out = d.charts;
    return CVY_OK;
}

void cvy_sweep_charts_clear(cvy_sweep_charts *charts)
{
    for (int i = 0; i < charts->count; i++) {
        cvy_free(charts->chart[i].svg);
    }
    *charts = (cvy_sweep_charts){.count = 0};
}
