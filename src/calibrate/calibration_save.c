/* The files of a calibration. A comment in the first line of the machine file says whose it is. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "calibrate/calibration.h"

static const char title[] = "# Measured by convoy calibrate.";
static const char table_name[] = "kernels.csv";

/* Where things go. */
typedef struct target {
    const char *path;  /* of the machine file */
    char *name;        /* of the machine: what the file is called */
    char *folder;      /* beside the file, by its path */
    const char *beside; /* the same by its name alone */
} target;

static void clear_target(target *t)
{
    cvy_free(t->name);
    cvy_free(t->folder);
}

static cvy_status find_target(const char *path, target *t)
{
    static const char extension[] = ".yaml", of_kernels[] = ".kernels";
    const char *file = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    size_t length = strlen(path), tail = sizeof extension - 1;
    bool dotted = strlen(file) > tail && strcmp(path + length - tail, extension) == 0;
    size_t stem = dotted ? length - tail : length;
    t->path = path;
    t->folder = cvy_calloc(1, stem + sizeof of_kernels);
    t->name = cvy_strdup(file);
    if (!t->folder || !t->name) {
        return CVY_ERR_MEMORY;
    }
    memcpy(t->folder, path, stem);
    memcpy(t->folder + stem, of_kernels, sizeof of_kernels);
    t->name[strlen(file) - (length - stem)] = '\0';
    t->beside = t->folder + (file - path);
    return CVY_OK;
}

cvy_status cvy_calibration_check_target(const char *path)
{
    char line[sizeof title] = "";
    if (!cvy_file_exists(path)) {
        return CVY_OK;
    }
    FILE *file = fopen(path, "r");
    bool own = file && fgets(line, sizeof line, file) && strcmp(line, title) == 0;
    if (file) {
        fclose(file);
    }
    CVY_REQUIRE(own, CVY_ERR_INPUT, "%s: there is a file that no calibration has written; --force writes over it, or "
                "give another name with --out", path);
    return CVY_OK;
}

/* Write text to a file of the folder, and name it in a list of the machine. */
static cvy_status put_file(const target *t, const char *name, cvy_text *text, cvy_machine *m, const char **list)
{
    char beside[512];
    int files = 0;
    char *path = cvy_path_join(t->folder, name), *data = cvy_text_take(text);
    cvy_status status = path && data ? CVY_OK : CVY_ERR_MEMORY;
    while (list[files]) {
        files++;
    }
    if (status == CVY_OK && files < CVY_MAX_FILES) {
        snprintf(beside, sizeof beside, "%.400s/%s", t->beside, name);
        status = cvy_file_write(path, data, strlen(data), CVY_ERR_IO);
        status = status == CVY_OK ? cvy_machine_keep(m, beside, &list[files]) : status;
    }
    cvy_free(path);
    cvy_free(data);
    return status;
}

static cvy_status put_table(const cvy_calibration *c, const target *t, cvy_machine *m)
{
    cvy_text text = {0};
    cvy_kernel_table_begin(&m->device, CVY_PRECISION_FP32, &text);
    for (int i = 0; i < c->survey.rows; i++) {
        cvy_kernel_table_add(&c->survey.row[i].op, &c->survey.row[i].time, &text);
    }
    return put_file(t, table_name, &text, m, m->device.kernel_table);
}

/* A line is a net of one layer. */
static cvy_predictor_spec describe_line(const cvy_fit_line *line, const cvy_fit_device *device,
                                        cvy_predictor_layer *layer)
{
    const cvy_fit_inputs *inputs = &line->inputs;
    *layer = (cvy_predictor_layer){.inputs = inputs->count, .outputs = 1, .weight = line->weight, .bias = &line->bias};
    return (cvy_predictor_spec){.precision = CVY_PRECISION_FP32, .peak_flop_per_s = device->peak_flop_per_s,
                                .memory_Bps = device->memory_Bps, .inputs = inputs->count, .input = inputs->feature,
                                .mean = inputs->mean, .deviation = inputs->deviation, .low = inputs->low,
                                .high = inputs->high, .nets = 1, .layers = 1, .layer = layer};
}

static void print_fit(const cvy_calibration *c, const cvy_fit *fit, cvy_text *text)
{
    const cvy_fit_device device = cvy_calibration_device(c);
    char source[120], what[40] = "a line in logarithms";
    cvy_predictor_layer layer;
    cvy_predictor_spec spec;
    if (fit->best == CVY_FIT_GAUSSIAN) {
        snprintf(what, sizeof what, "a Gaussian process");
        spec = cvy_fit_gaussian_spec(&fit->gaussian, &device);
    } else if (fit->best == CVY_FIT_MLP) {
        snprintf(what, sizeof what, "%d nets", fit->nets.nets);
        spec = cvy_fit_nets_spec(&fit->nets, &device);
    } else {
        spec = describe_line(&fit->line, &device, &layer);
    }
    snprintf(source, sizeof source, "%s, fitted to %d measured kernels, %s", what, fit->samples, c->date);
    spec.kernel = fit->kernel;
    spec.pass = fit->pass;
    spec.source = source;
    spec.error = fit->score[fit->best].mape;
    cvy_predictor_print(&spec, text);
}

static cvy_status put_predictors(const cvy_calibration *c, const target *t, cvy_machine *m)
{
    for (int i = 0; i < c->fits; i++) {
        const cvy_fit *fit = &c->fit[i];
        if (fit->best != CVY_FIT_ROOFLINE) {
            char name[128];
            cvy_text text = {0};
            snprintf(name, sizeof name, "%s-%s.yaml", cvy_kernel_name(fit->kernel), cvy_op_pass_name(fit->pass));
            print_fit(c, fit, &text);
            CVY_TRY(put_file(t, name, &text, m, m->device.predictor));
        }
    }
    return CVY_OK;
}

static cvy_status put_machine(const cvy_calibration *c, const char *path, const cvy_machine *m)
{
    cvy_text text = {0};
    char noise[CVY_NOISE_TEXT];
    cvy_text_add(&text, "%s\n", title);
    if (*cvy_noise_print(&c->survey.noise, noise)) {
        cvy_text_add(&text, "# Noise: %s.\n", noise);
    }
    cvy_machine_print(m, &text);
    return cvy_file_write_text(path, &text, CVY_ERR_IO);
}

cvy_status cvy_calibration_save(const cvy_calibration *calibration, const char *path)
{
    target t = {.path = path};
    cvy_machine *machine = NULL;
    cvy_status status;
    CVY_TRY_GOTO(status, done, find_target(path, &t));
    CVY_TRY_GOTO(status, done, cvy_calibration_make_machine(calibration, t.name, &machine));
    CVY_TRY_GOTO(status, done, cvy_folder_create(t.folder, CVY_ERR_IO));
    CVY_TRY_GOTO(status, done, put_table(calibration, &t, machine));
    CVY_TRY_GOTO(status, done, put_predictors(calibration, &t, machine));
    status = put_machine(calibration, path, machine);
done:
    cvy_machine_destroy(&machine);
    clear_target(&t);
    return status;
}

/* ---- a machine that is there ---- */

/* The file that a machine names, from wherever another one stands. */
static cvy_status keep_place(cvy_machine *m, const char **file)
{
    const char *end = m->file ? strrchr(m->file, '/') : NULL;
    char *folder = NULL, *path = NULL, *whole = NULL;
    cvy_status status = CVY_OK;
    if (**file == '/' || !m->file) {
        return CVY_OK;
    }
    folder = cvy_strdup(end ? m->file : ".");
    if (folder && end) {
        folder[end - m->file + 1] = '\0';
    }
    path = folder ? cvy_path_join(folder, *file) : NULL;
    whole = path ? realpath(path, NULL) : NULL;
    if (!path) {
        status = CVY_ERR_MEMORY;
    } else if (!whole) {
        status = cvy_fail(CVY_ERR_INPUT, "%s: %s, which it names, cannot be found", m->file, path);
    } else {
        status = cvy_machine_keep(m, whole, file);
    }
    free(whole);
    cvy_free(path);
    cvy_free(folder);
    return status;
}

cvy_status cvy_calibration_extend(const cvy_calibration *calibration, cvy_machine *machine, const char *path)
{
    const cvy_calibration *c = calibration;
    const char **lists[] = {machine->device.kernel_table, machine->device.predictor};
    target t = {.path = path};
    cvy_status status;
    CVY_TRY_GOTO(status, done, find_target(path, &t));
    for (int i = 0; i < 2 * CVY_MAX_FILES; i++) {
        const char **file = &lists[i / CVY_MAX_FILES][i % CVY_MAX_FILES];
        CVY_TRY_GOTO(status, done, *file ? keep_place(machine, file) : CVY_OK);
    }
    CVY_TRY_GOTO(status, done, cvy_machine_keep(machine, t.name, &machine->name));
    if (c->network.curves > 0) {
        CVY_TRY_GOTO(status, done, cvy_network_fill(&c->network, c->date, machine));
    }
    CVY_TRY_GOTO(status, done, cvy_beside_fill(&c->beside, c->date, machine));
    status = put_machine(c, path, machine);
done:
    clear_target(&t);
    return status;
}

/* No rule, table or predictor is left, nor where their figures came from. */
static void forget_kernels(cvy_machine *m)
{
    size_t first = offsetof(cvy_machine, device) + offsetof(cvy_device, efficiency);
    int left = 0;
    for (int i = 0; i < m->sources; i++) {
        size_t offset = m->source[i].offset;
        if (offset < first || offset >= first + sizeof m->device.efficiency) {
            m->source[left++] = m->source[i];
        }
    }
    m->sources = left;
    m->device.efficiencies = 0;
    memset(m->device.kernel_table, 0, sizeof m->device.kernel_table);
    memset(m->device.predictor, 0, sizeof m->device.predictor);
    m->execution.release = NULL; /* of rules that are gone */
}

cvy_status cvy_calibration_replace(const cvy_calibration *calibration, cvy_machine *machine, const char *path)
{
    target t = {.path = path};
    cvy_status status;
    CVY_TRY_GOTO(status, done, find_target(path, &t));
    forget_kernels(machine);
    CVY_TRY_GOTO(status, done, cvy_machine_keep(machine, t.name, &machine->name));
    CVY_TRY_GOTO(status, done, cvy_calibration_add_rules(calibration, machine));
    CVY_TRY_GOTO(status, done, cvy_folder_create(t.folder, CVY_ERR_IO));
    CVY_TRY_GOTO(status, done, put_table(calibration, &t, machine));
    CVY_TRY_GOTO(status, done, put_predictors(calibration, &t, machine));
    status = put_machine(calibration, path, machine);
done:
    clear_target(&t);
    return status;
}
