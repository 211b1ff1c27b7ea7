/* Marks beside the line on which predicted and measured are equal: what lies above it was predicted too slow. */
#include "report/comparison_page.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"

enum { MOST_FAMILIES = 24 };

/* Rows by family; those beyond the room share the last. */
typedef struct families {
    const char *name[MOST_FAMILIES];
    double sum[MOST_FAMILIES];
    int rows[MOST_FAMILIES];
    int count;
} families;

static int find_family(families *f, const char *name)
{
    int i = 0;
    while (i < f->count && strcmp(f->name[i], name) != 0) {
        i++;
    }
    if (i == f->count && f->count < MOST_FAMILIES) {
        f->name[f->count++] = name;
    }
    return i < MOST_FAMILIES ? i : MOST_FAMILIES - 1;
}

static void sum_families(const cvy_compared_row *row, int rows, families *f)
{
    *f = (families){.count = 0};
    for (int i = 0; i < rows; i++) {
        int family = find_family(f, row[i].family);
        f->sum[family] += row[i].accuracy;
        f->rows[family]++;
    }
}

/* ---- predicted against measured ---- */

/* Marks of all families lie in one room, one family behind the other. */
static int fill_marks(const cvy_compared_row *row, int rows, families *f, double *x, double *y,
                      cvy_chart_series of[MOST_FAMILIES + 1])
{
    int series = 0, at = 0;
    for (int k = 0; k < f->count; k++) {
        int first = at;
        for (int i = 0; i < rows; i++) {
            if (find_family(f, row[i].family) == k && row[i].predicted_s > 0.0) {
                x[at] = row[i].measured_s;
                y[at++] = row[i].predicted_s;
            }
        }
        if (at > first) {
            of[series++] = (cvy_chart_series){.name = f->name[k], .x = x + first, .y = y + first,
                                              .points = at - first, .scattered = true};
        }
    }
    return series;
}

static cvy_status draw_marks(cvy_page *page, const cvy_compared_row *row, int rows, families *f)
{
    cvy_chart_series of[MOST_FAMILIES + 1];
    double line[2] = {INFINITY, 0.0};
    double *x = cvy_calloc(2 * ((size_t)rows + 1), sizeof *x);
    if (!x) {
        return CVY_ERR_MEMORY;
    }
    int series = fill_marks(row, rows, f, x, x + rows, of);
    for (int i = 0; i < rows; i++) {
        line[0] = fmin(line[0], row[i].measured_s);
        line[1] = fmax(line[1], row[i].measured_s);
    }
    of[series] = (cvy_chart_series){.name = "predicted as measured", .x = line, .y = line, .points = 2, .ideal = true};
    const cvy_chart chart = {.kind = CVY_CHART_LINES, .title = "Predicted against measured",
                             .x_title = "measured, s an iteration", .y_title = "predicted, s an iteration",
                             .series = series + 1, .of = of, .log_x = true, .log_y = true, .decades = true};
    cvy_status status = series ? cvy_page_draw(page, &chart, "Above the line the prediction is too slow, below it too "
                                                             "fast.") : CVY_OK;
    cvy_free(x);
    return status;
}

/* ---- accuracy ---- */

static cvy_status draw_accuracy(cvy_page *page, const families *f)
{
    static const cvy_chart_series of[] = {{.name = "accuracy", .colour = 1}};
    cvy_chart_span span[MOST_FAMILIES];
    for (int k = 0; k < f->count; k++) {
        span[k] = (cvy_chart_span){k, 0, 0.0, 100.0 * f->sum[k] / f->rows[k], CVY_SPAN_WHOLE};
    }
    const cvy_chart chart = {.kind = CVY_CHART_SPANS, .title = "Accuracy by family", .x_title = "%", .series = 1,
                             .of = of, .rows = f->count, .row = f->name, .spans = f->count, .span = span,
                             .limit = 100.0, .limit_name = ""};
    return f->count ? cvy_page_draw(page, &chart, "1 - |predicted - measured| / measured, the mean over rows; a row "
                                                  "without a schedule counts 0.") : CVY_OK;
}

static void add_families(cvy_page *page, const families *f)
{
    static const cvy_page_column column[] = {{.name = "family"}, {.name = "rows", .number = true},
                                             {.name = "accuracy", .number = true}};
    cvy_page_begin_table(page, column, 3, "Figures of the accuracy");
    for (int k = 0; k < f->count; k++) {
        cvy_page_cell(page, "%s", f->name[k]);
        cvy_page_cell(page, "%d", f->rows[k]);
        cvy_page_cell(page, "%.1f %%", 100.0 * f->sum[k] / f->rows[k]);
    }
    cvy_page_end_table(page);
}

/* ---- rows ---- */

static void add_row(cvy_page *page, const cvy_compared_row *r)
{
    char text[CVY_UNIT_TEXT];
    const bool known = r->predicted_s > 0.0;
    cvy_page_cell(page, "%s", r->model);
    cvy_page_cell(page, "%s", r->machine);
    cvy_page_cell(page, "%s", r->strategy);
    cvy_page_cell(page, "%" PRId64, r->ranks);
    cvy_page_cell(page, "%" PRId64, r->batch);
    cvy_page_cell(page, "%s", r->precision);
    cvy_page_cell(page, "%s", cvy_print_seconds(r->measured_s, text));
    cvy_page_cell(page, "%s", known ? cvy_print_seconds(r->predicted_s, text) : "-");
    if (known) {
        cvy_page_cell(page, "%+.1f %%", 100.0 * (r->predicted_s / r->measured_s - 1.0));
    } else {
        cvy_page_cell(page, "-");
    }
    cvy_page_cell(page, "%.1f %%", 100.0 * r->accuracy);
    cvy_page_cell(page, "%s", r->why_not[0] ? r->why_not : r->over_memory ? "more memory than the device has" : "");
}

static void add_rows(cvy_page *page, const cvy_compared_row *row, int rows)
{
    static const cvy_page_column column[] = {{.name = "model"}, {.name = "machine"}, {.name = "strategy"},
                                             {.name = "ranks", .number = true}, {.name = "batch", .number = true},
                                             {.name = "precision"}, {.name = "measured", .number = true},
                                             {.name = "predicted", .number = true}, {.name = "error", .number = true},
                                             {.name = "accuracy", .number = true}, {.name = "note", .words = true}};
    cvy_page_begin_table(page, column, 11, "All rows");
    for (int i = 0; i < rows; i++) {
        add_row(page, &row[i]);
    }
    cvy_page_end_table(page);
}

cvy_status cvy_report_comparison(cvy_page *page, const cvy_compared_row *row, int rows)
{
    families f;
    sum_families(row, rows, &f);
    cvy_page_section(page, "compare", "Predicted against measured");
    CVY_TRY(draw_marks(page, row, rows, &f));
    add_rows(page, row, rows);
    cvy_page_section(page, "accuracy", "Accuracy");
    CVY_TRY(draw_accuracy(page, &f));
    add_families(page, &f);
    return CVY_OK;
}
