/*
 * convoy doctor: what is known of this machine, this build and their settings, and what of it makes training slow. A
 * check is one function and one line in the table; it never fails, it finds.
 */
#include "cli/doctor.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/backend.h"
#include "base/text.h"
#include "base/topology.h"
#include "cli/json_output.h"
#include "cli/options_common.h"
#include "convoy/version.h"

void cli_doctor_add(doctor_report *report, doctor_level level, const char *check, const char *advice,
                    const char *format, ...)
{
    if (report->count == DOCTOR_MAX_FINDINGS) {
        return;
    }
    doctor_finding *finding = &report->finding[report->count++];
    va_list arguments;
    *finding = (doctor_finding){.level = level, .check = check, .advice = advice};
    va_start(arguments, format);
    vsnprintf(finding->found, sizeof finding->found, format, arguments);
    va_end(arguments);
    report->warnings += level == DOCTOR_WARNING;
}

static void check_version(doctor_report *report)
{
    char names[DOCTOR_TEXT / 2] = "";
    const cvy_backend *backend;
    for (int i = 0; (backend = cvy_backend_get(i)); i++) {
        size_t length = strlen(names);
        snprintf(names + length, sizeof names - length, "%s%s", i ? ", " : "", backend->name);
    }
    cli_doctor_add(report, DOCTOR_OK, "version", NULL, "convoy %s, backends %s (fastest first)", CVY_VERSION, names);
    cli_doctor_add(report, DOCTOR_OK, "libraries", NULL, "jansson %s, compiled by %s %s", jansson_version_str(),
#ifdef __clang__
                   "clang", __clang_version__);
#else
                   "gcc", __VERSION__);
#endif
    if (!CVY_HAVE_TRAIN) {
        cli_doctor_add(report, DOCTOR_NOTE, "training", "build again with -DCONVOY_TRAIN=ON to train",
                       "this build only plans");
    }
}

static void check_processor(doctor_report *report)
{
    cvy_topology topology;
    cvy_topology_get(&topology);
    char unit[CVY_UNIT_TEXT];
    cli_doctor_add(report, DOCTOR_OK, "processor", NULL, "%s, %d-bit vectors, %d NUMA node%s",
                   topology.processor[0] ? topology.processor : "unknown", topology.vector_bits, topology.numa_nodes,
                   topology.numa_nodes == 1 ? "" : "s");
    cli_doctor_add(report, DOCTOR_OK, "memory", NULL, "%s",
                   topology.memory_bytes ? cvy_print_bytes((double)topology.memory_bytes, unit) : "unknown");
    if (topology.cores < topology.cores_machine) {
        cli_doctor_add(report, DOCTOR_WARNING, "cores",
                       "if that is not meant: mpiexec --bind-to none, srun --cpu-bind=none or --cpus-per-task, taskset",
                       "this process may use %d of %d", topology.cores, topology.cores_machine);
    } else {
        cli_doctor_add(report, DOCTOR_OK, "cores", NULL, "all %d may be used", topology.cores);
    }
}

/* Tensors ask for huge pages with madvise(): "always" and "madvise" grant them. */
static void check_huge_pages(doctor_report *report)
{
    char line[128] = "";
    FILE *file = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "r");
    bool read = file && fgets(line, sizeof line, file);
    if (file) {
        fclose(file);
    }
    line[strcspn(line, "\n")] = '\0';
    if (!read) {
        cli_doctor_add(report, DOCTOR_NOTE, "huge pages", NULL, "the system does not say");
    } else if (strstr(line, "[never]")) {
        cli_doctor_add(report, DOCTOR_WARNING, "huge pages",
                       "as root: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled", "%s: small pages slow "
                       "large tensors down", line);
    } else {
        cli_doctor_add(report, DOCTOR_OK, "huge pages", NULL, "%s", line);
    }
}

/* Settings of OpenMP that were meant for another program bind or starve the threads of this one. */
static void check_threads(doctor_report *report)
{
    static const char *const names[] = {"OMP_NUM_THREADS", "OMP_PROC_BIND", "OMP_PLACES", "OMP_WAIT_POLICY",
                                        "GOMP_CPU_AFFINITY", "KMP_AFFINITY"};
    int set = 0;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *value = getenv(names[i]);
        if (value && *value) {
            cli_doctor_add(report, DOCTOR_NOTE, "threads", "unset it if it was not meant for convoy; --threads says "
                           "how many", "%s=%.80s", names[i], value);
            set++;
        }
    }
    if (!set) {
        cli_doctor_add(report, DOCTOR_OK, "threads", NULL, "no OpenMP setting in the environment");
    }
}

static void check_folder(doctor_report *report)
{
    if (access(".", W_OK) == 0) {
        cli_doctor_add(report, DOCTOR_OK, "folder", NULL, "runs can be written here");
    } else {
        cli_doctor_add(report, DOCTOR_WARNING, "folder", "give --out a folder that is yours",
                       "runs cannot be written here");
    }
}

static void (*const checks[])(doctor_report *report) = {check_version,    check_processor, check_huge_pages,
                                                        check_threads, check_folder};

static const char *const level_names[] = {"ok", "note", "warning"};

static void print_report(const doctor_report *report)
{
    for (int i = 0; i < report->count; i++) {
        const doctor_finding *finding = &report->finding[i];
        printf("%-8s %-11s %s%s%s\n", level_names[finding->level], finding->check, finding->found,
               finding->advice ? "; " : "", finding->advice ? finding->advice : "");
    }
}

static cvy_status print_json(const doctor_report *report)
{
    json_t *findings = json_array();
    for (int i = 0; i < report->count; i++) {
        const doctor_finding *finding = &report->finding[i];
        json_array_append_new(findings,
                              json_pack("{s:s, s:s, s:s, s:s?}", "level", level_names[finding->level], "check",
                                        finding->check, "found", finding->found, "advice", finding->advice));
    }
    return cli_json_print(json_pack("{s:s, s:i, s:o}", "version", CVY_VERSION, "warnings", report->warnings,
                                    "findings", findings));
}

static cvy_status run_doctor(const cli_command *command, int argc, char **argv)
{
    cli_options options = cli_options_init;
    cvy_parsed_options parsed;
    doctor_report report = {0};
    cvy_status status = cli_parse(command, argc, argv, &options, &parsed);
    if (status == CVY_OK && !parsed.help) {
        for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++) {
            checks[i](&report);
        }
        status = options.kernels ? cli_doctor_check_kernels(&report) : CVY_OK;
        if (options.json) {
            cvy_status printed = print_json(&report);
            status = status == CVY_OK ? printed : status;
        } else {
            print_report(&report);
        }
    }
    cvy_parsed_options_clear(&parsed);
    return status;
}

const cli_command cli_doctor = {
    .name = "doctor",
    .operands = "",
    .rows = CLI_DOCTOR,
    .summary = "Look at the machine, this build and their settings",
    .examples = "  convoy doctor --kernels\n",
    .run = run_doctor,
};
