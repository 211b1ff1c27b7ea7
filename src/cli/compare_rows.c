/*
 * A row is a question like that of convoy plan. Rows of one model on one machine follow each other in most tables, so
 * the last of each stays open. A strategy that has no schedule is an answer; a cell that cannot be read is an error.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "base/text.h"
#include "cli/compare.h"

static cvy_status need_column(const cvy_csv *csv, const char *name, int *column_out)
{
    *column_out = cvy_csv_find(csv, name);
    CVY_REQUIRE(*column_out >= 0, CVY_ERR_INPUT,
                "%s:%d: no column '%s', expected model,machine,strategy,ranks,global_batch,precision and iteration_s "
                "or images_per_s", csv->file, csv->line[0], name);
    return CVY_OK;
}

static cvy_status find_columns(cli_measured *m)
{
    CVY_TRY(need_column(m->csv, "model", &m->model));
    CVY_TRY(need_column(m->csv, "machine", &m->machine));
    CVY_TRY(need_column(m->csv, "strategy", &m->strategy));
    CVY_TRY(need_column(m->csv, "ranks", &m->ranks));
    CVY_TRY(need_column(m->csv, "global_batch", &m->batch));
    CVY_TRY(need_column(m->csv, "precision", &m->precision));
    m->iteration = cvy_csv_find(m->csv, "iteration_s");
    m->rate = cvy_csv_find(m->csv, "images_per_s");
    return m->rate >= 0 ? CVY_OK : need_column(m->csv, "iteration_s", &m->iteration);
}

cvy_status cli_measured_open(const char *path, cli_measured *measured_out)
{
    cli_measured measured = {.csv = NULL};
    CVY_TRY(cvy_csv_load(path, &measured.csv));
    cvy_status status = find_columns(&measured);
    if (status != CVY_OK) {
        cvy_csv_destroy(&measured.csv);
        return status;
    }
    *measured_out = measured;
    return CVY_OK;
}

void cli_measured_close(cli_measured *measured) { cvy_csv_destroy(&measured->csv); }

/* ---- one row ---- */

static cvy_status read_precision(const cli_measured *m, int row, cvy_precision *precision_out)
{
    char word[CVY_WORD_TEXT];
    const char *text = cvy_csv_cell(m->csv, row, m->precision);
    for (int i = 0; i < CVY_PRECISION_COUNT; i++) {
        if (strcasecmp(text, cvy_precision_name((cvy_precision)i)) == 0) {
            *precision_out = (cvy_precision)i;
            return CVY_OK;
        }
    }
    return cvy_csv_fail(m->csv, row, "precision: found '%s', expected fp64, fp32, tf32, fp16 or bf16",
                        cvy_print_word(text, word));
}

static cvy_status read_numbers(const cli_measured *m, int row, cli_compared *c)
{
    static const double LEAST = 1e-9, MOST = 1e12;
    double rate;
    CVY_TRY(cvy_csv_get_int(m->csv, row, m->ranks, 1, CVY_MAX_RANKS, &c->ranks));
    CVY_TRY(cvy_csv_get_int(m->csv, row, m->batch, 1, INT64_C(1) << 40, &c->batch));
    CVY_TRY(read_precision(m, row, &c->precision));
    if (m->iteration >= 0 && cvy_csv_cell(m->csv, row, m->iteration)[0]) {
        return cvy_csv_get_real(m->csv, row, m->iteration, LEAST, MOST, &c->measured_s);
    }
    if (m->rate < 0) {
        return cvy_csv_fail(m->csv, row, "iteration_s: found nothing, expected seconds");
    }
    CVY_TRY(cvy_csv_get_real(m->csv, row, m->rate, LEAST, MOST, &rate));
    c->measured_s = (double)c->batch / rate;
    return CVY_OK;
}

/* What stays open from row to row. */
typedef struct predictor {
    const cli_measured *measured;
    const char *model_text, *machine_text;
    char *as_model; /* the model's text with what the machine's set-up adds */
    cvy_model *model;
    cvy_machine *machine;
    cvy_oracle_options oracle;
} predictor;

static void close_model(predictor *p)
{
    cvy_model_destroy(&p->model);
    cvy_free(p->as_model);
    p->as_model = NULL;
}

/* What was measured is the model as the machine's set-up has it. */
static cvy_status open_row(predictor *p, int row)
{
    const char *model = cvy_csv_cell(p->measured->csv, row, p->measured->model);
    const char *machine = cvy_csv_cell(p->measured->csv, row, p->measured->machine);
    bool other_machine = !p->machine || strcmp(p->machine_text, machine) != 0;
    if (other_machine) {
        cvy_machine_destroy(&p->machine);
        CVY_TRY(cvy_machine_open(machine, &p->machine));
        p->machine_text = machine;
    }
    if (other_machine || !p->model || strcmp(p->model_text, model) != 0) {
        close_model(p);
        CVY_TRY(cvy_model_add_options(model, p->machine->execution.model_options, &p->as_model));
        CVY_TRY(cvy_model_open(p->as_model, &p->model));
        p->model_text = model;
    }
    return CVY_OK;
}

static cvy_status estimate(const predictor *p, const cvy_strategy *strategy, const cli_compared *c,
                           cvy_estimate *estimate_out)
{
    cvy_oracle *oracle = NULL;
    cvy_oracle_options options = p->oracle;
    const cvy_estimate_question question = {.strategy = *strategy, .recompute = options.recompute};
    options.batch = c->batch;
    options.precision = c->precision;
    CVY_TRY(cvy_oracle_create(p->model, p->machine, &options, &oracle));
    cvy_status status = cvy_oracle_estimate(oracle, &question, estimate_out);
    cvy_oracle_destroy(&oracle);
    return status;
}

static cvy_status predict_row(predictor *p, int row, cli_compared *c)
{
    int64_t space[3];
    cvy_strategy strategy;
    cvy_estimate found;
    CVY_TRY(read_numbers(p->measured, row, c));
    CVY_TRY(open_row(p, row));
    snprintf(c->as_model, sizeof c->as_model, "%s", p->as_model);
    cvy_strategy_find_space(&p->model->layer[0].output, space);
    CVY_TRY(cvy_strategy_parse(cvy_csv_cell(p->measured->csv, row, p->measured->strategy), c->ranks, space, &strategy));
    CVY_REQUIRE(!strategy.automatic, CVY_ERR_INPUT, "strategy: found 'auto', expected the one that was measured");
    cvy_strategy_family(&strategy, c->family);
    CVY_TRY(estimate(p, &strategy, c, &found));
    c->feasible = found.feasible;
    c->over_memory = found.feasible && found.over_memory;
    c->low_confidence = found.feasible && found.managed_memory;
    snprintf(c->why_not, sizeof c->why_not, "%s", found.why_not);
    if (found.feasible) {
        c->predicted_s = found.iteration_s;
        c->accuracy = fmax(0.0, 1.0 - fabs(c->predicted_s - c->measured_s) / c->measured_s);
    }
    return CVY_OK;
}

cvy_status cli_measured_predict(const cli_measured *measured, const cli_options *options, cli_compared *rows_out)
{
    predictor p = {.measured = measured};
    cvy_status status = cli_parse_oracle_options(options, &p.oracle);
    for (int row = 0; row < measured->csv->rows && status == CVY_OK; row++) {
        rows_out[row] = (cli_compared){.ranks = 0};
        status = predict_row(&p, row, &rows_out[row]);
        if (status != CVY_OK && !strstr(cvy_error_message(), measured->csv->file)) {
            status = cvy_fail_within(status, "%s:%d", measured->csv->file, measured->csv->line[row + 1]);
        }
    }
    close_model(&p);
    cvy_machine_destroy(&p.machine);
    return status;
}
