/* How a model scales: images a second and efficiency over numbers of ranks. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "report/sections.h"

enum { MOST_MARKS = 4 };

static cvy_status draw(cvy_page *page, const cvy_sweep *sweep, const cvy_scaling_mark *mark, int marks)
{
    double x[CVY_SWEEP_MOST_RANKS], predicted[CVY_SWEEP_MOST_RANKS], ideal[CVY_SWEEP_MOST_RANKS];
    double best[CVY_SWEEP_MOST_RANKS];
    const cvy_sweep_point *point = cvy_sweep_get_points(sweep, 0);
    const int count = sweep->options.rank_counts;
    cvy_chart_series of[3 + MOST_MARKS] = {
        {.name = sweep->options.strategy[0], .y = predicted, .colour = 1},
        {.name = "ideal", .y = ideal, .ideal = true},
        {.name = "best that fits", .y = best, .colour = 2},
    };
    const bool several = sweep->options.search || sweep->options.strategies > 1;
    int series = several ? 3 : 2;
    for (int i = 0; i < count; i++) {
        x[i] = (double)point[i].ranks;
        predicted[i] = point[i].asked.feasible ? point[i].asked.images_per_s : NAN;
        ideal[i] = point[i].asked.feasible ? point[i].ideal_images_per_s : NAN;
        best[i] = point[i].best.feasible ? point[i].best.images_per_s : NAN;
    }
    for (int i = 0; i < marks && i < MOST_MARKS; i++) {
        of[series++] = (cvy_chart_series){.name = mark[i].name, .x = &mark[i].ranks, .y = &mark[i].images_per_s,
                                          .points = 1, .scattered = true};
    }
    const cvy_chart chart = {.kind = CVY_CHART_LINES, .title = "Images a second", .x_title = "ranks",
                             .y_title = "images/s", .points = count, .x = x, .log_x = true, .log_y = true,
                             .series = series, .of = of};
    return cvy_page_draw(page, &chart, several ? "Predicted, beside the ideal: the fewest ranks, times as many. Best: "
                                                 "the fastest of what was looked at and the memory holds."
                                               : "Predicted, beside the ideal: the fewest ranks, times as many.");
}

static void add_row(cvy_page *page, const cvy_sweep_point *point)
{
    char text[CVY_UNIT_TEXT], family[CVY_STRATEGY_TEXT];
    const cvy_estimate *e = &point->asked;
    cvy_page_cell(page, "%" PRId64, point->ranks);
    cvy_page_cell(page, "%" PRId64, point->batch);
    if (e->feasible) {
        cvy_page_cell(page, "%s", cvy_print_rate(e->images_per_s, text));
        cvy_page_cell(page, "%.0f %%", 100.0 * point->efficiency);
        cvy_page_cell(page, "%s", cvy_print_seconds(e->iteration_s, text));
        cvy_page_cell(page, "%s%s", cvy_print_bytes((double)e->total_bytes, text), e->over_memory ? "!" : "");
    } else {
        for (int i = 0; i < 4; i++) {
            cvy_page_cell(page, "-");
        }
    }
    if (point->best.feasible) {
        cvy_strategy_family(&point->best.strategy, family);
        cvy_page_cell(page, "%s", family);
        cvy_page_cell(page, "%s", cvy_print_rate(point->best.images_per_s, text));
    } else {
        cvy_page_cell(page, "nothing fits");
        cvy_page_cell(page, "-");
    }
    cvy_page_cell(page, "%s", e->feasible ? point->limit : e->why_not);
}

cvy_status cvy_report_scaling(cvy_page *page, const cvy_sweep *sweep, const cvy_scaling_mark *mark, int marks)
{
    static const cvy_page_column column[] = {{.name = "ranks", .number = true}, {.name = "batch", .number = true},
                                             {.name = "images/s", .number = true},
                                             {.name = "efficiency", .number = true},
                                             {.name = "iteration", .number = true}, {.name = "memory", .number = true},
                                             {.name = "best"}, {.name = "its images/s", .number = true},
                                             {.name = "limit", .words = true}};
    cvy_page_section(page, "scaling", "Scaling");
    CVY_TRY(draw(page, sweep, mark, marks));
    cvy_page_begin_table(page, column, 9, "Figures of the scaling");
    for (int i = 0; i < sweep->options.rank_counts; i++) {
        add_row(page, &cvy_sweep_get_points(sweep, 0)[i]);
    }
    cvy_page_end_table(page);
    return CVY_OK;
}
