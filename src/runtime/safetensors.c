/*
 * Reading safetensors. The checks are those of the reference reader: the header's length lies within the file, its JSON
 * is an object with unique keys, every dtype is known, offsets follow from shape and dtype, and the tensors tile the
 * data with neither gap, overlap nor rest. After that a tensor's bytes can be trusted to be there.
 *
 * The file is mapped: a file that another process shortens meanwhile kills this one (SIGBUS), as with any mapping.
 * Data may start at any byte, so elements are copied out, never pointed at. The format is little endian, as is the
 * host.
 */
#include "runtime/safetensors.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "runtime/safetensors_header.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "safetensors files are little endian");

enum { LENGTH_BYTES = 8, MAX_HEADER_BYTES = 32 << 20 }; /* the reference reader allows 100 MB; no model comes near */

static cvy_status read_header(const char *path, cvy_safetensors *file)
{
    const unsigned char *bytes = file->mapping;
    uint64_t header_bytes;
    memcpy(&header_bytes, bytes, sizeof header_bytes);
    size_t rest = file->mapping_bytes - LENGTH_BYTES;
    CVY_REQUIRE(header_bytes <= rest && header_bytes <= MAX_HEADER_BYTES, CVY_ERR_CHECKPOINT,
                "%s: a header of %" PRIu64 " bytes in a file of %zu: not a safetensors file, or cut off", path,
                header_bytes, file->mapping_bytes);
    const char *text = (const char *)bytes + LENGTH_BYTES;
    CVY_REQUIRE(header_bytes && text[0] == '{', CVY_ERR_CHECKPOINT,
                "%s: its header is not JSON: not a safetensors file", path);
    const cvy_safetensors_text header = {.path = path,
                                         .text = text,
                                         .bytes = header_bytes,
                                         .data = bytes + LENGTH_BYTES + header_bytes,
                                         .data_bytes = (int64_t)(rest - header_bytes)};
    return cvy_safetensors_parse(&header, file);
}

static cvy_status map_file(const char *path, cvy_safetensors *file)
{
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    CVY_REQUIRE(descriptor >= 0, CVY_ERR_CHECKPOINT, "%s: %s", path, strerror(errno));
    struct stat info;
    cvy_status status = CVY_OK;
    if (fstat(descriptor, &info) != 0 || !S_ISREG(info.st_mode)) {
        status = cvy_fail(CVY_ERR_CHECKPOINT, "%s: not a regular file", path);
    } else if (info.st_size < LENGTH_BYTES) {
        status = cvy_fail(CVY_ERR_CHECKPOINT, "%s: %jd bytes: not a safetensors file, or cut off", path,
                          (intmax_t)info.st_size);
    } else {
        void *mapping = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, descriptor, 0);
        if (mapping == MAP_FAILED) {
            status = cvy_fail(CVY_ERR_CHECKPOINT, "%s: cannot map: %s", path, strerror(errno));
        } else {
            file->mapping = mapping;
            file->mapping_bytes = (size_t)info.st_size;
        }
    }
    close(descriptor);
    return status;
}

cvy_status cvy_safetensors_open(const char *path, cvy_safetensors *file_out)
{
    cvy_safetensors file = {0};
    cvy_status status = map_file(path, &file);
    if (status == CVY_OK) {
        status = read_header(path, &file);
    }
    if (status != CVY_OK) {
        cvy_safetensors_close(&file);
        return status;
    }
    *file_out = file;
    return CVY_OK;
}

void cvy_safetensors_close(cvy_safetensors *file)
{
    if (!file) {
        return;
    }
    for (int i = 0; i < file->count; i++) {
        cvy_free(file->tensor[i].name);
    }
    cvy_free(file->tensor);
    cvy_free(file->by_name);
    if (file->mapping) {
        munmap(file->mapping, file->mapping_bytes);
    }
    *file = (cvy_safetensors){0};
}

static int compare_name(const void *name, const void *entry)
{
    return strcmp(name, (*(const cvy_safetensor *const *)entry)->name);
}

const cvy_safetensor *cvy_safetensors_find(const cvy_safetensors *file, const char *name)
{
    const cvy_safetensor *const *found =
        file->count ? bsearch(name, file->by_name, (size_t)file->count, sizeof *file->by_name, compare_name) : NULL;
    return found ? *found : NULL;
}
