/*
 * Parts of an iteration and of a memory, and units of axes, which charts of one page share: a part has one colour on
 * all of them. Computing is solid, communication hatched, waiting hollow.
 */
#ifndef CVY_REPORT_PARTS_H
#define CVY_REPORT_PARTS_H

#include "oracle/estimate.h"
#include "report/chart.h"

/** The series of a part of an iteration, for charts of areas. Cannot fail. @param[in] part as in cvy_estimate */
cvy_chart_series cvy_part_series(int part);

/** The series of a part of a rank's memory. Cannot fail. */
cvy_chart_series cvy_memory_series(int part);

/** Numbers of an axis: in a unit, by a factor. */
typedef struct cvy_scale {
    double factor;
    const char *unit; /**< "ms" */
} cvy_scale;

/** The unit in which the largest of some figures has few digits. Cannot fail. */
cvy_scale cvy_scale_seconds(double most_s);
cvy_scale cvy_scale_bytes(double most);

#endif
