/* A file read forward, plain or gzipped, that tells the truth about its end. */
#ifndef CVY_DATA_STREAM_H
#define CVY_DATA_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

typedef struct cvy_stream cvy_stream;

/**
 * Open a regular file; gzip is known by its first bytes, not by the name.
 *
 * @param[in]  path        borrowed, must outlive the stream
 * @param[out] stream_out  released with cvy_stream_close()
 * @retval CVY_ERR_DATA    it cannot be opened or is no regular file
 */
cvy_status cvy_stream_open(const char *path, cvy_stream **stream_out);

/** Read exactly @p bytes. @param[in] part names what they are; @retval CVY_ERR_DATA damaged, or fewer are left */
cvy_status cvy_stream_read(cvy_stream *stream, void *out, int64_t bytes, const char *part);

/** Require the end of the file here, and for gzip that length and checksum fit. @retval CVY_ERR_DATA otherwise */
cvy_status cvy_stream_finish(cvy_stream *stream);

/** The length of the file on disk. Cannot fail. */
int64_t cvy_stream_file_bytes(const cvy_stream *stream);

/**
 * Whether a file of this length may hold @p bytes: exactly so many in a plain one, in a gzipped one no more than
 * deflate can pack. To be asked before memory is taken on the word of a header. Cannot fail.
 */
bool cvy_stream_may_hold(const cvy_stream *stream, int64_t bytes);

/** Whether it is gzipped. Cannot fail. */
bool cvy_stream_is_packed(const cvy_stream *stream);

/** Release; sets NULL. */
void cvy_stream_close(cvy_stream **stream);

#endif
