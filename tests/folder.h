/* A folder of its own for each test: cmocka set-up and tear-down. *state is its path. */
#ifndef CVY_TESTS_FOLDER_H
#define CVY_TESTS_FOLDER_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

static inline int create_test_folder(void **state)
{
    char *path = strdup("/tmp/convoy-test-XXXXXX");
    *state = path ? mkdtemp(path) : NULL;
    return *state ? 0 : -1;
}

static inline int remove_test_folder(void **state)
{
    cvy_status status = cvy_folder_remove(*state, CVY_ERR_IO);
    free(*state);
    return status == CVY_OK ? 0 : -1;
}

/* FOLDER/NAME in one of eight buffers that take turns. */
static inline const char *test_path(const char *folder, const char *name)
{
    enum { BUFFERS = 8, BYTES = 1024 };
    static char buffer[BUFFERS][BYTES];
    static unsigned next;
    char *path = buffer[next++ % BUFFERS];
    snprintf(path, BYTES, "%s/%s", folder, name);
    return path;
}

/* Put bytes into a file, plainly; true on success. */
static inline bool put_test_file(const char *path, const void *data, size_t bytes)
{
    FILE *stream = fopen(path, "wb");
    bool whole = stream && fwrite(data, 1, bytes, stream) == bytes;
    return stream && fclose(stream) == 0 && whole;
}

#endif
