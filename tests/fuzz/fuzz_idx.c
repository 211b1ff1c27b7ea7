/*
 * IDX: the input is the file of images and the file of labels. The lowest bits of its first byte say which of them are
 * gzipped here, so that what lies in the stream is reached behind its checksum; a part may be a gzip file itself.
 */
#include <zlib.h>

#include "fuzz/fuzz_data.h"

enum { GZIP_WINDOW = 15 + 16, MEMORY_LEVEL = 1 };

static void put_packed(const char *name, const uint8_t *data, size_t bytes)
{
    z_stream stream = {.next_in = (Bytef *)(uintptr_t)data, .avail_in = (uInt)bytes};
    int answer = deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, GZIP_WINDOW, MEMORY_LEVEL, Z_DEFAULT_STRATEGY);
    FUZZ_REQUIRE(answer == Z_OK);
    size_t room = deflateBound(&stream, (uLong)bytes);
    unsigned char *packed = malloc(room);
    FUZZ_REQUIRE(packed);
    stream.next_out = packed;
    stream.avail_out = (uInt)room;
    FUZZ_REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
    (void)fuzz_put(name, packed, room - stream.avail_out);
    FUZZ_REQUIRE(deflateEnd(&stream) == Z_OK);
    free(packed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const name[2] = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte"};
    const uint8_t *part[2];
    size_t bytes[2];
    if (!size) {
        return 0;
    }
    fuzz_split(data + 1, size - 1, part, bytes);
    for (int i = 0; i < 2; i++) {
        if (data[0] >> i & 1) {
            put_packed(name[i], part[i], bytes[i]);
        } else {
            (void)fuzz_put(name[i], part[i], bytes[i]);
        }
    }
    fuzz_read_set("idx");
    return 0;
}
