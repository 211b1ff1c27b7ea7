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
void cvy_kernel_fill(const cvy_kernel *kernel, void *const *operand)
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

/* ---- runs ---- */

static const double probe_every_s = 3e-3; /* slowness comes and goes within tens of milliseconds */

/* A kernel with all that its runs need, and what they took. */
typedef struct bench {
    const cvy_measure_effort *effort;
    cvy_kernel *kernel;
    cvy_arena arena;
    void *operand[CVY_MAX_OPERANDS], *scratch;
    double seconds[CVY_MEASURE_MAX_RUNS]; /* by the clock, in the order of time */
    int probed[CVY_MEASURE_MAX_RUNS];     /* probes before each run */
    cvy_probe_time probe[CVY_MEASURE_MAX_RUNS + 1];
    double probed_s; /* when the last one was */
    int runs, probes;
    double spent_s;
} bench;

static cvy_probe_time find_mean_probe(const bench *b)
{
    cvy_probe_time mean = {0};
    for (int i = 0; i < b->probes; i++) {
        mean.seconds += b->probe[i].seconds / b->probes;
        mean.mean_s += b->probe[i].mean_s / b->probes;
    }
    return mean;
}

/* Runs as if the probe had always taken its mean, the shortest first. */
static void hold_against_probe(const bench *b, cvy_measured_runs *out)
{
    out->probe = find_mean_probe(b);
    out->runs = b->runs;
    for (int i = 0; i < b->runs; i++) {
        int before = b->probed[i] - 1, behind = before + 1 < b->probes ? before + 1 : before;
        double slow = 1.0;
        if (b->probes > 0) {
            slow = (b->probe[before].seconds + b->probe[behind].seconds) / (2.0 * out->probe.seconds);
        }
        out->seconds[i] = b->seconds[i] / slow;
    }
    cvy_sort_doubles(out->seconds, out->runs);
}

/* Whether another run is worth its time. */
static bool is_worth_more(const bench *b)
{
    const cvy_measure_effort *effort = b->effort;
    int most = effort->most_runs < CVY_MEASURE_MAX_RUNS ? effort->most_runs : CVY_MEASURE_MAX_RUNS;
    if (b->runs == 0 || b->runs >= most) {
        return b->runs < most;
    }
    bool hopeless = effort->hopeless_s > 0.0 && b->seconds[b->runs - 1] > effort->hopeless_s;
    if (hopeless || (b->runs >= effort->least_runs && b->spent_s >= effort->enough_s)) {
        return false;
    }
    if (effort->steady <= 0.0 || b->runs < effort->least_runs) {
        return true;
    }
    cvy_measured_runs so_far;
    hold_against_probe(b, &so_far);
    return cvy_measure_doubt(so_far.seconds, so_far.runs) > effort->steady;
}

static cvy_status run_once(bench *b, double *seconds_out)
{
    const cvy_run run = {.samples = b->kernel->op.operand[0].tensor.shape.extent[0], .loss_scale = 1.0, .update = 1};
    go_through(b->effort->between, b->effort->between ? b->effort->between_bytes : 0);
    if (b->effort->evict) {
        throw_out(b->kernel, b->operand);
    }
    cvy_pulse_beat();
    double start_s = cvy_clock_s();
    CVY_TRY(cvy_kernel_run(b->kernel, b->operand, b->scratch, &run));
    *seconds_out = cvy_clock_s() - start_s;
    return CVY_OK;
}

/* Operands that are to be near are brought back, since a probe takes some of the nearest cache. */
static cvy_status probe(bench *b)
{
    double seconds;
    CVY_TRY(cvy_probe_run(b->effort->probe, &b->probe[b->probes++]));
    bool near = b->effort->between_bytes == 0 && !b->effort->evict;
    CVY_TRY(near ? run_once(b, &seconds) : CVY_OK);
    b->probed_s = cvy_clock_s();
    return CVY_OK;
}

static void count_run(bench *b, double seconds)
{
    b->probed[b->runs] = b->probes;
    b->seconds[b->runs++] = seconds;
    b->spent_s += seconds;
}

static cvy_status run_bench(bench *b)
{
    double seconds;
    CVY_TRY(run_once(b, &seconds)); /* warms up */
    if (b->effort->long_s > 0.0 && seconds >= b->effort->long_s && !b->effort->probe) {
        count_run(b, seconds);
    }
    while (is_worth_more(b)) {
        if (b->effort->probe && (b->probes == 0 || cvy_clock_s() - b->probed_s >= probe_every_s)) {
            CVY_TRY(probe(b));
        }
        CVY_TRY(run_once(b, &seconds));
        count_run(b, seconds);
    }
    return b->effort->probe && b->runs > 0 ? cvy_probe_run(b->effort->probe, &b->probe[b->probes++]) : CVY_OK;
}

cvy_status cvy_kernel_measure_runs(const cvy_backend_chain *chain, const cvy_op *op, const cvy_measure_effort *effort,
                                   cvy_measured_runs *runs_out)
{
    bench b = {.effort = effort};
    cvy_status status = cvy_kernel_create(chain, op, &b.kernel);
    CVY_TRY_GOTO(status, done, status);
    CVY_TRY_GOTO(status, done, cvy_kernel_take_memory(b.kernel, &b.arena, b.operand, &b.scratch));
    cvy_kernel_fill(b.kernel, b.operand);
    CVY_TRY_GOTO(status, done, run_bench(&b));
    hold_against_probe(&b, runs_out);
done:
    cvy_arena_destroy(&b.arena);
    cvy_kernel_destroy(&b.kernel);
    return status;
}

cvy_status cvy_kernel_measure(const cvy_backend_chain *chain, const cvy_op *op, const cvy_measure_effort *effort,
                              double *seconds_out)
{
    cvy_measured_runs measured;
    CVY_TRY(cvy_kernel_measure_runs(chain, op, effort, &measured));
    *seconds_out = measured.runs == 0 ? 0.0 : measured.seconds[effort->median ? measured.runs / 2 : 0];
    return CVY_OK;
}
