/* Machines and models of tests: YAML text that is read like a file, and models of the zoo. */
#ifndef CVY_TESTS_ORACLE_MADE_UP_H
#define CVY_TESTS_ORACLE_MADE_UP_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "machine/machine.h"
#include "model/model.h"
#include "plan/strategy.h"

/*
 * 64 devices of 10 TFLOP/s and 1 TB/s on links of one level: a bandwidth and a latency. Rings alone; nothing overlaps;
 * nothing takes time but arithmetic, bytes and messages.
 */
#define MADE_UP_MACHINE                                                                            \
    "name: made-up\n"                                                                              \
    "summary: a machine of a test\n"                                                               \
    "nodes: 1\n"                                                                                   \
    "devices-per-node: 64\n"                                                                       \
    "device: {name: d, kind: gpu, cores: 80, memory: 64 GB, memory-bandwidth: 1 TB/s,\n"           \
    "  peak: {fp32: 10 TFLOP/s}}\n"                                                                \
    "links: [{name: link, connects: device, endpoints: 64, bandwidth: %g GB/s, latency: %g us}]\n" \
    "collectives:\n"                                                                               \
    "  - {collective: all-reduce, algorithm: ring}\n"                                              \
    "  - {collective: reduce-scatter, algorithm: ring}\n"                                          \
    "  - {collective: all-gather, algorithm: ring}\n"

/* Of a text, printf style. */
__attribute__((format(printf, 1, 2))) static inline cvy_machine *make_machine(const char *format, ...)
{
    char path[] = "/tmp/convoy-machine-XXXXXX";
    cvy_machine *machine = NULL;
    va_list arguments;
    int file = mkstemp(path);
    assert_true(file >= 0);
    va_start(arguments, format);
    assert_true(vdprintf(file, format, arguments) > 0);
    va_end(arguments);
    assert_int_equal(close(file), 0);
    cvy_status status = cvy_machine_load(path, &machine);
    (void)unlink(path);
    if (status != CVY_OK) {
        fail_msg("%s", cvy_error_message());
    }
    return machine;
}

static inline cvy_model *open_model(const char *name)
{
    cvy_model *model = NULL;
    if (cvy_model_open(name, &model) != CVY_OK) {
        fail_msg("%s", cvy_error_message());
    }
    return model;
}

/* A strategy of so many ranks as a user writes it. */
static inline cvy_strategy parse_strategy(const cvy_model *model, const char *text, int64_t ranks)
{
    cvy_strategy strategy;
    int64_t space[3];
    cvy_space_get(&model->layer[0].output, space);
    if (cvy_strategy_parse(text, ranks, space, &strategy) != CVY_OK) {
        fail_msg("%s", cvy_error_message());
    }
    return strategy;
}

static inline void assert_near(double found, double expected, double relative)
{
    if (!(fabs(found - expected) <= relative * fabs(expected))) {
        fail_msg("found %.9g, expected %.9g", found, expected);
    }
}

#endif
