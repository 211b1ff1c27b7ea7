/*
 * convoy compare --matrix: rounds over all rows, one run of each a round, so that a machine that drifts does so for all
 * alike, and whoever stops early has something of every row. A row that fails is not tried again. Predictions are made
 * anew each time: the journal keeps what a clock said, and nothing else.
 */
#include "cli/matrix.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "cli/compare.h"
#include "cli/planning.h"
#include "cli/progress.h"
#include "cli/ranks.h"

/* ---- machines ---- */

static cvy_status open_machines(cli_matrix *m)
{
    const char *names = m->options->matrix.machines;
    CVY_REQUIRE(names, CVY_ERR_INPUT, "convoy compare --matrix needs a machine: --machine NAME or FILE, as convoy "
                                      "calibrate writes it");
    m->machines_text = cvy_strdup(names);
    if (!m->machines_text) {
        return CVY_ERR_MEMORY;
    }
    char *rest = m->machines_text, *name;
    for (char *from = rest; (name = strtok_r(from, ";", &rest)); from = NULL) {
        cvy_machine *machine = NULL;
        CVY_REQUIRE(m->machines < CLI_MATRIX_MOST_MACHINES, CVY_ERR_INPUT, "--machine: more than %d of them",
                    CLI_MATRIX_MOST_MACHINES);
        CVY_TRY(cvy_machine_open(name, &machine));
        m->machine[m->machines++] = (cli_matrix_machine){.name = name,
                                                         .cores = machine->device.cores,
                                                         .devices = cvy_machine_devices(machine),
                                                         .devices_per_node = machine->devices_per_node,
                                                         .bucket_bytes = machine->execution.bucket_bytes,
                                                         .probe_s = machine->device.probe_s};
        cvy_machine_destroy(&machine);
    }
    return CVY_OK;
}

/* A device is what a rank has: that of as many cores, then of the fewest devices that are enough; -1: none is. */
static int find_machine(const cli_matrix *m, const cli_matrix_row *row)
{
    int best = -1;
    for (int i = 0; i < m->machines; i++) {
        const cli_matrix_machine *at = &m->machine[i], *was = best >= 0 ? &m->machine[best] : NULL;
        bool like = at->cores == row->threads, was_like = was && was->cores == row->threads;
        bool better = !was || (like && !was_like) || (like == was_like && at->devices < was->devices);
        best = at->devices >= row->ranks && better ? i : best;
    }
    return best;
}

/* A run has the bucket of the line, else the machine's, else the usual one. */
static cvy_status find_bucket(const cli_matrix *m, cli_matrix_row *row)
{
    int64_t machines = row->machine >= 0 ? m->machine[row->machine].bucket_bytes : 0;
    row->bucket_bytes = machines > 0 ? machines : cli_options_init.train.bucket_bytes;
    return cli_parse_size("bucket", m->options->plan.bucket, &row->bucket_bytes);
}

/* ---- predictions ---- */

static void fail_row(cli_matrix_row *row, const char *why)
{
    row->priced = false;
    snprintf(row->why_not, sizeof row->why_not, "%s", why);
}

static cvy_status ask_oracle(const cli_matrix *m, cli_matrix_row *row)
{
    char batch[CLI_BATCH_TEXT];
    cli_prediction found = {.kinds = 0};
    cli_options asked = *m->options;
    snprintf(batch, sizeof batch, "%" PRId64, row->batch);
    asked.plan.machine = m->machine[row->machine].name;
    asked.plan.batch = batch;
    asked.plan.strategy = row->strategy;
    asked.plan.ranks = row->ranks;
    asked.plan.recompute = 1 + CVY_RECOMPUTE_NONE;
    CVY_TRY(cli_predict_line(&asked, row->model, row->bucket_bytes, &found));
    row->priced = !found.why_not[0];
    row->predicted_s = found.iteration_s;
    row->error_relative = found.error_relative;
    row->predicted_bytes = found.memory_bytes;
    snprintf(row->why_not, sizeof row->why_not, "%s", found.why_not);
    cli_prediction_clear(&found);
    return CVY_OK;
}

/* What is wrong with a row is told in its place; no memory ends all. */
static cvy_status predict_row(const cli_matrix *m, cli_matrix_row *row)
{
    int64_t space[3] = {0, 0, 0};
    cvy_model *model = NULL;
    cvy_strategy strategy;
    cvy_status status = cvy_model_open(row->model, &model);
    if (status == CVY_OK) {
        cvy_strategy_find_space(&model->layer[0].output, space);
        status = cvy_strategy_parse(row->strategy, row->ranks, space, &strategy);
    }
    cvy_model_destroy(&model);
    snprintf(row->family, sizeof row->family, "?");
    if (status == CVY_OK) {
        cvy_strategy_family(&strategy, row->family);
        if (row->machine < 0) {
            fail_row(row, "no --machine has so many devices");
            return CVY_OK;
        }
        status = ask_oracle(m, row);
    }
    if (status != CVY_OK && status != CVY_ERR_MEMORY) {
        fail_row(row, cvy_error_message());
        cvy_error_clear();
        return CVY_OK;
    }
    return status;
}

/* ---- measurements ---- */

/* What an iteration took by the runs so far; 0 before the first. */
static double guess(const cli_matrix_row *row)
{
    double sum_s = 0.0;
    for (int i = 0; i < row->runs; i++) {
        sum_s += row->run[i].iteration_s / row->runs;
    }
    return sum_s;
}

/* How far the whole is. */
typedef struct advance {
    cli_progress progress;
    double begun_s;
    int64_t done, count; /* runs of this call, and all that it has to make */
} advance;

static void show(advance *a)
{
    double spent_s = cvy_clock_s() - a->begun_s;
    double left_s = a->done ? spent_s / (double)a->done * (double)(a->count - a->done) : 0.0;
    if (a->done) {
        cli_progress_time(&a->progress, "runs", a->done, (double)a->done / (double)a->count, left_s);
    }
}

static int64_t count_left(const cli_matrix *m)
{
    int64_t left = 0;
    for (int i = 0; i < m->rows; i++) {
        left += m->row[i].failed ? 0 : m->options->matrix.runs - m->row[i].runs;
    }
    return left;
}

/* What a run's own words say is of the row alone; that no run can be started is of all. */
static cvy_status measure_row(const cli_matrix *m, cli_matrix_row *row, cli_matrix_journal *journal, advance *a)
{
    cli_matrix_run run = {0};
    double guess_s = row->runs ? guess(row) : row->priced ? row->predicted_s : 0.0;
    cvy_status status = cli_matrix_measure(m, row, guess_s, &run);
    a->done++;
    if (status == CVY_ERR_RANK) {
        row->failed = true;
        snprintf(row->why_failed, sizeof row->why_failed, "%s", cvy_error_message());
        cli_progress_log(&a->progress, "%s, line %d: %s", m->options->matrix.list, row->line, row->why_failed);
        cvy_error_clear();
        a->count -= m->options->matrix.runs - row->runs - 1;
        return CVY_OK;
    }
    CVY_TRY(status);
    cli_matrix_add_run(&run, row);
    return cli_matrix_journal_add(journal, m, row, &run);
}

static cvy_status measure(cli_matrix *m, cli_matrix_journal *journal)
{
    advance a = {.begun_s = cvy_clock_s(), .count = count_left(m)};
    cvy_status status = CVY_OK;
    cli_progress_init(m->options->quiet, &a.progress);
    for (int round = 0; round < m->options->matrix.runs && status == CVY_OK; round++) {
        for (int i = 0; i < m->rows && status == CVY_OK; i++) {
            cli_matrix_row *row = &m->row[i];
            if (!row->failed && row->runs <= round) {
                show(&a);
                status = measure_row(m, row, journal, &a);
            }
        }
    }
    cli_progress_clear(&a.progress);
    return status;
}

/* ---- all ---- */

static cvy_status prepare(cli_matrix *m)
{
    CVY_TRY(open_machines(m));
    CVY_TRY(cli_matrix_read(m->options->matrix.list, m));
    if (m->options->matrix.csv) {
        CVY_TRY(cvy_file_check_writable(m->options->matrix.csv, CVY_ERR_IO));
    }
    for (int i = 0; i < m->rows; i++) {
        m->row[i].machine = find_machine(m, &m->row[i]);
        CVY_TRY(find_bucket(m, &m->row[i]));
        CVY_TRY(predict_row(m, &m->row[i]));
    }
    return CVY_OK;
}

static cvy_status tell(const cli_matrix *m)
{
    cli_matrix_figures figures;
    CVY_TRY(cli_matrix_find_figures(m, &figures));
    cvy_status status = m->options->matrix.csv ? cli_matrix_write_csv(m, m->options->matrix.csv) : CVY_OK;
    if (status == CVY_OK && m->options->json) {
        status = cli_matrix_print_json(m, &figures);
    } else if (status == CVY_OK) {
        cli_matrix_print(m, &figures);
    }
    if (status == CVY_OK && figures.failed) {
        status = cvy_fail(CVY_ERR_IO, "%d of %d rows could not be measured", figures.failed, m->rows);
    }
    cli_matrix_figures_clear(&figures);
    return status;
}

cvy_status cli_compare_matrix(const cli_options *options)
{
    cli_matrix m = {.options = options};
    cli_matrix_journal *journal = NULL;
    cvy_status status;
    CVY_REQUIRE(cli_ranks_count() == 1, CVY_ERR_INPUT, "convoy compare --matrix starts the ranks of each row itself: "
                                                       "run it without a launcher, which --launcher names");
    CVY_TRY_GOTO(status, done, prepare(&m));
    CVY_TRY_GOTO(status, done, cli_matrix_journal_open(options->matrix.out, &m, &journal));
    CVY_TRY_GOTO(status, done, measure(&m, journal));
    for (int i = 0; i < m.rows; i++) {
        cli_matrix_sum_up(&m, &m.row[i]);
    }
    status = tell(&m);
done:
    cli_matrix_journal_close(&journal);
    cvy_free(m.row);
    cvy_free(m.text);
    cvy_free(m.machines_text);
    return status;
}
