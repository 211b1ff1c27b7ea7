/* Machine files that make no sense: each is refused in one line with file and line, what was found and expected. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "folder.h"
#include "machine/machine.h"

/* A right file; a case replaces one text in it by another. */
static const char right[] = "name: m\n"
                            "summary: s\n"
                            "nodes: 6\n"
                            "devices-per-node: 4\n"
                            "device:\n"
                            "  name: d\n"
                            "  cores: 2\n"
                            "  vector-bits: 256\n"
                            "  memory: 16 GiB\n"
                            "  memory-bandwidth: 25 GB/s\n"
                            "  peak: {fp32: 1 TFLOP/s}\n"
                            "  spread: 0.5\n"
                            "links:\n"
                            "  - {name: bus, connects: device, endpoints: 4, latency: 1 us, bandwidth: 8 GB/s}\n"
                            "  - {name: net, connects: bus, endpoints: 8, latency: 2 us, bandwidth: 1 GB/s}\n"
                            "collectives:\n"
                            "  - {collective: all-reduce, algorithm: ring, level: bus, up-to: 4 MB}\n"
                            "execution: {overlap: yes, managed-memory: [filter]}\n";

static const struct {
    const char *from, *to;
    int line;
    const char *words; /* what the message says behind FILE:LINE: */
} wrong[] = {
    /* counts */
    {"nodes: 6", "nodes: 0", 3, "nodes: found '0', expected a whole number from 1 to 1000000"},
    {"nodes: 6", "nodes: -6", 3, "nodes: found '-6', expected a whole number from 1 to 1000000"},
    {"nodes: 6", "nodes: 99999999999999999999", 3, "nodes: found '99999999999999999999', expected a whole number"},
    {"nodes: 6", "nodes: 1.5", 3, "nodes: found '1.5', expected a whole number"},
    {"devices-per-node: 4", "devices-per-node: 0", 4, "devices-per-node: found '0', expected a whole number from 1 to"},
    {"cores: 2", "cores: two", 7, "device: cores: found 'two', expected a whole number"},
    /* units */
    {"memory: 16 GiB", "memory: 16", 9, "device: memory: found '16', expected a size with its unit, as 16 GiB"},
    {"memory: 16 GiB", "memory: 16 GiB/s", 9, "device: memory: found '16 GiB/s', expected a size with its unit"},
    {"memory: 16 GiB", "memory: 0.4 B", 9, "device: memory: found '0.4 B', expected from 1 B to 1 PB"},
    {"memory: 16 GiB", "memory: [16 GiB]", 9, "device: memory: found a list, expected a size with its unit"},
    {"memory: 16 GiB", "memory: {value: 16}", 9, "device: memory: found '16', expected a size with its unit"},
    {"memory: 16 GiB", "memory: {source: s}", 9, "device: memory: missing value; it is its memory, as 16 GiB"},
    {"memory: 16 GiB", "memory: {value: 1 B, sorce: s}", 9, "unknown key 'sorce'; did you mean 'source'?"},
    {"memory: 16 GiB", "memory: {value: 1 B, source: \"a\\nb\"}", 9, "source: expected a line of 1 to 400 bytes"},
    {"25 GB/s", "25 Gb/s", 10, "device: memory-bandwidth: found '25 Gb/s', expected a bandwidth with its unit"},
    {"25 GB/s", "-25 GB/s", 10, "device: memory-bandwidth: found '-25 GB/s', expected from 1 kB/s to 10 PB/s"},
    {"25 GB/s", "nan GB/s", 10, "device: memory-bandwidth: found 'nan GB/s', expected a bandwidth with its unit"},
    {"25 GB/s", "inf", 10, "device: memory-bandwidth: found 'inf', expected a bandwidth with its unit"},
    {"25 GB/s", "1e400 GB/s", 10, "device: memory-bandwidth: found '1e400 GB/s', expected a bandwidth"},
    {"25 GB/s", "1e290 GB/s", 10, "device: memory-bandwidth: found '1e290 GB/s', expected from 1 kB/s to 10 PB/s"},
    {"1 TFLOP/s", "1 TFLOPS", 11, "device: peak: fp32: found '1 TFLOPS', expected a rate with its unit"},
    {"{fp32: 1 TFLOP/s}", "{}", 11, "device: peak: expected at least one rate, as fp32: 15.7 TFLOP/s"},
    {"{fp32: 1", "{fp23: 1", 11, "unknown key 'fp23'; did you mean 'fp32'?"},
    {"spread: 0.5", "spread: nan", 12, "device: spread: found 'nan', expected a number from 0 to 10"},
    {"spread: 0.5", "spread: -1", 12, "device: spread: found '-1', expected a number from 0 to 10"},
    {"latency: 1 us", "latency: -1 us", 14, "links 1: latency: found '-1 us', expected from 0 s to 1 h"},
    {"latency: 1 us", "latency: 1 GB", 14, "links 1: latency: found '1 GB', expected a time with its unit"},
    /* keys and shapes */
    {"nodes: 6", "node: 6", 3, "unknown key 'node'; did you mean 'nodes'?"},
    {"  cores: 2", "  core: 2", 7, "unknown key 'core'; did you mean 'cores'?"},
    {"  cores: 2\n", "", 5, "device: cores: missing; it is the count of cores, or of multiprocessors"},
    {"  vector-bits: 256\n", "", 5, "device: vector-bits: missing; it is the width of the widest vector of floats"},
    {"  peak: {fp32: 1 TFLOP/s}\n", "", 5, "device: peak: missing; it is a mapping of peak rates by precision"},
    {"summary: s\n", "", 1, "summary: missing; it is one line for the list of machines"},
    {"summary: s\n", "summary: \"a\\tb\"\n", 2, "summary: expected a line of 1 to 200 bytes, no control characters"},
    {"summary: s\n", "summary: ''\n", 2, "summary: expected a line of 1 to 200 bytes, no control characters"},
    {"overlap: yes", "fuse: all", 18, "execution: fuse: found 'all', expected one of relu, none"},
    {"overlap: yes", "release: r", 18, "execution: release: no efficiency and no rule of collectives is of 'r'"},
    {"{overlap: yes, managed-memory: [filter]}", "[]", 18, "execution: expected a mapping"},
    {"overlap: yes", "overlap: maybe", 18, "execution: overlap: found 'maybe', expected yes or no"},
    {"[filter]", "[filtre]", 18, "execution: managed-memory: unknown 'filtre'; did you mean 'filter'?"},
    {"[filter]", "filter", 18, "execution: managed-memory: expected a list of strategies that ran on managed memory"},
    {"algorithm: ring", "algorithm: rnig", 17, "collectives 1: algorithm: unknown 'rnig'; did you mean 'ring'?"},
    {"algorithm: ring", "algorithm: magic", 17, "collectives 1: algorithm: found 'magic', expected one of any, ring"},
    {"algorithm: ring, ", "algorithm: pairwise, ", 17,
     "collectives 1: algorithm: pairwise is no algorithm of all-reduce"},
    {"algorithm: ring, ", "algorithm: ring, rails: 2, ", 17,
     "collectives 1: rails: found them for all-reduce, expected them for point-to-point alone"},
    {"level: bus", "level: bsu", 17, "collectives 1: level: unknown 'bsu'; did you mean 'bus'?"},
    /* levels */
    {"connects: bus", "connects: net", 15, "links 2: level net connects 'net', which is itself: levels stand from"},
    {"connects: device", "connects: net", 14, "links 1: level bus connects 'net', which is further out: levels stand"},
    {"connects: bus", "connects: device", 15, "links 2: connects: found 'device', expected 'bus', the level before"},
    {"connects: bus", "connects: [bus]", 15, "links 2: connects: found 'a list or mapping', expected 'bus'"},
    {"name: net", "name: bus", 15, "links 2: name: 'bus' is the name of level 1 too"},
    {"name: net", "name: any", 15, "links 2: name: 'any' is no name for a level"},
    {"endpoints: 4", "endpoints: 1", 14, "links 1: endpoints: found '1', expected a whole number from 2 to 1000000"},
    {"endpoints: 4", "endpoints: 3", 13, "links: no level connects the 4 devices of a node: levels do not nest"},
    {"endpoints: 8", "endpoints: 5", 13, "links: levels reach 20 of the 24 devices: expected the product of endpoints"},
};

/* `right` with the first `from` replaced. */
static void replace(const char *from, const char *to, char *text, size_t bytes)
{
    const char *at = strstr(right, from);
    assert_non_null(at);
    snprintf(text, bytes, "%.*s%s%s", (int)(at - right), right, to, at + strlen(from));
}

static void assert_refused(const char *folder, const char *text, int line, const char *words)
{
    cvy_machine *machine = NULL;
    char expected[1024];
    const char *path = test_path(folder, "m.yaml");
    assert_true(put_test_file(path, text, strlen(text)));
    assert_int_equal(cvy_machine_load(path, &machine), CVY_ERR_INPUT);
    assert_null(machine);
    snprintf(expected, sizeof expected, "%s:%d: %s", path, line, words);
    const char *said = cvy_error_message();
    if (strncmp(said, expected, strlen(expected)) != 0) {
        assert_string_equal(said, expected);
    }
    assert_null(strchr(said, '\n'));
}

static void test_the_right_file_is_right(void **state)
{
    cvy_machine *machine = NULL;
    const char *path = test_path(*state, "m.yaml");
    assert_true(put_test_file(path, right, strlen(right)));
    assert_int_equal(cvy_machine_load(path, &machine), CVY_OK);
    cvy_machine_destroy(&machine);
}

static void test_each_wrong_file_is_told_apart(void **state)
{
    char text[2048];
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        replace(wrong[i].from, wrong[i].to, text, sizeof text);
        assert_refused(*state, text, wrong[i].line, wrong[i].words);
    }
}

static void test_what_is_no_machine_is_refused(void **state)
{
    assert_refused(*state, "- a\n- b\n", 1, "expected a mapping");
    assert_refused(*state, "name: m\nsummary: s\n", 1, "device: missing; it is a mapping that describes one device");
    assert_refused(*state, "name: m\nsummary: s\ndevice: 3\n", 3, "device: expected a mapping");
    assert_refused(*state, "name: m\nsummary: s\nlinks: 3\ndevice: {name: d, cores: 1, vector-bits: 256, memory: 1 B, "
                   "memory-bandwidth: 1 GB/s, peak: {fp32: 1 GFLOP/s}}\n", 3, "links: expected a list of levels");
}

/* 10^6 endpoints at each of four levels are 10^24 devices: more than 64 bits count. */
static void test_levels_beyond_counting_are_refused(void **state)
{
    char text[2048];
    int length = snprintf(text, sizeof text, "%.*slinks:\n", (int)(strstr(right, "links:") - right), right);
    for (int i = 0; i < 5; i++) {
        length += snprintf(text + length, sizeof text - (size_t)length,
                           "  - {name: l%d, endpoints: %d, latency: 1 us, bandwidth: 1 GB/s}\n", i,
                           i == 0 ? 4 : 1000000);
    }
    assert_refused(*state, text, 18, "links 5: level l4: too many devices to count, found 1000000 endpoints");
}

/* One level more than there is room for. */
static void test_long_lists_are_refused(void **state)
{
    char text[4096];
    int length = snprintf(text, sizeof text, "%.*slinks:\n", (int)(strstr(right, "links:") - right), right);
    for (int i = 0; i <= CVY_MAX_LEVELS; i++) {
        length += snprintf(text + length, sizeof text - (size_t)length,
                           "  - {name: l%d, endpoints: 2, latency: 1 us, bandwidth: 1 GB/s}\n", i);
    }
    assert_refused(*state, text, 13, "links: expected a list of levels of links, from devices outwards, at most 8");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_the_right_file_is_right, create_test_folder, remove_test_folder),
        cmocka_unit_test_setup_teardown(test_each_wrong_file_is_told_apart, create_test_folder, remove_test_folder),
        cmocka_unit_test_setup_teardown(test_what_is_no_machine_is_refused, create_test_folder, remove_test_folder),
        cmocka_unit_test_setup_teardown(test_levels_beyond_counting_are_refused, create_test_folder,
                                        remove_test_folder),
        cmocka_unit_test_setup_teardown(test_long_lists_are_refused, create_test_folder, remove_test_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
