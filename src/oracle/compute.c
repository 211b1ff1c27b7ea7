/*
 * A device's prices. Rules of efficiency are looked through once, when the device is prepared: afterwards a kernel and
 * a pass index the seconds of a flop and of a byte, so that an op costs little more than counting its flop and bytes.
 */
#include "oracle/compute.h"

#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "oracle/compute_internal.h"

static inline double larger(double a, double b) { return a > b ? a : b; }

/* What a kernel costs on the device, by the first rule that applies. */
typedef struct rates {
    double s_per_flop, s_per_byte, error;
} rates;

struct cvy_compute {
    cvy_precision precision;
    double element_bytes;
    double launch_s, slice_floor;
    double stretch; /* of all times: 1 and the share that interruptions add */
    cvy_roof roof; /* all of the peaks, of products */
    rates rates[CVY_KERNEL_COUNT][CVY_PASS_COUNT];
    cvy_kernel_table table;
    cvy_predictor *predictor[CVY_MAX_FILES];
    const cvy_predictor *predictor_of[CVY_KERNEL_COUNT][CVY_PASS_COUNT];
};

/* Whether a window has so many places in height and width, and takes every step. */
static bool is_square(const cvy_window *window, int64_t side)
{
    const int64_t kernel[3] = {1, side, side};
    for (int axis = 0; axis < 3; axis++) {
        if (window->kernel[axis] != kernel[axis] || window->stride[axis] != 1 || window->dilation[axis] != 1) {
            return false;
        }
    }
    return true;
}

static bool is_point(const cvy_window *window)
{
    return window->kernel[0] == 1 && window->kernel[1] == 1 && window->kernel[2] == 1;
}

/* Of those without groups. */
static int find_by_window(const cvy_window *window, bool volume)
{
    return is_point(window)       ? CVY_KERNEL_1X1_CONVOLUTION
           : volume               ? CVY_KERNEL_VOLUME_CONVOLUTION
           : is_square(window, 3) ? CVY_KERNEL_WINOGRAD_CONVOLUTION
           : is_square(window, 5) ? CVY_KERNEL_5X5_CONVOLUTION
                                  : CVY_OP_CONVOLUTION;
}

int cvy_op_kernel(const cvy_op *op)
{
    if (op->kind != CVY_OP_CONVOLUTION) {
        return (int)op->kind;
    }
    if (op->params.window.groups > 1) {
        return cvy_op_is_depthwise(op) ? CVY_KERNEL_DEPTHWISE_CONVOLUTION : CVY_KERNEL_GROUPED_CONVOLUTION;
    }
    return find_by_window(&op->params.window.window, op->operand[0].tensor.shape.dims == 5);
}

static bool rule_applies(const cvy_efficiency *rule, int kernel, int pass, cvy_precision precision)
{
    int kind = kernel < CVY_OP_KIND_COUNT ? kernel : CVY_OP_CONVOLUTION;
    return (rule->kernel == CVY_ANY || rule->kernel == kernel || rule->kernel == kind) &&
           (rule->pass == CVY_ANY || rule->pass == pass) &&
           (rule->precision == CVY_ANY || rule->precision == (int)precision);
}

/* Units of matrices multiply; everything else is done in the device's own vectors of f32 or f64. */
static double find_peak(const cvy_device *device, int kernel, cvy_precision precision)
{
    int kind = kernel < CVY_OP_KIND_COUNT ? kernel : CVY_OP_CONVOLUTION;
    double vectors = device->peak_flop_per_s[CVY_PRECISION_FP32];
    bool own = precision == CVY_PRECISION_FP64 || cvy_op_has_weights((cvy_op_kind)kind) || vectors == 0.0;
    return own ? device->peak_flop_per_s[precision] : vectors;
}

static void index_rules(const cvy_machine *machine, cvy_compute *compute)
{
    const cvy_device *device = &machine->device;
    const char *release = machine->execution.release;
    static const cvy_efficiency none = {.peak = 1.0, .bandwidth = 1.0, .error = CVY_UNFITTED_ERROR};
    for (int kernel = 0; kernel < CVY_KERNEL_COUNT; kernel++) {
        double peak = find_peak(device, kernel, compute->precision);
        for (int pass = 0; pass < CVY_PASS_COUNT; pass++) {
            const cvy_efficiency *rule = &none;
            for (int i = device->efficiencies - 1; i >= 0; i--) {
                const cvy_efficiency *next = &device->efficiency[i];
                bool runs = !next->release || (release && strcmp(next->release, release) == 0);
                rule = runs && rule_applies(next, kernel, pass, compute->precision) ? next : rule;
            }
            compute->rates[kernel][pass] = (rates){.s_per_flop = 1.0 / (peak * rule->peak),
                                                   .s_per_byte = 1.0 / (device->memory_Bps * rule->bandwidth),
                                                   .error = rule->error};
        }
    }
}

static cvy_status check_device(const cvy_machine *machine, cvy_precision precision)
{
    const cvy_device *device = &machine->device;
    char known[80] = "";
    for (int i = 0; i < CVY_PRECISION_COUNT; i++) {
        if (device->peak_flop_per_s[i] > 0.0) {
            strcat(strcat(known, *known ? ", " : ""), cvy_precision_name((cvy_precision)i));
        }
    }
    CVY_REQUIRE(*known, CVY_ERR_INPUT,
                "machine %s: no peak rate is known; a machine file can give it (docs/machines.md)", machine->name);
    CVY_REQUIRE(device->peak_flop_per_s[precision] > 0.0, CVY_ERR_INPUT, "machine %s: %s has no rate at %s, only at %s",
                machine->name, device->name, cvy_precision_name(precision), known);
    CVY_REQUIRE(device->memory_Bps > 0.0, CVY_ERR_INPUT,
                "machine %s: no memory bandwidth is known; a machine file can give it (docs/machines.md)",
                machine->name);
    return CVY_OK;
}

/* The path of a file that a machine file names: from the machine file's folder on, unless it is absolute. */
static char *locate(const cvy_machine *machine, const char *name)
{
    const char *end = machine->file ? strrchr(machine->file, '/') : NULL;
    if (!end || *name == '/') {
        return cvy_strdup(name);
    }
    char *folder = cvy_strdup(machine->file), *path = NULL;
    if (folder) {
        folder[end - machine->file + 1] = '\0';
        path = cvy_path_join(folder, name);
    }
    cvy_free(folder);
    return path;
}

/* One of the very kernel goes before one of all convolutions; of equals the first does. */
static cvy_status load_predictor(const char *path, cvy_compute *compute, int index)
{
    CVY_TRY(cvy_predictor_load(path, &compute->predictor[index]));
    const cvy_predictor *predictor = compute->predictor[index];
    int pass = cvy_predictor_pass(predictor);
    for (int kernel = 0; kernel < CVY_KERNEL_COUNT; kernel++) {
        const cvy_efficiency like = {.kernel = cvy_predictor_kernel(predictor), .pass = pass,
                                     .precision = (int)cvy_predictor_precision(predictor)};
        const cvy_predictor *was = compute->predictor_of[kernel][pass];
        bool better = !was || (cvy_predictor_kernel(was) != kernel && like.kernel == kernel);
        if (better && rule_applies(&like, kernel, pass, compute->precision)) {
            compute->predictor_of[kernel][pass] = predictor;
        }
    }
    return CVY_OK;
}

static cvy_status load_files(const cvy_machine *machine, cvy_compute *compute)
{
    const cvy_device *device = &machine->device;
    for (int i = 0; i < 2 * CVY_MAX_FILES; i++) {
        int index = i % CVY_MAX_FILES;
        bool table = i < CVY_MAX_FILES;
        const char *name = table ? device->kernel_table[index] : device->predictor[index];
        if (name) {
            char *path = locate(machine, name);
            cvy_status status = !path ? CVY_ERR_MEMORY
                                : table ? cvy_kernel_table_load(path, compute->precision, &compute->table)
                                        : load_predictor(path, compute, index);
            cvy_free(path);
            CVY_TRY(status);
        }
    }
    return CVY_OK;
}

cvy_status cvy_compute_create(const cvy_machine *machine, cvy_precision precision, cvy_compute **compute_out)
{
    CVY_TRY(check_device(machine, precision));
    const cvy_device *device = &machine->device;
    cvy_status status;
    cvy_compute *compute = cvy_calloc(1, sizeof *compute);
    if (!compute) {
        return CVY_ERR_MEMORY;
    }
    bool half = precision == CVY_PRECISION_FP16 || precision == CVY_PRECISION_BF16;
    compute->precision = precision;
    compute->element_bytes = half ? 2.0 : precision == CVY_PRECISION_FP64 ? 8.0 : 4.0;
    compute->launch_s = device->launch_s;
    compute->slice_floor = device->slice_floor;
    compute->stretch = 1.0 + device->interruptions;
    compute->roof = (cvy_roof){device->peak_flop_per_s[precision], device->memory_Bps};
    index_rules(machine, compute);
    CVY_TRY_GOTO(status, done, load_files(machine, compute));
    *compute_out = compute;
    compute = NULL;
done:
    cvy_compute_destroy(&compute);
    return status;
}

void cvy_compute_destroy(cvy_compute **compute)
{
    if (compute && *compute) {
        cvy_kernel_table_clear(&(*compute)->table);
        for (int i = 0; i < CVY_MAX_FILES; i++) {
            cvy_predictor_destroy(&(*compute)->predictor[i]);
        }
        cvy_free(*compute);
        *compute = NULL;
    }
}

bool cvy_compute_sees_distances(const cvy_compute *compute)
{
    return compute->table.entries > 0 || compute->predictor[0];
}

double cvy_compute_element_bytes(const cvy_compute *compute) { return compute->element_bytes; }

double cvy_compute_op_bytes(const cvy_compute *compute, const cvy_op *op)
{
    bool masters = op->pass == CVY_PASS_UPDATE || op->pass == CVY_PASS_COMMIT || op->pass == CVY_PASS_MERGE;
    double bytes = cvy_op_bytes(op);
    if (compute->element_bytes == 4.0 || (masters && compute->element_bytes < 4.0)) {
        return bytes;
    }
    for (int i = 0; i < op->operands; i++) {
        const cvy_tensor *moved = cvy_op_moved(op, i);
        if (moved->dtype == CVY_F32) {
            double times = op->operand[i].access == CVY_ACCESS_UPDATE ? 2.0 : 1.0;
            double elements = (double)cvy_tensor_elements(moved);
            bytes += times * elements * (compute->element_bytes - 4.0);
        }
    }
    return bytes;
}

static double roof_s(const cvy_roof *roof, double flop, double bytes)
{
    return larger(flop / roof->flop_per_s, bytes / roof->Bps);
}

/* A time of another device: what exceeds the launch goes as the roofs do. */
static double scale_time(const cvy_compute *compute, const cvy_roof *measured, double seconds, double flop,
                         double bytes)
{
    double now_s = roof_s(&compute->roof, flop, bytes), then_s = roof_s(measured, flop, bytes);
    double above_s = seconds - compute->launch_s;
    bool same = now_s == then_s || then_s <= 0.0 || above_s <= 0.0;
    return same ? seconds : compute->launch_s + above_s * now_s / then_s;
}

/*
 * What a predictor says, of an op whose operands are no nearer than its own bytes. Farther ones never make an op
 * faster, whatever nets say: bounds, which know of no distance, stay below estimates.
 */
static cvy_prediction ask_predictor(const cvy_predictor *predictor, const cvy_op *op, double flop, double bytes,
                                    double distance_bytes)
{
    double near[CVY_KERNEL_FEATURES], far[CVY_KERNEL_FEATURES];
    cvy_kernel_get_features(op, flop, bytes, bytes, near);
    if (distance_bytes > bytes) {
        cvy_kernel_get_features(op, flop, bytes, distance_bytes, far);
        cvy_prediction said = cvy_predictor_run(predictor, far, flop, bytes);
        if (said.seconds > cvy_predictor_get_s(predictor, near, flop, bytes)) {
            return said;
        }
    }
    return cvy_predictor_run(predictor, near, flop, bytes);
}

/*
 * A measured time, moved from the distance at which it was measured as the predictor says, where there is one, and from
 * the device on which it was.
 */
static double move_time(const cvy_compute *compute, const cvy_kernel_entry *entry, const cvy_op *op,
                        double distance_bytes)
{
    const cvy_predictor *predictor = compute->predictor_of[cvy_op_kernel(op)][op->pass];
    double flop = cvy_op_flop(op), bytes = cvy_compute_op_bytes(compute, op), seconds = entry->time.seconds;
    double from_bytes = larger(entry->time.distance_bytes, bytes), to_bytes = larger(distance_bytes, bytes);
    if (predictor && from_bytes != to_bytes) {
        seconds *= ask_predictor(predictor, op, flop, bytes, to_bytes).seconds /
                   ask_predictor(predictor, op, flop, bytes, from_bytes).seconds;
    }
    return scale_time(compute, &entry->roof, seconds, flop, bytes);
}

cvy_compute_estimate cvy_compute_estimate_op(const cvy_compute *compute, const cvy_op *op, double slices,
                                             double distance_bytes)
{
    int kernel = cvy_op_kernel(op);
    const cvy_predictor *predictor = compute->predictor_of[kernel][op->pass];
    const rates *rate = &compute->rates[kernel][op->pass];
    double flop = cvy_op_flop(op), bytes = cvy_compute_op_bytes(compute, op);
    double flop_s = flop * rate->s_per_flop, bytes_s = bytes * rate->s_per_byte;
    cvy_compute_estimate estimate = {.source = CVY_COMPUTE_ROOFLINE, .error = rate->error};
    const cvy_kernel_entry *entry = compute->table.entries
                                        ? cvy_kernel_table_find(&compute->table, cvy_kernel_key(op), distance_bytes)
                                        : NULL;
    if (entry) {
        estimate.source = CVY_COMPUTE_TABLE;
        estimate.error = entry->time.error;
        estimate.seconds = move_time(compute, entry, op, distance_bytes);
    } else if (predictor) {
        cvy_prediction said = ask_predictor(predictor, op, flop, bytes, distance_bytes);
        estimate.source = CVY_COMPUTE_PREDICTOR;
        estimate.error = said.inside ? said.error : larger(said.error, rate->error);
        estimate.seconds = scale_time(compute, &said.roof, said.seconds, flop, bytes);
    } else {
        /* A slice by filters or by channels has its share of the work, but more than that of the bytes. */
        double whole_s = cvy_op_convolves(op->kind) ? larger(flop_s * slices, bytes_s) : 0.0;
        estimate.seconds = larger(larger(flop_s, bytes_s), compute->slice_floor * whole_s) + compute->launch_s;
    }
    estimate.seconds *= compute->stretch;
    return estimate;
}

/* Of any row the predictor's answer is least where operands are nearest; which row is taken depends on the distance. */
double cvy_compute_bound_op(const cvy_compute *compute, const cvy_op *op, double slices)
{
    uint64_t key = compute->table.entries ? cvy_kernel_key(op) : 0;
    const cvy_kernel_entry *entry = cvy_kernel_table_next(&compute->table, key, NULL);
    double least_s = HUGE_VAL;
    if (!entry) {
        return cvy_compute_estimate_op(compute, op, slices, 0.0).seconds;
    }
    for (; entry; entry = cvy_kernel_table_next(&compute->table, key, entry)) {
        least_s = fmin(least_s, move_time(compute, entry, op, 0.0));
    }
    return least_s * compute->stretch;
}
