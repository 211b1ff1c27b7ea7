/* The header of a safetensors file. For the reader alone: its users see runtime/safetensors.h. */
#ifndef CVY_RUNTIME_SAFETENSORS_HEADER_H
#define CVY_RUNTIME_SAFETENSORS_HEADER_H

#include "runtime/safetensors.h"

/** A header's text, and the data behind it. All is borrowed. */
typedef struct cvy_safetensors_text {
    const char *path;          /**< for messages */
    const char *text;
    size_t bytes;
    const unsigned char *data;
    int64_t data_bytes;
} cvy_safetensors_text;

/**
 * Fill the tensors of @p file, which has none yet, and their index.
 *
 * @retval CVY_ERR_CHECKPOINT no such header, or one that the data does not bear out; what @p file has got by then is
 *         released by cvy_safetensors_close(), as after success
 */
cvy_status cvy_safetensors_parse(const cvy_safetensors_text *header, cvy_safetensors *file);

#endif
