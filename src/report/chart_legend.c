/*
 * The legend of a chart in a page: marks as gnuplot draws them, in text that wraps and scales as the page does. Shapes
 * lie in a box of 38 by 16.
 */
#include "report/chart_internal.h"
#include "report/html.h"

/* gnuplot's markers, filled ones first. */
static void add_marker(int marker, const char *colour, cvy_text *html)
{
    static const struct {
        int marker;
        const char *shape;
    } shapes[] = {
        {5, "<rect x=\"14.5\" y=\"3.5\" width=\"9\" height=\"9\"/>"},
        {7, "<circle cx=\"19\" cy=\"8\" r=\"5\"/>"},
        {9, "<path d=\"M19,2 L25,12 L13,12 z\"/>"},
        {11, "<path d=\"M19,14 L25,4 L13,4 z\"/>"},
        {13, "<path d=\"M19,2 L25,8 L19,14 L13,8 z\"/>"},
        {4, "<rect x=\"14.5\" y=\"3.5\" width=\"9\" height=\"9\" fill=\"none\"/>"},
        {6, "<circle cx=\"19\" cy=\"8\" r=\"5\" fill=\"none\"/>"},
        {8, "<path d=\"M19,2 L25,12 L13,12 z\" fill=\"none\"/>"},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        if (shapes[i].marker == marker) {
            cvy_text_add(html, "<g fill=\"%s\" stroke=\"%s\" stroke-width=\"1.5\">%s</g>", colour, colour,
                         shapes[i].shape);
        }
    }
}

static void add_line(const cvy_chart *chart, int series, cvy_text *html)
{
    const cvy_chart_series *own = &chart->of[series];
    const char *colour = own->ideal ? "currentColor" : cvy_chart_colour(chart, series);
    if (!own->scattered) {
        const char *dash = own->ideal                    ? " stroke-dasharray=\"6,4\""
                           : series >= CVY_CHART_COLOURS ? " stroke-dasharray=\"2,3\""
                                                         : "";
        cvy_text_add(html, "<path d=\"M1,8 H37\" stroke=\"%s\" stroke-width=\"2.5\"%s/>", colour, dash);
    }
    if (!own->ideal) {
        add_marker(cvy_chart_marker(series), colour, html);
    }
}

static void add_area(const cvy_chart *chart, int series, cvy_text *html)
{
    const char *colour = cvy_chart_colour(chart, series);
    const cvy_chart_series *own = &chart->of[series];
    const bool beyond = series >= CVY_CHART_COLOURS && !own->colour;
    const bool hatched = own->fill == CVY_FILL_HATCHED || beyond, solid = own->fill == CVY_FILL_SOLID && !beyond;
    cvy_text_add(html, "<rect x=\"1\" y=\"1\" width=\"36\" height=\"14\" fill=\"%s\" stroke=\"%s\" "
                       "stroke-width=\"2\"/>",
                 solid ? colour : "none", colour);
    if (hatched) {
        cvy_text_add(html, "<path d=\"M2,15 L16,1 M11,15 L25,1 M20,15 L34,1 M29,15 L37,7\" stroke=\"%s\" "
                           "stroke-width=\"1.5\"/>", colour);
    }
}

void cvy_chart_add_legend(const cvy_chart *chart, cvy_text *html)
{
    if (chart->series < 2 || chart->kind == CVY_CHART_HEAT) {
        return;
    }
    cvy_text_add(html, "<ul class=\"legend\">\n");
    for (int s = 0; s < chart->series; s++) {
        cvy_text_add(html, "<li><svg viewBox=\"0 0 38 16\" aria-hidden=\"true\">");
        if (chart->kind == CVY_CHART_LINES) {
            add_line(chart, s, html);
        } else {
            add_area(chart, s, html);
        }
        cvy_text_add(html, "</svg>");
        cvy_html_add(html, chart->of[s].name);
        cvy_text_add(html, "</li>\n");
    }
    cvy_text_add(html, "</ul>\n");
}
