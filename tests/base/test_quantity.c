/* Quantities with units. Values are the arithmetic of their prefixes, by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/quantity.h"
#include "base/yaml.h"

static void test_units_are_what_they_say(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        cvy_quantity kind;
        double value;
    } right[] = {
        {"1.5 us", CVY_QUANTITY_TIME, 1.5e-6},
        {"1.5us", CVY_QUANTITY_TIME, 1.5e-6},
        {"2 \302\265s", CVY_QUANTITY_TIME, 2e-6},
        {"2 \316\274s", CVY_QUANTITY_TIME, 2e-6},
        {"+.5 ms", CVY_QUANTITY_TIME, 0.0005},
        {"90 ns", CVY_QUANTITY_TIME, 90e-9},
        {"2 h", CVY_QUANTITY_TIME, 7200},
        {"3 min", CVY_QUANTITY_TIME, 180},
        {"0 s", CVY_QUANTITY_TIME, 0},
        {"-1 s", CVY_QUANTITY_TIME, -1},
        {"16 GiB", CVY_QUANTITY_SIZE, 17179869184.0},
        {"16 GB", CVY_QUANTITY_SIZE, 16e9},
        {"1e3 kB", CVY_QUANTITY_SIZE, 1e6},
        {"1 EB", CVY_QUANTITY_SIZE, 1e18}, /* not 1e with a unit of B */
        {"7 B", CVY_QUANTITY_SIZE, 7},
        {"25 GB/s", CVY_QUANTITY_BANDWIDTH, 25e9},
        {"100 Gbit/s", CVY_QUANTITY_BANDWIDTH, 12.5e9}, /* eight bits a byte */
        {"15.7 TFLOP/s", CVY_QUANTITY_RATE, 15.7e12},
        {"2.48 USD/h", CVY_QUANTITY_PRICE, 2.48},
    };
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
        double value = NAN;
        assert_true(cvy_quantity_parse(right[i].text, right[i].kind, &value));
        assert_true(fabs(value - right[i].value) <= 4 * DBL_EPSILON * fabs(right[i].value));
    }
}

static void test_what_is_no_quantity_is_refused_and_touches_nothing(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        cvy_quantity kind;
    } wrong[] = {
        {NULL, CVY_QUANTITY_TIME},          {"", CVY_QUANTITY_TIME},
        {"1.5", CVY_QUANTITY_TIME},         {"us", CVY_QUANTITY_TIME},
        {"1.5 US", CVY_QUANTITY_TIME},      {"1.5 us ", CVY_QUANTITY_TIME},
        {"1.5 us/s", CVY_QUANTITY_TIME},    {"1,5 us", CVY_QUANTITY_TIME},
        {" 1 s", CVY_QUANTITY_TIME},        {"1\ts", CVY_QUANTITY_TIME},
        {"nan s", CVY_QUANTITY_TIME},       {"inf s", CVY_QUANTITY_TIME},
        {"-inf s", CVY_QUANTITY_TIME},      {"0x10 s", CVY_QUANTITY_TIME},
        {"-0x1 s", CVY_QUANTITY_TIME},      {"- 1 s", CVY_QUANTITY_TIME},
        {"1e999 s", CVY_QUANTITY_TIME},     {"1e308 h", CVY_QUANTITY_TIME},
        {"25 GB/s", CVY_QUANTITY_SIZE},     {"25 GB", CVY_QUANTITY_BANDWIDTH},
        {"25 Gb/s", CVY_QUANTITY_BANDWIDTH}, {"25 GBps", CVY_QUANTITY_BANDWIDTH},
        {"16 Gib", CVY_QUANTITY_SIZE},      {"15.7 TFLOPS", CVY_QUANTITY_RATE},
        {"15.7 TFLOP", CVY_QUANTITY_RATE},  {"2.48 EUR/h", CVY_QUANTITY_PRICE},
        {"$2.48", CVY_QUANTITY_PRICE},      {"1..5 s", CVY_QUANTITY_TIME},
        {"1e s", CVY_QUANTITY_TIME},        {"++1 s", CVY_QUANTITY_TIME},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        double value = 42;
        if (cvy_quantity_parse(wrong[i].text, wrong[i].kind, &value)) {
            fail_msg("'%s' was read as %g", wrong[i].text, value);
        }
        assert_true(value == 42);
    }
}

static void test_printed_is_short(void **state)
{
    (void)state;
    char text[CVY_QUANTITY_TEXT];
    assert_string_equal(cvy_quantity_print(1.5e-6, CVY_QUANTITY_TIME, text), "1.5 us");
    assert_string_equal(cvy_quantity_print(0, CVY_QUANTITY_TIME, text), "0 s");
    assert_string_equal(cvy_quantity_print(17179869184.0, CVY_QUANTITY_SIZE, text), "16 GiB");
    assert_string_equal(cvy_quantity_print(16e9, CVY_QUANTITY_SIZE, text), "16 GB");
    assert_string_equal(cvy_quantity_print(15.7e12, CVY_QUANTITY_RATE, text), "15.7 TFLOP/s");
    assert_string_equal(cvy_quantity_print(1e10, CVY_QUANTITY_BANDWIDTH, text), "10 GB/s"); /* not 1e+01 */
    assert_string_equal(cvy_quantity_print(1e300, CVY_QUANTITY_PRICE, text), "1e+300 USD/h");
    assert_string_equal(cvy_quantity_print(2.48, CVY_QUANTITY_PRICE, text), "2.48 USD/h");
}

/* Any bits that make a finite number, of every kind; one bit lost would show. */
static void test_printed_reads_back_to_the_same_bits(void **state)
{
    (void)state;
    char text[CVY_QUANTITY_TEXT];
    for (uint32_t i = 0; i < 200; i++) {
        uint64_t bits = (i + 1) * 0x9e3779b97f4a7c15u; /* golden ratio: spread over all bits */
        double value, back;
        memcpy(&value, &bits, sizeof value);
        for (int kind = 0; isfinite(value) && kind < CVY_QUANTITY_COUNT; kind++) {
            cvy_quantity_print(value, (cvy_quantity)kind, text);
            assert_true(cvy_quantity_parse(text, (cvy_quantity)kind, &back));
            assert_memory_equal(&back, &value, sizeof value);
        }
    }
}

static void test_yaml_says_what_was_expected(void **state)
{
    (void)state;
    static const char text[] = "plain: 25\nwrong: 25 GB\nmuch: 25 GB/s\nlist: [25 GB/s]\nright: 3 GB/s\n";
    static const char *const said[][2] = {
        {"plain", "f.yaml:1: link: found '25', expected a bandwidth with its unit, as 25 GB/s or 100 Gbit/s"},
        {"wrong", "f.yaml:2: link: found '25 GB', expected a bandwidth with its unit, as 25 GB/s or 100 Gbit/s"},
        {"much", "f.yaml:3: link: found '25 GB/s', expected from 1 GB/s to 10 GB/s"},
        {"list", "f.yaml:4: link: found a list, expected a bandwidth with its unit, as 25 GB/s or 100 Gbit/s"},
    };
    cvy_yaml *yaml = NULL;
    double value = 42;
    assert_int_equal(cvy_yaml_parse("f.yaml", text, strlen(text), &yaml), CVY_OK);
    for (int i = 0; i < 4; i++) {
        const cvy_yaml_node *node = cvy_yaml_find(cvy_yaml_root(yaml), said[i][0]);
        assert_int_equal(cvy_yaml_get_quantity(node, "link", CVY_QUANTITY_BANDWIDTH, 1e9, 1e10, &value),
                         CVY_ERR_INPUT);
        assert_string_equal(cvy_error_message(), said[i][1]);
        assert_true(value == 42);
    }
    assert_int_equal(cvy_yaml_get_quantity(cvy_yaml_find(cvy_yaml_root(yaml), "right"), "link",
                                           CVY_QUANTITY_BANDWIDTH, 1e9, 1e10, &value), CVY_OK);
    assert_true(value == 3e9);
    cvy_yaml_destroy(&yaml);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_units_are_what_they_say),
        cmocka_unit_test(test_what_is_no_quantity_is_refused_and_touches_nothing),
        cmocka_unit_test(test_printed_is_short),
        cmocka_unit_test(test_printed_reads_back_to_the_same_bits),
        cmocka_unit_test(test_yaml_says_what_was_expected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
