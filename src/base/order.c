#include "base/order.h"

#include <stdlib.h>

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return x < y ? -1 : x > y;
}

void cvy_sort_doubles(double *values, int64_t count) { qsort(values, (size_t)count, sizeof *values, compare_doubles); }
