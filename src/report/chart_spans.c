/*
 * Rows of spans, and cells by value. A span is a box of gnuplot; rows count from the top. Where a chart is narrow the
 * name of a row takes no room beside its bar but stands above it.
 */
#include <math.h>
#include <string.h>

#include "report/chart_internal.h"

/* From a span's row to the box that it is. */
typedef struct band {
    double below, above; /* of the middle of the row */
} band;

static void add_span(const cvy_chart *chart, const cvy_chart_span *span, band box, cvy_text *script)
{
    const int y = chart->rows - 1 - span->row;
    const double middle = 0.5 * (box.below + box.above);
    box.below = span->place == CVY_SPAN_UPPER ? middle : box.below;
    box.above = span->place == CVY_SPAN_LOWER ? middle : box.above;
    cvy_text_add(script, "%.9g %d %.9g %.9g %.9g %.9g\n", 0.5 * (span->from + span->to), y, span->from, span->to,
                 y + box.below, y + box.above);
}

/* Each series has the spans that are its; one that has none stands outside of what is shown. */
static void add_boxes(const cvy_chart *chart, band box, cvy_text *script)
{
    for (int s = 0; s < chart->series; s++) {
        cvy_text_add(script, "$data%d << EOD\n0 -9 0 0 -9 -9\n", s);
        for (int i = 0; i < chart->spans; i++) {
            if (chart->span[i].series == s) {
                add_span(chart, &chart->span[i], box, script);
            }
        }
        cvy_text_add(script, "EOD\n");
    }
    cvy_text_add(script, "plot ");
    for (int s = 0; s < chart->series; s++) {
        cvy_text_add(script, "%s$data%d with boxxyerror", s ? ", " : "", s);
        cvy_script_add_fill(script, chart, s);
        cvy_text_add(script, " title ");
        cvy_script_add_quoted(script, chart->of[s].name);
    }
    cvy_text_add(script, "\n");
}

static double find_end(const cvy_chart *chart)
{
    double end = chart->limit;
    for (int i = 0; i < chart->spans; i++) {
        end = fmax(end, chart->span[i].to);
    }
    return end > 0.0 ? end : 1.0;
}

static void add_limit(const cvy_chart *chart, cvy_text *script)
{
    if (chart->limit > 0.0) {
        cvy_text_add(script, "set arrow from %.9g, graph 0 to %.9g, graph 1 nohead lw 2 dt 2 lc rgb '" CVY_CHART_INK
                             "' front\nset label ", chart->limit, chart->limit);
        cvy_script_add_quoted(script, chart->limit_name);
        cvy_text_add(script, " at %.9g, graph 1 right offset -0.5,0.6 tc rgb '" CVY_CHART_INK "' front\n",
                     chart->limit);
    }
}

bool cvy_chart_names_above(const cvy_chart *chart, const cvy_chart_frame *frame)
{
    enum { LONG = 24 };
    size_t longest = 0;
    for (int i = 0; i < chart->rows; i++) {
        longest = strlen(chart->row[i]) > longest ? strlen(chart->row[i]) : longest;
    }
    return chart->kind == CVY_CHART_SPANS && (frame->narrow || longest > LONG);
}

static void add_names_above(const cvy_chart *chart, cvy_text *script)
{
    cvy_text_add(script, "unset ytics\nunset ylabel\n");
    for (int i = 0; i < chart->rows; i++) {
        cvy_text_add(script, "set label ");
        cvy_script_add_quoted(script, chart->row[i]);
        cvy_text_add(script, " at graph 0, first %.3f left offset 0.2,0 tc rgb '" CVY_CHART_INK "' front\n",
                     chart->rows - 1 - i + 0.27);
    }
}

void cvy_script_add_spans(const cvy_chart *chart, const cvy_chart_frame *frame, cvy_text *script)
{
    const bool above = cvy_chart_names_above(chart, frame);
    band box = above ? (band){-0.45, 0.02} : (band){-0.36, 0.36};
    if (above) {
        add_names_above(chart, script);
    } else {
        cvy_script_add_categories(script, "ytics", chart->row, chart->rows, true);
    }
    cvy_text_add(script, "unset grid\nset grid xtics lc rgb '#999999' lw 0.5\nset xrange [0:%.9g]\n"
                         "set yrange [-0.6:%g]\n", find_end(chart) * 1.02, chart->rows - 0.4);
    add_limit(chart, script);
    add_boxes(chart, box, script);
}

/* ---- heat ---- */

void cvy_script_add_heat(const cvy_chart *chart, cvy_text *script)
{
    double most = 0.0;
    cvy_script_add_categories(script, "xtics", chart->label, chart->points, false);
    cvy_script_add_categories(script, "ytics", chart->row, chart->rows, true);
    cvy_text_add(script, "unset key\nunset grid\nset xrange [-0.5:%g]\nset yrange [-0.5:%g]\nset size ratio %.4g\n"
                         "set palette maxcolors 16 defined (0 '#00224E', 0.25 '#35456C', 0.5 '#7C7B78', 0.75 '#BCAF6F',"
                         " 1 '#FEE838')\nset cbtics tc rgb '" CVY_CHART_INK "'\n", chart->points - 0.5,
                 chart->rows - 0.5, (double)chart->rows / chart->points);
    cvy_text_add(script, "set cblabel ");
    cvy_script_add_quoted(script, chart->value_title);
    cvy_text_add(script, " tc rgb '" CVY_CHART_INK "'\n$data << EOD\n-9 -9 0\n");
    for (int i = 0; i < chart->rows * chart->points; i++) {
        if (isfinite(chart->value[i])) {
            cvy_text_add(script, "%d %d %.9g\n", i % chart->points, chart->rows - 1 - i / chart->points,
                         chart->value[i]);
            most = fmax(most, chart->value[i]);
        }
    }
    cvy_text_add(script, "EOD\nset cbrange [0:%.9g]\n", most > 0.0 ? most : 1.0);
    cvy_text_add(script, "plot $data using 1:2:(0.48):(0.48):3 with boxxyerror lc palette fs solid 1.0 noborder\n");
}
