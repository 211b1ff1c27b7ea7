/* Data sets of arrays: x and y of each split, checked against each other and the model. */
#ifndef CVY_DATA_ARRAY_SET_H
#define CVY_DATA_ARRAY_SET_H

#include "data/array.h"
#include "data/data.h"

/**
 * Load x and y of a split. Where a folder has none, both stay empty.
 *
 * @param[out] pair_out  x, y; released by the caller, on failure too
 */
typedef cvy_status (*cvy_array_load)(const char *folder, cvy_split split, cvy_array pair_out[2]);

/** What cvy_data_kind.open does of sets of arrays. */
cvy_status cvy_array_set_open(const cvy_data_options *options, cvy_array_load load, cvy_data_info *info_out,
                              void **state_out);

/** What cvy_data_kind.close and .read do of them. */
void cvy_array_set_close(void *state);
cvy_status cvy_array_set_read(const void *state, cvy_split split, int64_t index, float *x_out, void *label_out);

#endif
