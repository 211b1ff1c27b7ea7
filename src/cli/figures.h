/* Figures for people that base/text.h has no unit for. */
#ifndef CVY_CLI_FIGURES_H
#define CVY_CLI_FIGURES_H

#include <math.h>
#include <stdio.h>

#include "base/text.h"

/** "85.5", "12,345": images a second, without a unit. @p text takes CVY_UNIT_TEXT bytes. */
static inline const char *cli_print_rate(double per_s, char *text)
{
    if (fabs(per_s) >= 1000 && fabs(per_s) < 1e15) {
        return cvy_print_count(llround(per_s), text);
    }
    snprintf(text, CVY_UNIT_TEXT, "%.3g", per_s);
    return text;
}

#endif
