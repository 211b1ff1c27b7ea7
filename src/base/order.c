#include "base/order.h"

#include <stdlib.h>

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return x < y ? -1 : x > y;
}

void cvy_sort_doubles(double *values, int64_t count) { qsort(values, (size_t)count, sizeof *values, compare_doubles); }

double cvy_find_median(double *values, int64_t count)
{
    if (count == 0) {
        return 0.0;
    }
    cvy_sort_doubles(values, count);
    return 0.5 * (values[(count - 1) / 2] + values[count / 2]);
}
