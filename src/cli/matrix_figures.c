/*
 * Figures over a matrix: means of like rows, with signed errors beside accuracies so that what cancels shows; error
 * bars that hold or not; and whether the oracle puts strategies in the order in which a clock does.
 */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/order.h"
#include "cli/matrix.h"

static const double MOST_OFF = 0.15, MEMORY_CLOSE = 0.05; /* what convoy asks of its predictions */
static const int64_t MEMORY_SEEN_BYTES = 200000000;       /* below, the process itself is most of it */

bool cli_matrix_counts(const cli_matrix_row *row)
{
    return row->runs > 0 && row->machine >= 0;
}

bool cli_matrix_is_inside(const cli_matrix_row *row, const cli_matrix_middle *measured)
{
    return row->priced && fabs(row->predicted_s - measured->median_s) <= row->error_relative * row->predicted_s;
}

bool cli_matrix_is_off(const cli_matrix_row *row, const cli_matrix_middle *measured)
{
    double off_s = fabs(row->predicted_s - measured->median_s);
    return !row->priced || off_s > fmax(MOST_OFF * measured->median_s, measured->most_s - measured->least_s);
}

/* ---- runs ---- */

void cli_matrix_add_run(const cli_matrix_run *run, cli_matrix_row *row)
{
    row->run[row->runs++] = *run;
    row->memory_bytes = run->memory_bytes > row->memory_bytes ? run->memory_bytes : row->memory_bytes;
}

/* @p seconds come out in order. */
static cli_matrix_middle find_middle(const cli_matrix_row *row, double *seconds)
{
    if (row->runs == 0) {
        return (cli_matrix_middle){.median_s = 0.0};
    }
    cli_matrix_middle middle = {.median_s = cvy_find_median(seconds, row->runs)};
    middle.least_s = seconds[0];
    middle.most_s = seconds[row->runs - 1];
    if (row->priced && middle.median_s > 0.0) {
        middle.accuracy = fmax(0.0, 1.0 - fabs(row->predicted_s - middle.median_s) / middle.median_s);
    }
    return middle;
}

void cli_matrix_sum_up(const cli_matrix *matrix, cli_matrix_row *row)
{
    double usual_s = row->machine >= 0 ? matrix->machine[row->machine].probe_s : 0.0;
    double seconds[CLI_MOST_RUNS], pace[CLI_MOST_RUNS];
    bool paced = usual_s > 0.0 && row->runs > 0;
    for (int i = 0; i < row->runs; i++) {
        seconds[i] = row->run[i].iteration_s;
        paced = paced && row->run[i].probe_s > 0.0;
    }
    row->clock = find_middle(row, seconds);
    for (int i = 0; i < row->runs && paced; i++) {
        pace[i] = row->run[i].probe_s / usual_s;
        seconds[i] = row->run[i].iteration_s / pace[i];
    }
    row->pace = paced ? cvy_find_median(pace, row->runs) : 0.0;
    row->at_pace = paced ? find_middle(row, seconds) : (cli_matrix_middle){.median_s = 0.0};
}

/* ---- means ---- */

static void add_score(const cli_matrix_row *row, bool paced, cli_matrix_score *score)
{
    const cli_matrix_middle *measured = paced ? &row->at_pace : &row->clock;
    const cli_matrix_middle *worst = !score->worst ? NULL : paced ? &score->worst->at_pace : &score->worst->clock;
    score->accuracy += measured->accuracy;
    score->error += row->priced ? row->predicted_s / measured->median_s - 1.0 : 0.0;
    score->rows++;
    score->inside += cli_matrix_is_inside(row, measured);
    score->off += cli_matrix_is_off(row, measured);
    score->worst = !worst || measured->accuracy < worst->accuracy ? row : score->worst;
}

static void add_to(cli_matrix_mean *mean, const cli_matrix_row *row)
{
    add_score(row, false, &mean->clock);
    if (row->pace > 0.0) {
        add_score(row, true, &mean->at_pace);
    }
}

static void divide_score(cli_matrix_score *score)
{
    score->accuracy /= score->rows ? score->rows : 1;
    score->error /= score->rows ? score->rows : 1;
}

static void divide(cli_matrix_mean *mean)
{
    divide_score(&mean->clock);
    divide_score(&mean->at_pace);
}

/* There is room for as many means as there are rows. */
static void find_means(const cli_matrix *m, cli_matrix_figures *f)
{
    for (int i = 0; i < m->rows; i++) {
        const cli_matrix_row *row = &m->row[i];
        int at = 0;
        if (!cli_matrix_counts(row)) {
            continue;
        }
        while (at < f->means && (strcmp(f->mean[at].family, row->family) != 0 || f->mean[at].ranks != row->ranks ||
                                 f->mean[at].threads != row->threads)) {
            at++;
        }
        if (at == f->means) {
            f->mean[f->means++] = (cli_matrix_mean){.family = row->family, .ranks = row->ranks,
                                                    .threads = row->threads};
        }
        add_to(&f->mean[at], row);
        add_to(&f->all, row);
    }
    for (int i = 0; i < f->means; i++) {
        divide(&f->mean[i]);
    }
    divide(&f->all);
}

/* ---- rows ---- */

static void count_memory(const cli_matrix_row *row, cli_matrix_figures *f)
{
    if (!row->priced || row->memory_bytes <= MEMORY_SEEN_BYTES) {
        return;
    }
    double error = (double)row->predicted_bytes / (double)row->memory_bytes - 1.0;
    f->memory_rows++;
    f->memory_close += fabs(error) <= MEMORY_CLOSE;
    f->memory_error += fabs(error);
    f->memory_worst = fabs(error) > fabs(f->memory_worst) ? error : f->memory_worst;
}

static void count_rows(const cli_matrix *m, cli_matrix_figures *f)
{
    for (int i = 0; i < m->rows; i++) {
        const cli_matrix_row *row = &m->row[i];
        f->failed += row->failed;
        f->measured += row->runs > 0;
        f->unpriced += !row->priced;
        if (cli_matrix_counts(row)) {
            count_memory(row, f);
        }
    }
    f->memory_error /= f->memory_rows ? f->memory_rows : 1;
}

/* ---- order ---- */

static bool are_alike(const cli_matrix_row *a, const cli_matrix_row *b)
{
    return strcmp(a->model, b->model) == 0 && a->batch == b->batch && a->ranks == b->ranks && a->threads == b->threads;
}

/* Whether two rows are of one set of strategies that can be put in order. */
static bool are_comparable(const cli_matrix_row *a, const cli_matrix_row *b)
{
    return a->priced && b->priced && cli_matrix_counts(a) && cli_matrix_counts(b) && are_alike(a, b);
}

/* Count the pairs of a set, which begins with row @p first; its tau, and whether it has any pair. */
static bool order_set(const cli_matrix *m, int first, cli_matrix_order *order, double *tau_out)
{
    int pairs = 0, agreed = 0;
    for (int i = first; i < m->rows; i++) {
        const cli_matrix_row *a = &m->row[i];
        for (int j = i + 1; j < m->rows && are_comparable(a, &m->row[first]); j++) {
            const cli_matrix_row *b = &m->row[j];
            if (!are_comparable(a, b) || a->clock.median_s == b->clock.median_s) {
                continue;
            }
            bool same = (a->predicted_s < b->predicted_s) == (a->clock.median_s < b->clock.median_s);
            bool apart = a->clock.most_s < b->clock.least_s || b->clock.most_s < a->clock.least_s;
            pairs++;
            agreed += same;
            order->apart += apart;
            order->apart_agreed += apart && same;
        }
    }
    order->pairs += pairs;
    order->agreed += agreed;
    *tau_out = pairs ? (2.0 * agreed - pairs) / pairs : 0.0;
    return pairs > 0;
}

static bool begins_set(const cli_matrix *m, int row)
{
    for (int i = 0; i < row; i++) {
        if (are_comparable(&m->row[i], &m->row[row])) {
            return false;
        }
    }
    return true;
}

static void find_order(const cli_matrix *m, cli_matrix_order *order)
{
    double sum = 0.0, tau;
    for (int i = 0; i < m->rows; i++) {
        if (begins_set(m, i) && order_set(m, i, order, &tau)) {
            order->sets++;
            sum += tau;
        }
    }
    order->tau = order->sets ? sum / order->sets : 0.0;
}

cvy_status cli_matrix_find_figures(const cli_matrix *matrix, cli_matrix_figures *figures_out)
{
    cli_matrix_figures figures = {.mean = cvy_calloc((size_t)matrix->rows, sizeof *figures.mean)};
    if (!figures.mean) {
        return CVY_ERR_MEMORY;
    }
    find_means(matrix, &figures);
    count_rows(matrix, &figures);
    find_order(matrix, &figures.order);
    *figures_out = figures;
    return CVY_OK;
}

void cli_matrix_figures_clear(cli_matrix_figures *figures)
{
    cvy_free(figures->mean);
    *figures = (cli_matrix_figures){.mean = NULL};
}
