/* What the tests of data sets share: a folder of their own, files in it, options. */
#ifndef CVY_TESTS_DATA_TEST_H
#define CVY_TESTS_DATA_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "data/data.h"

/** Make a folder under TMPDIR; its name goes into @p path (at least 128 bytes). */
static inline void make_folder(char *path)
{
    const char *base = getenv("TMPDIR");
    snprintf(path, 128, "%s/convoy-data-XXXXXX", base ? base : "/tmp");
    assert_non_null(mkdtemp(path));
}

/** Write FOLDER/NAME. */
static inline void write_file(const char *folder, const char *name, const void *data, size_t bytes)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, bytes, file), bytes);
    assert_int_equal(fclose(file), 0);
}

/** Remove FOLDER/NAME; a missing one is fine. */
static inline void remove_file(const char *folder, const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    (void)unlink(path);
}

/** Options for a classifier of ten classes. */
static inline cvy_data_options class_options(const char *source, cvy_shape sample)
{
    return (cvy_data_options){
        .source = source, .seed = 5, .sample = sample, .target = CVY_TARGET_CLASS, .classes = 10};
}

/** Opening must fail so, and the message must hold all of @p words (NULL-terminated). */
static inline void expect_refusal(const cvy_data_options *options, cvy_status status, const char *const *words)
{
    cvy_data *data = NULL;
    assert_int_equal(cvy_data_open(options, &data), status);
    assert_null(data);
    for (; *words; words++) {
        if (!strstr(cvy_error_message(), *words)) {
            fail_msg("'%s' is not in '%s'", *words, cvy_error_message());
        }
    }
}

#define EXPECT_REFUSAL(options, status, ...) \
    expect_refusal((options), (status), (const char *const[]){__VA_ARGS__, NULL})

#endif
