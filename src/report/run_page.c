/* Curves of a run, and kinds of steps. A curve with more points than can be seen is thinned to means of neighbours. */
#include "report/run_page.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>

#include "base/memory.h"
#include "report/parts.h"

enum { MOST_POINTS = 300 };

/* ---- curves ---- */

/* One figure of the notes, thinned. */
typedef struct curve {
    double x[MOST_POINTS], y[MOST_POINTS];
    int points;
} curve;

static double get_figure(const cvy_run_note *note, size_t offset)
{
    return *(const double *)((const char *)note + offset);
}

/* Means over stretches of equal length of what is known in each. */
static void make_curve(const cvy_run_note *note, int notes, size_t x, size_t y, curve *c)
{
    const int stretch = (notes + MOST_POINTS - 1) / MOST_POINTS;
    c->points = 0;
    for (int first = 0; first < notes; first += stretch) {
        double sum_x = 0.0, sum_y = 0.0;
        int known = 0;
        for (int i = first; i < first + stretch && i < notes; i++) {
            double figure = get_figure(&note[i], y);
            if (isfinite(figure)) {
                sum_x += get_figure(&note[i], x);
                sum_y += figure;
                known++;
            }
        }
        if (known) {
            c->x[c->points] = sum_x / known;
            c->y[c->points++] = sum_y / known;
        }
    }
}

/* What a chart of the course shows. */
typedef struct plot {
    const char *title, *x_title, *y_title, *caption;
    size_t x;
    struct {
        const char *name;
        size_t figure;
        bool by_epoch;
    } of[2];
    int curves;
} plot;

static cvy_status draw_plot(cvy_page *page, const cvy_run_course *course, const plot *p)
{
    cvy_chart_series of[2];
    int series = 0;
    curve *curves = cvy_calloc((size_t)p->curves, sizeof *curves);
    if (!curves) {
        return CVY_ERR_MEMORY;
    }
    for (int k = 0; k < p->curves; k++) {
        bool by_epoch = p->of[k].by_epoch;
        make_curve(by_epoch ? course->epoch : course->step, by_epoch ? course->epochs : course->steps, p->x,
                   p->of[k].figure, &curves[k]);
        if (curves[k].points > 0) {
            of[series++] = (cvy_chart_series){.name = p->of[k].name, .x = curves[k].x, .y = curves[k].y,
                                              .points = curves[k].points, .colour = 1 + k};
        }
    }
    const cvy_chart chart = {.kind = CVY_CHART_LINES, .title = p->title, .x_title = p->x_title, .y_title = p->y_title,
                             .series = series, .of = of};
    cvy_status status = series ? cvy_page_draw(page, &chart, p->caption) : CVY_OK;
    cvy_free(curves);
    return status;
}

#define FIGURE(name) offsetof(cvy_run_note, name)

static const plot plots[] = {
    {.title = "Loss", .x_title = "iteration", .y_title = "loss", .x = FIGURE(step), .curves = 2,
     .of = {{"training", FIGURE(loss), false}, {"validation", FIGURE(validation_loss), true}}},
    {.title = "Accuracy", .x_title = "iteration", .y_title = "share that is right", .x = FIGURE(step), .curves = 2,
     .of = {{"training", FIGURE(train_accuracy), false}, {"validation", FIGURE(validation_accuracy), true}}},
    {.title = "Learning rate", .x_title = "iteration", .y_title = "learning rate", .x = FIGURE(step), .curves = 1,
     .of = {{"learning rate", FIGURE(learning_rate), false}}},
    {.title = "Speed", .x_title = "iteration", .y_title = "images/s", .x = FIGURE(step), .curves = 1,
     .of = {{"images/s", FIGURE(images_per_s), false}}},
};

static void add_figure(cvy_page *page, double value)
{
    char text[32];
    snprintf(text, sizeof text, "%.4g", value);
    cvy_page_cell(page, "%s", isfinite(value) ? text : "-");
}

static void add_share(cvy_page *page, double share)
{
    char text[32];
    snprintf(text, sizeof text, "%.2f %%", 100.0 * share);
    cvy_page_cell(page, "%s", isfinite(share) ? text : "-");
}

static void add_epochs(cvy_page *page, const cvy_run_course *course)
{
    static const cvy_page_column column[] = {{.name = "epoch", .number = true},
                                             {.name = "iteration", .number = true},
                                             {.name = "loss", .number = true},
                                             {.name = "accuracy", .number = true},
                                             {.name = "validation loss", .number = true},
                                             {.name = "validation accuracy", .number = true},
                                             {.name = "images/s", .number = true}};
    cvy_page_begin_table(page, column, 7, "Figures of the epochs");
    for (int i = 0; i < course->epochs; i++) {
        const cvy_run_note *note = &course->epoch[i];
        cvy_page_cell(page, "%.0f", note->epoch);
        cvy_page_cell(page, "%.0f", note->step);
        add_figure(page, note->loss);
        add_share(page, note->train_accuracy);
        add_figure(page, note->validation_loss);
        add_share(page, note->validation_accuracy);
        add_figure(page, note->images_per_s);
    }
    cvy_page_end_table(page);
}

/* Of many iterations some, the last among them. */
static void add_steps(cvy_page *page, const cvy_run_course *course)
{
    enum { SHOWN = 40 };
    static const cvy_page_column column[] = {{.name = "iteration", .number = true}, {.name = "loss", .number = true},
                                             {.name = "learning rate", .number = true},
                                             {.name = "images/s", .number = true}};
    const int every = (course->steps + SHOWN - 1) / SHOWN;
    cvy_page_begin_table(page, column, 4, every > 1 ? "Figures of some iterations" : "Figures of the iterations");
    for (int i = course->steps - 1 - (course->steps - 1) / every * every; i < course->steps; i += every) {
        const cvy_run_note *note = &course->step[i];
        cvy_page_cell(page, "%.0f", note->step);
        add_figure(page, note->loss);
        add_figure(page, note->learning_rate);
        add_figure(page, note->images_per_s);
    }
    cvy_page_end_table(page);
}

cvy_status cvy_report_course(cvy_page *page, const cvy_run_course *course)
{
    if (course->steps == 0 && course->epochs == 0) {
        return CVY_OK;
    }
    cvy_page_section(page, "training", "Training");
    for (size_t i = 0; i < sizeof plots / sizeof *plots; i++) {
        CVY_TRY(draw_plot(page, course, &plots[i]));
    }
    if (course->epochs) {
        add_epochs(page, course);
    }
    if (course->steps) {
        add_steps(page, course);
    }
    return CVY_OK;
}

/* ---- kinds of steps ---- */

static double divide(double a, double b) { return b > 0.0 ? a / b : 0.0; }

static cvy_status draw_kinds(cvy_page *page, const cvy_compared_kind *kind, int kinds)
{
    enum { SHOWN = 14 };
    static const cvy_chart_series of[] = {{.name = "measured", .colour = 1},
                                          {.name = "predicted", .colour = 2, .fill = CVY_FILL_HATCHED}};
    const int rows = kinds < SHOWN ? kinds : SHOWN;
    const char *name[SHOWN];
    cvy_chart_span span[2 * SHOWN];
    double most_s = 0.0;
    char x_title[48];
    for (int i = 0; i < rows; i++) {
        most_s = fmax(most_s, fmax(kind[i].measured_s, kind[i].predicted_s));
    }
    const cvy_scale scale = cvy_scale_seconds(most_s);
    for (int i = 0; i < rows; i++) {
        name[i] = kind[i].name;
        span[2 * i] = (cvy_chart_span){i, 0, 0.0, scale.factor * kind[i].measured_s, CVY_SPAN_UPPER};
        span[2 * i + 1] = (cvy_chart_span){i, 1, 0.0, scale.factor * kind[i].predicted_s, CVY_SPAN_LOWER};
    }
    snprintf(x_title, sizeof x_title, "%s an iteration", scale.unit);
    const cvy_chart chart = {.kind = CVY_CHART_SPANS, .title = "Kinds of steps", .x_title = x_title, .series = 2,
                             .of = of, .rows = rows, .row = name, .spans = 2 * rows, .span = span};
    return rows ? cvy_page_draw(page, &chart, "Of several ranks a kind is that of the rank where it took longest; what "
                                              "a step waits for is measured, and not predicted.") : CVY_OK;
}

static void add_kind(cvy_page *page, const cvy_compared_kind *k, double iteration_s)
{
    char text[CVY_UNIT_TEXT];
    const bool known = k->predicted_s > 0.0;
    cvy_page_cell(page, "%s", k->name);
    cvy_page_cell(page, "%s", cvy_print_seconds(k->measured_s, text));
    cvy_page_cell(page, "%s", known ? cvy_print_seconds(k->predicted_s, text) : "-");
    if (known && k->measured_s > 0.0) {
        cvy_page_cell(page, "%+.1f %%", 100.0 * (k->predicted_s / k->measured_s - 1.0));
        cvy_page_cell(page, "%+.1f %%", 100.0 * divide(k->predicted_s - k->measured_s, iteration_s));
    } else {
        cvy_page_cell(page, "-");
        cvy_page_cell(page, "-");
    }
    cvy_page_cell(page, "%d", k->rank);
    if (k->ranks > 1 && k->least_s > 0.0) {
        cvy_page_cell(page, "%.2f", k->measured_s / k->least_s);
    } else {
        cvy_page_cell(page, "-");
    }
}

cvy_status cvy_report_kinds(cvy_page *page, const cvy_compared_kind *kind, int kinds, double iteration_s)
{
    static const cvy_page_column column[] = {{.name = "step"},
                                             {.name = "measured", .number = true},
                                             {.name = "predicted", .number = true},
                                             {.name = "error", .number = true},
                                             {.name = "of the iteration", .number = true},
                                             {.name = "rank", .number = true},
                                             {.name = "by the fastest rank", .number = true}};
    cvy_page_section(page, "compare", "Predicted against measured");
    CVY_TRY(draw_kinds(page, kind, kinds));
    cvy_page_begin_table(page, column, 7, "All kinds of steps");
    for (int i = 0; i < kinds; i++) {
        add_kind(page, &kind[i], iteration_s);
    }
    cvy_page_end_table(page);
    return CVY_OK;
}
