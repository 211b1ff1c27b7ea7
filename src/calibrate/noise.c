/* Medians and quartiles of probes: no single one of them, however long, moves what is said. */
#include "calibrate/noise.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/order.h"

enum { A_FEW = 8 };

static const double long_probe = 1.10;      /* of the median: what turbo and timer alone do not do */
static const double worth_saying = 0.05;    /* of drift */
static const double often = 0.10;           /* of the probes */

/* The quantile of numbers that are put in order; @p values is changed. */
static double find_quantile(double *values, int count, double share)
{
    cvy_sort_doubles(values, count);
    return values[(int)(share * (count - 1) + 0.5)];
}

static cvy_status copy_probes(const cvy_noise *noise, double **copy_out)
{
    double *copy = cvy_calloc((size_t)noise->probes + 1, sizeof *copy);
    if (!copy) {
        return CVY_ERR_MEMORY;
    }
    memcpy(copy, noise->seconds, (size_t)noise->probes * sizeof *copy);
    *copy_out = copy;
    return CVY_OK;
}

cvy_status cvy_noise_add(cvy_noise *noise, double seconds)
{
    CVY_TRY(cvy_array_reserve(&noise->seconds, noise->probes, &noise->capacity, sizeof *noise->seconds));
    noise->seconds[noise->probes++] = seconds;
    if (noise->probes >= A_FEW && noise->probes >= noise->usual_of + noise->usual_of / 4) {
        double *copy = NULL;
        CVY_TRY(copy_probes(noise, &copy));
        noise->usual_s = find_quantile(copy, noise->probes, 0.5);
        noise->usual_of = noise->probes;
        cvy_free(copy);
    }
    return CVY_OK;
}

bool cvy_noise_disturbs(const cvy_noise *noise, double seconds)
{
    return noise->usual_of > 0 && seconds > long_probe * noise->usual_s;
}

cvy_status cvy_noise_sum_up(const cvy_noise *noise, cvy_noise_report *report_out)
{
    cvy_noise_report report = {.probes = noise->probes};
    if (noise->probes >= A_FEW) {
        double *copy = NULL;
        int quarter = noise->probes / 4, high = 0;
        CVY_TRY(copy_probes(noise, &copy));
        double first = find_quantile(copy, quarter, 0.5);
        double last = find_quantile(copy + noise->probes - quarter, quarter, 0.5);
        double middle = find_quantile(copy, noise->probes, 0.5);
        report.drift = last / first - 1.0;
        report.spread = (find_quantile(copy, noise->probes, 0.75) - find_quantile(copy, noise->probes, 0.25)) / middle;
        for (int i = 0; i < noise->probes; i++) {
            high += noise->seconds[i] > long_probe * middle;
        }
        report.disturbed = (double)high / noise->probes;
        cvy_free(copy);
    }
    *report_out = report;
    return CVY_OK;
}

const char *cvy_noise_print(const cvy_noise_report *report, char *text)
{
    char drift[CVY_NOISE_TEXT / 2] = "", disturbed[CVY_NOISE_TEXT / 2] = "";
    if (fabs(report->drift) >= worth_saying) {
        snprintf(drift, sizeof drift, "the machine became %.0f %% %s while it was measured", 100 * fabs(report->drift),
                 report->drift > 0 ? "slower" : "faster");
    }
    if (report->disturbed >= often) {
        snprintf(disturbed, sizeof disturbed, "%.0f %% of the probes say that something else ran here",
                 100 * report->disturbed);
    }
    snprintf(text, CVY_NOISE_TEXT, "%s%s%s", drift, *drift && *disturbed ? "; " : "", disturbed);
    return text;
}

void cvy_noise_clear(cvy_noise *noise)
{
    cvy_free(noise->seconds);
    *noise = (cvy_noise){0};
}
