/*
 * A chart as gnuplot's commands. Text of users stands in single quotes, inside of which gnuplot reads nothing but the
 * quote itself, in one line, without markup; numbers alone stand in data.
 */
#include <math.h>
#include <string.h>

#include "base/utf8.h"
#include "report/chart.h"

/* Okabe and Ito, "Color universal design", 2008, without yellow and black; then greys and a brown. */
static const char *const colours[] = {"#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9",
                                      "#CC79A7", "#999999", "#8C6D31", "#4D4D9F", "#66A61E"};
static const int markers[] = {7, 5, 9, 11, 13, 4, 6, 8};
enum { COLOURS = sizeof colours / sizeof *colours, MARKERS = sizeof markers / sizeof *markers, MOST_TEXT = 120 };

#define INK "#767676" /* as cvy_chart_draw() knows it: on white and on black alike */

static const char *pick_colour(int series) { return colours[series % COLOURS]; }

static void add_quoted(cvy_text *script, const char *words)
{
    cvy_text_add(script, "'");
    for (int i = 0; words && words[i] && i < MOST_TEXT;) {
        int bytes = cvy_utf8_measure(words + i);
        if (words[i] == '\'') {
            cvy_text_add(script, "''");
        } else if (bytes > 0) {
            cvy_text_add(script, "%.*s", bytes, words + i);
        } else {
            cvy_text_add(script, "?");
        }
        i += bytes > 0 ? bytes : 1;
    }
    cvy_text_add(script, "'");
}

static void add_title(cvy_text *script, const char *what, const char *words)
{
    cvy_text_add(script, "set %s ", what);
    add_quoted(script, words);
    cvy_text_add(script, " tc rgb '" INK "'\n");
}

static void add_frame(const cvy_chart *chart, cvy_text *script)
{
    cvy_text_add(script, "set terminal svg size %d,%d dynamic noenhanced font 'sans-serif,13' name 'convoy'\n",
                 CVY_CHART_WIDTH, CVY_CHART_HEIGHT);
    cvy_text_add(script, "set encoding utf8\nset border 3 lc rgb '" INK "'\n"
                         "set xtics nomirror tc rgb '" INK "'\nset ytics nomirror tc rgb '" INK "'\n"
                         "set key outside right top Left reverse tc rgb '" INK "'\n"
                         "set grid ytics lc rgb '#999999' lw 0.5\n");
    add_title(script, "title", chart->title);
    add_title(script, "xlabel", chart->x_title);
    add_title(script, "ylabel", chart->y_title);
}

/* Ticks at 0, 1, …; of rows from the top down. */
static void add_categories(cvy_text *script, const char *axis, const char *const *label, int count, bool down)
{
    cvy_text_add(script, "set %s nomirror tc rgb '" INK "' (", axis);
    for (int i = 0; i < count; i++) {
        cvy_text_add(script, "%s", i ? ", " : "");
        add_quoted(script, label[i]);
        cvy_text_add(script, " %d", down ? count - 1 - i : i);
    }
    cvy_text_add(script, ")\n");
}

static void add_value(cvy_text *script, double value)
{
    if (isfinite(value)) {
        cvy_text_add(script, " %.9g", value);
    } else {
        cvy_text_add(script, " NaN");
    }
}

static void add_data(const cvy_chart *chart, cvy_text *script)
{
    cvy_text_add(script, "$data << EOD\n");
    for (int i = 0; i < chart->points; i++) {
        add_value(script, chart->x ? chart->x[i] : i);
        for (int s = 0; s < chart->series; s++) {
            add_value(script, chart->of[s].y[i]);
        }
        cvy_text_add(script, "\n");
    }
    cvy_text_add(script, "EOD\n");
}

static void add_lines(const cvy_chart *chart, cvy_text *script)
{
    cvy_text_add(script, "%s%s", chart->log_x ? "set logscale x 2\n" : "", chart->log_y ? "set logscale y 2\n" : "");
    cvy_text_add(script, "%s", chart->log_y ? "" : "set yrange [0:*]\n");
    add_data(chart, script);
    cvy_text_add(script, "plot ");
    for (int s = 0; s < chart->series; s++) {
        cvy_text_add(script, "%s$data using 1:%d ", s ? ", " : "", s + 2);
        if (chart->of[s].ideal) {
            cvy_text_add(script, "with lines lw 1.5 dt 2 lc rgb '" INK "' title ");
        } else {
            cvy_text_add(script, "with linespoints lw 2 pt %d ps 0.8 lc rgb '%s' title ", markers[s % MARKERS],
                         pick_colour(s));
        }
        add_quoted(script, chart->of[s].name);
    }
    cvy_text_add(script, "\n");
}

static void add_bars(const cvy_chart *chart, cvy_text *script)
{
    bool stacked = chart->kind == CVY_CHART_STACKED;
    add_categories(script, "xtics", chart->label, chart->points, false);
    cvy_text_add(script, "set style data histograms\nset style histogram %s\nset style fill solid 1.0 noborder\n",
                 stacked ? "rowstacked" : "clustered gap 1");
    cvy_text_add(script, "set boxwidth %s\nset xrange [-0.6:%g]\n%s", stacked ? "0.8" : "0.9", chart->points - 0.4,
                 stacked ? "set yrange [0:*]\n" : "set xzeroaxis lc rgb '" INK "'\n");
    add_data(chart, script);
    cvy_text_add(script, "plot ");
    for (int s = 0; s < chart->series; s++) {
        cvy_text_add(script, "%s$data using %d lc rgb '%s' title ", s ? ", " : "", s + 2, pick_colour(s));
        add_quoted(script, chart->of[s].name);
    }
    cvy_text_add(script, "\n");
}

/* Each series has the cells that are its; one that has none stands outside of what is shown. */
static void add_regions(const cvy_chart *chart, cvy_text *script)
{
    add_categories(script, "xtics", chart->label, chart->points, false);
    add_categories(script, "ytics", chart->row, chart->rows, true);
    cvy_text_add(script, "unset grid\nset xrange [-0.5:%g]\nset yrange [-0.5:%g]\nset style fill solid 1.0 noborder\n",
                 chart->points - 0.5, chart->rows - 0.5);
    for (int s = 0; s < chart->series; s++) {
        cvy_text_add(script, "$data%d << EOD\n-9 -9\n", s);
        for (int i = 0; i < chart->rows * chart->points; i++) {
            if (chart->cell[i] == s) {
                cvy_text_add(script, "%d %d\n", i % chart->points, chart->rows - 1 - i / chart->points);
            }
        }
        cvy_text_add(script, "EOD\n");
    }
    cvy_text_add(script, "plot ");
    for (int s = 0; s < chart->series; s++) {
        cvy_text_add(script, "%s$data%d using 1:2:(0.47):(0.47) with boxxyerror lc rgb '%s' title ", s ? ", " : "", s,
                     pick_colour(s));
        add_quoted(script, chart->of[s].name);
    }
    cvy_text_add(script, "\n");
}

void cvy_chart_write_script(const cvy_chart *chart, cvy_text *script)
{
    add_frame(chart, script);
    switch (chart->kind) {
    case CVY_CHART_LINES: add_lines(chart, script); break;
    case CVY_CHART_STACKED:
    case CVY_CHART_BARS: add_bars(chart, script); break;
    case CVY_CHART_REGIONS: add_regions(chart, script); break;
    }
}
