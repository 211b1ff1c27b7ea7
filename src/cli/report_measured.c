/* The page of a comparison: the rows of convoy compare --measured. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "cli/compare.h"
#include "cli/report.h"
#include "report/comparison_page.h"

static cvy_compared_row describe_row(const cli_measured *m, int index, const cli_compared *row)
{
    return (cvy_compared_row){.model = cvy_csv_cell(m->csv, index, m->model),
                              .machine = cvy_csv_cell(m->csv, index, m->machine),
                              .strategy = cvy_csv_cell(m->csv, index, m->strategy),
                              .precision = cvy_csv_cell(m->csv, index, m->precision),
                              .family = row->family,
                              .why_not = row->feasible ? "" : row->why_not,
                              .ranks = row->ranks,
                              .batch = row->batch,
                              .measured_s = row->measured_s,
                              .predicted_s = row->predicted_s,
                              .accuracy = row->accuracy,
                              .over_memory = row->over_memory};
}

static void begin_page(const char *file, int rows, double sum, cvy_page *page)
{
    char title[160], subtitle[120];
    const char *slash = strrchr(file, '/');
    snprintf(title, sizeof title, "Comparison of %.120s", slash ? slash + 1 : file);
    snprintf(subtitle, sizeof subtitle, "%d row%s, mean accuracy %.1f %%", rows, rows == 1 ? "" : "s",
             rows ? 100.0 * sum / rows : 0.0);
    cvy_page_begin(title, subtitle, page);
}

static cvy_status write_page(const cli_measured *m, const cli_compared *compared, const char *path)
{
    const int rows = m->csv->rows;
    double sum = 0.0;
    cvy_page page;
    cvy_compared_row *row = cvy_calloc((size_t)rows + 1, sizeof *row);
    if (!row) {
        return CVY_ERR_MEMORY;
    }
    for (int i = 0; i < rows; i++) {
        row[i] = describe_row(m, i, &compared[i]);
        sum += row[i].accuracy;
    }
    begin_page(m->csv->file, rows, sum, &page);
    cvy_status status = cvy_report_comparison(&page, row, rows);
    status = status == CVY_OK ? cvy_page_save(&page, path) : status;
    cvy_page_clear(&page);
    cvy_free(row);
    return status;
}

cvy_status cli_report_measured(const char *file, const cli_options *options, const char *path)
{
    cli_measured measured;
    CVY_TRY(cli_measured_open(file, &measured));
    cvy_status status = CVY_ERR_MEMORY;
    cli_compared *compared = cvy_calloc((size_t)measured.csv->rows + 1, sizeof *compared);
    if (compared) {
        status = cli_measured_predict(&measured, options, compared);
        status = status == CVY_OK ? write_page(&measured, compared, path) : status;
    }
    cvy_free(compared);
    cli_measured_close(&measured);
    return status;
}
