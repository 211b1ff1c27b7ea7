/* What the sources of estimates share: private to the oracle's compute_*.c. */
#ifndef CVY_ORACLE_COMPUTE_INTERNAL_H
#define CVY_ORACLE_COMPUTE_INTERNAL_H

#include "oracle/compute.h"

/** Features, as cvy_kernel_get_features() gives them. */
enum {
    CVY_FEATURE_N,
    CVY_FEATURE_C,
    CVY_FEATURE_F,
    CVY_FEATURE_GROUPS,
    CVY_FEATURE_INPUT,
    CVY_FEATURE_OUTPUT,
    CVY_FEATURE_KERNEL,
    CVY_FEATURE_STRIDE,
    CVY_FEATURE_FLOP,
    CVY_FEATURE_BYTES,
    CVY_FEATURE_COLUMNS,
    CVY_FEATURE_DEPTH,
    CVY_FEATURE_IS_1X1,
    CVY_FEATURE_IS_3X3,
    CVY_FEATURE_DISTANCE,
    CVY_FEATURE_INPUT_BYTES,
    CVY_FEATURE_OUTPUT_BYTES,
    CVY_FEATURE_WEIGHT_BYTES,
    CVY_FEATURE_C_WASTE,
    CVY_FEATURE_F_WASTE,
    CVY_FEATURE_ROW,
    CVY_FEATURE_IS_RELU,
    CVY_FEATURE_OVERHANG,
    CVY_FEATURE_IS_WHOLE,
    CVY_FEATURE_IS_TILED,
    CVY_FEATURE_INSIDE,
    CVY_FEATURE_PRODUCTS,
    CVY_FEATURE_POINTS,
    CVY_FEATURE_IS_PLAIN,
};

/** A measured kernel in memory. */
typedef struct cvy_kernel_entry {
    uint64_t key;
    cvy_kernel_time time; /**< seconds 0: an empty place */
    cvy_roof roof;
} cvy_kernel_entry;

/** Measured kernels by key, in open addressing; {0} is an empty one. */
typedef struct cvy_kernel_table {
    cvy_kernel_entry *entry;
    int64_t entries, capacity; /**< the capacity is a power of two, at least twice the entries */
} cvy_kernel_table;

/** A hash of what a clock sees of an op. */
uint64_t cvy_kernel_key(const cvy_op *op);

/**
 * Read a file into a table; of a kernel that is there already, the first holds. A file of another precision is checked
 * and adds nothing.
 *
 * @retval CVY_ERR_INPUT  file, line, found, expected
 */
cvy_status cvy_kernel_table_load(const char *path, cvy_precision precision, cvy_kernel_table *table);

/** The entry of a key behind @p before, in no order; NULL behind the last. @param[in] before NULL: the first */
const cvy_kernel_entry *cvy_kernel_table_next(const cvy_kernel_table *table, uint64_t key,
                                              const cvy_kernel_entry *before);

/** Of the entries of a key the one measured nearest to a distance, by its logarithm; NULL if there is none. */
const cvy_kernel_entry *cvy_kernel_table_find(const cvy_kernel_table *table, uint64_t key, double distance_bytes);

/** Release what a table owns and empty it. */
void cvy_kernel_table_clear(cvy_kernel_table *table);

/** Read a predictor. @retval CVY_ERR_INPUT file, line, found, expected */
cvy_status cvy_predictor_load(const char *path, cvy_predictor **predictor_out);

/** What it is of. */
int cvy_predictor_kernel(const cvy_predictor *predictor);
cvy_op_pass cvy_predictor_pass(const cvy_predictor *predictor);
cvy_precision cvy_predictor_precision(const cvy_predictor *predictor);

#endif
