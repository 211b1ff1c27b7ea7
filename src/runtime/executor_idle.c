/* What the walk itself takes: the same schedule by the same loop, with kernels that do nothing and nothing to send. */
#include <string.h>

#include "base/clock.h"
#include "runtime/executor_internal.h"

enum { IDLE_RUNS = 50 };

static cvy_status do_nothing(cvy_kernel *kernel, void *const *operand, void *scratch, const cvy_run *run)
{
    (void)kernel;
    (void)operand;
    (void)scratch;
    (void)run;
    return CVY_OK;
}

static const cvy_backend idle_backend = {.name = "idle", .run = do_nothing};

/* The loss is looked at in every run: one that lies in used memory would stop the walk. */
static void clear_losses(const cvy_executor *e, cvy_schedule_kind kind)
{
    const cvy_schedule *s = &e->plan->schedule[kind];
    for (int i = 0; i < s->steps; i++) {
        int buffer = s->use[s->step[i].first_use].buffer;
        if (s->step[i].op < 0 && s->buffer[buffer].content == CVY_CONTENT_LOSS) {
            memset(cvy_executor_memory(e, kind, buffer), 0, (size_t)s->buffer[buffer].bytes);
        }
    }
}

cvy_status cvy_executor_measure_overhead(cvy_executor *e, cvy_schedule_kind kind, double *step_s_out)
{
    const cvy_schedule *s = &e->plan->schedule[kind];
    const program own = e->program[kind];
    const cvy_executor_batch batch = {.samples = s->batch};
    const cvy_run run = {.samples = s->batch, .update = 1};
    cvy_kernel idle = {.backend = &idle_backend};
    cvy_executor_result result;
    cvy_status status = CVY_ERR_MEMORY;
    cvy_comm *const comm = e->comm;
    program walk = {.step = cvy_calloc((size_t)s->steps, sizeof *walk.step),
                    .profile = cvy_calloc((size_t)s->steps, sizeof *walk.profile)};
    CVY_TRY_GOTO(status, done, walk.step && walk.profile ? CVY_OK : CVY_ERR_MEMORY);
    for (int i = 0; i < s->steps; i++) {
        walk.step[i] = own.step[i];
        walk.step[i].kernel = &idle;
        walk.step[i].exchange = NULL;
    }
    clear_losses(e, kind);
    e->program[kind] = walk;
    e->comm = NULL; /* each rank walks on its own */
    double start_s = cvy_clock_s();
    for (int i = 0; i < IDLE_RUNS && (i == 0 || status == CVY_OK); i++) {
        status = cvy_executor_run(e, kind, &batch, &run, &result);
    }
    *step_s_out = (cvy_clock_s() - start_s) / ((double)IDLE_RUNS * s->steps);
    e->program[kind] = own;
    e->comm = comm;
done:
    cvy_free(walk.step);
    cvy_free(walk.profile);
    return status;
}
