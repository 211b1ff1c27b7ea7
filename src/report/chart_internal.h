/* What the files that write gnuplot's commands share. */
#ifndef CVY_REPORT_CHART_INTERNAL_H
#define CVY_REPORT_CHART_INTERNAL_H

#include "report/chart.h"

#define CVY_CHART_INK "#767676" /* as cvy_chart_draw() knows it: on white and on black alike */

/** Append text of users in single quotes, in one line. */
void cvy_script_add_quoted(cvy_text *script, const char *words);

/** Colours that there are: series from there on are dashed, or hatched. */
enum { CVY_CHART_COLOURS = 10 };

/** The colour of a series, as "#rrggbb", and gnuplot's number of its marker. Cannot fail. */
const char *cvy_chart_colour(const cvy_chart *chart, int series);
int cvy_chart_marker(int series);

/** Whether names of rows stand above their bars: on narrow pages, and where they are long. */
bool cvy_chart_names_above(const cvy_chart *chart, const cvy_chart_frame *frame);

/** " lc rgb … fs …": how the areas of a series are filled. */
void cvy_script_add_fill(cvy_text *script, const cvy_chart *chart, int series);

/** Names at 0, 1, … of an axis; of rows from the top down. Where there are many, not all are shown. */
void cvy_script_add_categories(cvy_text *script, const char *axis, const char *const *label, int count, bool down);

/** Spans and heat; chart_spans.c. */
void cvy_script_add_spans(const cvy_chart *chart, const cvy_chart_frame *frame, cvy_text *script);
void cvy_script_add_heat(const cvy_chart *chart, cvy_text *script);

/** Append gnuplot's document, which is written into, as it is to stand in @p frame. @return false: it is none */
bool cvy_chart_add_document(char *text, const cvy_chart_frame *frame, cvy_text *svg);

#endif
