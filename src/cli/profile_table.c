/* Rates stand beside the seconds: they tell a slow kernel from a large one. */
#include "cli/profile_table.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

static void print_rate(double amount, double seconds, int width)
{
    if (amount > 0 && seconds > 0) {
        printf(" %*.1f", width, amount / seconds * 1e-9);
    } else {
        printf(" %*s", width, "-");
    }
}

static void print_row(const cvy_profile_row *row, double wall_s)
{
    printf("%-35.35s %-19.19s ", row->name, row->algorithm);
    if (row->calls > 0) {
        printf("%8" PRId64, row->calls);
    } else {
        printf("%8s", "-");
    }
    printf(" %9.4g %5.1f %%", row->seconds, wall_s > 0 ? 100 * row->seconds / wall_s : 0.0);
    print_rate(row->flop, row->seconds, 7);
    print_rate(row->bytes, row->seconds, 6);
    printf("\n");
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
    }
    return sum;
}

void cli_print_profile(const cvy_profile_row *row, int rows, double wall_s, int most)
{
    int shown = most > 0 && most + 1 < rows ? most : rows; /* one row left would take the line that says "others" */
    cvy_profile_row total = sum_rows(row, 0, rows, "all steps");
    wall_s = fmax(wall_s, total.seconds);
    printf("%-35s %-19s %8s %9s %7s %7s %6s\n", "step", "algorithm", "calls", "seconds", "share", "GFLOP/s", "GB/s");
    for (int i = 0; i < shown; i++) {
        print_row(&row[i], wall_s);
    }
    if (shown < rows) {
        char name[64];
        snprintf(name, sizeof name, "%d other kinds (--log-view)", rows - shown);
        cvy_profile_row others = sum_rows(row, shown, rows, name);
        print_row(&others, wall_s);
    }
    print_row(&total, wall_s);
    cvy_profile_row outside = {.name = "outside steps", .seconds = wall_s - total.seconds};
    print_row(&outside, wall_s);
}
