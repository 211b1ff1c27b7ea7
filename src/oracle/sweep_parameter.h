/*
 * What of a machine, or of a question, a study varies: its name, its figure on a machine, and a machine with more or
 * less of it.
 */
#ifndef CVY_ORACLE_SWEEP_PARAMETER_H
#define CVY_ORACLE_SWEEP_PARAMETER_H

#include "base/quantity.h"
#include "machine/machine.h"

typedef enum cvy_varied {
    CVY_VARIED_BATCH,            /**< samples of an iteration; not the machine's */
    CVY_VARIED_ARITHMETIC,       /**< peak rates of a device, of all precisions */
    CVY_VARIED_MEMORY_BANDWIDTH, /**< of a device */
    CVY_VARIED_LINK_BANDWIDTH,
    CVY_VARIED_LINK_LATENCY,
    CVY_VARIED_MEMORY,           /**< bytes of a device */
    CVY_VARIED_PRECISION,        /**< not the machine's, and no number */
    CVY_VARIED_COUNT
} cvy_varied;

/** "batch", "arithmetic", "memory-bandwidth", "link-bandwidth", "link-latency", "memory", "precision"; then NULL. */
extern const char *const cvy_varied_names[CVY_VARIED_COUNT + 1];

/** As it stands in a sentence: "device arithmetic", "link bandwidth". Cannot fail. */
const char *cvy_varied_words(cvy_varied parameter);

/** What quantities of it are written in; CVY_QUANTITY_COUNT of batch and precision. Cannot fail. */
cvy_quantity cvy_varied_quantity(cvy_varied parameter);

/**
 * The figure of a machine, in the base unit of its quantity; of links that of one link of the innermost level between
 * nodes, or of a machine of one node of its innermost level; of arithmetic at @p precision. 0 where the machine has
 * none, and of batch and precision.
 */
double cvy_varied_get(cvy_varied parameter, const cvy_machine *machine, cvy_precision precision);

/**
 * Multiply a parameter of a machine.
 *
 * Links of all levels, and the measured figures of collectives over them, are multiplied.
 *
 * @param[in,out] machine  with figures of its own; texts may be another one's. As it is for batch and precision
 * @param[in]     factor   above 0
 */
void cvy_varied_scale(cvy_varied parameter, double factor, cvy_machine *machine);

/**
 * Set a parameter of a machine: of links those between nodes, further levels of which keep their ratio; links inside
 * nodes stay as they are, but on a machine of one node they are all there is. Rates of all precisions keep their ratio.
 *
 * @param[in] value  in the base unit, above 0; the machine has a figure of it, as cvy_varied_get() says
 */
void cvy_varied_set(cvy_varied parameter, double value, cvy_precision precision, cvy_machine *machine);

#endif
