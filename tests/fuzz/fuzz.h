/*
 * What the harnesses share. Each is one LLVMFuzzerTestOneInput(): it gives bytes to a reader as files in a folder that
 * lies in memory, and ends the process where the reader breaks a promise; the sanitizers see to the rest.
 */
#ifndef CVY_TESTS_FUZZ_H
#define CVY_TESTS_FUZZ_H

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/** End the process where a promise is broken; NDEBUG does not switch it off. */
#define FUZZ_REQUIRE(condition)                                                                              \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            fprintf(stderr, "%s:%d: broken: %s; last said: %s\n", __FILE__, __LINE__, #condition,            \
                    cvy_error_message());                                                                    \
            abort();                                                                                         \
        }                                                                                                    \
    } while (0)

static char fuzz_folder_path[64];

static inline void fuzz_remove_folder(void) { (void)cvy_folder_remove(fuzz_folder_path, CVY_ERR_IO); }

/** The process's folder, in memory where the system has such a place; removed when the process ends well. */
static inline const char *fuzz_folder(void)
{
    if (!fuzz_folder_path[0]) {
        const char *root = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
        snprintf(fuzz_folder_path, sizeof fuzz_folder_path, "%s/convoy-fuzz-XXXXXX", root);
        FUZZ_REQUIRE(mkdtemp(fuzz_folder_path));
        FUZZ_REQUIRE(atexit(fuzz_remove_folder) == 0);
    }
    return fuzz_folder_path;
}

/** FOLDER/NAME in a buffer that the next call uses again. */
static inline const char *fuzz_path(const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", fuzz_folder(), name);
    return path;
}

/** Write FOLDER/NAME; returns its path. */
static inline const char *fuzz_put(const char *name, const void *data, size_t bytes)
{
    const char *path = fuzz_path(name);
    int descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    FUZZ_REQUIRE(descriptor >= 0);
    FUZZ_REQUIRE(write(descriptor, data, bytes) == (ssize_t)bytes);
    FUZZ_REQUIRE(close(descriptor) == 0);
    return path;
}

/**
 * Cut an input in two: its first two bytes, little-endian, are the length of the first part, or too much.
 *
 * @param[out] part_out   begin of each part, within @p data
 */
static inline void fuzz_split(const uint8_t *data, size_t size, const uint8_t *part_out[2], size_t size_out[2])
{
    size_t head = size < 2 ? size : 2, rest = size - head;
    size_t first = head == 2 ? (size_t)data[0] | (size_t)data[1] << 8 : 0;
    part_out[0] = data + head;
    size_out[0] = first < rest ? first : rest;
    part_out[1] = part_out[0] + size_out[0];
    size_out[1] = rest - size_out[0];
}

/** A refusal is of the reader's own kind, or of memory, and is told in one line. */
static inline void fuzz_check_words(cvy_status status, cvy_status expected)
{
    const char *words = cvy_error_message();
    FUZZ_REQUIRE(status == expected || status == CVY_ERR_MEMORY);
    FUZZ_REQUIRE(words[0] && !strchr(words, '\n'));
}

/** As fuzz_check_words(), and the line names the file. */
static inline void fuzz_check_refusal(cvy_status status, cvy_status expected)
{
    fuzz_check_words(status, expected);
    FUZZ_REQUIRE(status == CVY_ERR_MEMORY || strstr(cvy_error_message(), fuzz_folder()));
}

#endif
