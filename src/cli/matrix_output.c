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
        json_array_append_new(runs, cli_json_number(row->iteration_s[i]));
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

static json_t *describe_row(const cli_matrix *m, const cli_matrix_row *row)
{
    bool counts = cli_matrix_counts(row), measured = row->runs > 0;
    json_t *object = json_pack(
        "{s:s, s:I, s:I, s:I, s:s, s:s, s:o, s:o, s:o, s:o, s:o}", "model", row->model, "global_batch",
        (json_int_t)row->batch, "ranks", (json_int_t)row->ranks, "threads_per_rank", (json_int_t)row->threads,
        "strategy", row->strategy, "strategy_family", row->family, "machine",
        row->machine >= 0 ? json_string(m->machine[row->machine].name) : json_null(), "measured_s",
        number_where(measured, row->median_s), "least_s", number_where(measured, row->least_s), "most_s",
        number_where(measured, row->most_s), "runs_s", describe_runs(row));
    json_t *figures = json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "predicted_s", number_where(row->priced, row->predicted_s),
        "error_relative", number_where(row->priced, row->error_relative), "error",
        number_where(row->priced && measured, row->predicted_s / row->median_s - 1.0), "accuracy",
        number_where(counts, row->accuracy), "inside", counts ? json_boolean(cli_matrix_is_inside(row)) : json_null(),
        "memory", describe_memory(row), "why_not", text_where(row->why_not), "why_failed", text_where(row->why_failed));
    if (object && figures) {
        json_object_update(object, figures);
    }
    json_decref(figures);
    return object;
}

static json_t *describe_mean(const cli_matrix_mean *mean)
{
    return json_pack("{s:s, s:I, s:I, s:o, s:o, s:i}", "strategy_family", mean->family, "ranks",
                     (json_int_t)mean->ranks, "threads_per_rank", (json_int_t)mean->threads, "accuracy",
                     cli_json_number(mean->accuracy), "error", cli_json_number(mean->error), "rows", mean->rows);
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
    return cli_json_print(json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:i, s:i, s:i, s:i, s:o, s:o}", "rows", rows, "by_strategy", means, "mean_accuracy",
        number_where(f->all.rows > 0, f->all.accuracy), "mean_error", number_where(f->all.rows > 0, f->all.error),
        "worst_accuracy", number_where(f->worst != NULL, f->worst ? f->worst->accuracy : 0.0), "counted", f->all.rows,
        "inside", f->inside, "off", f->off, "failed", f->failed, "order", describe_order(&f->order), "memory", memory));
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
    cvy_csv_add_number(row->median_s, true, text);
    cvy_csv_add_number(row->least_s, true, text);
    cvy_csv_add_number(row->most_s, true, text);
    cvy_csv_add_number(row->predicted_s, row->priced, text);
    cvy_csv_add_number(row->error_relative, row->priced, text);
    cvy_csv_add_number(row->accuracy, cli_matrix_counts(row), text);
    cvy_csv_add_number((double)row->memory_bytes, true, text);
    cvy_csv_add_number((double)row->predicted_bytes, row->priced, text);
    cvy_text_add(text, "\n");
}

/* Rows that were not measured have nothing to say there. */
cvy_status cli_matrix_write_csv(const cli_matrix *m, const char *path)
{
    cvy_text text = {0};
    cvy_text_add(&text, "model,machine,strategy,ranks,threads,global_batch,precision,iteration_s,least_s,most_s,"
                        "predicted_s,error_relative,accuracy,memory_bytes,predicted_memory_bytes\n");
    for (int i = 0; i < m->rows; i++) {
        if (m->row[i].runs > 0) {
            add_row(m, &m->row[i], &text);
        }
    }
    return cvy_file_write_text(path, &text, CVY_ERR_IO);
}
