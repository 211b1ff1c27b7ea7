/*
 * Charts: series in, SVG out, drawn by gnuplot where it is installed. Colours are those of Okabe and Ito, which people
 * with any colour vision tell apart; lines have markers as well. Ink and background follow the reader's light or dark
 * scheme where styles are heeded; elsewhere ink is a grey that both show.
 */
#ifndef CVY_REPORT_CHART_H
#define CVY_REPORT_CHART_H

#include <stdbool.h>

#include "base/text.h"

typedef enum cvy_chart_kind {
    CVY_CHART_LINES,   /**< with markers, over numbers */
    CVY_CHART_STACKED, /**< bars of all series on top of each other, over categories */
    CVY_CHART_BARS,    /**< bars side by side, over categories */
    CVY_CHART_REGIONS  /**< a cell for each category and row, in the colour of a series */
} cvy_chart_kind;

enum { CVY_CHART_MOST_SERIES = 32, CVY_CHART_MOST_POINTS = 256, CVY_CHART_WIDTH = 800, CVY_CHART_HEIGHT = 420 };

/** A series; of regions what a cell may be. */
typedef struct cvy_chart_series {
    const char *name;
    const double *y; /**< of each point; NAN where there is none; NULL of regions */
    bool ideal;      /**< what others are held against: dashed, in ink, without markers */
} cvy_chart_series;

typedef struct cvy_chart {
    cvy_chart_kind kind;
    const char *title, *x_title, *y_title;
    int points;               /**< along x */
    const double *x;          /**< of lines */
    const char *const *label; /**< of categories */
    int series;
    const cvy_chart_series *of;
    bool log_x, log_y;        /**< by powers of two; of lines */
    int rows;                 /**< of regions */
    const char *const *row;   /**< their names, the first on top */
    const int *cell;          /**< rows x points: index of a series; below 0: none */
} cvy_chart;

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

/** Put charts below each other in one SVG document. @param[in] document as cvy_chart_draw() makes them */
void cvy_chart_join(const char *const *document, int count, cvy_text *svg);

/** What a chart says to gnuplot; for cvy_chart_draw(). @param[in,out] script appended to */
void cvy_chart_write_script(const cvy_chart *chart, cvy_text *script);

#endif
