/* The sections of a page about a comparison: iterations that were measured, beside what was predicted of each. */
#ifndef CVY_REPORT_COMPARISON_PAGE_H
#define CVY_REPORT_COMPARISON_PAGE_H

#include <stdint.h>

#include "report/page.h"

/** One iteration that was measured. Texts are borrowed. */
typedef struct cvy_compared_row {
    const char *model, *machine, *strategy, *precision;
    const char *family;              /**< by which rows are grouped */
    const char *why_not;             /**< where no schedule exists; else empty */
    int64_t ranks, batch;
    double measured_s, predicted_s;  /**< predicted: 0 where no schedule exists */
    double accuracy;
    bool over_memory;
} cvy_compared_row;

/**
 * Predicted against measured as marks by family, mean accuracy by family, and all rows.
 *
 * @retval CVY_ERR_IO, CVY_ERR_MEMORY as cvy_page_draw() says
 */
cvy_status cvy_report_comparison(cvy_page *page, const cvy_compared_row *row, int rows);

#endif
