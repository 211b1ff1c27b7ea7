/* The charts of a study in files: one below the other in one SVG file, or each in one of its own. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "cli/sweep.h"
#include "report/sweep_charts.h"

static bool is_svg(const char *path)
{
    size_t length = strlen(path);
    return length > 4 && strcmp(path + length - 4, ".svg") == 0;
}

static cvy_status write_one(const cvy_sweep_charts *charts, const char *path)
{
    const char *document[CVY_SWEEP_MOST_CHARTS];
    cvy_text svg = {0};
    for (int i = 0; i < charts->count; i++) {
        document[i] = charts->chart[i].svg;
    }
    cvy_chart_join(document, charts->count, &svg);
    return cvy_file_write_text(path, &svg, CVY_ERR_IO);
}

static cvy_status write_each(const cvy_sweep_charts *charts, const char *folder)
{
    CVY_TRY(cvy_folder_create(folder, CVY_ERR_IO));
    for (int i = 0; i < charts->count; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s.svg", charts->chart[i].name);
        char *path = cvy_path_join(folder, name);
        if (!path) {
            return CVY_ERR_MEMORY;
        }
        cvy_status status = cvy_file_write(path, charts->chart[i].svg, strlen(charts->chart[i].svg), CVY_ERR_IO);
        cvy_free(path);
        CVY_TRY(status);
    }
    return CVY_OK;
}

cvy_status cli_write_study_charts(const cli_study *s, const char *path)
{
    const cli_problem *p = s->problem;
    char title[256];
    cvy_sweep_charts charts = {.count = 0};
    snprintf(title, sizeof title, "%.80s on %.60s, batch %lld%s, %s", p->model_text, p->machine->name,
             (long long)p->batch, p->batch_per_rank ? " a rank" : "", cvy_precision_name(p->oracle.precision));
    cvy_status status = cvy_sweep_charts_draw(s->sweep, title, &charts);
    if (status == CVY_ERR_UNSUPPORTED) { /* the rest of the study is there */
        fprintf(stderr, "warning: %s; tables, --csv and --json have the figures\n", cvy_error_message());
        cvy_error_clear();
        return CVY_OK;
    }
    CVY_TRY(status);
    status = is_svg(path) ? write_one(&charts, path) : write_each(&charts, path);
    cvy_sweep_charts_clear(&charts);
    return status;
}
