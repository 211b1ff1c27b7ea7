/* The numbers that tests/reference/make_reference.py starts from, made again: see the README there. */
#ifndef CVY_TESTS_RUNTIME_REFERENCE_VALUES_H
#define CVY_TESTS_RUNTIME_REFERENCE_VALUES_H

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "tensor/tensor.h"

static inline uint32_t hash_name(const char *name) /* FNV-1a */
{
    uint32_t value = 0x811C9DC5u;
    for (; *name; name++) {
        value = (value ^ (unsigned char)*name) * 0x01000193u;
    }
    return value;
}

/* In [-1, 1), of 24 bits. */
static inline double spread(uint32_t key, int64_t i)
{
    const cvy_words counter = {{(uint32_t)i, 0, 0, 0}};
    return 2.0 * (double)cvy_random_unit(cvy_philox(counter, key, 0).v[0]) - 1.0;
}

static inline bool ends_with(const char *name, const char *ending)
{
    size_t length = strlen(name), tail = strlen(ending);
    return length >= tail && strcmp(name + length - tail, ending) == 0;
}

static inline double *make_initial_values(const char *name, const cvy_shape *shape)
{
    int64_t count = cvy_shape_elements(shape);
    double *value = cvy_calloc((size_t)count, sizeof *value);
    uint32_t key = hash_name(name);
    double fan_in = (double)count / (double)shape->extent[0];
    for (int64_t i = 0; i < count; i++) {
        double u = spread(key, i);
        double exact = shape->dims > 1                 ? u * sqrt(6.0 / fan_in)
                       : ends_with(name, ".weight")      ? 1.0 + 0.125 * u
                       : ends_with(name, ".running_var") ? 1.0 + 0.25 * u
                                                         : 0.125 * u;
        value[i] = (double)(float)exact; /* or runs in single precision would share an error that no shake tells */
    }
    return value;
}

#endif
