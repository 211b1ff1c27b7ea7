/*
 * The rest of a resident set is much the same for every training of a program (28 to 30 MB on one rank, where nets took
 * 11 MB to 1.5 GB of tensors), so that one small training tells it. Data are zeros: classes and values alike.
 */
#include "calibrate/process.h"

#include "base/checked.h"
#include "oracle/estimate.h"
#include "runtime/session.h"

static cvy_status run_iteration(cvy_session *session, const cvy_train_options *options)
{
    const cvy_schedule *s = &session->plan->schedule[CVY_SCHEDULE_TRAIN];
    void *slots = cvy_executor_slots(session->executor);
    const cvy_executor_batch batch = {.x = slots, .label = slots, .samples = s->samples.end - s->samples.begin};
    const cvy_run run = {.samples = options->batch, .loss_scale = 1.0 / (double)options->batch,
                         .learning_rate = 1e-4, .update = 1};
    cvy_executor_result result;
    CVY_TRY(cvy_executor_initialise(session->executor, options->seed));
    return cvy_executor_run(session->executor, CVY_SCHEDULE_TRAIN, &batch, &run, &result);
}

/* The largest rest over all ranks. Collective. */
static cvy_status find_rest(const cvy_session *session, int64_t *bytes_out)
{
    int64_t resident;
    double rest;
    CVY_TRY(cvy_session_peak_memory(session, &resident));
    int steps = session->plan->schedule[CVY_SCHEDULE_TRAIN].steps;
    rest = (double)(resident - session->plan->persistent_bytes - session->plan->transient_bytes -
                    steps * CVY_STEP_MEMORY_BYTES);
    CVY_TRY(cvy_comm_all_reduce(session->comm, &rest, 1, CVY_F64, CVY_REDUCE_MAX));
    *bytes_out = rest > 0.0 ? (int64_t)rest : 0;
    return CVY_OK;
}

cvy_status cvy_process_measure(cvy_comm *comm, int threads, int64_t *bytes_out)
{
    enum { RANK_BATCH = 16 };
    cvy_train_options options = CVY_TRAIN_OPTIONS_INIT;
    cvy_session session;
    cvy_model *model = NULL;
    options.comm = comm;
    options.threads = threads;
    options.batch = (int64_t)RANK_BATCH * cvy_comm_ranks(comm);
    options.layout = "rule";
    CVY_TRY(cvy_model_open("lenet5", &model));
    cvy_status status = cvy_session_open(model, &options, NULL, true, false, &session);
    CVY_TRY_GOTO(status, done, status);
    CVY_TRY_GOTO(status, done, run_iteration(&session, &options));
    status = find_rest(&session, bytes_out);
done:
    cvy_session_close(&session);
    cvy_model_destroy(&model);
    return status;
}
