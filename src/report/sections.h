/*
 * The sections of a page that are of plans, each from what the oracle says: headings, charts, and tables with the
 * figures of the charts. All append to the page; none prints or writes.
 *
 * Status of each: CVY_ERR_MEMORY, or as cvy_page_draw() says.
 */
#ifndef CVY_REPORT_SECTIONS_H
#define CVY_REPORT_SECTIONS_H

#include "base/yaml.h"
#include "oracle/limits.h"
#include "oracle/sweep.h"
#include "report/page.h"

/** Ranked plans: those that are shown, best first, and infeasible ones with their reasons. */
typedef struct cvy_ranked_plans {
    const cvy_search *search;
    const char *const *name; /**< of each candidate of the search: how people write it */
    int most;                /**< that are shown, beside the pick and data parallelism */
} cvy_ranked_plans;

/** What plans take of an iteration, as stacked bars, and which are not possible. */
cvy_status cvy_report_plans(cvy_page *page, const cvy_ranked_plans *plans);

/** Memory of a rank by what it is for, beside what the device has. */
cvy_status cvy_report_memory(cvy_page *page, const cvy_ranked_plans *plans);

/** What limits a plan, and what would lift it. */
void cvy_report_limits(cvy_page *page, const cvy_limit *limit, int count);

/** A figure to stand beside predicted ones: images a second on a number of ranks. */
typedef struct cvy_scaling_mark {
    const char *name;
    double ranks, images_per_s;
} cvy_scaling_mark;

/** Images a second over numbers of ranks: predicted, ideal, and what is marked. @param[in] sweep its first setting */
cvy_status cvy_report_scaling(cvy_page *page, const cvy_sweep *sweep, const cvy_scaling_mark *mark, int marks);

/** One iteration in time: streams of the slowest rank, or the stages of a pipeline. */
cvy_status cvy_report_timeline(cvy_page *page, const cvy_trace *trace);

/** Layers: what each takes, and the roofline with them. @param[in] precision of the products */
cvy_status cvy_report_layers(cvy_page *page, const cvy_trace *trace, const cvy_machine *machine,
                             cvy_precision precision);

/** Bytes between ranks in an iteration, pair by pair. */
cvy_status cvy_report_traffic(cvy_page *page, const cvy_trace *trace);

/** A YAML document as a table of keys and values. @param[in] root a mapping; folded as in cvy_page_begin_table() */
void cvy_report_yaml(cvy_page *page, const cvy_yaml_node *root, const char *folded);

/** The machine as a file would have it, as such a table. */
cvy_status cvy_report_machine(cvy_page *page, const cvy_machine *machine);

#endif
