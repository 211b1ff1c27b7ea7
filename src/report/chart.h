/*
 * Charts: series in, SVG out, drawn by gnuplot where it is installed. Colours are those of Okabe and Ito, which people
 * with any colour vision tell apart; lines have markers and dashes as well, areas may be hatched. Ink and background
 * follow the reader's light or dark scheme where styles are heeded; elsewhere ink is a grey that both show.
 */
#ifndef CVY_REPORT_CHART_H
#define CVY_REPORT_CHART_H

#include <stdbool.h>

#include "base/text.h"

typedef enum cvy_chart_kind {
    CVY_CHART_LINES,   /**< with markers, over numbers */
    CVY_CHART_STACKED, /**< bars of all series on top of each other, over categories */
    CVY_CHART_BARS,    /**< bars side by side, over categories */
    CVY_CHART_REGIONS, /**< a cell for each category and row, in the colour of a series */
    CVY_CHART_SPANS,   /**< stretches of a number along x, in rows: bars that lie, and what happens when */
    CVY_CHART_HEAT     /**< a cell for each column and row, coloured by its value */
} cvy_chart_kind;

enum {
    CVY_CHART_MOST_SERIES = 32,
    CVY_CHART_MOST_POINTS = 256, /**< of categories, rows and columns; lines have as many as they like */
    CVY_CHART_WIDTH = 800,
    CVY_CHART_HEIGHT = 420
};

/** How areas are filled, so that hue is not all that tells them apart. */
typedef enum cvy_chart_fill { CVY_FILL_SOLID, CVY_FILL_HATCHED, CVY_FILL_HOLLOW } cvy_chart_fill;

/** A series; of regions what a cell may be, of spans what a span may be. */
typedef struct cvy_chart_series {
    const char *name;
    const double *y;     /**< of each point; NAN where there is none; NULL of regions and spans */
    const double *x;     /**< of lines: its own points, `points` of them; NULL: those of the chart */
    int points;
    bool ideal;          /**< what others are held against: dashed, in ink, without markers */
    bool scattered;      /**< of lines: markers alone */
    cvy_chart_fill fill; /**< of areas */
    int colour;          /**< 1 + index of its colour, which it keeps where others are left out; 0: by its place */
} cvy_chart_series;

/** Which part of its row's height a span takes. */
typedef enum cvy_span_place { CVY_SPAN_WHOLE, CVY_SPAN_UPPER, CVY_SPAN_LOWER } cvy_span_place;

/** A stretch of a row. */
typedef struct cvy_chart_span {
    int row, series;
    double from, to;
    cvy_span_place place;
} cvy_chart_span;

typedef struct cvy_chart {
    cvy_chart_kind kind;
    const char *title, *x_title, *y_title;
    int points;               /**< along x */
    const double *x;          /**< of lines */
    const char *const *label; /**< of categories */
    int series;
    const cvy_chart_series *of;
    bool log_x, log_y;        /**< of lines: by powers of two, ... */
    bool decades;             /**< ... or, where they are logarithmic, of ten */
    int rows;                 /**< of regions, spans and heat */
    const char *const *row;   /**< their names, the first on top */
    const int *cell;          /**< of regions: rows x points, index of a series; below 0: none */
    const double *value;      /**< of heat: rows x points; NAN: none */
    const char *value_title;  /**< of heat */
    int spans;
    const cvy_chart_span *span;
    double limit;             /**< of spans: a line at this x; 0: none */
    const char *limit_name;
} cvy_chart;

/** Where a chart stands. */
typedef struct cvy_chart_frame {
    int width, height;  /**< of the drawing; 0: the usual ones, or as rows need */
    bool in_page;       /**< part of a page, which has the title, the names of the series and a style */
    bool narrow;        /**< for a phone: names of rows stand above their bars */
    const char *prefix; /**< of ids: letters and digits; other charts of the page have others; NULL: none */
    const char *label;  /**< what it shows, in words */
} cvy_chart_frame;

/** Whether gnuplot can be run. */
bool cvy_chart_is_possible(void);

/**
 * Draw a chart: a whole SVG document, whose size is CVY_CHART_WIDTH x CVY_CHART_HEIGHT.
 *
 * Not collective; runs gnuplot and waits for it. Names and titles may be any text: they are shown, never read.
 *
 * @param[in,out] svg            appended to
 * @retval CVY_ERR_ARG           more series or points than there is room for
 * @retval CVY_ERR_UNSUPPORTED   there is no gnuplot
 * @retval CVY_ERR_IO            gnuplot failed; its words are told
 * @retval CVY_ERR_MEMORY
 */
cvy_status cvy_chart_draw(const cvy_chart *chart, cvy_text *svg);

/** As cvy_chart_draw(), in a frame. In a page, ink is the page's colour of text and nothing is behind it. */
cvy_status cvy_chart_draw_in(const cvy_chart *chart, const cvy_chart_frame *frame, cvy_text *svg);

/** Put charts below each other in one SVG document. @param[in] document as cvy_chart_draw() makes them */
void cvy_chart_join(const char *const *document, int count, cvy_text *svg);

/** The names of the series as a list of HTML, each with a mark as in the drawing; nothing where one name is enough. */
void cvy_chart_add_legend(const cvy_chart *chart, cvy_text *html);

/** What a chart says to gnuplot; for cvy_chart_draw_in(). @param[in,out] script appended to */
void cvy_chart_write_script(const cvy_chart *chart, const cvy_chart_frame *frame, cvy_text *script);

#endif
