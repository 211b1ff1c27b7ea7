/*
 * One iteration in time. Steps of one phase that follow each other on a stream are one stretch: there are thousands. Of
 * a pipeline the stages are shown, with all micro-batches, which alternate between two shades so that each is seen.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "plan/step_kind.h"
#include "report/parts.h"
#include "report/sections.h"

enum { NAME_TEXT = 64 };

/* Stretches under construction, on rows. */
typedef struct timeline {
    cvy_chart_span *span;
    int spans, capacity;
    double end_s;
} timeline;

static cvy_status add_span(timeline *t, int row, int series, double from_s, double to_s)
{
    CVY_TRY(cvy_array_reserve(&t->span, t->spans, &t->capacity, sizeof *t->span));
    t->span[t->spans++] = (cvy_chart_span){row, series, from_s, to_s, CVY_SPAN_WHOLE};
    t->end_s = fmax(t->end_s, to_s);
    return CVY_OK;
}

static cvy_status draw(cvy_page *page, timeline *t, cvy_chart *chart, const char *caption)
{
    char x_title[32];
    cvy_scale scale = cvy_scale_seconds(t->end_s);
    for (int i = 0; i < t->spans; i++) {
        t->span[i].from *= scale.factor;
        t->span[i].to *= scale.factor;
    }
    snprintf(x_title, sizeof x_title, "%s", scale.unit);
    chart->kind = CVY_CHART_SPANS;
    chart->x_title = x_title;
    chart->spans = t->spans;
    chart->span = t->span;
    return cvy_page_draw(page, chart, caption);
}

/* ---- streams of a rank ---- */

/* What follows within a share of the iteration and is of the same phase lengthens the stretch before. */
static cvy_status add_step(timeline *t, int *last, int row, const cvy_step *step, double start_s, double near_s)
{
    double end_s = start_s + step->estimate_s;
    cvy_chart_span *before = *last >= 0 ? &t->span[*last] : NULL;
    if (before && before->series == (int)step->phase && start_s - before->to <= near_s) {
        before->to = fmax(before->to, end_s);
        t->end_s = fmax(t->end_s, end_s);
        return CVY_OK;
    }
    CVY_TRY(add_span(t, row, step->phase, start_s, end_s));
    *last = t->spans - 1;
    return CVY_OK;
}

static cvy_status lay_streams(const cvy_trace *trace, const int *row, timeline *t)
{
    const cvy_trace_rank *rank = &trace->rank[0];
    const cvy_schedule *s = &rank->plan->schedule[CVY_SCHEDULE_TRAIN];
    int last[CVY_STREAM_COUNT];
    memset(last, -1, sizeof last);
    for (int i = 0; i < s->steps; i++) {
        const cvy_step *step = &s->step[i];
        if (step->estimate_s > 0.0) {
            CVY_TRY(add_step(t, &last[step->stream], row[step->stream], step, rank->start_s[i],
                             1e-3 * trace->estimate.iteration_s));
        }
    }
    return CVY_OK;
}

/* Phases that have a stretch become series; spans are told theirs. */
static int choose_series(timeline *t, cvy_chart_series of[CVY_PHASE_COUNT])
{
    int place[CVY_PHASE_COUNT], series = 0;
    bool used[CVY_PHASE_COUNT] = {false};
    for (int i = 0; i < t->spans; i++) {
        used[t->span[i].series] = true;
    }
    for (int phase = 0; phase < CVY_PHASE_COUNT; phase++) {
        place[phase] = series;
        if (used[phase]) {
            of[series++] = cvy_part_series(phase);
        }
    }
    for (int i = 0; i < t->spans; i++) {
        t->span[i].series = place[t->span[i].series];
    }
    return series;
}

static cvy_status draw_streams(cvy_page *page, const cvy_trace *trace)
{
    const cvy_schedule *s = &trace->rank[0].plan->schedule[CVY_SCHEDULE_TRAIN];
    cvy_chart_series of[CVY_PHASE_COUNT];
    const char *name[CVY_STREAM_COUNT];
    bool used[CVY_STREAM_COUNT] = {false};
    int row[CVY_STREAM_COUNT], rows = 0;
    timeline t = {.spans = 0};
    for (int i = 0; i < s->steps; i++) {
        used[s->step[i].stream] = used[s->step[i].stream] || s->step[i].estimate_s > 0.0;
    }
    for (int stream = 0; stream < CVY_STREAM_COUNT; stream++) {
        row[stream] = rows;
        name[rows] = cvy_stream_name((cvy_stream)stream);
        rows += used[stream];
    }
    cvy_status status = lay_streams(trace, row, &t);
    if (status == CVY_OK && t.spans > 0) {
        cvy_chart chart = {.title = "Streams of the slowest rank", .series = choose_series(&t, of), .of = of,
                           .rows = rows, .row = name};
        status = draw(page, &t, &chart, "What stands below each other runs at the same time.");
    }
    cvy_free(t.span);
    return status;
}

/* ---- the longest steps ---- */

typedef struct long_step {
    double seconds;
    int stage, index;
} long_step;

/* The longest first; of equal ones the earlier. */
static int compare_steps(const void *a, const void *b)
{
    const long_step *x = a, *y = b;
    if (x->seconds != y->seconds) {
        return x->seconds < y->seconds ? 1 : -1;
    }
    return x->stage != y->stage ? x->stage - y->stage : x->index - y->index;
}

static void add_step_row(cvy_page *page, const cvy_trace *trace, const long_step *at)
{
    char what[CVY_STEP_KIND_TEXT], text[2][CVY_UNIT_TEXT];
    const cvy_trace_rank *rank = &trace->rank[at->stage];
    const cvy_schedule *s = &rank->plan->schedule[CVY_SCHEDULE_TRAIN];
    const cvy_step *step = &s->step[at->index];
    cvy_page_cell(page, "%s", step->layer >= 0 ? rank->plan->model->layer[step->layer].name : "-");
    cvy_page_cell(page, "%s", cvy_step_print_kind(s, step, what));
    if (trace->ranks > 1) {
        cvy_page_cell(page, "%d", at->stage);
    } else {
        cvy_page_cell(page, "%s", cvy_print_seconds(rank->start_s[at->index], text[0]));
    }
    cvy_page_cell(page, "%s", cvy_print_seconds(step->estimate_s, text[1]));
    cvy_page_cell(page, "%.0f %%", 100.0 * step->estimate_error);
    cvy_page_cell(page, "%.0f", rank->times[at->index]);
}

static cvy_status add_steps_table(cvy_page *page, const cvy_trace *trace)
{
    enum { SHOWN = 30 };
    const cvy_page_column column[] = {{.name = "layer"},
                                      {.name = "step"},
                                      {.name = trace->ranks > 1 ? "stage" : "starts at", .number = true},
                                      {.name = "takes", .number = true},
                                      {.name = "\xc2\xb1", .number = true},
                                      {.name = "times", .number = true}};
    int steps = 0, at = 0;
    for (int i = 0; i < trace->ranks; i++) {
        steps += trace->rank[i].plan->schedule[CVY_SCHEDULE_TRAIN].steps;
    }
    long_step *list = cvy_calloc((size_t)steps + 1, sizeof *list);
    if (!list) {
        return CVY_ERR_MEMORY;
    }
    for (int i = 0; i < trace->ranks; i++) {
        const cvy_schedule *s = &trace->rank[i].plan->schedule[CVY_SCHEDULE_TRAIN];
        for (int k = 0; k < s->steps; k++) {
            list[at++] = (long_step){s->step[k].estimate_s * trace->rank[i].times[k], i, k};
        }
    }
    qsort(list, (size_t)steps, sizeof *list, compare_steps);
    cvy_page_begin_table(page, column, 6, "The longest steps");
    for (int i = 0; i < steps && i < SHOWN && list[i].seconds > 0.0; i++) {
        add_step_row(page, trace, &list[i]);
    }
    cvy_page_end_table(page);
    cvy_free(list);
    return CVY_OK;
}

/* ---- stages of a pipeline ---- */

static const char *const work_names[CVY_STAGE_WORK_COUNT] = {
    [CVY_STAGE_FORWARD] = "forward",
    [CVY_STAGE_BACKWARD] = "backward",
    [CVY_STAGE_REST] = "gradients of weights",
    [CVY_STAGE_UPDATE] = "exchange and update",
};

/* Series: work of even micro-batches, then that of odd ones. */
static cvy_status draw_stages(cvy_page *page, const cvy_trace *trace)
{
    enum { MOST_SLICES = 12000 };
    static const cvy_chart_series of[] = {
        {.name = "forward", .colour = 1},  {.name = "forward, every other micro-batch", .colour = 5},
        {.name = "backward", .colour = 2}, {.name = "backward, every other", .colour = 8},
        {.name = "exchange and update", .colour = 3},
    };
    static const int series[CVY_STAGE_WORK_COUNT] = {0, 2, 2, 4};
    char text[CVY_CHART_MOST_POINTS][NAME_TEXT];
    const char *name[CVY_CHART_MOST_POINTS];
    timeline t = {.spans = 0};
    cvy_status status = CVY_OK;
    if (trace->ranks > CVY_CHART_MOST_POINTS || trace->slices > MOST_SLICES) {
        return CVY_OK; /* nobody could read it; the table has the stages */
    }
    for (int i = 0; i < trace->ranks; i++) {
        snprintf(text[i], NAME_TEXT, "stage %d", i);
        name[i] = text[i];
    }
    for (int i = 0; i < trace->slices && status == CVY_OK; i++) {
        const cvy_stage_slice *slice = &trace->slice[i];
        if (slice->end_s > slice->start_s) {
            status = add_span(&t, slice->stage, series[slice->work] + slice->micro_batch % 2, slice->start_s,
                              slice->end_s);
        }
    }
    if (status == CVY_OK) {
        cvy_chart chart = {.title = "Stages of the pipeline", .series = 5, .of = of, .rows = trace->ranks,
                           .row = name};
        status = draw(page, &t, &chart, "Gaps are the bubble, and waiting for what passes between stages.");
    }
    cvy_free(t.span);
    return status;
}

static void add_stages_table(cvy_page *page, const cvy_trace *trace)
{
    cvy_page_column column[2 + CVY_STAGE_WORK_COUNT] = {{.name = "stage"}, {.name = "idle", .number = true}};
    double end_s = 0.0;
    char text[CVY_UNIT_TEXT];
    for (int i = 0; i < CVY_STAGE_WORK_COUNT; i++) {
        column[2 + i] = (cvy_page_column){.name = work_names[i], .number = true};
    }
    for (int i = 0; i < trace->slices; i++) {
        end_s = fmax(end_s, trace->slice[i].end_s);
    }
    cvy_page_begin_table(page, column, 2 + CVY_STAGE_WORK_COUNT, "Seconds of the stages");
    for (int stage = 0; stage < trace->ranks; stage++) {
        double seconds[CVY_STAGE_WORK_COUNT] = {0.0}, busy_s = 0.0;
        for (int i = 0; i < trace->slices; i++) {
            const cvy_stage_slice *slice = &trace->slice[i];
            double took_s = slice->stage == stage ? slice->end_s - slice->start_s : 0.0;
            seconds[slice->work] += took_s;
            busy_s += took_s;
        }
        cvy_page_cell(page, "%d", stage);
        cvy_page_cell(page, "%.0f %%", end_s > 0.0 ? 100.0 * (1.0 - busy_s / end_s) : 0.0);
        for (int i = 0; i < CVY_STAGE_WORK_COUNT; i++) {
            cvy_page_cell(page, "%s", cvy_print_seconds(seconds[i], text));
        }
    }
    cvy_page_end_table(page);
}

cvy_status cvy_report_timeline(cvy_page *page, const cvy_trace *trace)
{
    cvy_page_section(page, "timeline", "One iteration in time");
    if (trace->slices > 0) {
        CVY_TRY(draw_stages(page, trace));
        add_stages_table(page, trace);
    } else {
        CVY_TRY(draw_streams(page, trace));
    }
    return add_steps_table(page, trace);
}
