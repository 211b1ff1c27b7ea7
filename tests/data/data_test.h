/* What the tests of data sets share: files in a test's folder, options, refusals. */
#ifndef CVY_TESTS_DATA_TEST_H
#define CVY_TESTS_DATA_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "data/data.h"
#include "folder.h"

/** Write FOLDER/NAME. */
static inline void write_file(const char *folder, const char *name, const void *data, size_t bytes)
{
    assert_true(put_test_file(test_path(folder, name), data, bytes));
}

/** Remove FOLDER/NAME. */
static inline void remove_file(const char *folder, const char *name)
{
    assert_int_equal(unlink(test_path(folder, name)), 0);
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
