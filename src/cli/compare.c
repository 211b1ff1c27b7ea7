/* convoy compare: measured iterations beside predicted ones, and how close they are, by strategy and over all. */
#include "cli/compare.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "cli/json_output.h"
#include "cli/matrix.h"

/* Families are sets of data, spatial, one of three cuts of channels, and pipeline. */
enum { STRATEGY_WIDTH = 40, MOST_FAMILIES = 32 };

/* The accuracies of one family of strategies. */
typedef struct mean {
    const char *family;
    double sum;
    int rows;
} mean;

static int sum_families(const cli_compared *row, int rows, mean *means)
{
    int count = 0;
    for (int i = 0; i < rows; i++) {
        int at = 0;
        while (at < count && strcmp(means[at].family, row[i].family) != 0) {
            at++;
        }
        if (at == count) {
            means[count++] = (mean){.family = row[i].family};
        }
        means[at].sum += row[i].accuracy;
        means[at].rows++;
    }
    return count;
}

static double sum_accuracy(const cli_compared *row, int rows)
{
    double sum = 0.0;
    for (int i = 0; i < rows; i++) {
        sum += row[i].accuracy;
    }
    return sum;
}

/* ---- for people ---- */

static void print_row(const cli_measured *m, int index, const cli_compared *row)
{
    char unit[2][CVY_UNIT_TEXT];
    printf("  ");
    cli_print_column(STRATEGY_WIDTH, cvy_csv_cell(m->csv, index, m->strategy));
    printf(" %6" PRId64 " %7" PRId64 " %-5s %9s %9s %6.1f %%%s%s\n", row->ranks, row->batch,
           cvy_precision_name(row->precision), row->feasible ? cvy_print_seconds(row->predicted_s, unit[0]) : "-",
           cvy_print_seconds(row->measured_s, unit[1]), 100.0 * row->accuracy, row->over_memory ? " !" : "",
           row->low_confidence ? " ?" : "");
}

/* Whether a row begins another model or machine than the one before. */
static bool begins_group(const cli_measured *m, int row)
{
    return row == 0 || strcmp(cvy_csv_cell(m->csv, row, m->model), cvy_csv_cell(m->csv, row - 1, m->model)) != 0 ||
           strcmp(cvy_csv_cell(m->csv, row, m->machine), cvy_csv_cell(m->csv, row - 1, m->machine)) != 0;
}

static void print_reasons(const cli_measured *m, const cli_compared *row)
{
    int over = 0, low = 0;
    for (int i = 0; i < m->csv->rows; i++) {
        over += row[i].over_memory;
        low += row[i].low_confidence;
        if (!row[i].feasible) {
            printf("line %d: no schedule, so accuracy 0: ", m->csv->line[i + 1]);
            cli_print_wrapped(4, row[i].why_not);
        }
    }
    if (over) {
        printf("! %d row%s: needs more memory than the device has\n", over, over == 1 ? "" : "s");
    }
    if (low) {
        printf("? %d row%s of low confidence: ran on managed memory, where tensors are paged\n", low,
               low == 1 ? "" : "s");
    }
}

static void print_rows(const cli_measured *m, const cli_compared *row)
{
    mean means[MOST_FAMILIES];
    const int rows = m->csv->rows, families = sum_families(row, rows, means);
    printf("  %-*s %6s %7s %-5s %9s %9s %8s\n", STRATEGY_WIDTH, "strategy", "ranks", "batch", "type", "predicted",
           "measured", "accuracy");
    for (int i = 0; i < rows; i++) {
        if (begins_group(m, i)) {
            const char *model = cvy_csv_cell(m->csv, i, m->model);
            printf("%s on %s\n", model, cvy_csv_cell(m->csv, i, m->machine));
            if (strcmp(model, row[i].as_model) != 0) { /* whose set-up has it so */
                printf("  there ");
                cli_print_wrapped(8, row[i].as_model);
            }
        }
        print_row(m, i, &row[i]);
    }
    print_reasons(m, row);
    printf("\naccuracy: 1 - |predicted - measured| / measured, of an iteration's seconds\n");
    for (int i = 0; i < families; i++) {
        printf("  %-24s %6.1f %%  %4d row%s\n", means[i].family, 100.0 * means[i].sum / means[i].rows, means[i].rows,
               means[i].rows == 1 ? "" : "s");
    }
    if (rows) {
        printf("  %-24s %6.1f %%  %4d row%s\n", "all", 100.0 * sum_accuracy(row, rows) / rows, rows,
               rows == 1 ? "" : "s");
    }
}

/* ---- for scripts ---- */

/* A cell as it stands in the file; a measured figure as a number. */
static json_t *describe_cell(const cli_measured *m, int row, int column)
{
    double value;
    bool figure = (column == m->iteration || column == m->rate) &&
                  cvy_csv_get_real(m->csv, row, column, 0.0, HUGE_VAL, &value) == CVY_OK;
    return figure ? cli_json_number(value) : json_string(cvy_csv_cell(m->csv, row, column));
}

static json_t *describe_row(const cli_measured *m, int index, const cli_compared *row)
{
    json_t *object = json_object();
    for (int i = 0; i < m->csv->columns; i++) {
        json_object_set_new(object, cvy_csv_name(m->csv, i), describe_cell(m, index, i));
    }
    json_t *figures = json_pack(
        "{s:I, s:I, s:s, s:o, s:o, s:o, s:b, s:b, s:o, s:b, s:s, s:s}", "ranks", (json_int_t)row->ranks, "global_batch",
        (json_int_t)row->batch, "precision", cvy_precision_name(row->precision), "predicted_s",
        row->feasible ? cli_json_number(row->predicted_s) : json_null(), "measured_s",
        cli_json_number(row->measured_s), "accuracy", cli_json_number(row->accuracy), "over_memory", row->over_memory,
        "feasible", row->feasible, "why_not", row->why_not[0] ? json_string(row->why_not) : json_null(),
        "low_confidence", row->low_confidence, "strategy_family", row->family, "predicted_model",
        row->as_model);
    if (object && figures) {
        json_object_update(object, figures);
    }
    json_decref(figures);
    return object;
}

static cvy_status print_json(const cli_measured *m, const cli_compared *row)
{
    mean means[MOST_FAMILIES];
    const int rows = m->csv->rows, families = sum_families(row, rows, means);
    json_t *list = json_array(), *by_strategy = json_object();
    for (int i = 0; i < rows; i++) {
        json_array_append_new(list, describe_row(m, i, &row[i]));
    }
    for (int i = 0; i < families; i++) {
        json_object_set_new(by_strategy, means[i].family, cli_json_number(means[i].sum / means[i].rows));
    }
    return cli_json_print(json_pack("{s:o, s:o, s:o}", "rows", list, "by_strategy", by_strategy, "mean_accuracy",
                                    rows ? cli_json_number(sum_accuracy(row, rows) / rows) : json_null()));
}

static cvy_status compare(const cli_options *options)
{
    cli_measured measured;
    cvy_status status = CVY_ERR_MEMORY;
    CVY_TRY(cli_measured_open(options->plan.measured, &measured));
    cli_compared *row = cvy_calloc((size_t)measured.csv->rows + 1, sizeof *row);
    if (!row) {
        goto done;
    }
    CVY_TRY_GOTO(status, done, cli_measured_predict(&measured, options, row));
    if (options->json) {
        status = print_json(&measured, row);
    } else {
        print_rows(&measured, row);
    }
done:
    cvy_free(row);
    cli_measured_close(&measured);
    return status;
}

/* What belongs to a matrix alone would do nothing elsewhere, in silence. */
static cvy_status check_matrix(const cli_matrix_options *m)
{
    const char *alone = m->machines ? "machine" : m->launcher ? "launcher" : m->out ? "out" : m->csv ? "csv" : NULL;
    CVY_REQUIRE(m->list || !alone, CVY_ERR_INPUT, "--%s goes with --matrix FILE", alone);
    return CVY_OK;
}

static cvy_status choose(const cli_options *options, const char *run)
{
    const int given = (run != NULL) + (options->plan.measured != NULL) + (options->matrix.list != NULL);
    CVY_REQUIRE(given == 1, CVY_ERR_INPUT, "convoy compare needs a run, measurements or a list of what to run: convoy "
                                           "compare RUN, --measured FILE.csv, or --matrix FILE --machine MACHINE");
    CVY_TRY(check_matrix(&options->matrix));
    return run                    ? cli_compare_run(run, options->plan.all, options->json)
           : options->matrix.list ? cli_compare_matrix(options)
                                  : compare(options);
}

static cvy_status run_compare(const cli_command *command, int argc, char **argv)
{
    cli_options options = cli_options_init;
    cvy_parsed_options parsed;
    cvy_status status = cli_parse(command, argc, argv, &options, &parsed);
    if (status == CVY_OK && !parsed.help) {
        status = choose(&options, parsed.operands ? parsed.operand[0] : NULL);
    }
    cvy_parsed_options_clear(&parsed);
    return status;
}

const cli_command cli_compare = {
    .name = "compare",
    .operands = "RUN",
    .usage = "RUN\n"
             "--measured FILE.csv\n"
             "--matrix FILE --machine MACHINE",
    .max_operands = 1,
    .rows = CLI_COMPARE,
    .summary = "Hold predicted iterations against measured ones",
    .examples = "  convoy compare run\n"
                "  convoy compare --measured measured.csv --optimizer adam\n"
                "  convoy compare --matrix matrix.txt --machine here.yaml --out runs.jsonl\n",
    .run = run_compare,
};
