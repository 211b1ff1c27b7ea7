/*
 * zlib's inflate() and not its gzFile, which takes a stream for whole that ends within its checksum: here an end counts
 * only where inflate() has seen it, and nothing may follow.
 */
#include "data/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/checked.h"
#include "base/memory.h"

enum {
    BUFFER_BYTES = 1 << 16,
    STEP_BYTES = 1 << 30,       /* zlib counts in unsigned int */
    DEFLATE_RATIO = 1032,       /* the most that deflate gains: 258 bytes from 2 bits */
    GZIP_WINDOW = 15 + 16,      /* inflateInit2: the largest window, gzip's wrapping alone */
};

struct cvy_stream {
    const char *path;
    int descriptor;
    int64_t file_bytes;
    bool packed, ended;         /* ended: inflate() has seen the end and the checksum */
    z_stream inflater;
    size_t first, count;        /* of the bytes in the buffer that are not used yet */
    unsigned char buffer[BUFFER_BYTES];
};

/* Fill the empty buffer; count stays 0 at the end of the file. */
static cvy_status fill_buffer(cvy_stream *stream)
{
    ssize_t got;
    do {
        got = read(stream->descriptor, stream->buffer, BUFFER_BYTES);
    } while (got < 0 && errno == EINTR);
    CVY_REQUIRE(got >= 0, CVY_ERR_DATA, "%s: cannot read: %s", stream->path, strerror(errno));
    stream->first = 0;
    stream->count = (size_t)got;
    return CVY_OK;
}

cvy_status cvy_stream_open(const char *path, cvy_stream **stream_out)
{
    struct stat about;
    cvy_status status;
    cvy_stream *stream = cvy_calloc(1, sizeof *stream);
    if (!stream) {
        return CVY_ERR_MEMORY;
    }
    stream->path = path;
    stream->descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe must not hold us up */
    CVY_REQUIRE_GOTO(status, done, stream->descriptor >= 0 && fstat(stream->descriptor, &about) == 0, CVY_ERR_DATA,
                     "%s: cannot open: %s", path, strerror(errno));
    CVY_REQUIRE_GOTO(status, done, S_ISREG(about.st_mode), CVY_ERR_DATA, "%s: not a regular file", path);
    stream->file_bytes = about.st_size;
    CVY_TRY_GOTO(status, done, fill_buffer(stream));
    if (stream->count >= 2 && stream->buffer[0] == 0x1f && stream->buffer[1] == 0x8b) {
        CVY_REQUIRE_GOTO(status, done, inflateInit2(&stream->inflater, GZIP_WINDOW) == Z_OK, CVY_ERR_MEMORY,
                         "%s: no memory to unpack it", path);
        stream->packed = true;
    }
    *stream_out = stream;
    stream = NULL;
done:
    cvy_stream_close(&stream);
    return status;
}

void cvy_stream_close(cvy_stream **stream)
{
    if (!*stream) {
        return;
    }
    if ((*stream)->packed) {
        inflateEnd(&(*stream)->inflater);
    }
    if ((*stream)->descriptor >= 0) {
        close((*stream)->descriptor);
    }
    cvy_free(*stream);
    *stream = NULL;
}

/* Copy or unpack some of the buffer; *got_out is 0 where it gave nothing. */
static cvy_status use_buffer(cvy_stream *stream, unsigned char *out, size_t bytes, size_t *got_out)
{
    if (!stream->packed) {
        *got_out = stream->count < bytes ? stream->count : bytes;
        memcpy(out, stream->buffer + stream->first, *got_out);
        stream->first += *got_out;
        stream->count -= *got_out;
        return CVY_OK;
    }
    z_stream *inflater = &stream->inflater;
    inflater->next_in = stream->buffer + stream->first;
    inflater->avail_in = (uInt)stream->count;
    inflater->next_out = out;
    inflater->avail_out = (uInt)bytes;
    int answer = inflate(inflater, Z_NO_FLUSH);
    CVY_REQUIRE(answer == Z_OK || answer == Z_STREAM_END || answer == Z_BUF_ERROR, CVY_ERR_DATA,
                "%s: damaged gzip data: %s", stream->path, inflater->msg ? inflater->msg : "unexpected contents");
    stream->ended = answer == Z_STREAM_END;
    stream->first += stream->count - inflater->avail_in;
    stream->count = inflater->avail_in;
    *got_out = bytes - inflater->avail_out;
    return CVY_OK;
}

/* Read up to @p bytes: fewer only where the file, or the gzip stream in it, ends. */
static cvy_status read_some(cvy_stream *stream, unsigned char *out, int64_t bytes, int64_t *got_out)
{
    *got_out = 0;
    while (*got_out < bytes && !stream->ended) {
        size_t got = 0;
        if (!stream->count) {
            CVY_TRY(fill_buffer(stream));
        }
        bool at_end = !stream->count;
        CVY_TRY(use_buffer(stream, out + *got_out, (size_t)cvy_min_i64(bytes - *got_out, STEP_BYTES), &got));
        *got_out += (int64_t)got;
        if (at_end && !got) {
            break;
        }
    }
    return CVY_OK;
}

cvy_status cvy_stream_read(cvy_stream *stream, void *out, int64_t bytes, const char *part)
{
    int64_t got;
    CVY_TRY(read_some(stream, out, bytes, &got));
    CVY_REQUIRE(got == bytes, CVY_ERR_DATA, "%s: ends after %" PRId64 " bytes of its %s, expected %" PRId64,
                stream->path, got, part, bytes);
    return CVY_OK;
}

cvy_status cvy_stream_finish(cvy_stream *stream)
{
    unsigned char more;
    int64_t got;
    CVY_TRY(read_some(stream, &more, 1, &got));
    CVY_REQUIRE(!got, CVY_ERR_DATA, "%s: holds more than its header says", stream->path);
    CVY_REQUIRE(!stream->packed || stream->ended, CVY_ERR_DATA, "%s: the gzip stream is cut short", stream->path);
    if (!stream->count) {
        CVY_TRY(fill_buffer(stream));
    }
    CVY_REQUIRE(!stream->count, CVY_ERR_DATA, "%s: there are bytes behind the end of the gzip stream", stream->path);
    return CVY_OK;
}

int64_t cvy_stream_file_bytes(const cvy_stream *stream) { return stream->file_bytes; }

bool cvy_stream_may_hold(const cvy_stream *stream, int64_t bytes)
{
    return stream->packed ? bytes / DEFLATE_RATIO <= stream->file_bytes : bytes == stream->file_bytes;
}

bool cvy_stream_is_packed(const cvy_stream *stream) { return stream->packed; }
