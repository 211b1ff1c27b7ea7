/*
 * Rates stand beside the seconds: they tell a slow kernel from a large one. Where floors are known they stand between
 * the two, and take their room from the words.
 */
#include "cli/profile_table.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

/* Widths of columns; floors 0: there is none. */
typedef struct widths {
    int name, algorithm, calls, seconds, floor;
} widths;

static const widths without_floors = {35, 19, 8, 9, 0};
static const widths with_floors = {34, 12, 6, 8, 8};

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

static void print_row(const cvy_profile_row *row, const widths *w, double wall_s)
{
    printf("%-*.*s %-*.*s ", w->name, w->name, row->name, w->algorithm, w->algorithm, row->algorithm);
    if (row->calls > 0) {
        printf("%*" PRId64, w->calls, row->calls);
    } else {
        printf("%*s", w->calls, "-");
    }
    printf(" %*.*g %5.1f%%", w->seconds, w->floor ? 3 : 4, row->seconds,
           wall_s > 0 ? 100 * row->seconds / wall_s : 0.0);
    if (w->floor) {
        print_floor(row, w->floor);
    }
    print_rate(row->flop, row->seconds, 7);
    print_rate(row->bytes, row->seconds, 6);
    printf("\n");
}

static void print_heading(const widths *w)
{
    printf("%-*s %-*s %*s %*s %6s", w->name, "step", w->algorithm, "algorithm", w->calls, "calls", w->seconds,
           "seconds", "share");
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
    }
    return sum;
}

void cli_print_profile(const cvy_profile_row *row, int rows, double wall_s, int most)
{
    int shown = most > 0 && most + 1 < rows ? most : rows; /* one row left would take the line that says "others" */
    cvy_profile_row total = sum_rows(row, 0, rows, "all steps");
    const widths *w = total.floor_s > 0 ? &with_floors : &without_floors;
    wall_s = fmax(wall_s, total.seconds);
    print_heading(w);
    for (int i = 0; i < shown; i++) {
        print_row(&row[i], w, wall_s);
    }
    if (shown < rows) {
        char name[64];
        snprintf(name, sizeof name, "%d other kinds (--log-view)", rows - shown);
        cvy_profile_row others = sum_rows(row, shown, rows, name);
        print_row(&others, w, wall_s);
    }
    print_row(&total, w, wall_s);
    cvy_profile_row outside = {.name = "outside steps", .seconds = wall_s - total.seconds};
    print_row(&outside, w, wall_s);
}
