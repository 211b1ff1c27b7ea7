/* Plans, best first: bars of what an iteration is made of, and of what a rank's memory holds. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/memory.h"
#include "report/parts.h"
#include "report/sections.h"

enum { MOST_ROWS = 24, ROW_TEXT = 160 };

/* The candidates that are shown, and their names. */
typedef struct shown {
    const cvy_ranked_plans *plans;
    int rows, index[MOST_ROWS];
    char text[MOST_ROWS][ROW_TEXT];
    const char *name[MOST_ROWS];
} shown;

static const cvy_estimate *get_estimate(const shown *s, int row)
{
    return &s->plans->search->candidate[s->index[row]].estimate;
}

static void choose(const cvy_ranked_plans *plans, shown *s)
{
    const cvy_search *search = plans->search;
    s->plans = plans;
    s->rows = 0;
    for (int i = 0; i < search->count && s->rows < MOST_ROWS; i++) {
        bool always = i == search->pick || i == search->data;
        if (search->candidate[i].estimate.feasible && (s->rows < plans->most || always)) {
            snprintf(s->text[s->rows], ROW_TEXT, "%s%.120s", i == search->pick ? "pick: " : "", plans->name[i]);
            s->name[s->rows] = s->text[s->rows];
            s->index[s->rows++] = i;
        }
    }
}

/* ---- stacked bars ---- */

/* Parts of a row, of which there are @p parts. */
typedef struct stack {
    const char *title, *x_title, *caption;
    int parts;
    cvy_chart_series (*series)(int part);
    double (*get)(const cvy_estimate *e, int part);
    double factor; /* to the unit of the axis */
    double limit;
    const char *limit_name;
} stack;

/* Parts that no row has are left out. */
static cvy_status draw_stack(cvy_page *page, const shown *s, const stack *what)
{
    enum { MOST_PARTS = 16 };
    cvy_chart_series of[MOST_PARTS];
    cvy_chart_span span[MOST_ROWS * MOST_PARTS];
    double end[MOST_ROWS] = {0.0};
    int series = 0, spans = 0;
    for (int part = 0; part < what->parts; part++) {
        int first = spans;
        for (int row = 0; row < s->rows; row++) {
            double length = what->factor * what->get(get_estimate(s, row), part);
            if (length > 0.0) {
                span[spans++] = (cvy_chart_span){row, series, end[row], end[row] + length, CVY_SPAN_WHOLE};
                end[row] += length;
            }
        }
        if (spans > first) {
            of[series++] = what->series(part);
        }
    }
    const cvy_chart chart = {.kind = CVY_CHART_SPANS, .title = what->title, .x_title = what->x_title, .series = series,
                             .of = of, .rows = s->rows, .row = s->name, .spans = spans, .span = span,
                             .limit = what->limit, .limit_name = what->limit_name};
    return spans ? cvy_page_draw(page, &chart, what->caption) : CVY_OK;
}

/* ---- time ---- */

static double get_seconds(const cvy_estimate *e, int part) { return e->part_s[part]; }

static cvy_status draw_times(cvy_page *page, const shown *s)
{
    char x_title[64];
    double most_s = 0.0;
    for (int row = 0; row < s->rows; row++) {
        most_s = fmax(most_s, get_estimate(s, row)->iteration_s);
    }
    cvy_scale scale = cvy_scale_seconds(most_s);
    snprintf(x_title, sizeof x_title, "%s an iteration", scale.unit);
    const stack what = {.title = "Time of an iteration", .x_title = x_title, .parts = CVY_TIME_PARTS,
                        .series = cvy_part_series, .get = get_seconds, .factor = scale.factor,
                        .caption = "Computing is solid, communication that nothing hides is hatched, waiting is "
                                   "hollow; of the slowest rank."};
    return draw_stack(page, s, &what);
}

static void add_time_row(cvy_page *page, const shown *s, int row)
{
    char text[4][CVY_UNIT_TEXT];
    const cvy_estimate *e = get_estimate(s, row);
    cvy_page_cell(page, "%s", s->name[row]);
    cvy_page_cell(page, "%s \xc2\xb1 %.0f %%", cvy_print_seconds(e->iteration_s, text[0]), 100.0 * e->error_relative);
    cvy_page_cell(page, "%s", cvy_print_rate(e->images_per_s, text[0]));
    cvy_page_cell(page, "%s%s", cvy_print_bytes((double)e->total_bytes, text[1]),
                  e->over_memory ? ", more than there is" : "");
    cvy_page_cell(page, "%s", cvy_print_seconds(e->exposed_communication_s, text[2]));
    for (int part = 0; part < CVY_TIME_PARTS; part++) {
        if (e->part_s[part] > 0.0) {
            cvy_page_cell(page, "%s", cvy_print_seconds(e->part_s[part], text[3]));
        } else {
            cvy_page_cell(page, "-");
        }
    }
}

static void add_time_table(cvy_page *page, const shown *s)
{
    enum { FIRST = 5 };
    cvy_page_column column[FIRST + CVY_TIME_PARTS] = {
        {.name = "strategy"},
        {.name = "iteration", .number = true},
        {.name = "images/s", .number = true},
        {.name = "memory", .number = true},
        {.name = "communication", .number = true},
    };
    for (int part = 0; part < CVY_TIME_PARTS; part++) {
        column[FIRST + part] = (cvy_page_column){.name = cvy_part_series(part).name, .number = true};
    }
    cvy_page_begin_table(page, column, FIRST + CVY_TIME_PARTS, "Figures of these plans");
    for (int row = 0; row < s->rows; row++) {
        add_time_row(page, s, row);
    }
    cvy_page_end_table(page);
}

static void add_impossible(cvy_page *page, const cvy_ranked_plans *plans)
{
    static const cvy_page_column column[] = {{.name = "not possible"}, {.name = "because", .words = true}};
    const cvy_search *search = plans->search;
    int infeasible = 0;
    for (int i = 0; i < search->count; i++) {
        infeasible += !search->candidate[i].estimate.feasible;
    }
    if (!infeasible) {
        return;
    }
    cvy_page_begin_table(page, column, 2, "Strategies that are not possible");
    for (int i = 0; i < search->count; i++) {
        if (!search->candidate[i].estimate.feasible) {
            cvy_page_cell(page, "%s", plans->name[i]);
            cvy_page_cell(page, "%s", search->candidate[i].estimate.why_not);
        }
    }
    cvy_page_end_table(page);
}

cvy_status cvy_report_plans(cvy_page *page, const cvy_ranked_plans *plans)
{
    shown s;
    choose(plans, &s);
    cvy_page_section(page, "plans", "Plans");
    CVY_TRY(draw_times(page, &s));
    add_time_table(page, &s);
    add_impossible(page, plans);
    return CVY_OK;
}

/* ---- memory ---- */

static double get_bytes(const cvy_estimate *e, int part) { return (double)e->memory_bytes[part]; }

static cvy_status draw_memory(cvy_page *page, const shown *s, double most, double capacity)
{
    enum { MOST_OF_LIMIT = 4 }; /* beyond, bars would be too short to be read */
    char x_title[64], limit[80], caption[160], text[CVY_UNIT_TEXT];
    bool near = capacity > 0.0 && capacity <= MOST_OF_LIMIT * most;
    cvy_scale scale = cvy_scale_bytes(most);
    snprintf(x_title, sizeof x_title, "%s a rank", scale.unit);
    snprintf(limit, sizeof limit, "the device has %s", cvy_print_bytes(capacity, text));
    snprintf(caption, sizeof caption, "Memory of the rank that needs most%s%s%s.",
             capacity > 0.0 && !near ? "; " : "", capacity > 0.0 && !near ? limit : "",
             near ? "; the dashed line is what the device has" : "");
    const stack what = {.title = "Memory of a rank", .x_title = x_title, .parts = CVY_MEMORY_PARTS,
                        .series = cvy_memory_series, .get = get_bytes, .factor = scale.factor,
                        .limit = near ? capacity * scale.factor : 0.0, .limit_name = limit, .caption = caption};
    return draw_stack(page, s, &what);
}

static void add_memory_table(cvy_page *page, const shown *s)
{
    enum { FIRST = 2 };
    char text[CVY_UNIT_TEXT];
    cvy_page_column column[FIRST + CVY_MEMORY_PARTS] = {{.name = "strategy"}, {.name = "memory", .number = true}};
    for (int part = 0; part < CVY_MEMORY_PARTS; part++) {
        column[FIRST + part] = (cvy_page_column){.name = cvy_memory_part_name(part), .number = true};
    }
    cvy_page_begin_table(page, column, FIRST + CVY_MEMORY_PARTS, "Figures of the memory");
    for (int row = 0; row < s->rows; row++) {
        const cvy_estimate *e = get_estimate(s, row);
        cvy_page_cell(page, "%s", s->name[row]);
        cvy_page_cell(page, "%s", cvy_print_bytes((double)e->total_bytes, text));
        for (int part = 0; part < CVY_MEMORY_PARTS; part++) {
            cvy_page_cell(page, "%s", e->memory_bytes[part] ? cvy_print_bytes((double)e->memory_bytes[part], text)
                                                             : "-");
        }
    }
    cvy_page_end_table(page);
}

cvy_status cvy_report_memory(cvy_page *page, const cvy_ranked_plans *plans)
{
    shown s;
    double most = 0.0, capacity = 0.0;
    choose(plans, &s);
    for (int row = 0; row < s.rows; row++) {
        most = fmax(most, (double)get_estimate(&s, row)->total_bytes);
        capacity = (double)get_estimate(&s, row)->capacity_bytes;
    }
    cvy_page_section(page, "memory", "Memory");
    CVY_TRY(draw_memory(page, &s, most, capacity));
    add_memory_table(page, &s);
    return CVY_OK;
}

/* ---- limits ---- */

void cvy_report_limits(cvy_page *page, const cvy_limit *limit, int count)
{
    static const cvy_page_column column[] = {{.name = "limit"}, {.name = "share", .number = true},
                                             {.name = "what", .words = true}, {.name = "lifted", .words = true}};
    cvy_page_section(page, "limits", "What limits it");
    if (count == 0) {
        cvy_page_say(page, "None of the rules finds a limit.");
        return;
    }
    cvy_page_begin_table(page, column, 4, NULL);
    for (int i = 0; i < count; i++) {
        cvy_page_cell(page, "%s", limit[i].name);
        cvy_page_cell(page, "%.0f %%", 100.0 * limit[i].share);
        cvy_page_cell(page, "%s", limit[i].what);
        cvy_page_cell(page, "%s", limit[i].lift[0] ? limit[i].lift : "-");
    }
    cvy_page_end_table(page);
}
