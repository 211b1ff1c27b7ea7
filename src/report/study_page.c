/* A study: the machine as it is, then what else would be, then which strategy is best where. */
#include "report/study_page.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/sections.h"
#include "report/sweep_charts.h"

enum { NAMES = 320 };

/* "link-bandwidth x1/4"; of all together what each parameter is. */
static const char *name_setting(const cvy_sweep *sweep, int setting, char text[NAMES])
{
    const cvy_sweep_setting *at = &sweep->setting[setting];
    int length = 0;
    snprintf(text, NAMES, "as it is");
    for (int i = 0; i < sweep->options.axes && length < NAMES; i++) {
        const cvy_sweep_axis *axis = &sweep->options.axis[i];
        if (at->value[i] >= 0) {
            length += snprintf(text + length, NAMES - (size_t)length, "%s%s %s", length ? ", " : "",
                               cvy_varied_names[axis->parameter], axis->value[at->value[i]].text);
        }
    }
    return text;
}

static void begin_rank_table(cvy_page *page, const cvy_sweep *sweep, const char *first, const char *folded,
                             cvy_page_column column[CVY_SWEEP_MOST_RANKS + 1],
                             char text[CVY_SWEEP_MOST_RANKS][CVY_UNIT_TEXT])
{
    const int ranks = sweep->options.rank_counts;
    column[0] = (cvy_page_column){.name = first};
    for (int i = 0; i < ranks; i++) {
        cvy_print_count(sweep->options.ranks[i], text[i]);
        column[1 + i] = (cvy_page_column){.name = text[i], .number = true};
    }
    cvy_page_begin_table(page, column, ranks + 1, folded);
}

/* ---- as the machine is ---- */

static void add_parts(cvy_page *page, const cvy_sweep *sweep)
{
    char text[CVY_UNIT_TEXT];
    cvy_page_column column[1 + CVY_TIME_PARTS] = {{.name = "ranks", .number = true}};
    for (int part = 0; part < CVY_TIME_PARTS; part++) {
        column[1 + part] = (cvy_page_column){.name = cvy_time_part_name(part), .number = true};
    }
    cvy_page_begin_table(page, column, 1 + CVY_TIME_PARTS, "Figures of the time");
    for (int i = 0; i < sweep->options.rank_counts; i++) {
        const cvy_estimate *e = &cvy_sweep_get_points(sweep, 0)[i].asked;
        cvy_page_cell(page, "%" PRId64, sweep->options.ranks[i]);
        for (int part = 0; part < CVY_TIME_PARTS; part++) {
            bool known = e->feasible && e->part_s[part] > 0.0;
            cvy_page_cell(page, "%s", known ? cvy_print_seconds(e->part_s[part], text) : "-");
        }
    }
    cvy_page_end_table(page);
}

static cvy_status report_own(cvy_page *page, const cvy_sweep *sweep)
{
    char name[NAMES];
    cvy_page_section(page, "time", "Time");
    if (sweep->options.cross) {
        cvy_page_say(page, "With %s.", name_setting(sweep, 0, name));
    }
    CVY_TRY(cvy_sweep_charts_add(sweep, CVY_SWEEP_TIME, page));
    add_parts(page, sweep);
    return cvy_report_scaling(page, sweep, NULL, 0);
}

/* ---- what else would be ---- */

static double find_figure(const cvy_sweep_point *point, bool efficiency)
{
    return !point->asked.feasible ? NAN : efficiency ? point->efficiency : point->asked.images_per_s;
}

static void add_grid(cvy_page *page, const cvy_sweep *sweep, bool efficiency)
{
    cvy_page_column column[CVY_SWEEP_MOST_RANKS + 1];
    char text[CVY_SWEEP_MOST_RANKS][CVY_UNIT_TEXT], name[NAMES], rate[CVY_UNIT_TEXT];
    begin_rank_table(page, sweep, efficiency ? "efficiency on ranks" : "images/s on ranks",
                     efficiency ? "Figures of the efficiency" : "Images a second of all points", column, text);
    for (int setting = 0; setting < sweep->settings; setting++) {
        cvy_page_cell(page, "%s", name_setting(sweep, setting, name));
        for (int i = 0; i < sweep->options.rank_counts; i++) {
            double figure = find_figure(&cvy_sweep_get_points(sweep, setting)[i], efficiency);
            if (isnan(figure)) {
                cvy_page_cell(page, "-");
            } else if (efficiency) {
                cvy_page_cell(page, "%.0f %%", 100.0 * figure);
            } else {
                cvy_page_cell(page, "%s", cvy_print_rate(figure, rate));
            }
        }
    }
    cvy_page_end_table(page);
}

static cvy_status report_varied(cvy_page *page, const cvy_sweep *sweep)
{
    cvy_page_section(page, "varied", "With other values");
    CVY_TRY(cvy_sweep_charts_add(sweep, CVY_SWEEP_EFFICIENCY, page));
    add_grid(page, sweep, true);
    add_grid(page, sweep, false);
    return CVY_OK;
}

static cvy_status report_elasticity(cvy_page *page, const cvy_sweep *sweep)
{
    cvy_page_column column[1 + CVY_VARIED_MEMORY] = {{.name = "ranks", .number = true}};
    for (int k = 0; k < CVY_VARIED_MEMORY; k++) {
        column[1 + k] = (cvy_page_column){.name = cvy_varied_names[k], .number = true};
    }
    cvy_page_section(page, "elasticity", "What limits it");
    cvy_page_say(page, "%s.", sweep->device.sentence);
    cvy_page_say(page, "%s.", sweep->cluster.sentence);
    CVY_TRY(cvy_sweep_charts_add(sweep, CVY_SWEEP_ELASTICITY, page));
    cvy_page_begin_table(page, column, 1 + CVY_VARIED_MEMORY, "Figures of the elasticity");
    for (int i = 0; i < sweep->options.rank_counts; i++) {
        cvy_page_cell(page, "%" PRId64, sweep->options.ranks[i]);
        for (int k = 0; k < CVY_VARIED_MEMORY; k++) {
            double elasticity = sweep->elasticity[i][k];
            if (isfinite(elasticity)) {
                cvy_page_cell(page, "%.2f", fabs(elasticity) < 0.005 ? 0.0 : elasticity);
            } else {
                cvy_page_cell(page, "-");
            }
        }
    }
    cvy_page_end_table(page);
    return CVY_OK;
}

/* ---- which is best ---- */

static cvy_status report_best(cvy_page *page, const cvy_sweep *sweep)
{
    cvy_page_column column[CVY_SWEEP_MOST_RANKS + 1];
    char text[CVY_SWEEP_MOST_RANKS][CVY_UNIT_TEXT], name[NAMES], family[CVY_STRATEGY_TEXT];
    cvy_page_section(page, "best", "The best strategy");
    CVY_TRY(cvy_sweep_charts_add(sweep, CVY_SWEEP_BEST, page));
    begin_rank_table(page, sweep, "best on ranks", "The best at all points", column, text);
    for (int setting = 0; setting < sweep->settings; setting++) {
        cvy_page_cell(page, "%s", name_setting(sweep, setting, name));
        for (int i = 0; i < sweep->options.rank_counts; i++) {
            const cvy_estimate *best = &cvy_sweep_get_points(sweep, setting)[i].best;
            if (best->feasible) {
                cvy_strategy_family(&best->strategy, family);
            }
            cvy_page_cell(page, "%s", best->feasible ? family : "nothing fits");
        }
    }
    cvy_page_end_table(page);
    return CVY_OK;
}

cvy_status cvy_report_study(cvy_page *page, const cvy_sweep *sweep)
{
    const cvy_sweep_options *o = &sweep->options;
    CVY_TRY(report_own(page, sweep));
    if (sweep->settings > 1) {
        CVY_TRY(report_varied(page, sweep));
    }
    CVY_TRY(report_elasticity(page, sweep));
    return o->search || o->strategies > 1 ? report_best(page, sweep) : CVY_OK;
}
