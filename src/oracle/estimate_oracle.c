/*
 * What is prepared once for a model on a machine: the device's rates, a simulator, and what layers weigh by two plans
 * of one rank.
 */
#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "oracle/estimate_internal.h"

/* Samples of the serial plans by which layers and stages are weighed. */
enum { FEW_SAMPLES = 4, MANY_SAMPLES = 8 };

const cvy_model *cvy_oracle_get_model(const cvy_oracle *oracle) { return oracle->model; }
const cvy_machine *cvy_oracle_get_machine(const cvy_oracle *oracle) { return oracle->machine; }
const cvy_oracle_options *cvy_oracle_get_options(const cvy_oracle *oracle) { return &oracle->options; }

const char *cvy_time_part_name(int part)
{
    return part == CVY_TIME_BUBBLE ? "bubble" : part == CVY_TIME_WAIT ? "wait" : cvy_phase_name((cvy_phase)part);
}

const char *cvy_memory_part_name(int part)
{
    return part == CVY_MEMORY_CHECKPOINT ? "checkpoint"
           : part == CVY_MEMORY_RUNTIME  ? "runtime"
                                         : cvy_buffer_role_name((cvy_buffer_role)part);
}

void cvy_oracle_set_batch(cvy_oracle *oracle, int64_t batch) { oracle->options.batch = batch; }

static cvy_status plan_serial(const cvy_oracle *o, int64_t batch, cvy_plan **plan_out)
{
    cvy_plan_options options = {.batch = batch,
                                .dtype = CVY_F32,
                                .training = true,
                                .train_only = true,
                                .unfused = o->machine->execution.fuse == CVY_FUSING_NONE,
                                .optimizer = o->options.optimizer,
                                .layout = CVY_LAYOUT_PLAIN,
                                .block = cvy_device_block(&o->machine->device)};
    return cvy_plan_create(o->model, &options, plan_out);
}

static double count_flop(const cvy_schedule *s)
{
    double flop = 0.0;
    for (int i = 0; i < s->steps; i++) {
        flop += s->step[i].op >= 0 ? cvy_op_flop(&s->op[s->step[i].op]) : 0.0;
    }
    return flop;
}

/* Flop of an iteration are a line over samples; seconds of layers are weighed at the larger of two batches. */
static cvy_status weigh_layers(cvy_oracle *o)
{
    cvy_plan *few = NULL, *many = NULL;
    cvy_status status = plan_serial(o, FEW_SAMPLES, &few);
    CVY_TRY_GOTO(status, done, status);
    CVY_TRY_GOTO(status, done, plan_serial(o, MANY_SAMPLES, &many));
    const cvy_schedule *s = &many->schedule[CVY_SCHEDULE_TRAIN];
    double least = count_flop(&few->schedule[CVY_SCHEDULE_TRAIN]), most = count_flop(s);
    o->sample_flop = (most - least) / (MANY_SAMPLES - FEW_SAMPLES);
    o->fixed_flop = least - FEW_SAMPLES * o->sample_flop;
    for (int i = 0; i < s->steps; i++) {
        const cvy_step *step = &s->step[i];
        if (step->op >= 0 && step->layer >= 0 && step->phase != CVY_PHASE_UPDATE) {
            o->layer_s[step->layer] += cvy_compute_estimate_op(o->compute, &s->op[step->op], 1.0, 0.0).seconds /
                                       MANY_SAMPLES;
        }
    }
done:
    cvy_plan_destroy(&few);
    cvy_plan_destroy(&many);
    return status;
}

/* Layers of the same device weigh the same; its files, which may be a hundred, are read once. */
static void take_device(const cvy_oracle *like, cvy_oracle *o)
{
    o->compute = like->compute;
    o->shares_compute = true;
    memcpy(o->layer_s, like->layer_s, (size_t)o->model->layers * sizeof *o->layer_s);
    o->sample_flop = like->sample_flop;
    o->fixed_flop = like->fixed_flop;
}

static cvy_status prepare(const cvy_oracle *like, cvy_oracle *o)
{
    cvy_shape label;
    bool classes;
    CVY_TRY(cvy_plan_describe_label(o->model, &label, &classes));
    o->label_bytes = 4 * cvy_shape_elements(&label);
    CVY_TRY(cvy_simulator_create(&o->simulator));
    o->layer_s = cvy_calloc((size_t)o->model->layers, sizeof *o->layer_s);
    if (!o->layer_s) {
        return CVY_ERR_MEMORY;
    }
    if (like && memcmp(&like->machine->device, &o->machine->device, sizeof o->machine->device) == 0) {
        take_device(like, o);
        return CVY_OK;
    }
    CVY_TRY(cvy_compute_create(o->machine, o->options.precision, &o->compute));
    return weigh_layers(o);
}

cvy_status cvy_oracle_create(const cvy_model *model, const cvy_machine *machine, const cvy_oracle_options *options,
                             cvy_oracle **oracle_out)
{
    return cvy_oracle_create_like(NULL, model, machine, options, oracle_out);
}

cvy_status cvy_oracle_create_like(const cvy_oracle *like, const cvy_model *model, const cvy_machine *machine,
                                  const cvy_oracle_options *options, cvy_oracle **oracle_out)
{
    CVY_REQUIRE(options->batch >= 1, CVY_ERR_INPUT, "the batch is %" PRId64 ", expected at least 1", options->batch);
    cvy_oracle *o = cvy_calloc(1, sizeof *o);
    if (!o) {
        return CVY_ERR_MEMORY;
    }
    o->model = model;
    o->machine = machine;
    o->options = *options;
    cvy_status status = prepare(like, o);
    if (status != CVY_OK) {
        cvy_oracle_destroy(&o);
        return status;
    }
    *oracle_out = o;
    return CVY_OK;
}

void cvy_oracle_destroy(cvy_oracle **oracle)
{
    if (oracle && *oracle) {
        if (!(*oracle)->shares_compute) {
            cvy_compute_destroy(&(*oracle)->compute);
        }
        cvy_simulator_destroy(&(*oracle)->simulator);
        cvy_free((*oracle)->layer_s);
        cvy_free((*oracle)->sim_step);
        cvy_free((*oracle)->message);
        cvy_free((*oracle)->distance);
        cvy_free((*oracle)->source);
        cvy_free((*oracle)->off_s);
        cvy_free((*oracle)->tensors);
        cvy_free((*oracle)->burst_s);
        cvy_free(*oracle);
        *oracle = NULL;
    }
}
