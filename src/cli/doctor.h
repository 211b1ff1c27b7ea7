/* Findings of convoy doctor: one line each. */
#ifndef CVY_CLI_DOCTOR_H
#define CVY_CLI_DOCTOR_H

#include "base/error.h"

typedef enum doctor_level { DOCTOR_OK, DOCTOR_NOTE, DOCTOR_WARNING } doctor_level;

enum { DOCTOR_MAX_FINDINGS = 64, DOCTOR_TEXT = 160 };

typedef struct doctor_finding {
    doctor_level level;
    const char *check;        /**< "cores" */
    const char *advice;       /**< what to do; NULL where nothing is */
    char found[DOCTOR_TEXT];
} doctor_finding;

typedef struct doctor_report {
    int count, warnings;
    doctor_finding finding[DOCTOR_MAX_FINDINGS];
} doctor_report;

/** Add a finding; what was found is worded printf style. */
void cli_doctor_add(doctor_report *report, doctor_level level, const char *check, const char *advice,
                    const char *format, ...) __attribute__((format(printf, 5, 6)));

/**
 * Run a handful of ops on the fastest backend of this build in float and on `ref` in double, and compare.
 *
 * @retval CVY_ERR_UNSUPPORTED a kernel's results differ by more than rounding explains; all of them are in the report
 */
cvy_status cli_doctor_check_kernels(doctor_report *report);

#endif
