/*
 * The safetensors format: 8 bytes length of the header (little endian), a JSON header {"name": {"dtype", "shape",
 * "data_offsets"}}, the data. https://github.com/huggingface/safetensors, "Format". Files are hostile: header size,
 * offsets, overlaps, shapes and types are checked before use.
 */
#ifndef CVY_RUNTIME_SAFETENSORS_H
#define CVY_RUNTIME_SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>

#include "tensor/tensor.h"

/** One tensor of an open file. */
typedef struct cvy_safetensor {
    char *name;
    char dtype[8];       /**< "F32", "F64", "F16", "BF16", "I64", … */
    cvy_shape shape;     /**< scalars have dims 1, extent 1 */
    const unsigned char *data;
    int64_t bytes;
} cvy_safetensor;

typedef struct cvy_safetensors {
    int count;
    cvy_safetensor *tensor;            /**< in the header's order */
    const cvy_safetensor **by_name;    /**< the same, sorted */
    void *mapping;
    size_t mapping_bytes;
} cvy_safetensors;

/** Map a file. @retval CVY_ERR_CHECKPOINT names the file and what is wrong */
cvy_status cvy_safetensors_open(const char *path, cvy_safetensors *file_out);
void cvy_safetensors_close(cvy_safetensors *file);

/** Find by name; NULL if absent. */
const cvy_safetensor *cvy_safetensors_find(const cvy_safetensors *file, const char *name);

/** Check that cvy_safetensor_read() of the same arguments would succeed. @retval CVY_ERR_CHECKPOINT otherwise */
cvy_status cvy_safetensor_check(const cvy_safetensor *source, const char *path, const cvy_tensor *target);

/** Convert one tensor (F32, F64, F16, BF16) into memory of f32 or f64 in any format; shapes have equal elements. */
cvy_status cvy_safetensor_read(const cvy_safetensor *source, const char *path, const cvy_tensor *target, void *to);

/** What to write. */
typedef struct cvy_safetensor_item {
    const char *name;
    cvy_shape shape;     /**< written to the header */
    cvy_tensor tensor;   /**< as it lies in memory */
    const void *data;
    cvy_status (*fetch)(void *context, void *to); /**< brings the tensor in plain order, in the type of the file, when
                                                       its turn comes, in place of `data`; NULL: it is there */
    void *context;
} cvy_safetensor_item;

/**
 * Write a file of f32 tensors (f64 where @p dtype says so), in order, to @p path, and sync it. Streams: needs memory
 * for one tensor only.
 *
 * @param[out] checksum_out XXH3 64 of the whole file; may be NULL
 */
cvy_status cvy_safetensors_write(const char *path, const cvy_safetensor_item *item, int count, cvy_dtype dtype,
                                 uint64_t *checksum_out);

#endif
