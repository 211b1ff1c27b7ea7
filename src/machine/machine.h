/*
 * Machines: what a plan must know of the hardware. A machine is a YAML file, or the one that this program runs on.
 * docs/machines.md has the format.
 */
#ifndef CVY_MACHINE_MACHINE_H
#define CVY_MACHINE_MACHINE_H

#include <stdint.h>

#include "base/error.h"

/** A device: what kernels run on. */
typedef struct cvy_device {
    int cores;
    int vector_bits;      /**< of the widest vector of floats */
    int64_t memory_bytes; /**< 0 where unknown */
} cvy_device;

typedef struct cvy_machine {
    char name[64];
    cvy_device device;
} cvy_machine;

/** The machine that this program runs on. Cannot fail. */
void cvy_machine_get_local(cvy_machine *machine_out);

/**
 * Read a machine file.
 *
 * @retval CVY_ERR_INPUT file, line, what was found and what was expected
 */
cvy_status cvy_machine_load(const char *path, cvy_machine *machine_out);

/** Channels in a block of the formats that suit the device: one vector of floats, 8 or 16. */
int cvy_device_block(const cvy_device *device);

#endif
