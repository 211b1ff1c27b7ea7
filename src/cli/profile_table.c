/*
 * Rates stand beside the seconds: they tell a slow kernel from a large one. Where floors are known they stand between
 * the two, and take their room from the words; so do the spread over ranks, and predictions.
 */
#include "cli/profile_table.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

/* Widths of columns; 0: there is none. */
typedef struct widths {
    int name, algorithm, calls, seconds, floor, spread, predicted;
} widths;

/* By what the rows hold; each column but the first has a blank before it, a share and rates stand in all. */
static widths choose_widths(bool floors, bool ranks, bool predicted)
{
    enum { WIDTH = 100, SHARE = 7, OF_FLOOR = 6, RATES = 15, MOST_NAME = 38 };
    if (!ranks && !predicted) {
        return floors ? (widths){34, 12, 6, 8, 8, 0, 0} : (widths){35, 19, 8, 9, 0, 0, 0};
    }
    widths w = {0, floors ? 0 : 12, 6, 8, floors ? 8 : 0, ranks ? 5 : 0, predicted ? 8 : 0};
    const int columns[] = {w.algorithm, w.calls, w.seconds, w.floor, w.spread, w.predicted};
    w.name = WIDTH - SHARE - RATES - (floors ? OF_FLOOR : 0);
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++) {
        w.name -= columns[i] > 0 ? columns[i] + 1 : 0;
    }
    w.name = w.name < MOST_NAME ? w.name : MOST_NAME;
    return w;
}

static void print_rate(double amount, double seconds, int width)
{
    if (amount > 0 && seconds > 0) {
        printf(" %*.1f", width, amount / seconds * 1e-9);
    } else {
        printf(" %*s", width, "-");
    }
}

/* The floor and the share of it that was reached. */
static void print_floor(const cvy_profile_row *row, int width)
{
    if (row->floor_s > 0 && row->seconds > 0) {
        printf(" %*.3g %4.0f%%", width, row->floor_s, 100 * row->floor_s / row->seconds);
    } else {
        printf(" %*s %5s", width, "-", "-");
    }
}

/* How the ranks differ: the longest by the shortest; and what was predicted. */
static void print_spread(const cvy_profile_row *row, const widths *w)
{
    if (w->spread && row->ranks > 1 && row->least_s > 0) {
        double spread = row->seconds / row->least_s;
        printf(" %*.*f", w->spread, spread < 100 ? 2 : 0, spread < 99999 ? spread : 99999);
    } else if (w->spread) {
        printf(" %*s", w->spread, "-");
    }
    if (w->predicted && row->predicted_s > 0) {
        printf(" %*.3g", w->predicted, row->predicted_s);
    } else if (w->predicted) {
        printf(" %*s", w->predicted, "-");
    }
}

static void print_words(const char *name, const char *algorithm, const widths *w)
{
    printf("%-*.*s ", w->name, w->name, name);
    if (w->algorithm) {
        printf("%-*.*s ", w->algorithm, w->algorithm, algorithm);
    }
}

static void print_row(const cvy_profile_row *row, const widths *w, double wall_s)
{
    print_words(row->name, row->algorithm, w);
    if (row->calls > 0) {
        printf("%*" PRId64, w->calls, row->calls);
    } else {
        printf("%*s", w->calls, "-");
    }
    printf(" %*.*g %5.1f%%", w->seconds, w->seconds < 9 ? 3 : 4, row->seconds,
           wall_s > 0 ? 100 * row->seconds / wall_s : 0.0);
    print_spread(row, w);
    if (w->floor) {
        print_floor(row, w->floor);
    }
    print_rate(row->flop, row->seconds, 7);
    print_rate(row->bytes, row->seconds, 6);
    printf("\n");
}

static void print_heading(const widths *w)
{
    print_words("step", "algorithm", w);
    printf("%*s %*s %6s", w->calls, "calls", w->seconds, "seconds", "share");
    if (w->spread) {
        printf(" %*s", w->spread, "x min");
    }
    if (w->predicted) {
        printf(" %*s", w->predicted, "predict.");
    }
    if (w->floor) {
        printf(" %*s %5s", w->floor, "floor s", "of it");
    }
    printf(" %7s %6s\n", "GFLOP/s", "GB/s");
}

/* Sum of rows from @p first on, under a name. */
static cvy_profile_row sum_rows(const cvy_profile_row *row, int first, int rows, const char *name)
{
    cvy_profile_row sum = {0};
    snprintf(sum.name, sizeof sum.name, "%s", name);
    for (int i = first; i < rows; i++) {
        sum.calls += row[i].calls;
        sum.seconds += row[i].seconds;
        sum.flop += row[i].flop;
        sum.bytes += row[i].bytes;
        sum.floor_s += row[i].floor_s;
        sum.predicted_s += row[i].predicted_s;
    }
    return sum;
}

/* Whether some kind is on several ranks: "batch", at the least, or what stages have in common. */
static bool is_spread(const cvy_profile_row *row, int rows)
{
    bool spread = false;
    for (int i = 0; i < rows; i++) {
        spread = spread || row[i].ranks > 1;
    }
    return spread;
}

void cli_print_profile(const cvy_profile_row *row, int rows, double wall_s, int most)
{
    int shown = most > 0 && most + 1 < rows ? most : rows; /* one row left would take the line that says "others" */
    bool spread = is_spread(row, rows);
    cvy_profile_row total = sum_rows(row, 0, rows, spread ? "all, each on its slowest rank" : "all steps");
    const widths w = choose_widths(total.floor_s > 0, spread, total.predicted_s > 0);
    double outside_s = fmax(wall_s - total.seconds, 0.0);
    wall_s = spread ? wall_s : fmax(wall_s, total.seconds);
    print_heading(&w);
    for (int i = 0; i < shown; i++) {
        print_row(&row[i], &w, wall_s);
    }
    if (shown < rows) {
        char name[64];
        snprintf(name, sizeof name, "%d other kinds (--log-view)", rows - shown);
        cvy_profile_row others = sum_rows(row, shown, rows, name);
        print_row(&others, &w, wall_s);
    }
    print_row(&total, &w, wall_s);
    if (!spread) { /* sums of several ranks' longest say nothing of what is outside */
        cvy_profile_row outside = {.name = "outside steps", .seconds = outside_s};
        print_row(&outside, &w, wall_s);
    }
}
