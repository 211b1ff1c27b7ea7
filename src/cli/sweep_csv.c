/* A study as CSV: a row a point, every figure in its base unit. */
#include <stdio.h>
#include <string.h>

#include "base/csv.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "cli/sweep.h"

/* ---- CSV ---- */

static void add_names(cvy_text *text)
{
    cvy_text_add(text, "varied,value,ranks,global_batch,precision,peak_flop_per_s,memory_Bps,link_Bps,link_latency_s,"
                       "capacity_bytes,strategy,feasible,over_memory,iteration_s,images_per_s,ideal_images_per_s,"
                       "efficiency,error_relative");
    for (int i = 0; i < CVY_TIME_PARTS; i++) {
        cvy_text_add(text, ",%s_s", cvy_time_part_name(i));
    }
    cvy_text_add(text, ",exposed_communication_s,hidden_communication_s,memory_bytes,limit,best_strategy,"
                       "best_iteration_s,best_images_per_s,best_memory_bytes");
    for (int i = 0; i < CVY_VARIED_MEMORY; i++) {
        cvy_text_add(text, ",elasticity_%s", cvy_varied_names[i]);
    }
    cvy_text_add(text, ",why_not\n");
}

/* Which parameters are varied, and to what; empty for the machine as it is. */
static void add_setting(const cli_study *s, int setting, cvy_text *text)
{
    const cvy_sweep_setting *at = &s->sweep->setting[setting];
    cvy_text names = {0}, values = {0};
    for (int i = 0; i < s->options.axes; i++) {
        const cvy_sweep_axis *axis = &s->sweep->options.axis[i];
        if (at->value[i] >= 0) {
            cvy_text_add(&names, "%s%s", names.length ? ";" : "", cvy_varied_names[axis->parameter]);
            cvy_text_add(&values, "%s%s", values.length ? ";" : "", axis->value[at->value[i]].text);
        }
    }
    cvy_csv_add_cell(names.data ? names.data : "", text);
    cvy_text_add(text, ",");
    cvy_csv_add_cell(values.data ? values.data : "", text);
    text->failed = text->failed || names.failed || values.failed;
    cvy_text_destroy(&names);
    cvy_text_destroy(&values);
}

static void add_estimate(const cvy_sweep_point *point, cvy_text *text)
{
    const cvy_estimate *e = &point->asked;
    cvy_csv_add_number(e->iteration_s, e->feasible, text);
    cvy_csv_add_number(e->images_per_s, e->feasible, text);
    cvy_csv_add_number(point->ideal_images_per_s, e->feasible, text);
    cvy_csv_add_number(point->efficiency, e->feasible, text);
    cvy_csv_add_number(e->error_relative, e->feasible, text);
    for (int i = 0; i < CVY_TIME_PARTS; i++) {
        cvy_csv_add_number(e->part_s[i], e->feasible, text);
    }
    cvy_csv_add_number(e->exposed_communication_s, e->feasible, text);
    cvy_csv_add_number(e->hidden_communication_s, e->feasible, text);
    if (e->feasible) {
        cvy_text_add(text, ",%lld,%s", (long long)e->total_bytes, point->limit);
    } else {
        cvy_text_add(text, ",,");
    }
}

static void add_best(const cvy_estimate *best, cvy_text *text)
{
    char strategy[CLI_STRATEGY_TEXT];
    cvy_text_add(text, ",");
    if (!best->feasible) {
        cvy_text_add(text, ",,,");
        return;
    }
    cvy_csv_add_cell(cli_print_strategy(&best->strategy, best->recompute, strategy), text);
    cvy_text_add(text, ",%.9g,%.9g,%lld", best->iteration_s, best->images_per_s, (long long)best->total_bytes);
}

static void add_row(const cli_study *s, int setting, int at, cvy_text *text)
{
    const cvy_sweep_point *point = &cvy_sweep_get_points(s->sweep, setting)[at];
    const cvy_sweep_setting *own = &s->sweep->setting[setting];
    bool as_it_is = !s->options.cross && setting == 0;
    add_setting(s, setting, text);
    cvy_text_add(text, ",%lld,%lld,%s", (long long)point->ranks, (long long)point->batch,
                 cvy_precision_name(own->precision));
    for (int i = CVY_VARIED_ARITHMETIC; i <= CVY_VARIED_MEMORY; i++) {
        cvy_csv_add_number(own->figure[i], own->figure[i] > 0.0, text);
    }
    cvy_text_add(text, ",");
    cvy_csv_add_cell(s->options.strategy[0], text);
    cvy_text_add(text, ",%s,%s", point->asked.feasible ? "yes" : "no",
                 point->asked.feasible && point->asked.over_memory ? "yes" : "no");
    add_estimate(point, text);
    add_best(&point->best, text);
    for (int i = 0; i < CVY_VARIED_MEMORY; i++) {
        cvy_csv_add_number(s->sweep->elasticity[at][i], as_it_is, text);
    }
    cvy_text_add(text, ",");
    cvy_csv_add_cell(point->asked.why_not, text);
    cvy_text_add(text, "\n");
}

cvy_status cli_write_study_csv(const cli_study *s, const char *path)
{
    cvy_text text = {0};
    add_names(&text);
    for (int i = 0; i < s->sweep->settings; i++) {
        for (int r = 0; r < s->options.rank_counts; r++) {
            add_row(s, i, r, &text);
        }
    }
    return cvy_file_write_text(path, &text, CVY_ERR_IO);
}
