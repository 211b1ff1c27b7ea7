/* A machine that is a law: an op takes what a function says, and so does the probe; time is the sum of it all. */
#ifndef CVY_TESTS_CALIBRATE_FAKE_METER_H
#define CVY_TESTS_CALIBRATE_FAKE_METER_H

#include "calibrate/survey.h"

typedef struct fake_machine {
    double (*op_s)(const struct fake_machine *machine, const cvy_op *op);
    double (*probe_s)(const struct fake_machine *machine);
    double (*beside_s)(const struct fake_machine *machine); /* of the probes beside an op; NULL: there are none */
    double now_s;
    int measured, probed;
    uint64_t hash[4096]; /* of ops in the order in which they were measured */
} fake_machine;

/* 10 GB/s and a microsecond. */
static inline double law_of_bytes(const fake_machine *machine, const cvy_op *op)
{
    (void)machine;
    return 1e-6 + cvy_op_bytes(op) / 10e9;
}

static inline double law_of_calm(const fake_machine *machine)
{
    (void)machine;
    return 2e-3;
}

static inline cvy_status measure_fake(void *context, const cvy_op *op, double between_bytes, cvy_metered *metered_out)
{
    fake_machine *machine = context;
    (void)between_bytes;
    *metered_out = (cvy_metered){.time = {.seconds = machine->op_s(machine, op), .error = 0.01}};
    if (machine->beside_s) {
        metered_out->probe.seconds = metered_out->probe.mean_s = machine->beside_s(machine);
    }
    machine->hash[machine->measured++ % 4096] = cvy_op_hash(op);
    machine->now_s += 9.0 * metered_out->time.seconds;
    return CVY_OK;
}

static inline cvy_status probe_fake(void *context, double *seconds_out)
{
    fake_machine *machine = context;
    *seconds_out = machine->probe_s(machine);
    machine->probed++;
    machine->now_s += *seconds_out;
    return CVY_OK;
}

static inline double read_fake_clock(void *context) { return ((fake_machine *)context)->now_s; }

static inline cvy_meter make_fake_meter(fake_machine *machine)
{
    machine->op_s = machine->op_s ? machine->op_s : law_of_bytes;
    machine->probe_s = machine->probe_s ? machine->probe_s : law_of_calm;
    return (cvy_meter){.context = machine, .measure = measure_fake, .probe = probe_fake, .now_s = read_fake_clock};
}

/* Ops of one round. */
static inline int count_round(void)
{
    int ops = 0;
    for (int i = 0; i < cvy_shape_families(); i++) {
        ops += __builtin_popcount(cvy_shape_family_get(i)->passes) * cvy_shape_family_get(i)->shapes;
    }
    return ops;
}

#endif
