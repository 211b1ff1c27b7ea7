/*
 * Operands lie one behind the other in an arena, as a plan would place them. Floats are numbers with all of their bits,
 * as multiplying zeros takes less power, and a processor may go faster then; a label of 0 is a class.
 */
#include "backend/measure.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/order.h"
#include "base/pulse.h"

cvy_status cvy_kernel_take_memory(const cvy_kernel *kernel, cvy_arena *arena_out, void **operand, void **scratch)
{
    int64_t offset[CVY_MAX_OPERANDS];
    int64_t bytes = 0;
    for (int i = 0; i < kernel->op.operands; i++) {
        offset[i] = bytes;
        bytes += cvy_round_up(cvy_tensor_bytes(&kernel->op.operand[i].tensor), CVY_ARENA_ALIGNMENT);
    }
    size_t all = (size_t)bytes + cvy_kernel_scratch_bytes(kernel) + CVY_ARENA_ALIGNMENT;
    CVY_TRY(cvy_arena_create(all, arena_out));
    for (int i = 0; i < kernel->op.operands; i++) {
        operand[i] = arena_out->base + offset[i];
    }
    *scratch = arena_out->base + bytes;
    return CVY_OK;
}

enum { PATTERN = 4096, CACHE_LINE = 64 };

/* Numbers from 1/2 to 3/2: norms divide by them, square roots are taken of them. */
static void fill(const cvy_kernel *kernel, void *const *operand)
{
    float pattern[PATTERN];
    uint32_t word = 1;
    for (int i = 0; i < PATTERN; i++) {
        word = word * 1664525u + 1013904223u; /* Numerical Recipes, "an even quicker generator" */
        pattern[i] = 0.5f + (float)(word >> 8) / 16777216.0f;
    }
    for (int i = 0; i < kernel->op.operands; i++) {
        const cvy_tensor *tensor = &kernel->op.operand[i].tensor;
        size_t bytes = tensor->dtype == CVY_F32 ? (size_t)cvy_tensor_bytes(tensor) : 0;
        for (size_t at = 0; at < bytes; at += sizeof pattern) {
            memcpy((char *)operand[i] + at, pattern, bytes - at < sizeof pattern ? bytes - at : sizeof pattern);
        }
    }
}

/* Touch what lies between two runs, read and written as activations are. */
static void go_through(unsigned char *memory, size_t bytes)
{
#ifdef _OPENMP
#pragma omp parallel for schedule(static)
#endif
    for (size_t i = 0; i < bytes; i += CACHE_LINE) {
        memory[i]++;
    }
}

#ifdef __x86_64__
__attribute__((target("clflushopt"))) static void flush_lines(const char *memory, int64_t bytes)
{
    for (int64_t at = 0; at < bytes; at += CACHE_LINE) {
        __builtin_ia32_clflushopt(memory + at);
    }
    __builtin_ia32_sfence();
}
#endif

/* Throw what a kernel works on out of the caches. Where no instruction does, what lies between has to. */
static void throw_out(const cvy_kernel *kernel, void *const *operand)
{
#ifdef __x86_64__
    for (int i = 0; i < kernel->op.operands && __builtin_cpu_supports("clflushopt"); i++) {
        flush_lines(operand[i], cvy_tensor_bytes(&kernel->op.operand[i].tensor));
    }
#else
    (void)kernel;
    (void)operand;
#endif
}

/* The notch of a box plot (McGill, Tukey, Larsen, "Variations of box plots", 1978). */
double cvy_measure_doubt(const double *seconds, int runs)
{
    double apart = seconds[3 * (runs - 1) / 4] - seconds[(runs - 1) / 4];
    return 1.57 * apart / sqrt(runs) / seconds[runs / 2];
}

/* Whether another run is worth its time, after runs that took @p spent_s together. */
static bool is_worth_more(const cvy_measure_effort *effort, double *seconds, int runs, double spent_s)
{
    if (runs == 0) {
        return true;
    }
    bool hopeless = effort->hopeless_s > 0.0 && seconds[runs - 1] > effort->hopeless_s;
    if (hopeless || (runs >= effort->least_runs && spent_s >= effort->enough_s)) {
        return false;
    }
    if (effort->steady <= 0.0 || runs < effort->least_runs) {
        return true;
    }
    cvy_sort_doubles(seconds, runs);
    return cvy_measure_doubt(seconds, runs) > effort->steady;
}

cvy_status cvy_kernel_measure_runs(const cvy_backend_chain *chain, const cvy_op *op, const cvy_measure_effort *effort,
                                   double *measured_s, int *runs_out)
{
    const cvy_run run = {.samples = op->operand[0].tensor.shape.extent[0], .loss_scale = 1.0, .update = 1};
    cvy_kernel *kernel = NULL;
    cvy_arena arena = {0};
    void *operand[CVY_MAX_OPERANDS];
    void *scratch;
    double spent_s = 0.0;
    int runs = 0;
    int most = effort->most_runs < CVY_MEASURE_MAX_RUNS ? effort->most_runs : CVY_MEASURE_MAX_RUNS;
    cvy_status status = cvy_kernel_create(chain, op, &kernel);
    CVY_TRY_GOTO(status, done, status);
    CVY_TRY_GOTO(status, done, cvy_kernel_take_memory(kernel, &arena, operand, &scratch));
    fill(kernel, operand);
    for (int i = -1; runs < most && is_worth_more(effort, measured_s, runs, spent_s); i++) {
        go_through(effort->between, effort->between ? effort->between_bytes : 0);
        if (effort->evict) {
            throw_out(kernel, operand);
        }
        cvy_pulse_beat();
        double start_s = cvy_clock_s();
        CVY_TRY_GOTO(status, done, cvy_kernel_run(kernel, operand, scratch, &run));
        double seconds = cvy_clock_s() - start_s;
        if (i >= 0) { /* the first warms up */
            measured_s[runs++] = seconds;
            spent_s += seconds;
        }
    }
    cvy_sort_doubles(measured_s, runs);
    *runs_out = runs;
done:
    cvy_arena_destroy(&arena);
    cvy_kernel_destroy(&kernel);
    return status;
}

cvy_status cvy_kernel_measure(const cvy_backend_chain *chain, const cvy_op *op, const cvy_measure_effort *effort,
                              double *seconds_out)
{
    double measured_s[CVY_MEASURE_MAX_RUNS];
    int runs = 0;
    CVY_TRY(cvy_kernel_measure_runs(chain, op, effort, measured_s, &runs));
    *seconds_out = runs == 0 ? 0.0 : measured_s[effort->median ? runs / 2 : 0];
    return CVY_OK;
}

struct cvy_stopwatch_entry {
    uint64_t hash;
    double seconds;
};

cvy_status cvy_stopwatch_measure(cvy_stopwatch *stopwatch, const cvy_op *op, double *seconds_out)
{
    uint64_t hash = cvy_op_hash(op);
    for (int i = 0; i < stopwatch->entries; i++) {
        if (stopwatch->entry[i].hash == hash) {
            *seconds_out = stopwatch->entry[i].seconds;
            return CVY_OK;
        }
    }
    CVY_TRY(cvy_array_reserve(&stopwatch->entry, stopwatch->entries, &stopwatch->capacity, sizeof *stopwatch->entry));
    CVY_TRY(cvy_kernel_measure(stopwatch->chain, op, &stopwatch->effort, seconds_out));
    stopwatch->entry[stopwatch->entries++] = (struct cvy_stopwatch_entry){hash, *seconds_out};
    return CVY_OK;
}

void cvy_stopwatch_clear(cvy_stopwatch *stopwatch)
{
    cvy_free(stopwatch->entry);
    stopwatch->entry = NULL;
    stopwatch->entries = stopwatch->capacity = 0;
}
