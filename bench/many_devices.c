/*
 * What data parallelism over the devices of a machine is estimated to take where one device took so long as was
 * measured: what bench/fit_scaling.py fits the machine files' habits with.
 *
 * Usage: many_devices MACHINE PRECISION
 * Reads lines of MODEL BATCH RANKS SECONDS synthetic|real: samples of one device, and what an iteration of it took.
 * Writes a line for each: the seconds of an iteration of all ranks, and of these what the exchange of gradients, input
 * and the wait for the slowest take. The device of the machine is sped up or slowed down, all of its kernels alike,
 * until one takes the seconds that were measured. Synthetic data lies on the devices: it takes no time.
 */
#include <stdio.h>
#include <string.h>

#include "machine/machine.h"
#include "model/model.h"
#include "oracle/estimate.h"

/* A line of the input. */
typedef struct run {
    char model[200], data[16];
    long long batch;
    int ranks;
    double one_s; /* of one device, as measured */
} run;

static cvy_status estimate(const cvy_model *model, const cvy_machine *machine, cvy_precision precision, const run *r,
                           int ranks, cvy_estimate *estimate_out)
{
    cvy_oracle *oracle = NULL;
    cvy_estimate_question question = {.recompute = CVY_RECOMPUTE_NONE};
    cvy_oracle_options options = {
        .batch = r->batch * ranks,
        .precision = precision,
        .optimizer = {.kind = CVY_OPTIMIZER_SGD, .params = {.momentum = 0.9, .weight_decay = 1e-4}},
        .bucket_bytes = -1,
    };
    CVY_TRY(cvy_strategy_parse(ranks > 1 ? "data" : "serial", ranks, (const int64_t[3]){1, 1, 1},
                               &question.strategy));
    CVY_TRY(cvy_oracle_create(model, machine, &options, &oracle));
    cvy_status status = cvy_oracle_estimate(oracle, &question, estimate_out);
    cvy_oracle_destroy(&oracle);
    CVY_TRY(status);
    CVY_REQUIRE(estimate_out->feasible, CVY_ERR_INFEASIBLE, "%s", estimate_out->why_not);
    return CVY_OK;
}

/* Kernels take factor times as long. */
static void slow_down(cvy_device *device, double factor)
{
    for (int i = 0; i < CVY_PRECISION_COUNT; i++) {
        device->peak_flop_per_s[i] /= factor;
    }
    device->memory_Bps /= factor;
    device->launch_s *= factor;
}

static cvy_status answer(const cvy_machine *machine, cvy_precision precision, const run *r)
{
    int rounds = machine->execution.layer_host_s > 0.0 ? 8 : 1; /* one does but where host and device race */
    cvy_model *model = NULL;
    cvy_machine scaled = *machine; /* its texts stay the other's */
    cvy_estimate one, all;
    CVY_TRY(cvy_model_open(r->model, &model));
    if (strcmp(r->data, "synthetic") == 0) {
        scaled.execution.staging = CVY_STAGING_HIDDEN;
    }
    cvy_status status = CVY_OK;
    for (int i = 0; i < rounds && status == CVY_OK; i++) {
        status = estimate(model, &scaled, precision, r, 1, &one);
        if (status == CVY_OK) {
            slow_down(&scaled.device, (r->one_s - one.part_s[CVY_PHASE_IO]) /
                                          (one.iteration_s - one.part_s[CVY_PHASE_IO]));
        }
    }
    CVY_TRY_GOTO(status, done, status);
    CVY_TRY_GOTO(status, done, estimate(model, &scaled, precision, r, r->ranks, &all));
    printf("%.9g %.9g %.9g %.9g\n", all.iteration_s, all.part_s[CVY_PHASE_GRADIENT_EXCHANGE],
           all.part_s[CVY_PHASE_IO], all.part_s[CVY_TIME_WAIT]);
done:
    cvy_model_destroy(&model);
    return status;
}

static cvy_status answer_all(char **word)
{
    char line[256];
    run r;
    cvy_machine *machine = NULL;
    int precision = 0;
    while (precision < CVY_PRECISION_COUNT - 1 &&
           strcmp(word[2], cvy_precision_name((cvy_precision)precision)) != 0) {
        precision++;
    }
    CVY_TRY(cvy_machine_open(word[1], &machine));
    cvy_status status = CVY_OK;
    while (status == CVY_OK && fgets(line, sizeof line, stdin)) {
        if (sscanf(line, "%199s %lld %d %lf %15s", r.model, &r.batch, &r.ranks, &r.one_s, r.data) == 5) {
            status = answer(machine, (cvy_precision)precision, &r);
        }
    }
    cvy_machine_destroy(&machine);
    return status;
}

int main(int count, char **word)
{
    if (count != 3) {
        fprintf(stderr, "usage: %s MACHINE PRECISION\n", word[0]);
        return 2;
    }
    cvy_status status = answer_all(word);
    if (status != CVY_OK) {
        fprintf(stderr, "error: %s\n", cvy_error_message());
    }
    return cvy_status_exit_code(status);
}
