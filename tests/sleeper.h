/*
 * A backend for tests that computes nothing. What it takes, how long it sleeps in place of computing and what scratch
 * memory it wants is the test's to say; it counts what is asked of it.
 */
#ifndef CVY_TESTS_SLEEPER_H
#define CVY_TESTS_SLEEPER_H

#include <stdint.h>
#include <time.h>

#include "backend/backend.h"
#include "base/memory.h"

static struct {
    cvy_quality (*quality)(const cvy_op *op);
    int64_t (*sleep_ns)(const cvy_op *op);      /* NULL: it does not sleep */
    int64_t (*scratch_bytes)(const cvy_op *op); /* NULL: it wants none */
    int kernels, runs;
    int64_t samples; /* over all runs */
} sleeper_state;

extern const cvy_backend sleeper;

static cvy_quality sleeper_quality(const cvy_op *op) { return sleeper_state.quality(op); }

static cvy_status sleeper_create(const cvy_op *op, cvy_kernel **kernel_out)
{
    CVY_REQUIRE(sleeper_quality(op) != CVY_QUALITY_NONE, CVY_ERR_UNSUPPORTED, "sleeper: the test does not want it");
    cvy_kernel *kernel = cvy_calloc(1, sizeof *kernel);
    if (!kernel) {
        return CVY_ERR_MEMORY;
    }
    *kernel = (cvy_kernel){.backend = &sleeper, .op = *op};
    *kernel_out = kernel;
    sleeper_state.kernels++;
    return CVY_OK;
}

static size_t sleeper_scratch_bytes(const cvy_kernel *kernel)
{
    return sleeper_state.scratch_bytes ? (size_t)sleeper_state.scratch_bytes(&kernel->op) : 0;
}

static const char *sleeper_algorithm(const cvy_kernel *kernel) { return (void)kernel, "sleep"; }

static cvy_status sleeper_run(cvy_kernel *kernel, void *const *operand, void *scratch, const cvy_run *run)
{
    (void)operand, (void)scratch, (void)run;
    int64_t wait_ns = sleeper_state.sleep_ns ? sleeper_state.sleep_ns(&kernel->op) : 0;
    struct timespec wait = {.tv_sec = wait_ns / 1000000000, .tv_nsec = wait_ns % 1000000000};
    sleeper_state.runs++;
    sleeper_state.samples += kernel->op.operand[0].tensor.shape.extent[0];
    nanosleep(&wait, NULL);
    return CVY_OK;
}

static void sleeper_destroy(cvy_kernel *kernel) { cvy_free(kernel); }

const cvy_backend sleeper = {
    .name = "sleeper",
    .quality = sleeper_quality,
    .create = sleeper_create,
    .scratch_bytes = sleeper_scratch_bytes,
    .algorithm = sleeper_algorithm,
    .run = sleeper_run,
    .destroy = sleeper_destroy,
};

#endif
