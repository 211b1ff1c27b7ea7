/* Charts: what gnuplot is told, and what it draws of it, where it is installed. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/memory.h"
#include "report/chart.h"

static const double powers[] = {1.0, 2.0, 4.0};

static cvy_chart make_lines(const cvy_chart_series *of, int series)
{
    return (cvy_chart){.kind = CVY_CHART_LINES, .title = "t", .x_title = "x", .y_title = "y", .points = 3, .x = powers,
                       .series = series, .of = of, .log_x = true, .log_y = true};
}

static char *write_script(const cvy_chart *chart)
{
    cvy_text text = {0};
    const cvy_chart_frame frame = {.width = CVY_CHART_WIDTH, .height = CVY_CHART_HEIGHT};
    cvy_chart_write_script(chart, &frame, &text);
    char *script = cvy_text_take(&text);
    assert_non_null(script);
    return script;
}

static char *draw(const cvy_chart *chart)
{
    cvy_text text = {0};
    if (cvy_chart_draw(chart, &text) != CVY_OK) {
        fail_msg("%s", cvy_error_message());
    }
    char *svg = cvy_text_take(&text);
    assert_non_null(svg);
    return svg;
}

static void assert_has(const char *text, const char *words)
{
    if (!strstr(text, words)) {
        fail_msg("no '%s' in %.2000s", words, text);
    }
}

/* A quote is doubled, a line break or a broken character becomes '?': nothing ends the quotes, or the line. */
static void test_words_stay_in_their_quotes(void **state)
{
    (void)state;
    const cvy_chart_series of[] = {{.name = "a' ; system 'id", .y = powers}};
    cvy_chart chart = make_lines(of, 1);
    chart.title = "it's\nset output '/tmp/x'\xff `id` é";
    char *script = write_script(&chart);
    assert_has(script, "set title 'it''s?set output ''/tmp/x''? `id` é' tc");
    assert_has(script, "title 'a'' ; system ''id'\n");
    cvy_free(script);
}

static void test_what_is_not_known_is_left_out(void **state)
{
    (void)state;
    const double y[] = {1.5, NAN, INFINITY};
    const cvy_chart_series of[] = {{.name = "a", .y = y}};
    cvy_chart chart = make_lines(of, 1);
    char *script = write_script(&chart);
    assert_has(script, "$data << EOD\n 1 1.5\n 2 NaN\n 4 NaN\nEOD\n");
    cvy_free(script);
}

/* Cells of two rows and two columns: the first row stands on top, at 1; what is none is nowhere. */
static void test_regions_have_the_first_row_on_top(void **state)
{
    (void)state;
    static const char *const columns[] = {"1", "2"}, *const rows[] = {"x1/2", "x2"};
    static const int cell[] = {0, 1, -1, 0};
    const cvy_chart_series of[] = {{.name = "data"}, {.name = "filter"}};
    const cvy_chart chart = {.kind = CVY_CHART_REGIONS, .title = "t", .points = 2, .label = columns, .series = 2,
                             .of = of, .rows = 2, .row = rows, .cell = cell};
    char *script = write_script(&chart);
    assert_has(script, "('x1/2' 1, 'x2' 0)");
    assert_has(script, "$data0 << EOD\n-9 -9\n0 1\n1 0\nEOD\n");
    assert_has(script, "$data1 << EOD\n-9 -9\n1 1\nEOD\n");
    cvy_free(script);
}

/* Two rows: the first is at 1. A span from 2 to 6 has its middle at 4; its box is 0.36 to either side of the row. */
static void test_spans_lie_in_their_rows(void **state)
{
    (void)state;
    static const char *const rows[] = {"data", "filter"};
    const cvy_chart_series of[] = {{.name = "forward"}, {.name = "wait", .fill = CVY_FILL_HOLLOW}};
    const cvy_chart_span span[] = {{.row = 0, .series = 0, .from = 2.0, .to = 6.0},
                                   {.row = 1, .series = 1, .from = 0.0, .to = 3.0}};
    const cvy_chart chart = {.kind = CVY_CHART_SPANS, .title = "t", .series = 2, .of = of, .rows = 2, .row = rows,
                             .spans = 2, .span = span, .limit = 8.0, .limit_name = "16 GB"};
    char *script = write_script(&chart);
    assert_has(script, "('data' 1, 'filter' 0)");
    assert_has(script, "$data0 << EOD\n0 -9 0 0 -9 -9\n4 1 2 6 0.64 1.36\nEOD\n");
    assert_has(script, "\n1.5 0 0 3 -0.36 0.36\nEOD\n");
    assert_has(script, "set arrow from 8, graph 0 to 8, graph 1");
    assert_has(script, "set label '16 GB' at 8");
    assert_has(script, "fs empty border title 'wait'");
    cvy_free(script);
}

/* A cell that has no value is not there; the scale ends at the largest. */
static void test_heat_has_cells_with_values_alone(void **state)
{
    (void)state;
    static const char *const names[] = {"0", "1"};
    static const double value[] = {NAN, 3.0, 5.0, NAN};
    const cvy_chart chart = {.kind = CVY_CHART_HEAT, .title = "t", .points = 2, .label = names, .rows = 2,
                             .row = names, .value = value, .value_title = "MB"};
    char *script = write_script(&chart);
    assert_has(script, "$data << EOD\n-9 -9 0\n1 1 3\n0 0 5\nEOD\nset cbrange [0:5]\n");
    cvy_free(script);
}

/* There are ten colours: the eleventh line is dashed, the eleventh area hatched. */
static void test_series_beyond_the_colours_differ_otherwise(void **state)
{
    (void)state;
    enum { SERIES = 12 };
    static const char *const names[] = {"1", "2", "4"};
    static const int cell[] = {0, 10, 11};
    cvy_chart_series of[SERIES];
    for (int i = 0; i < SERIES; i++) {
        of[i] = (cvy_chart_series){.name = "s", .y = powers};
    }
    cvy_chart chart = make_lines(of, SERIES);
    char *script = write_script(&chart);
    assert_has(script, "using 1:11 with linespoints lw 2 dt 1 ");
    assert_has(script, "using 1:12 with linespoints lw 2 dt 3 ");
    cvy_free(script);
    chart = (cvy_chart){.kind = CVY_CHART_REGIONS, .title = "t", .points = 3, .label = names, .series = SERIES,
                        .of = of, .rows = 1, .row = names, .cell = cell};
    script = write_script(&chart);
    assert_has(script, "$data9 using 1:2:(0.47):(0.47) with boxxyerror lc rgb '#66A61E' fs solid 1.0 noborder");
    assert_has(script, "$data10 using 1:2:(0.47):(0.47) with boxxyerror lc rgb '#0072B2' fs pattern 4 border");
    cvy_free(script);
}

/* ---- drawn ---- */

static void skip_without_gnuplot(void)
{
    if (!cvy_chart_is_possible()) {
        skip();
    }
}

static void test_markup_and_commands_are_shown(void **state)
{
    (void)state;
    skip_without_gnuplot();
    char file[] = "/tmp/convoy-chart-XXXXXX", words[160];
    int opened = mkstemp(file);
    assert_true(opened >= 0);
    assert_int_equal(close(opened), 0);
    snprintf(words, sizeof words, "`rm %s` $(rm %s) <script>alert(1)</script> & \"q\" x_2^3", file, file);
    const cvy_chart_series of[] = {{.name = words, .y = powers}, {.name = "ideal", .y = powers, .ideal = true}};
    cvy_chart chart = make_lines(of, 2);
    chart.title = chart.x_title = chart.y_title = words;
    char *svg = draw(&chart);
    assert_int_equal(access(file, F_OK), 0);
    assert_int_equal(unlink(file), 0);
    assert_int_equal(strncmp(svg, "<svg", 4), 0);
    assert_null(strstr(svg, "<script"));
    assert_has(svg, "&lt;script");
    assert_has(svg, " &amp; ");
    assert_has(svg, "x_2^3");
    cvy_free(svg);
}

/* y = x on both axes in powers of two: three points on one straight line, as far from each other. */
static void test_points_are_where_they_belong(void **state)
{
    (void)state;
    skip_without_gnuplot();
    const cvy_chart_series of[] = {{.name = "a", .y = powers}};
    cvy_chart chart = make_lines(of, 1);
    char *svg = draw(&chart);
    double x[3], y[3];
    int found = 0;
    for (const char *at = svg; !found && (at = strchr(at, 'M')); at++) {
        found = sscanf(at, "M%lf,%lf L%lf,%lf L%lf,%lf", &x[0], &y[0], &x[1], &y[1], &x[2], &y[2]) == 6 &&
                x[0] < x[1] && x[1] < x[2] && y[0] > y[1];
    }
    assert_true(found);
    assert_true(fabs((x[1] - x[0]) - (x[2] - x[1])) < 0.05 && fabs((y[1] - y[0]) - (y[2] - y[1])) < 0.05);
    assert_true(x[2] - x[0] > CVY_CHART_WIDTH / 3 && x[2] <= CVY_CHART_WIDTH && y[2] >= 0.0);
    cvy_free(svg);
}

/* Bars, stacked or not, and regions are drawn; inks follow the scheme; two charts make one document. */
static void test_every_kind_is_drawn(void **state)
{
    (void)state;
    skip_without_gnuplot();
    static const char *const labels[] = {"1", "2", "4"};
    static const int cell[] = {0, 1, -1};
    const cvy_chart_series of[] = {{.name = "north", .y = powers}, {.name = "south", .y = powers}};
    char *svg[2] = {NULL, NULL};
    for (cvy_chart_kind kind = CVY_CHART_STACKED; kind <= CVY_CHART_REGIONS; kind++) {
        const cvy_chart chart = {.kind = kind, .title = "t", .points = 3, .label = labels, .series = 2, .of = of,
                                 .rows = 1, .row = labels, .cell = cell};
        cvy_free(svg[0]);
        svg[0] = draw(&chart);
        assert_has(svg[0], "north");
        assert_has(svg[0], "south");
        assert_has(svg[0], "prefers-color-scheme:dark");
        assert_has(svg[0], "fill=\"#767676\"");
        assert_null(strstr(svg[0], "rgb(118"));
    }
    cvy_text text = {0};
    svg[1] = svg[0];
    cvy_chart_join((const char *const *)svg, 2, &text);
    char *both = cvy_text_take(&text);
    assert_non_null(both);
    assert_has(both, "viewBox=\"0 0 800 840\"");
    assert_has(both, "translate(0,420)");
    cvy_free(both);
    cvy_free(svg[0]);
}

/* Two drawings on a page: no id of one is in the other, ink is the page's, and gnuplot's own words are gone. */
static void test_drawings_of_a_page_share_no_ids(void **state)
{
    (void)state;
    skip_without_gnuplot();
    static const char *const rows[] = {"a row"};
    const cvy_chart_series of[] = {{.name = "sent", .fill = CVY_FILL_HATCHED}};
    const cvy_chart_span span[] = {{.row = 0, .series = 0, .from = 0.0, .to = 6.0}};
    const cvy_chart chart = {.kind = CVY_CHART_SPANS, .title = "a <title>", .series = 1, .of = of, .rows = 1,
                             .row = rows, .spans = 1, .span = span};
    const cvy_chart_frame frames[] = {{.in_page = true, .prefix = "c1w-"}, {.in_page = true, .prefix = "c1n-"}};
    for (int i = 0; i < 2; i++) {
        cvy_text text = {0};
        assert_int_equal(cvy_chart_draw_in(&chart, &frames[i], &text), CVY_OK);
        char *svg = cvy_text_take(&text);
        assert_has(svg, "aria-label=\"a &lt;title&gt;\"");
        assert_has(svg, i ? "id='c1n-gpPat1'" : "id='c1w-gpPat1'");
        assert_has(svg, i ? "url(#c1n-gpPat1)" : "url(#c1w-gpPat1)");
        assert_has(svg, "currentColor");
        assert_null(strstr(svg, "id='gp"));
        assert_null(strstr(svg, "#767676"));
        assert_null(strstr(svg, "rgb(118"));
        assert_null(strstr(svg, "<title>"));
        assert_null(strstr(svg, "textbox"));
        assert_null(strstr(svg, "id=\"convoy"));
        cvy_free(svg);
    }
}

static void test_without_gnuplot_a_line_says_so(void **state)
{
    (void)state;
    char path[4096];
    const cvy_chart_series of[] = {{.name = "a", .y = powers}};
    cvy_chart chart = make_lines(of, 1);
    cvy_text svg = {0};
    snprintf(path, sizeof path, "%s", getenv("PATH"));
    setenv("PATH", "/nonexistent", 1);
    assert_false(cvy_chart_is_possible());
    assert_int_equal(cvy_chart_draw(&chart, &svg), CVY_ERR_UNSUPPORTED);
    assert_has(cvy_error_message(), "gnuplot");
    setenv("PATH", path, 1);
    assert_int_equal(svg.length, 0);
    chart.series = CVY_CHART_MOST_SERIES + 1;
    assert_int_equal(cvy_chart_draw(&chart, &svg), CVY_ERR_ARG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words_stay_in_their_quotes),
        cmocka_unit_test(test_what_is_not_known_is_left_out),
        cmocka_unit_test(test_regions_have_the_first_row_on_top),
        cmocka_unit_test(test_spans_lie_in_their_rows),
        cmocka_unit_test(test_heat_has_cells_with_values_alone),
        cmocka_unit_test(test_series_beyond_the_colours_differ_otherwise),
        cmocka_unit_test(test_drawings_of_a_page_share_no_ids),
        cmocka_unit_test(test_markup_and_commands_are_shown),
        cmocka_unit_test(test_points_are_where_they_belong),
        cmocka_unit_test(test_every_kind_is_drawn),
        cmocka_unit_test(test_without_gnuplot_a_line_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
