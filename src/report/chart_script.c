/*
 * A chart as gnuplot's commands. Text of users stands in single quotes, inside of which gnuplot reads nothing but the
 * quote itself, in one line, without markup; numbers alone stand in data.
 */
#include <math.h>
#include <string.h>

#include "base/utf8.h"
#include "report/chart_internal.h"

/* Okabe and Ito, "Color universal design", 2008, without yellow and black; then greys and a brown. */
static const char *const colours[] = {"#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9",
                                      "#CC79A7", "#999999", "#8C6D31", "#4D4D9F", "#66A61E"};
_Static_assert(sizeof colours / sizeof *colours == CVY_CHART_COLOURS, "legends go by this number");
static const int markers[] = {7, 5, 9, 11, 13, 4, 6, 8};
static const int patterns[] = {4, 5, 2}; /* of areas beyond as many as there are colours */
enum {
    COLOURS = CVY_CHART_COLOURS,
    MARKERS = sizeof markers / sizeof *markers,
    PATTERNS = sizeof patterns / sizeof *patterns,
    MOST_TEXT = 120,
    MOST_NAMES = 40
};

#define INK CVY_CHART_INK

const char *cvy_chart_colour(const cvy_chart *chart, int series)
{
    int own = chart->of[series].colour;
    return colours[(own ? own - 1 : series) % COLOURS];
}

void cvy_script_add_quoted(cvy_text *script, const char *words)
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
    cvy_script_add_quoted(script, words);
    cvy_text_add(script, " tc rgb '" INK "'\n");
}

static void add_frame(const cvy_chart *chart, const cvy_chart_frame *frame, cvy_text *script)
{
    cvy_text_add(script, "set terminal svg size %d,%d dynamic noenhanced font 'sans-serif,13' name 'convoy'\n",
                 frame->width, frame->height);
    cvy_text_add(script, "set encoding utf8\nset tics out scale 0.5\nset border 3 lc rgb '" INK "'\n"
                         "set xtics nomirror tc rgb '" INK "'\nset ytics nomirror tc rgb '" INK "'\n");
    cvy_text_add(script, frame->in_page ? "unset key\n"
                                        : "set key outside right top Left reverse tc rgb '" INK "'\n");
    cvy_text_add(script, "set grid ytics lc rgb '#999999' lw 0.5\n");
    if (!frame->in_page) {
        add_title(script, "title", chart->title);
    }
    add_title(script, "xlabel", chart->x_title);
    add_title(script, "ylabel", chart->y_title);
}

void cvy_script_add_categories(cvy_text *script, const char *axis, const char *const *label, int count, bool down)
{
    const int every = (count + MOST_NAMES - 1) / MOST_NAMES;
    cvy_text_add(script, "set %s nomirror tc rgb '" INK "' (", axis);
    for (int i = 0; i < count; i += every) {
        cvy_text_add(script, "%s", i ? ", " : "");
        cvy_script_add_quoted(script, label[i]);
        cvy_text_add(script, " %d", down ? count - 1 - i : i);
    }
    cvy_text_add(script, ")\n");
}

int cvy_chart_marker(int series) { return markers[series % MARKERS]; }

void cvy_script_add_fill(cvy_text *script, const cvy_chart *chart, int series)
{
    cvy_text_add(script, " lc rgb '%s'", cvy_chart_colour(chart, series));
    switch (chart->of[series].fill) {
    case CVY_FILL_HATCHED: cvy_text_add(script, " fs pattern 5 border"); return;
    case CVY_FILL_HOLLOW: cvy_text_add(script, " fs empty border"); return;
    case CVY_FILL_SOLID: break;
    }
    if (series < COLOURS || chart->of[series].colour) {
        cvy_text_add(script, " fs solid 1.0 noborder");
    } else {
        cvy_text_add(script, " fs pattern %d border", patterns[(series / COLOURS - 1) % PATTERNS]);
    }
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
            add_value(script, chart->of[s].x ? NAN : chart->of[s].y[i]);
        }
        cvy_text_add(script, "\n");
    }
    cvy_text_add(script, "EOD\n");
}

/* Series that have points of their own. */
static void add_own_data(const cvy_chart *chart, cvy_text *script)
{
    for (int s = 0; s < chart->series; s++) {
        const cvy_chart_series *own = &chart->of[s];
        if (own->x) {
            cvy_text_add(script, "$data%d << EOD\n", s);
            for (int i = 0; i < own->points; i++) {
                add_value(script, own->x[i]);
                add_value(script, own->y[i]);
                cvy_text_add(script, "\n");
            }
            cvy_text_add(script, "EOD\n");
        }
    }
}

/* Beyond as many as there are colours a dash tells lines apart; with few points each has its marker. */
static void add_line(const cvy_chart *chart, int s, cvy_text *script)
{
    enum { MANY_POINTS = 40 };
    const cvy_chart_series *own = &chart->of[s];
    const int marker = markers[s % MARKERS], dash = s < COLOURS ? 1 : 2 + s / COLOURS;
    if (own->x) {
        cvy_text_add(script, "$data%d using 1:2 ", s);
    } else {
        cvy_text_add(script, "$data using 1:%d ", s + 2);
    }
    if (own->ideal) {
        cvy_text_add(script, "with lines lw 1.5 dt 2 lc rgb '" INK "' title ");
    } else if (own->scattered) {
        cvy_text_add(script, "with points pt %d ps 0.7 lc rgb '%s' title ", marker, cvy_chart_colour(chart, s));
    } else {
        const int points = own->x ? own->points : chart->points, every = points > MANY_POINTS ? points / 12 : 1;
        cvy_text_add(script, "with linespoints lw 2 dt %d pt %d ps 0.8 pi %d lc rgb '%s' title ", dash, marker, every,
                     cvy_chart_colour(chart, s));
    }
    cvy_script_add_quoted(script, own->name);
}

static void add_scale(const char *axis, bool decades, cvy_text *script)
{
    cvy_text_add(script, "set logscale %s %d\n", axis, decades ? 10 : 2);
    if (decades) {
        cvy_text_add(script, "set format %s '%%g'\n", axis);
    }
}

static void add_lines(const cvy_chart *chart, cvy_text *script)
{
    if (chart->log_x) {
        add_scale("x", chart->decades, script);
    } else {
        cvy_text_add(script, "set xrange [0:*]\n");
    }
    if (chart->log_y) {
        add_scale("y", chart->decades, script);
    } else {
        cvy_text_add(script, "set yrange [0:*]\n");
    }
    add_data(chart, script);
    add_own_data(chart, script);
    cvy_text_add(script, "plot ");
    for (int s = 0; s < chart->series; s++) {
        cvy_text_add(script, "%s", s ? ", " : "");
        add_line(chart, s, script);
    }
    cvy_text_add(script, "\n");
}

static void add_bars(const cvy_chart *chart, cvy_text *script)
{
    bool stacked = chart->kind == CVY_CHART_STACKED;
    cvy_script_add_categories(script, "xtics", chart->label, chart->points, false);
    cvy_text_add(script, "set style data histograms\nset style histogram %s\nset style fill solid 1.0 noborder\n",
                 stacked ? "rowstacked" : "clustered gap 1");
    cvy_text_add(script, "set boxwidth %s\nset xrange [-0.6:%g]\n%s", stacked ? "0.8" : "0.9", chart->points - 0.4,
                 stacked ? "set yrange [0:*]\n" : "set xzeroaxis lc rgb '" INK "'\n");
    add_data(chart, script);
    cvy_text_add(script, "plot ");
    for (int s = 0; s < chart->series; s++) {
        cvy_text_add(script, "%s$data using %d", s ? ", " : "", s + 2);
        cvy_script_add_fill(script, chart, s);
        cvy_text_add(script, " title ");
        cvy_script_add_quoted(script, chart->of[s].name);
    }
    cvy_text_add(script, "\n");
}

/* Each series has the cells that are its; one that has none stands outside of what is shown. */
static void add_regions(const cvy_chart *chart, cvy_text *script)
{
    cvy_script_add_categories(script, "xtics", chart->label, chart->points, false);
    cvy_script_add_categories(script, "ytics", chart->row, chart->rows, true);
    cvy_text_add(script, "unset grid\nset xrange [-0.5:%g]\nset yrange [-0.5:%g]\n", chart->points - 0.5,
                 chart->rows - 0.5);
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
        cvy_text_add(script, "%s$data%d using 1:2:(0.47):(0.47) with boxxyerror", s ? ", " : "", s);
        cvy_script_add_fill(script, chart, s);
        cvy_text_add(script, " title ");
        cvy_script_add_quoted(script, chart->of[s].name);
    }
    cvy_text_add(script, "\n");
}

void cvy_chart_write_script(const cvy_chart *chart, const cvy_chart_frame *frame, cvy_text *script)
{
    add_frame(chart, frame, script);
    switch (chart->kind) {
    case CVY_CHART_LINES: add_lines(chart, script); break;
    case CVY_CHART_STACKED:
    case CVY_CHART_BARS: add_bars(chart, script); break;
    case CVY_CHART_REGIONS: add_regions(chart, script); break;
    case CVY_CHART_SPANS: cvy_script_add_spans(chart, frame, script); break;
    case CVY_CHART_HEAT: cvy_script_add_heat(chart, script); break;
    }
}
