/* The page of a study: convoy sweep's question, with its options. */
#include <inttypes.h>
#include <stdio.h>

#include "cli/report.h"
#include "cli/sweep.h"
#include "report/study_page.h"

static void begin_page(const cli_study *s, cvy_page *page)
{
    const cli_problem *p = s->problem;
    char title[160], subtitle[400], count[2][CVY_UNIT_TEXT];
    snprintf(title, sizeof title, "Scaling of %.60s on %.60s", p->model_text, p->machine->name);
    snprintf(subtitle, sizeof subtitle, "%s x %.80s, batch %s%s, %s, %s, strategy %.120s",
             cvy_print_count(cvy_machine_devices(p->machine), count[0]), p->machine->device.name,
             cvy_print_count(p->batch, count[1]), p->batch_per_rank ? " a rank (weak scaling)" : " (strong scaling)",
             cvy_precision_name(p->oracle.precision), cvy_optimizer_find_name(&p->oracle.optimizer),
             s->options.strategy[0]);
    cvy_page_begin(title, subtitle, page);
}

static void add_summary(cvy_page *page, const cvy_sweep *sweep)
{
    char text[CVY_UNIT_TEXT];
    const int last = sweep->options.rank_counts - 1;
    const cvy_sweep_point *point = cvy_sweep_get_points(sweep, 0);
    cvy_page_section(page, "summary", "Summary");
    cvy_page_begin_facts(page);
    cvy_page_fact(page, "points", "%s", cvy_print_count(sweep->points, text));
    cvy_page_fact(page, "estimates", "%s", cvy_print_count(sweep->estimates, text));
    if (point[last].asked.feasible) {
        cvy_page_fact(page, "images/s on most ranks", "%s",
                      cvy_print_rate(point[last].asked.images_per_s, text));
        cvy_page_fact(page, "efficiency there", "%.0f %%", 100.0 * point[last].efficiency);
        cvy_page_fact(page, "limit there", "%s", point[last].limit);
    }
    cvy_page_end_facts(page);
}

static cvy_status fill_page(cvy_page *page, const cli_problem *problem, const cvy_sweep *sweep)
{
    add_summary(page, sweep);
    CVY_TRY(cvy_report_study(page, sweep));
    cvy_page_section(page, "configuration", "Configuration");
    return cvy_report_machine(page, problem->machine);
}

cvy_status cli_report_study(const cli_problem *problem, const char *path)
{
    cli_study s;
    cvy_page page = {.charts = 0};
    cvy_status status = cli_study_read(problem, &s);
    CVY_TRY_GOTO(status, done, status);
    CVY_TRY_GOTO(status, done, cvy_sweep_create(problem->model, problem->machine, &s.options, &s.sweep));
    begin_page(&s, &page);
    CVY_TRY_GOTO(status, done, fill_page(&page, problem, s.sweep));
    CVY_TRY_GOTO(status, done, cvy_page_save(&page, path));
    status = cli_study_check(&s);
done:
    cvy_page_clear(&page);
    cli_study_clear(&s);
    return status;
}
