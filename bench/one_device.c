/*
 * What one device is estimated to take for an iteration of training, and the ops that it is made of: what
 * bench/fit_devices.py fits the machine files' efficiencies with.
 *
 * Usage: one_device ops relu|none     an op a line: kernel, pass, flop, bytes in f32, bytes under mixed precision
 *        one_device MACHINE PRECISION the seconds, and their relative error
 * Reads lines of MODEL BATCH sgd|adam; writes `model MODEL BATCH` before the answer to each.
 */
#include <stdio.h>
#include <string.h>

#include "machine/machine.h"
#include "model/model.h"
#include "oracle/compute.h"
#include "plan/plan.h"

/* What answers: one device at f32 and one at mixed precision, or the machine's. */
typedef struct pricing {
    cvy_machine *machine;
    cvy_compute *compute, *mixed;
    bool list, unfused;
} pricing;

static void list_ops(const cvy_schedule *s, const pricing *p)
{
    for (int i = 0; i < s->steps; i++) {
        if (s->step[i].op >= 0) {
            const cvy_op *op = &s->op[s->step[i].op];
            printf("%s %s %.9g %.9g %.9g\n", cvy_kernel_name(cvy_op_kernel(op)), cvy_op_pass_name(op->pass),
                   cvy_op_flop(op), cvy_compute_op_bytes(p->compute, op), cvy_compute_op_bytes(p->mixed, op));
        }
    }
}

static void add_times(const cvy_schedule *s, const pricing *p)
{
    double seconds = 0.0, error = 0.0;
    for (int i = 0; i < s->steps; i++) {
        if (s->step[i].op >= 0) {
            cvy_compute_estimate one = cvy_compute_estimate_op(p->compute, &s->op[s->step[i].op], 1.0, 0.0);
            seconds += one.seconds;
            error += one.seconds * one.error;
        }
    }
    printf("%.9g %.4g\n", seconds, error / seconds);
}

/* Relus are fused as the machine's framework fuses them; formats are plain, which pads nothing. */
static cvy_status answer(const pricing *p, const char *name, int64_t batch, cvy_optimizer_kind optimizer)
{
    cvy_model *model = NULL;
    cvy_plan *plan = NULL;
    cvy_plan_options options = {.batch = batch,
                                .dtype = CVY_F32,
                                .training = true,
                                .optimizer = {.kind = optimizer, .params = {.momentum = 0.9, .weight_decay = 1e-4}},
                                .layout = CVY_LAYOUT_PLAIN,
                                .unfused = p->unfused,
                                .block = 8};
    CVY_TRY(cvy_model_open(name, &model));
    cvy_status status = cvy_plan_create(model, &options, &plan);
    if (status == CVY_OK) {
        printf("model %s %lld\n", name, (long long)batch);
        (p->list ? list_ops : add_times)(&plan->schedule[CVY_SCHEDULE_TRAIN], p);
    }
    cvy_plan_destroy(&plan);
    cvy_model_destroy(&model);
    return status;
}

static cvy_status answer_all(char **word)
{
    char line[256];
    pricing p = {.list = strcmp(word[1], "ops") == 0};
    int precision = 0;
    CVY_TRY(cvy_machine_open(p.list ? "dgx1-v100" : word[1], &p.machine)); /* any would do to count bytes */
    while (precision < CVY_PRECISION_COUNT && strcmp(word[2], cvy_precision_name((cvy_precision)precision)) != 0) {
        precision++;
    }
    if (p.list || precision == CVY_PRECISION_COUNT) {
        precision = CVY_PRECISION_FP32;
    }
    p.unfused = p.list ? strcmp(word[2], "none") == 0 : p.machine->execution.fuse == CVY_FUSING_NONE;
    cvy_status status = cvy_compute_create(p.machine, (cvy_precision)precision, &p.compute);
    if (status == CVY_OK && p.list) {
        status = cvy_compute_create(p.machine, CVY_PRECISION_FP16, &p.mixed);
    }
    while (status == CVY_OK && fgets(line, sizeof line, stdin)) {
        char name[200], rule[8];
        long long batch = 0;
        if (sscanf(line, "%199s %lld %7s", name, &batch, rule) == 3) {
            bool adam = strcmp(rule, "adam") == 0;
            status = answer(&p, name, batch, adam ? CVY_OPTIMIZER_ADAM : CVY_OPTIMIZER_SGD);
        }
    }
    cvy_compute_destroy(&p.compute);
    cvy_compute_destroy(&p.mixed);
    cvy_machine_destroy(&p.machine);
    return status;
}

int main(int count, char **word)
{
    if (count != 3) {
        fprintf(stderr, "usage: %s ops relu|none | MACHINE PRECISION\n", word[0]);
        return 2;
    }
    cvy_status status = answer_all(word);
    if (status != CVY_OK) {
        fprintf(stderr, "error: %s\n", cvy_error_message());
    }
    return cvy_status_exit_code(status);
}
