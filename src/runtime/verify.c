/*
 * A strategy against the serial run. All ranks train first; then the first one trains alone, as often as it takes to
 * know its noise, and the others wait for what it found.
 */
#include "runtime/verify.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/pulse.h"
#include "runtime/lookout.h"

/* The serial run's own noise: as many shakes as were asked for, whatever the strategy's run came to. */
static cvy_status find_noise(const cvy_model *model, const cvy_train_options *options,
                             const cvy_verify_options *effort, const cvy_verify_input *input,
                             const cvy_verify_record *serial, cvy_verify_noise *noise)
{
    cvy_status status = CVY_OK;
    cvy_verify_input moved = *input;
    while (status == CVY_OK && noise->shakes < effort->shakes) {
        cvy_verify_record shaken;
        moved.shake = noise->shakes + 1;
        status = cvy_verify_run(model, options, effort->steps, &moved, NULL, &shaken);
        if (status == CVY_OK) {
            cvy_verify_add_noise(model, serial, &shaken, effort->steps, noise);
        }
        cvy_verify_record_clear(&shaken);
    }
    return status;
}

/* Noise counts in single precision; double has bounds. */
static cvy_status compare_with_serial(const cvy_model *model, const cvy_train_options *options,
                                      const cvy_verify_options *effort, const cvy_verify_record *tried,
                                      const cvy_verify_record *serial, cvy_verification *v)
{
    const cvy_verify_input input = {.parts = tried->parts};
    cvy_verify_noise noise;
    cvy_status status = cvy_verify_noise_create(model, effort->steps, &noise);
    CVY_TRY_GOTO(status, done, status);
    if (!v->double_precision) {
        CVY_TRY_GOTO(status, done, find_noise(model, options, effort, &input, serial, &noise));
    }
    status = cvy_verify_compare(model, tried, serial, &noise, v);
done:
    cvy_verify_noise_clear(&noise);
    return status;
}

/* On the first rank. Micro-batches are those of the run that is tried: batch norms see a part at a time. */
static cvy_status run_serial(const cvy_model *model, const cvy_train_options *serial, const cvy_verify_options *effort,
                             const cvy_train_observer *observer, const cvy_verify_record *tried, cvy_verification *v)
{
    const cvy_verify_input input = {.parts = tried->parts};
    cvy_train_options options = *serial;
    cvy_verify_record record;
    options.micro_batches = tried->parts.micro_batches;
    cvy_status status = cvy_verify_run(model, &options, effort->steps, &input, observer, &record);
    if (status == CVY_OK) {
        status = compare_with_serial(model, &options, effort, tried, &record, v);
    }
    cvy_verify_record_clear(&record);
    return status;
}

/* What the first rank found, but for its rows, is what all found. */
static cvy_status share_verdict(cvy_comm *comm, cvy_verification *v)
{
    cvy_layer_difference *rows = v->layer;
    int layers = v->layers;
    if (cvy_comm_ranks(comm) == 1) {
        return CVY_OK;
    }
    CVY_TRY(cvy_comm_broadcast(comm, v, sizeof *v, 0));
    v->layer = rows;
    v->layers = layers;
    return CVY_OK;
}

static cvy_status agree(cvy_comm *comm, cvy_status mine)
{
    return cvy_comm_ranks(comm) > 1 ? cvy_comm_agree(comm, mine) : mine;
}

cvy_status cvy_verify_pair(const cvy_model *model, const cvy_train_options *tried, const cvy_train_options *serial,
                           const cvy_verify_options *effort, const cvy_train_observer *observer,
                           cvy_verification *verification_out)
{
    cvy_verify_record record = {0};
    const int ranks = cvy_comm_ranks(tried->comm);
    const char *strategy = tried->strategy ? tried->strategy : ranks > 1 ? "data" : "serial";
    *verification_out = (cvy_verification){.ranks = ranks,
                                           .steps = effort->steps,
                                           .batch = tried->batch,
                                           .double_precision = tried->double_precision};
    snprintf(verification_out->strategy, sizeof verification_out->strategy, "%s", strategy);
    cvy_status status = cvy_verify_run(model, tried, effort->steps, NULL, observer, &record);
    CVY_TRY_GOTO(status, done, agree(tried->comm, status));
    if (cvy_comm_rank(tried->comm) == 0) {
        status = run_serial(model, serial, effort, observer, &record, verification_out);
    }
    cvy_pulse_set(CVY_ACTIVITY_COMMUNICATING); /* the others: they wait for the first, which beats as it trains */
    CVY_TRY_GOTO(status, done, agree(tried->comm, status));
    status = share_verdict(tried->comm, verification_out);
done:
    cvy_verify_record_clear(&record);
    return status;
}

cvy_status cvy_verify(const cvy_model *model, const cvy_train_options *options, const cvy_verify_options *effort,
                      const cvy_train_observer *observer, cvy_verification *verification_out)
{
    enum { MOST_STEPS = 1 << 20 };
    cvy_train_options tried = *options;
    *verification_out = (cvy_verification){.ranks = 0};
    CVY_REQUIRE(effort->steps >= 1 && effort->steps <= MOST_STEPS && effort->shakes >= 0, CVY_ERR_INPUT,
                "steps: expected 1 to %d, got %lld", MOST_STEPS, (long long)effort->steps);
    tried.train_samples = options->batch * effort->steps;
    tried.data = options->data ? options->data : "random";
    tried.sync_norms = options->sync_norms ? options->sync_norms : "sample,depth,height,width";
    tried.out = tried.resume = tried.weights = tried.timeline = tried.cache = NULL;
    cvy_train_options serial = tried;
    serial.comm = NULL;
    serial.strategy = serial.plan = serial.sync_norms = NULL;
    serial.shard_optimizer = false;
    cvy_lookout lookout;
    cvy_status status = cvy_lookout_start(model, &tried, observer, &lookout);
    if (status == CVY_OK) {
        status = cvy_verify_pair(model, &tried, &serial, effort, observer, verification_out);
    }
    return cvy_lookout_stop(&lookout, status);
}

void cvy_verification_clear(cvy_verification *verification)
{
    cvy_free(verification->layer);
    *verification = (cvy_verification){.ranks = 0};
}
