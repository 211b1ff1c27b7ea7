/* Rates of files and samples: measured where they are asked about, nothing left behind, written into a machine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/memory.h"
#include "calibrate/input.h"
#include "folder.h"

static void test_rates_are_measured_and_nothing_is_left(void **state)
{
    struct stat look;
    cvy_input_rates rates = {.startup_s = 3.0};
    assert_int_equal(cvy_input_measure(test_path(*state, "here"), &rates), CVY_OK);
    assert_true(rates.read_Bps > 1e5 && rates.decode_Bps > 1e5 && rates.startup_s == 3.0);
    assert_true(cvy_input_find_startup_s() >= 0.0 && cvy_input_find_startup_s() < 600.0); /* this program's */
    assert_int_not_equal(stat(test_path(*state, "here.input"), &look), 0);
}

static void test_a_folder_that_is_none_is_told(void **state)
{
    cvy_input_rates rates = {0};
    assert_true(put_test_file(test_path(*state, "no"), "", 0));
    assert_int_equal(cvy_input_measure(test_path(*state, "no/such/here"), &rates), CVY_ERR_IO);
    assert_true(rates.read_Bps == 0.0);
}

static void test_a_machine_gets_them(void **state)
{
    (void)state;
    cvy_machine *machine = cvy_calloc(1, sizeof *machine);
    const cvy_input_rates rates = {.read_Bps = 123456789.0, .decode_Bps = 2e8, .startup_s = 0.25}, none = {0};
    assert_non_null(machine);
    assert_int_equal(cvy_input_fill(&none, "2026-01-02", machine), CVY_OK);
    assert_true(machine->storage.read_Bps == 0.0);
    assert_int_equal(cvy_input_fill(&rates, "2026-01-02", machine), CVY_OK);
    assert_true(machine->storage.read_Bps == 123500000.0 && machine->storage.decode_Bps == 2e8);
    assert_true(machine->execution.startup_s == 0.25);
    cvy_machine_destroy(&machine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_rates_are_measured_and_nothing_is_left, create_test_folder,
                                        remove_test_folder),
        cmocka_unit_test_setup_teardown(test_a_folder_that_is_none_is_told, create_test_folder, remove_test_folder),
        cmocka_unit_test(test_a_machine_gets_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
