/* A matrix for scripts: JSON with all runs, and a table that convoy compare --measured reads. */
#include <stdio.h>

#include "base/csv.h"
#include "base/file.h"
#include "base/memory.h"
#include "cli/json_output.h"
#include "cli/matrix.h"

/* ---- JSON ---- */

static json_t *number_where(bool known, double value) { return known ? cli_json_number(value) : json_null(); }

static json_t *text_where(const char *text) { return text[0] ? json_string(text) : json_null(); }

static json_t *describe_runs(const cli_matrix_row *row)
{
    json_t *runs = json_array();
    for (int i = 0; i < row->runs; i++) {
        json_array_append_new(runs, cli_json_number(row->run[i].iteration_s));
    }
    return runs;
}

static json_t *describe_memory(const cli_matrix_row *row)
{
    bool both = row->priced && row->memory_bytes > 0;
    return json_pack("{s:o, s:o, s:o}", "predicted_bytes", number_where(row->priced, (double)row->predicted_bytes),
                     "measured_bytes", number_where(row->memory_bytes > 0, (double)row->memory_bytes), "error",
                     number_where(both, (double)row->predicted_bytes / (double)row->memory_bytes - 1.0));
}

/* What was measured, by the clock or at the calibration's pace, and how the prediction stands beside it. */
static json_t *describe_middle(const cli_matrix_row *row, const cli_matrix_middle *middle)
{
    bool measured = middle->median_s > 0.0, counts = measured && cli_matrix_counts(row);
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "measured_s", number_where(measured, middle->median_s),
                     "least_s", number_where(measured, middle->least_s), "most_s",
                     number_where(measured, middle->most_s), "error",
                     number_where(row->priced && measured, row->predicted_s / middle->median_s - 1.0), "accuracy",
                     number_where(counts, middle->accuracy), "inside",
                     counts ? json_boolean(cli_matrix_is_inside(row, middle)) : json_null());
}

static json_t *describe_row(const cli_matrix *m, const cli_matrix_row *row)
{
    json_t *object = json_pack(
        "{s:s, s:I, s:I, s:I, s:s, s:s, s:o, s:o}", "model", row->model, "global_batch", (json_int_t)row->batch,
        "ranks", (json_int_t)row->ranks, "threads_per_rank", (json_int_t)row->threads, "strategy", row->strategy,
        "strategy_family", row->family, "machine",
        row->machine >= 0 ? json_string(m->machine[row->machine].name) : json_null(), "runs_s", describe_runs(row));
    json_t *clock = describe_middle(row, &row->clock);
    json_t *figures = json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "predicted_s", number_where(row->priced, row->predicted_s),
        "error_relative", number_where(row->priced, row->error_relative), "pace",
        number_where(row->pace > 0.0, row->pace), "at_pace", describe_middle(row, &row->at_pace), "memory",
        describe_memory(row), "why_not", text_where(row->why_not), "why_failed", text_where(row->why_failed));
    if (object && clock && figures) {
        json_object_update(object, clock);
        json_object_update(object, figures);
    }
    json_decref(clock);
    json_decref(figures);
    return object;
}

/* Means at pace; those by the clock are keys of their own. */
static json_t *describe_at_pace(const cli_matrix_score *score)
{
    bool any = score->rows > 0;
    return json_pack("{s:o, s:o, s:o, s:i, s:i, s:i}", "mean_accuracy", number_where(any, score->accuracy),
                     "mean_error", number_where(any, score->error), "worst_accuracy",
                     number_where(any, !any ? 0.0 : score->worst->at_pace.accuracy), "counted", score->rows, "inside",
                     score->inside, "off", score->off);
}

static json_t *describe_mean(const cli_matrix_mean *mean)
{
    return json_pack("{s:s, s:I, s:I, s:o, s:o, s:i, s:o}", "strategy_family", mean->family, "ranks",
                     (json_int_t)mean->ranks, "threads_per_rank", (json_int_t)mean->threads, "accuracy",
                     cli_json_number(mean->clock.accuracy), "error", cli_json_number(mean->clock.error), "rows",
                     mean->clock.rows, "at_pace", describe_at_pace(&mean->at_pace));
}

static json_t *describe_order(const cli_matrix_order *o)
{
    return json_pack("{s:o, s:i, s:i, s:i, s:i, s:i}", "kendall_tau", number_where(o->sets > 0, o->tau), "sets",
                     o->sets, "pairs", o->pairs, "agreed", o->agreed, "apart", o->apart, "apart_agreed",
                     o->apart_agreed);
}

cvy_status cli_matrix_print_json(const cli_matrix *m, const cli_matrix_figures *f)
{
    json_t *rows = json_array(), *means = json_array();
    for (int i = 0; i < m->rows; i++) {
        json_array_append_new(rows, describe_row(m, &m->row[i]));
    }
    for (int i = 0; i < f->means; i++) {
        json_array_append_new(means, describe_mean(&f->mean[i]));
    }
    json_t *memory = json_pack("{s:i, s:i, s:o, s:o}", "rows", f->memory_rows, "close", f->memory_close, "mean_error",
                               number_where(f->memory_rows > 0, f->memory_error), "worst_error",
                               number_where(f->memory_rows > 0, f->memory_worst));
    const cli_matrix_score *clock = &f->all.clock;
    const double worst = clock->rows ? clock->worst->clock.accuracy : 0.0;
    return cli_json_print(json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:i, s:i, s:i, s:i, s:o, s:o, s:o}", "rows", rows, "by_strategy", means,
        "mean_accuracy", number_where(clock->rows > 0, clock->accuracy), "mean_error",
        number_where(clock->rows > 0, clock->error), "worst_accuracy", number_where(clock->rows > 0, worst), "counted",
        clock->rows, "inside", clock->inside, "off", clock->off, "failed", f->failed, "at_pace",
        describe_at_pace(&f->all.at_pace), "order", describe_order(&f->order), "memory", memory));
}

/* ---- CSV ---- */

static void add_row(const cli_matrix *m, const cli_matrix_row *row, cvy_text *text)
{
    cvy_csv_add_cell(row->model, text);
    cvy_text_add(text, ",");
    cvy_csv_add_cell(row->machine >= 0 ? m->machine[row->machine].name : "", text);
    cvy_text_add(text, ",");
    cvy_csv_add_cell(row->strategy, text);
    cvy_text_add(text, ",%lld,%lld,%lld,fp32", (long long)row->ranks, (long long)row->threads, (long long)row->batch);
    cvy_csv_add_number(row->clock.median_s, true, text);
    cvy_csv_add_number(row->clock.least_s, true, text);
    cvy_csv_add_number(row->clock.most_s, true, text);
    cvy_csv_add_number(row->predicted_s, row->priced, text);
    cvy_csv_add_number(row->error_relative, row->priced, text);
    cvy_csv_add_number(row->clock.accuracy, cli_matrix_counts(row), text);
    cvy_csv_add_number(row->pace, row->pace > 0.0, text);
    cvy_csv_add_number(row->at_pace.median_s, row->pace > 0.0, text);
    cvy_csv_add_number((double)row->memory_bytes, true, text);
    cvy_csv_add_number((double)row->predicted_bytes, row->priced, text);
    cvy_text_add(text, "\n");
}

/* Rows that were not measured have nothing to say there. */
cvy_status cli_matrix_write_csv(const cli_matrix *m, const char *path)
{
    cvy_text text = {0};
    cvy_text_add(&text, "model,machine,strategy,ranks,threads,global_batch,precision,iteration_s,least_s,most_s,"
                        "predicted_s,error_relative,accuracy,pace,at_pace_s,memory_bytes,predicted_memory_bytes\n");
    for (int i = 0; i < m->rows; i++) {
        if (m->row[i].runs > 0) {
            add_row(m, &m->row[i], &text);
        }
    }
    return cvy_file_write_text(path, &text, CVY_ERR_IO);
}
