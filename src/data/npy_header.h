/* The header of NumPy's NPY format. */
#ifndef CVY_DATA_NPY_HEADER_H
#define CVY_DATA_NPY_HEADER_H

#include "data/array.h"

/**
 * Parse the header at the beginning of the bytes of an NPY file, and hold it against their count.
 *
 * @param[in]  name       of the file, for messages
 * @param[out] array_out  type, shape and body are set
 * @retval CVY_ERR_DATA   not NPY, damaged, a type or order that is not taken, no elements, or another length
 */
cvy_status cvy_npy_parse_header(const char *name, const unsigned char *data, int64_t bytes, cvy_array *array_out);

/** Bytes of one element. */
int64_t cvy_array_type_bytes(cvy_array_type type);

#endif
