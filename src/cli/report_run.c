/*
 * The page of a run: what it learnt, what it took beside what was predicted, and the plan that it ran, priced on the
 * machine that the prediction was of. What a run does not have, since it has not ended or nobody predicted it, is not
 * on its page.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "cli/report.h"
#include "cli/run_profile.h"

/* What is known of a run. */
typedef struct subject {
    const char *run;
    const cli_options *options;
    bool profiled;
    cli_run_profile profile; /* where it is */
    cli_run_metrics metrics;
    char *plan, *config;     /* paths */
} subject;

static void close_subject(subject *s)
{
    if (s->profiled) {
        cli_run_profile_clear(&s->profile);
    }
    cli_run_metrics_clear(&s->metrics);
    cvy_free(s->plan);
    cvy_free(s->config);
}

static cvy_status open_subject(const char *run, const cli_options *options, subject *s)
{
    *s = (subject){.run = run, .options = options};
    s->plan = cvy_path_join(run, "plan.yaml");
    s->config = cvy_path_join(run, "config.yaml");
    char *profile = cvy_path_join(run, "profile.json");
    if (!s->plan || !s->config || !profile) {
        cvy_free(profile);
        return CVY_ERR_MEMORY;
    }
    s->profiled = cvy_file_exists(profile);
    cvy_free(profile);
    CVY_REQUIRE(cvy_file_exists(s->config), CVY_ERR_INPUT, "%s: not a run: it holds no config.yaml", run);
    CVY_TRY(cli_run_metrics_load(run, &s->metrics));
    if (s->profiled) {
        s->profiled = false;
        CVY_TRY(cli_run_profile_load(run, &s->profile));
        s->profiled = true;
    }
    return CVY_OK;
}

/* ---- what stands above ---- */

static void begin_page(const subject *s, cvy_page *page)
{
    const cli_run_profile *p = &s->profile;
    char title[160], subtitle[400], count[CVY_UNIT_TEXT];
    snprintf(title, sizeof title, "Run %.100s", s->run);
    if (s->profiled) {
        snprintf(title, sizeof title, "Run of %.100s", p->model);
        snprintf(subtitle, sizeof subtitle, "%.120s: %" PRId64 " rank%s (%.80s) of %" PRId64 " thread%s, batch %" PRId64
                 ", %.16s, %s iterations", s->run, p->ranks, p->ranks == 1 ? "" : "s", p->strategy, p->threads,
                 p->threads == 1 ? "" : "s", p->batch, p->precision, cvy_print_count(p->iterations, count));
    } else {
        snprintf(subtitle, sizeof subtitle, "it has not ended: its profile is not written yet");
    }
    cvy_page_begin(title, subtitle, page);
}

static double find_best_accuracy(const cli_run_metrics *m)
{
    double best = NAN;
    for (int i = 0; i < m->epochs; i++) {
        best = fmax(best, m->epoch[i].validation_accuracy); /* of a number and NAN, the number */
    }
    return best;
}

static void add_learnt(cvy_page *page, const cli_run_metrics *m)
{
    const double best = find_best_accuracy(m);
    if (isfinite(best)) {
        cvy_page_fact(page, "best validation accuracy", "%.2f %%", 100.0 * best);
    }
    if (m->epochs > 0 && isfinite(m->epoch[m->epochs - 1].loss)) {
        cvy_page_fact(page, "loss of the last epoch", "%.4g", m->epoch[m->epochs - 1].loss);
    } else if (m->steps > 0 && isfinite(m->step[m->steps - 1].loss)) {
        cvy_page_fact(page, "last loss", "%.4g", m->step[m->steps - 1].loss);
    }
}

/* Predicted beside measured; the error keeps its sign. */
static void add_pair(cvy_page *page, const char *name, double predicted, double measured,
                     const char *(*print)(double, char *))
{
    char label[80], text[2][CVY_UNIT_TEXT];
    snprintf(label, sizeof label, "%s, measured", name);
    cvy_page_fact(page, label, "%s", print(measured, text[0]));
    if (predicted > 0.0 && measured > 0.0) {
        snprintf(label, sizeof label, "%s, predicted", name);
        cvy_page_fact(page, label, "%s (%+.1f\xc2\xa0%%)", print(predicted, text[1]),
                      100.0 * (predicted / measured - 1.0));
    }
}

static void add_summary(cvy_page *page, const subject *s)
{
    char text[CVY_UNIT_TEXT];
    const cli_run_profile *p = &s->profile;
    const bool predicted = s->profiled && p->machine;
    cvy_page_section(page, "summary", "Summary");
    cvy_page_begin_facts(page);
    add_learnt(page, &s->metrics);
    if (s->profiled && p->iteration_s > 0.0) {
        cvy_page_fact(page, "images/s", "%s", cvy_print_rate((double)p->batch / p->iteration_s, text));
        add_pair(page, "iteration", predicted ? p->predicted_iteration_s : 0.0, p->iteration_s, cvy_print_seconds);
        add_pair(page, "memory of a rank", predicted ? (double)p->predicted_memory_bytes : 0.0,
                 (double)p->peak_memory_bytes, cvy_print_bytes);
    }
    cvy_page_end_facts(page);
    if (predicted && p->iteration_s > 0.0) {
        const double off = fabs(p->predicted_iteration_s - p->iteration_s);
        cvy_page_say(page, "Predicted on %s with \xc2\xb1 %.0f %%: the iteration lies %s that, accuracy %.1f %%.",
                     p->machine, 100.0 * p->predicted_error,
                     off <= p->predicted_error * p->predicted_iteration_s ? "within" : "outside",
                     100.0 * fmax(0.0, 1.0 - off / p->iteration_s));
    } else if (s->profiled) {
        cvy_page_say(page, "Nothing was predicted of this run; convoy train --machine NAME predicts it.");
    }
}

/* ---- kinds of steps ---- */

static cvy_status add_kinds(cvy_page *page, const cli_run_profile *p)
{
    cvy_compared_kind *kind = cvy_calloc((size_t)p->rows + 1, sizeof *kind);
    if (!kind) {
        return CVY_ERR_MEMORY;
    }
    for (int i = 0; i < p->rows; i++) {
        const cvy_profile_row *row = &p->row[i];
        const double iterations = (double)p->iterations;
        kind[i] = (cvy_compared_kind){.name = row->name,
                                      .predicted_s = row->predicted_s / iterations,
                                      .measured_s = row->seconds / iterations,
                                      .least_s = row->least_s / iterations,
                                      .rank = row->rank,
                                      .ranks = row->ranks};
    }
    cvy_status status = cvy_report_kinds(page, kind, p->rows, p->iteration_s);
    cvy_free(kind);
    return status;
}

/* ---- the plan that ran ---- */

static cvy_status add_problem(cvy_page *page, const subject *s, const cli_problem *problem)
{
    cli_answer answer;
    const cli_run_profile *p = &s->profile;
    const cli_measured_mark mark = {.name = "measured",
                                    .images_per_s = s->profiled && p->iteration_s > 0.0
                                                        ? (double)p->batch / p->iteration_s : 0.0};
    cvy_status status = cli_answer_find(problem, 0, &answer);
    status = status == CVY_OK ? cli_report_plans(page, problem, &answer, &mark) : status;
    cli_answer_clear(&answer);
    return status;
}

/* A machine that the line names must be right; the one of the prediction may be gone by now, or the model may. */
static cvy_status add_plan(cvy_page *page, const subject *s)
{
    static const cli_command planning = {.name = "report"};
    const char *given = s->options->plan.machine;
    cli_options asked = cli_options_init;
    cli_problem problem;
    asked.plan.plan = s->plan;
    asked.plan.machine = given ? given : s->profiled ? s->profile.machine : NULL;
    if (!asked.plan.machine || !cvy_file_exists(s->plan)) {
        return CVY_OK;
    }
    cvy_status status = cli_problem_open(&planning, &asked, NULL, 0, &problem);
    if (status == CVY_OK) {
        status = add_problem(page, s, &problem);
    } else if (status == CVY_ERR_INPUT && !given) {
        cvy_page_section(page, "plans", "Plans");
        cvy_page_say(page, "The plan is not priced: %s.", cvy_error_message());
        cvy_error_clear();
        status = CVY_OK;
    }
    cli_problem_clear(&problem);
    return status;
}

/* ---- how it was run ---- */

static cvy_status add_file(cvy_page *page, const char *path, const char *words)
{
    cvy_yaml *yaml = NULL;
    if (!cvy_file_exists(path)) {
        return CVY_OK;
    }
    CVY_TRY(cvy_yaml_load(path, &yaml));
    const cvy_yaml_node *root = cvy_yaml_root(yaml);
    if (cvy_yaml_node_kind(root) == CVY_YAML_MAPPING) {
        cvy_report_yaml(page, root, words);
    }
    cvy_yaml_destroy(&yaml);
    return CVY_OK;
}

static void add_environment(cvy_page *page, const cli_run_profile *p)
{
    const cli_run_environment *e = &p->environment;
    char text[CVY_UNIT_TEXT];
    if (!e->version[0]) {
        return; /* of a run before environments were kept */
    }
    cvy_page_begin_facts(page);
    cvy_page_fact(page, "convoy", "%s", e->version);
    cvy_page_fact(page, "host", "%s", e->host);
    cvy_page_fact(page, "system", "%s", e->system);
    cvy_page_fact(page, "processor", "%s", e->processor);
    cvy_page_fact(page, "cores", "%" PRId64, e->cores);
    cvy_page_fact(page, "memory", "%s", e->memory_bytes ? cvy_print_bytes((double)e->memory_bytes, text) : "unknown");
    cvy_page_end_facts(page);
}

static cvy_status add_configuration(cvy_page *page, const subject *s)
{
    cvy_page_section(page, "environment", "Environment and options");
    if (s->profiled) {
        add_environment(page, &s->profile);
    }
    CVY_TRY(add_file(page, s->config, "Options of the run"));
    return add_file(page, s->plan, "What was decided before the first step");
}

static cvy_status fill_page(cvy_page *page, const subject *s)
{
    const cvy_run_course course = {.steps = s->metrics.steps, .step = s->metrics.step, .epochs = s->metrics.epochs,
                                   .epoch = s->metrics.epoch};
    add_summary(page, s);
    CVY_TRY(cvy_report_course(page, &course));
    if (s->profiled && s->profile.iterations > 0) {
        CVY_TRY(add_kinds(page, &s->profile));
    }
    CVY_TRY(add_plan(page, s));
    return add_configuration(page, s);
}

cvy_status cli_report_run(const char *run, const cli_options *options, const char *path)
{
    subject s;
    cvy_page page = {.charts = 0};
    cvy_status status = open_subject(run, options, &s);
    if (status == CVY_OK) {
        begin_page(&s, &page);
        status = fill_page(&page, &s);
    }
    status = status == CVY_OK ? cvy_page_save(&page, path) : status;
    cvy_page_clear(&page);
    close_subject(&s);
    return status;
}
