/* A study as charts. */
#ifndef CVY_REPORT_SWEEP_CHARTS_H
#define CVY_REPORT_SWEEP_CHARTS_H

#include "oracle/sweep.h"
#include "report/page.h"

/** The four of every study, and one for every two parameters. */
enum { CVY_SWEEP_MOST_CHARTS = 4 + CVY_VARIED_COUNT * (CVY_VARIED_COUNT - 1) / 2 };

/** Charts of a study, each a whole SVG document. */
typedef struct cvy_sweep_charts {
    int count;
    struct {
        char name[40]; /**< "time", "throughput", "efficiency", "elasticity", "best-batch", "best-batch-memory" */
        char *svg;     /**< owned */
    } chart[CVY_SWEEP_MOST_CHARTS];
} cvy_sweep_charts;

/**
 * Draw a study: parts of the iteration, images a second beside the ideal, efficiency, elasticities; of several
 * strategies, which family is best by ranks and each parameter, or by every two that are varied together.
 *
 * Not collective; runs gnuplot.
 *
 * @param[in]  title       what stands above each chart, any text
 * @param[out] charts_out  released with cvy_sweep_charts_clear(); untouched on failure
 * @retval CVY_ERR_UNSUPPORTED there is no gnuplot
 * @retval CVY_ERR_IO, CVY_ERR_MEMORY as cvy_chart_draw()
 */
cvy_status cvy_sweep_charts_draw(const cvy_sweep *sweep, const char *title, cvy_sweep_charts *charts_out);

/** What is drawn of a study. */
typedef enum cvy_sweep_figure {
    CVY_SWEEP_TIME,       /**< parts of the iteration */
    CVY_SWEEP_THROUGHPUT, /**< images a second, beside the ideal */
    CVY_SWEEP_EFFICIENCY, /**< beside that of other values of the parameters */
    CVY_SWEEP_ELASTICITY,
    CVY_SWEEP_BEST        /**< of several strategies; a chart a parameter, or a pair of them */
} cvy_sweep_figure;

/** Draw on a page what cvy_sweep_charts_draw() draws. @retval as cvy_page_draw() says */
cvy_status cvy_sweep_charts_add(const cvy_sweep *sweep, cvy_sweep_figure figure, cvy_page *page);

/** Release what it owns and empty it. */
void cvy_sweep_charts_clear(cvy_sweep_charts *charts);

#endif
