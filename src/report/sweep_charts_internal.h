/* What the files that draw a study share. */
#ifndef CVY_REPORT_SWEEP_CHARTS_INTERNAL_H
#define CVY_REPORT_SWEEP_CHARTS_INTERNAL_H

#include "report/sweep_charts.h"

/** What all charts of a study share. */
typedef struct cvy_sweep_drawing {
    const cvy_sweep *sweep;
    const char *title;
    int ranks;
    double x[CVY_SWEEP_MOST_RANKS];
    char text[CVY_SWEEP_MOST_RANKS][24];
    const char *label[CVY_SWEEP_MOST_RANKS];
    cvy_sweep_charts charts;
    cvy_page *page; /**< that charts go to; NULL: to `charts` */
} cvy_sweep_drawing;

/** Draw a chart that is whole but for its title. @param[in] what  it shows; the study's title goes with it */
cvy_status cvy_sweep_add_chart(cvy_sweep_drawing *drawing, const char *name, const char *what, const cvy_chart *chart);

/** Draw which family of strategies is best where. */
cvy_status cvy_sweep_draw_regions(cvy_sweep_drawing *drawing);

#endif
