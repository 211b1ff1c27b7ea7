/*
 * What gnuplot wrote becomes an element that stands by itself, or in a page beside others: without the XML line, with
 * words for whoever does not see it, ids that are its own, and ink of a light or dark scheme.
 */
#include <stdio.h>
#include <string.h>

#include "report/chart_internal.h"
#include "report/html.h"

static const char style[] =
    "<style>.convoy-chart{background:#fff}.convoy-chart [fill=\"#767676\"]{fill:#1f2328}"
    ".convoy-chart [stroke=\"#767676\"]{stroke:#1f2328}@media (prefers-color-scheme:dark){"
    ".convoy-chart{background:#15181c}.convoy-chart [fill=\"#767676\"]{fill:#e6e6e6}"
    ".convoy-chart [stroke=\"#767676\"]{stroke:#e6e6e6}}</style>\n";

/* What becomes of words of gnuplot's. */
typedef struct rule {
    const char *from, *until; /* up to the end of `until`, where there is one */
    const char *to;
} rule;

/* The names of things that a drawing refers to, made those of this drawing. */
typedef struct names {
    char id[32], reference[40], url[40];
} names;

enum { RULES = 9 };

static void make_rules(const char *prefix, bool in_page, names *n, rule rules[RULES])
{
    const char *ink = in_page ? "currentColor" : CVY_CHART_INK;
    snprintf(n->id, sizeof n->id, "id='%.12sgp", prefix);
    snprintf(n->reference, sizeof n->reference, "href='#%.12sgp", prefix);
    snprintf(n->url, sizeof n->url, "url(#%.12sgp", prefix);
    const rule all[RULES] = {
        {"rgb(118,118,118)", NULL, ink},
        {"rgb(118, 118, 118)", NULL, ink},
        {"id='gp", NULL, n->id},
        {"href='#gp", NULL, n->reference},
        {"url(#gp", NULL, n->url},
        {" id=\"gnuplot_canvas\"", NULL, ""},
        {" id=\"convoy_plot_", "</title>", ">"}, /* the number of a series, which readers would be shown */
        {"<filter id='textbox'", "</filter>", ""},
        {"<filter id='greybox'", "</filter>", ""},
    };
    memcpy(rules, all, sizeof all);
}

/* Append text as rules have it. */
static void add_by_rules(const char *from, const rule *rules, cvy_text *svg)
{
    const char *at[RULES];
    for (int i = 0; i < RULES; i++) {
        at[i] = strstr(from, rules[i].from);
    }
    for (;;) {
        int next = -1;
        for (int i = 0; i < RULES; i++) {
            at[i] = at[i] && at[i] < from ? strstr(from, rules[i].from) : at[i];
            next = at[i] && (next < 0 || at[i] < at[next]) ? i : next;
        }
        if (next < 0) {
            cvy_text_add(svg, "%s", from);
            return;
        }
        cvy_text_add(svg, "%.*s%s", (int)(at[next] - from), from, rules[next].to);
        from = at[next] + strlen(rules[next].from);
        const char *end = rules[next].until ? strstr(from, rules[next].until) : NULL;
        from = end ? end + strlen(rules[next].until) : from;
    }
}

/* From gnuplot's document: the begin of the element, then words for people, then the drawing. */
bool cvy_chart_add_document(char *text, const cvy_chart_frame *frame, cvy_text *svg)
{
    rule rules[RULES];
    names n;
    char *begin = strstr(text, "<svg"), *end = begin ? strchr(begin, '>') : NULL;
    const char *drawing = end ? strstr(end, "<g id=\"gnuplot_canvas\"") : NULL;
    if (!drawing) {
        return false;
    }
    *end = '\0';
    cvy_text_add(svg, "%s class=\"convoy-chart\" role=\"img\" aria-label=\"", begin);
    cvy_html_add(svg, frame->label);
    cvy_text_add(svg, "\">\n");
    if (!frame->in_page) {
        cvy_text_add(svg, "<title>");
        cvy_html_add(svg, frame->label);
        cvy_text_add(svg, "</title>\n%s", style);
    }
    make_rules(frame->prefix ? frame->prefix : "", frame->in_page, &n, rules);
    add_by_rules(drawing, rules, svg);
    return true;
}
