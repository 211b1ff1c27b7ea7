/* The sections of a page about a study. */
#ifndef CVY_REPORT_STUDY_PAGE_H
#define CVY_REPORT_STUDY_PAGE_H

#include "oracle/sweep.h"
#include "report/page.h"

/**
 * Put a study on a page: time and throughput over ranks, efficiency with other values, elasticities, and of several
 * strategies the best everywhere. Each chart has its figures in a table.
 *
 * @retval CVY_ERR_IO, CVY_ERR_MEMORY as cvy_page_draw() says
 */
cvy_status cvy_report_study(cvy_page *page, const cvy_sweep *sweep);

#endif
