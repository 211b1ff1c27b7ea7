/* The product stays in the cache of a core: what disturbs it is the machine, not its size. */
#include "backend/probe.h"

#include "backend/measure.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/order.h"

enum { SIZE = 160, RUNS = 3 };

struct cvy_probe {
    cvy_kernel *kernel;
    cvy_arena arena;
    void *operand[CVY_MAX_OPERANDS], *scratch;
};

static cvy_status describe_product(cvy_op *op)
{
    static const cvy_tensor square = {.shape = {2, {SIZE, SIZE}}, .dtype = CVY_F32};
    *op = (cvy_op){.kind = CVY_OP_DENSE, .pass = CVY_PASS_FORWARD};
    CVY_TRY(cvy_op_add(op, CVY_ROLE_X, &square));
    CVY_TRY(cvy_op_add(op, CVY_ROLE_W, &square));
    return cvy_op_add(op, CVY_ROLE_Y, &square);
}

cvy_status cvy_probe_create(const cvy_backend_chain *chain, cvy_probe **probe_out)
{
    cvy_op op;
    cvy_status status;
    cvy_probe *probe = cvy_calloc(1, sizeof *probe);
    if (!probe) {
        return CVY_ERR_MEMORY;
    }
    CVY_TRY_GOTO(status, done, describe_product(&op));
    CVY_TRY_GOTO(status, done, cvy_kernel_create(chain, &op, &probe->kernel));
    CVY_TRY_GOTO(status, done, cvy_kernel_take_memory(probe->kernel, &probe->arena, probe->operand, &probe->scratch));
    cvy_kernel_fill(probe->kernel, probe->operand);
    *probe_out = probe;
    probe = NULL;
done:
    cvy_probe_destroy(&probe);
    return status;
}

void cvy_probe_destroy(cvy_probe **probe)
{
    if (*probe) {
        cvy_arena_destroy(&(*probe)->arena);
        cvy_kernel_destroy(&(*probe)->kernel);
    }
    cvy_free(*probe);
    *probe = NULL;
}

cvy_status cvy_probe_run(cvy_probe *probe, cvy_probe_time *time_out)
{
    const cvy_run run = {.samples = SIZE, .loss_scale = 1.0, .update = 1};
    double seconds[RUNS], sum_s = 0.0;
    CVY_TRY(cvy_kernel_run(probe->kernel, probe->operand, probe->scratch, &run));
    for (int i = 0; i < RUNS; i++) {
        double start_s = cvy_clock_s();
        CVY_TRY(cvy_kernel_run(probe->kernel, probe->operand, probe->scratch, &run));
        seconds[i] = cvy_clock_s() - start_s;
        sum_s += seconds[i];
    }
    cvy_sort_doubles(seconds, RUNS);
    *time_out = (cvy_probe_time){.seconds = seconds[RUNS / 2], .mean_s = sum_s / RUNS};
    return CVY_OK;
}
