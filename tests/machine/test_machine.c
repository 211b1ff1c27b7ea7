/* Machine files: what they say is taken, what makes no sense is refused with file and line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "machine/machine.h"

static void test_shipped_machines_have_the_block_of_their_vectors(void **state)
{
    (void)state;
    cvy_machine machine;
    assert_int_equal(cvy_machine_load(CVY_SOURCE_ROOT "/machines/cpu-avx2.yaml", &machine), CVY_OK);
    assert_string_equal(machine.name, "cpu-avx2");
    assert_int_equal(cvy_device_block(&machine.device), 8); /* 256 bits are 8 floats */
    assert_int_equal(cvy_machine_load(CVY_SOURCE_ROOT "/machines/cpu-avx512.yaml", &machine), CVY_OK);
    assert_int_equal(cvy_device_block(&machine.device), 16);
}

static void test_this_machine_has_cores_and_vectors(void **state)
{
    (void)state;
    cvy_machine machine;
    cvy_machine_get_local(&machine);
    assert_true(machine.device.cores >= 1);
    assert_true(machine.device.vector_bits >= 128);
}

/* Each wrong file, and words that its message must have. */
static void test_wrong_files_are_refused_with_their_line(void **state)
{
    (void)state;
    static const char *const wrong[][2] = {
        {"- a\n- b\n", ":1:"},
        {"name: x\n", "device"},
        {"device: {cores: 2, vector-bits: 256}\n", "name"},
        {"name: x\ndevice: {cores: 2}\n", "vector-bits"},
        {"name: x\ndevice: {cores: 0, vector-bits: 256}\n", ":2:"},
        {"name: x\ndevice: {cores: two, vector-bits: 256}\n", "two"},
        {"name: x\nspeed: 3\ndevice: {cores: 2, vector-bits: 256}\n", "speed"},
        {"name: x\ndevice:\n  cores: 2\n  vector-bits: 256\n  memory-bytes: -1\n", ":5:"},
        {"name: [x\n", ":"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char path[] = "/tmp/convoy-machine-XXXXXX";
        cvy_machine machine = {.name = "untouched"};
        int file = mkstemp(path);
        assert_true(file >= 0);
        assert_int_equal(write(file, wrong[i][0], strlen(wrong[i][0])), (ssize_t)strlen(wrong[i][0]));
        close(file);
        assert_int_equal(cvy_machine_load(path, &machine), CVY_ERR_INPUT);
        assert_non_null(strstr(cvy_error_message(), path));
        assert_non_null(strstr(cvy_error_message(), wrong[i][1]));
        assert_string_equal(machine.name, "untouched");
        unlink(path);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shipped_machines_have_the_block_of_their_vectors),
        cmocka_unit_test(test_this_machine_has_cores_and_vectors),
        cmocka_unit_test(test_wrong_files_are_refused_with_their_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
