/*
 * Where which family of strategies is best: of parameters that are varied each by itself a chart of its values by
 * numbers of ranks; of those that are varied together one for every two of them, on the most ranks. Of more than two
 * the others have their first values there.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "report/sweep_charts_internal.h"

enum { LABEL_TEXT = 40, WORDS = 160 };

/* A chart under construction: families of strategies that are best somewhere, and cells that name them. */
typedef struct regions {
    char family[CVY_CHART_MOST_SERIES][CVY_STRATEGY_TEXT];
    int families;
    int rows, columns;
    const char *row[CVY_SWEEP_MOST_VALUES], *column[CVY_SWEEP_MOST_VALUES];
    int cell[CVY_SWEEP_MOST_VALUES * CVY_SWEEP_MOST_VALUES]; /* index of the family; -1: nothing fits */
} regions;

_Static_assert((int)CVY_SWEEP_MOST_RANKS <= (int)CVY_SWEEP_MOST_VALUES, "ranks are columns, too");

static int find_family(const cvy_estimate *best, regions *r)
{
    char name[CVY_STRATEGY_TEXT];
    int i = 0;
    if (!best->feasible) {
        return -1;
    }
    cvy_strategy_family(&best->strategy, name);
    while (i < r->families && strcmp(r->family[i], name) != 0) {
        i++;
    }
    if (i == r->families && i < CVY_CHART_MOST_SERIES) {
        snprintf(r->family[r->families++], CVY_STRATEGY_TEXT, "%s", name);
    }
    return i < CVY_CHART_MOST_SERIES ? i : -1;
}

/* Begin a chart whose rows are the values of an axis. */
static void begin_regions(const cvy_sweep_axis *axis, int columns, regions *r)
{
    r->families = 0;
    r->rows = axis->values;
    r->columns = columns;
    for (int i = 0; i < axis->values; i++) {
        r->row[i] = axis->value[i].text;
    }
}

static cvy_status add_regions(cvy_sweep_drawing *d, const char *name, const char *what, const char *x_title,
                              const char *y_title, const regions *r)
{
    cvy_chart_series of[CVY_CHART_MOST_SERIES];
    for (int i = 0; i < r->families; i++) {
        of[i] = (cvy_chart_series){.name = r->family[i]};
    }
    const cvy_chart chart = {.kind = CVY_CHART_REGIONS, .x_title = x_title, .y_title = y_title,
                             .label = r->column, .points = r->columns, .series = r->families, .of = of,
                             .rows = r->rows, .row = r->row, .cell = r->cell};
    return r->families ? cvy_sweep_add_chart(d, name, what, &chart) : CVY_OK; /* nothing fits anywhere */
}

/* ---- each by itself ---- */

/* The values of an axis, whose settings are every @p stride from @p first on, by ranks. */
static cvy_status draw_by_ranks(cvy_sweep_drawing *d, const cvy_sweep_axis *axis, int first, int stride, regions *r)
{
    char name[LABEL_TEXT], what[WORDS];
    const char *words = cvy_varied_words(axis->parameter);
    begin_regions(axis, d->ranks, r);
    memcpy(r->column, d->label, sizeof *r->column * (size_t)d->ranks);
    for (int k = 0; k < axis->values; k++) {
        const cvy_sweep_point *point = cvy_sweep_get_points(d->sweep, first + k * stride);
        for (int i = 0; i < d->ranks; i++) {
            r->cell[k * d->ranks + i] = find_family(&point[i].best, r);
        }
    }
    snprintf(name, sizeof name, "best-%s", cvy_varied_names[axis->parameter]);
    snprintf(what, sizeof what, "best strategy%s%s", d->page ? " by " : "", d->page ? words : "");
    return add_regions(d, name, what, "ranks", words, r);
}

/* ---- together ---- */

/* How far the settings of neighbouring values lie apart: the last axis changes fastest. */
static int find_stride(const cvy_sweep_options *o, int axis)
{
    int stride = 1;
    for (int i = axis + 1; i < o->axes; i++) {
        stride *= o->axis[i].values;
    }
    return stride;
}

/* The figures of a chart of two parameters, as a table that is folded. */
static void add_table(cvy_page *page, const char *x_title, const char *y_title, const regions *r)
{
    cvy_page_column column[1 + CVY_SWEEP_MOST_VALUES];
    char corner[WORDS], folded[WORDS];
    snprintf(corner, sizeof corner, "%s, by %s", y_title, x_title);
    snprintf(folded, sizeof folded, "The best by %s and %s", y_title, x_title);
    column[0] = (cvy_page_column){.name = corner};
    for (int i = 0; i < r->columns; i++) {
        column[1 + i] = (cvy_page_column){.name = r->column[i]};
    }
    cvy_page_begin_table(page, column, 1 + r->columns, folded);
    for (int k = 0; k < r->rows; k++) {
        cvy_page_cell(page, "%s", r->row[k]);
        for (int i = 0; i < r->columns; i++) {
            int family = r->cell[k * r->columns + i];
            cvy_page_cell(page, "%s", family < 0 ? "nothing fits" : r->family[family]);
        }
    }
    cvy_page_end_table(page);
}

/* ", batch 64, precision fp32": the first values of all axes that have several and are neither of two. */
static void name_others(const cvy_sweep_options *o, int one, int other, char text[WORDS])
{
    int length = 0;
    text[0] = '\0';
    for (int i = 0; i < o->axes && length < WORDS; i++) {
        if (i != one && i != other && o->axis[i].values > 1) {
            length += snprintf(text + length, (size_t)(WORDS - length), ", %s %s",
                               cvy_varied_words(o->axis[i].parameter), o->axis[i].value[0].text);
        }
    }
}

/* The values of one axis by those of another, on the most ranks. */
static cvy_status draw_by_two(cvy_sweep_drawing *d, int one, int other, regions *r)
{
    const cvy_sweep_options *o = &d->sweep->options;
    const cvy_sweep_axis *rows = &o->axis[one], *columns = &o->axis[other];
    const char *x_title = cvy_varied_words(columns->parameter), *y_title = cvy_varied_words(rows->parameter);
    char name[LABEL_TEXT], what[2 * WORDS], others[WORDS];
    begin_regions(rows, columns->values, r);
    for (int i = 0; i < columns->values; i++) {
        r->column[i] = columns->value[i].text;
    }
    for (int k = 0; k < r->rows; k++) {
        for (int i = 0; i < r->columns; i++) {
            int setting = k * find_stride(o, one) + i * find_stride(o, other);
            const cvy_sweep_point *most = &cvy_sweep_get_points(d->sweep, setting)[d->ranks - 1];
            r->cell[k * r->columns + i] = find_family(&most->best, r);
        }
    }
    name_others(o, one, other, others);
    snprintf(name, sizeof name, "best-%s-%s", cvy_varied_names[rows->parameter],
             cvy_varied_names[columns->parameter]);
    snprintf(what, sizeof what, "best strategy by %s and %s on %s rank%s%s", y_title, x_title, d->label[d->ranks - 1],
             o->ranks[d->ranks - 1] == 1 ? "" : "s", others);
    CVY_TRY(add_regions(d, name, what, x_title, y_title, r));
    if (d->page) {
        add_table(d->page, x_title, y_title, r);
    }
    return CVY_OK;
}

/* Every two parameters that have several values; a single one by ranks. */
static cvy_status draw_product(cvy_sweep_drawing *d, regions *r)
{
    const cvy_sweep_options *o = &d->sweep->options;
    int several[CVY_VARIED_COUNT], count = 0;
    for (int i = 0; i < o->axes; i++) {
        several[count] = i;
        count += o->axis[i].values > 1;
    }
    if (count == 1) {
        return draw_by_ranks(d, &o->axis[several[0]], 0, find_stride(o, several[0]), r);
    }
    for (int i = 0; i < count; i++) {
        for (int k = i + 1; k < count; k++) {
            CVY_TRY(draw_by_two(d, several[i], several[k], r));
        }
    }
    return CVY_OK;
}

cvy_status cvy_sweep_draw_regions(cvy_sweep_drawing *d)
{
    const cvy_sweep_options *o = &d->sweep->options;
    regions *r = cvy_calloc(1, sizeof *r);
    if (!r) {
        return CVY_ERR_MEMORY;
    }
    cvy_status status = o->cross ? draw_product(d, r) : CVY_OK;
    for (int i = 0, first = 1; i < o->axes && !o->cross && status == CVY_OK; i++) {
        status = draw_by_ranks(d, &o->axis[i], first, 1, r);
        first += o->axis[i].values;
    }
    cvy_free(r);
    return status;
}
