/* YAML as a tree, and YAML as an attack. What each text means is written beside it by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/text.h"
#include "base/yaml.h"
#include "folder.h"

static cvy_yaml *yaml;

static cvy_status parse(const char *text) { return cvy_yaml_parse("f.yaml", text, strlen(text), &yaml); }

static const cvy_yaml_node *parse_whole(const char *text)
{
    assert_int_equal(parse(text), CVY_OK);
    return cvy_yaml_root(yaml);
}

/* The text is refused with these words, on one line, and no tree is left. */
static void assert_refused(const char *text, size_t bytes, const char *words)
{
    cvy_yaml *tree = NULL;
    assert_int_equal(cvy_yaml_parse("f.yaml", text, bytes, &tree), CVY_ERR_INPUT);
    assert_null(tree);
    const char *said = cvy_error_message();
    if (strncmp(said, words, strlen(words)) != 0) {
        assert_string_equal(said, words);
    }
    assert_null(strchr(said, '\n'));
}

static int clear(void **state)
{
    (void)state;
    cvy_yaml_destroy(&yaml);
    return 0;
}

static void test_tree_has_keys_items_and_lines(void **state)
{
    (void)state;
    const cvy_yaml_node *root = parse_whole("# comment\n"
                                            "name: small\n"
                                            "list: [1, two, 'x y']\n"
                                            "map:\n"
                                            "  deep: {a: yes}\n"
                                            "block: |\n"
                                            "  text\n");
    assert_int_equal(cvy_yaml_node_kind(root), CVY_YAML_MAPPING);
    assert_int_equal(cvy_yaml_size(root), 4);
    assert_string_equal(cvy_yaml_key(root, 2), "map");
    assert_string_equal(cvy_yaml_file(root), "f.yaml");
    assert_string_equal(cvy_yaml_text(cvy_yaml_find(root, "name")), "small");
    assert_int_equal(cvy_yaml_line(cvy_yaml_find(root, "name")), 2);
    const cvy_yaml_node *list = cvy_yaml_find(root, "list");
    assert_int_equal(cvy_yaml_node_kind(list), CVY_YAML_SEQUENCE);
    assert_int_equal(cvy_yaml_size(list), 3);
    assert_string_equal(cvy_yaml_text(cvy_yaml_item(list, 1)), "two");
    assert_string_equal(cvy_yaml_text(cvy_yaml_item(list, 2)), "x y");
    const cvy_yaml_node *map = cvy_yaml_find(root, "map");
    assert_int_equal(cvy_yaml_line(map), 4); /* the key's line */
    assert_int_equal(cvy_yaml_line(cvy_yaml_find(cvy_yaml_find(map, "deep"), "a")), 5);
    assert_string_equal(cvy_yaml_text(cvy_yaml_find(root, "block")), "text\n");
    assert_null(cvy_yaml_find(root, "absent"));
    assert_null(cvy_yaml_find(list, "name"));
    assert_null(cvy_yaml_text(list));
    assert_int_equal(cvy_yaml_size(cvy_yaml_find(root, "name")), 0);
}

static void test_siblings_stay_in_order_whatever_lies_between(void **state)
{
    (void)state;
    const cvy_yaml_node *root = parse_whole("[[1, [2]], 3, {a: [4, 5], b: 6}, 7]");
    assert_int_equal(cvy_yaml_size(root), 4);
    assert_string_equal(cvy_yaml_text(cvy_yaml_item(root, 1)), "3");
    assert_string_equal(cvy_yaml_text(cvy_yaml_item(root, 3)), "7");
    const cvy_yaml_node *map = cvy_yaml_item(root, 2);
    assert_string_equal(cvy_yaml_text(cvy_yaml_item(cvy_yaml_find(map, "a"), 1)), "5");
    assert_string_equal(cvy_yaml_text(cvy_yaml_find(map, "b")), "6");
    assert_string_equal(cvy_yaml_text(cvy_yaml_item(cvy_yaml_item(cvy_yaml_item(root, 0), 1), 0)), "2");
}

static void test_numbers_are_whole_and_within_bounds(void **state)
{
    (void)state;
    int64_t value = 7;
    const cvy_yaml_node *good = parse_whole("[0, -3, +5, 9223372036854775807, -9223372036854775808]");
    const int64_t expected[] = {0, -3, 5, INT64_MAX, INT64_MIN};
    for (int i = 0; i < 5; i++) {
        assert_int_equal(cvy_yaml_get_int(cvy_yaml_item(good, i), "n", INT64_MIN, INT64_MAX, &value), CVY_OK);
        assert_true(value == expected[i]);
    }
    clear(NULL);
    const cvy_yaml_node *bad =
        parse_whole("[1.5, 1e3, '', abc, 0x10, 9223372036854775808, 3 4, [1], {a: 1}, '--1', '+', 11, -1]");
    for (int i = 0; i < cvy_yaml_size(bad); i++) {
        value = 7;
        assert_int_equal(cvy_yaml_get_int(cvy_yaml_item(bad, i), "n", 0, 10, &value), CVY_ERR_INPUT);
        assert_int_equal(value, 7);
    }
    assert_string_equal(cvy_error_message(), "f.yaml:1: n: found '-1', expected a whole number from 0 to 10");
}

static void test_reals_are_finite_and_within_bounds(void **state)
{
    (void)state;
    double value = 7;
    const cvy_yaml_node *good = parse_whole("[0.5, 1e-5, -2, .25]");
    const double expected[] = {0.5, 1e-5, -2, 0.25};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(cvy_yaml_get_real(cvy_yaml_item(good, i), "r", -10, 10, &value), CVY_OK);
        assert_true(value == expected[i]);
    }
    clear(NULL);
    const cvy_yaml_node *bad = parse_whole("[.nan, nan, inf, -.inf, 1e999, 0x1p3, '', 1.2.3, e, [1], 10.5]");
    for (int i = 0; i < cvy_yaml_size(bad); i++) {
        value = 7;
        assert_int_equal(cvy_yaml_get_real(cvy_yaml_item(bad, i), "r", -10, 10, &value), CVY_ERR_INPUT);
        assert_true(value == 7);
    }
    assert_string_equal(cvy_error_message(), "f.yaml:1: r: found '10.5', expected a number from -10 to 10");
}

/* A list, and texts of the same numbers however they are laid out. */
static void test_many_reals_are_a_list_or_a_text(void **state)
{
    (void)state;
    static const char *const same[] = {
        "[0.5, -2, 1e3]", "0.5 -2 1e3", "|\n  0.5 -2\n  1e3\n", "|-\n\n  .5\n\n  -2.\n  +1000",
        ">\n  0.5 -2\n  1e3\n", "\"0.5\\t-2\\n 1e3 \"", "0000000000000000.5 -2.0000000000000000000 1000.00"};
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        double value[4] = {7, 7, 7, 7};
        const cvy_yaml_node *node = parse_whole(same[i]);
        assert_int_equal(cvy_yaml_count_reals(node), 3);
        assert_int_equal(cvy_yaml_get_reals(node, "r", 3, -2, 1000, value), CVY_OK);
        assert_true(value[0] == 0.5 && value[1] == -2.0 && value[2] == 1000.0 && value[3] == 7.0);
        clear(NULL);
    }
}

/* To the last bit what the C library reads, however many digits there are. */
static void test_many_reals_are_rounded_once(void **state)
{
    (void)state;
    enum { COUNT = 2000 };
    static double value[COUNT];
    uint64_t random = 1;
    cvy_text text = {0};
    for (int i = 0; i < COUNT; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        double mantissa = (double)(int64_t)random / 9223372036854775808.0;
        cvy_text_add(&text, " %.*g", 1 + i % 18, mantissa * pow(10.0, i % 23 - 11));
    }
    const cvy_yaml_node *node = parse_whole(text.data);
    assert_int_equal(cvy_yaml_get_reals(node, "r", COUNT, -1e12, 1e12, value), CVY_OK);
    char *at = text.data;
    for (int i = 0; i < COUNT; i++) {
        assert_true(value[i] == strtod(at, &at));
    }
    cvy_text_destroy(&text);
}

/* Of a text with "|" the very line is told, of others that where it begins. */
static void test_wrong_reals_are_told_by_their_line(void **state)
{
    (void)state;
    static const struct {
        const char *text, *words;
    } wrong[] = {
        {"r: |\n  1 2\n\n  3 x4\n", "f.yaml:4: r: found 'x4', expected a number from 0 to 10"},
        {"a: 1\nr:\n  1 2\n  3 0x4\n", "f.yaml:2: r: found '0x4', expected a number from 0 to 10"},
        {"r: |\n  1 2 3\n  inf\n", "f.yaml:3: r: found 'inf', expected a number from 0 to 10"},
        {"r: |\n  1 2\n  1e999 4\n", "f.yaml:3: r: found '1e999', expected a number from 0 to 10"},
        {"r: 1 2 3 1.2.3", "f.yaml:1: r: found '1.2.3', expected a number from 0 to 10"},
        {"r: 1 2 3 e", "f.yaml:1: r: found 'e', expected a number from 0 to 10"},
        {"r: 1, 2, 3, 4", "f.yaml:1: r: found '1,', expected a number from 0 to 10"},
        {"r: 1 2 3 10.5", "f.yaml:1: r: found '10.5', expected a number from 0 to 10"},
        {"r: [1, 2, 3, -1]", "f.yaml:1: r: found '-1', expected a number from 0 to 10"},
        {"r: 1 2 3", "f.yaml:1: r: found 3 numbers, expected 4"},
        {"r: |\n  1 2\n  3 4 5\n", "f.yaml:1: r: found 5 numbers, expected 4"},
        {"r: ''", "f.yaml:1: r: found 0 numbers, expected 4"},
        {"r: {a: 1, b: 2, c: 3, d: 4}", "f.yaml:1: r: found 0 numbers, expected 4"},
    };
    double value[4];
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        const cvy_yaml_node *node = cvy_yaml_find(parse_whole(wrong[i].text), "r");
        assert_int_equal(cvy_yaml_get_reals(node, "r", 4, 0, 10, value), CVY_ERR_INPUT);
        assert_string_equal(cvy_error_message(), wrong[i].words);
        clear(NULL);
    }
    assert_int_equal(cvy_yaml_get_reals(parse_whole("{a: 1}"), "r", 0, 0, 10, value), CVY_ERR_INPUT);
}

static void test_yes_and_no_have_three_spellings(void **state)
{
    (void)state;
    bool value = false;
    const cvy_yaml_node *words = parse_whole("[yes, True, ON, no, false, Off, 1]");
    for (int i = 0; i < 6; i++) {
        assert_int_equal(cvy_yaml_get_bool(cvy_yaml_item(words, i), "b", &value), CVY_OK);
        assert_int_equal(value, i < 3);
    }
    assert_int_equal(cvy_yaml_get_bool(cvy_yaml_item(words, 6), "b", &value), CVY_ERR_INPUT);
    assert_string_equal(cvy_error_message(), "f.yaml:1: b: found '1', expected yes or no");
}

static void test_unknown_key_names_the_nearest(void **state)
{
    (void)state;
    const char *const keys[] = {"batch", "epochs", NULL};
    const cvy_yaml_node *root = parse_whole("batch: 1\nepoch: 2\n");
    assert_int_equal(cvy_yaml_check_keys(root, keys), CVY_ERR_INPUT);
    assert_string_equal(cvy_error_message(), "f.yaml:2: unknown key 'epoch'; did you mean 'epochs'?");
    clear(NULL);
    assert_int_equal(cvy_yaml_check_keys(parse_whole("zzzzz: 1\n"), keys), CVY_ERR_INPUT);
    assert_string_equal(cvy_error_message(), "f.yaml:1: unknown key 'zzzzz', expected batch, epochs");
    clear(NULL);
    assert_int_equal(cvy_yaml_check_keys(parse_whole("[1]"), keys), CVY_ERR_INPUT);
    clear(NULL);
    assert_int_equal(cvy_yaml_check_keys(parse_whole("epochs: 1\nbatch: 2\n"), keys), CVY_OK);
}

static void test_texts_without_a_file_have_no_place_in_messages(void **state)
{
    (void)state;
    bool value;
    assert_int_equal(cvy_yaml_parse(NULL, "[a]", 3, &yaml), CVY_OK);
    const cvy_yaml_node *item = cvy_yaml_item(cvy_yaml_root(yaml), 0);
    assert_null(cvy_yaml_file(item));
    assert_int_equal(cvy_yaml_get_bool(item, "option", &value), CVY_ERR_INPUT);
    assert_string_equal(cvy_error_message(), "option: found 'a', expected yes or no");
}

static void test_duplicate_keys_are_refused_however_many_keys(void **state)
{
    (void)state;
    assert_refused("a: 1\nb: 2\na: 3\n", 15, "f.yaml:3: key 'a' is given twice");
    assert_refused("x:\n - {k: 1, k: 2}\n", 19, "f.yaml:2: key 'k' is given twice");
    cvy_text many = {0};
    for (int i = 0; i <= 50000; i++) {
        cvy_text_add(&many, "k%d: 1\n", i < 50000 ? i : 7);
    }
    char *text = cvy_text_take(&many);
    assert_non_null(text);
    assert_refused(text, strlen(text), "f.yaml:50001: key 'k7' is given twice");
    cvy_free(text);
}

static void test_anchors_aliases_and_tags_are_refused(void **state)
{
    (void)state;
    const char *const laughs = "a: &a [x, x]\nb: [*a, *a]\n";
    assert_refused(laughs, strlen(laughs), "f.yaml:1: anchors and aliases are not accepted");
    assert_refused("a: *b\n", 6, "f.yaml:1: anchors and aliases are not accepted");
    assert_refused("&a key: 1\n", 10, "f.yaml:1: anchors and aliases are not accepted");
    assert_refused("a: !!binary AAAA\n", 17, "f.yaml:1: tags are not accepted");
    assert_refused("a: !evil {}\n", 12, "f.yaml:1: tags are not accepted");
    assert_refused("# x\n%TAG ! tag:x,1:\n--- a\n", 26, "f.yaml:2: tags are not accepted, found %TAG");
    assert_refused("\xef\xbb\xbf%TAG ! tag:x,1:\n--- a\n", 25, "f.yaml:1: tags are not accepted, found %TAG");
    assert_refused("%YAML 1.1\r%TAG ! tag:x,1:\r--- a\r", 32, "f.yaml:1: tags are not accepted, found %TAG");
}

/* Both styles of nesting; 32 is the limit and passes, one more does not. */
static void test_depth_is_limited(void **state)
{
    (void)state;
    char text[2001];
    const int depths[] = {CVY_YAML_MAX_DEPTH, CVY_YAML_MAX_DEPTH + 1, 1000};
    for (int i = 0; i < 3; i++) {
        size_t depth = (size_t)depths[i];
        memset(text, '[', depth);
        memset(text + depth, ']', depth);
        if (i == 0) {
            assert_int_equal(cvy_yaml_parse("f.yaml", text, 2 * depth, &yaml), CVY_OK);
        } else {
            assert_refused(text, 2 * depth, "f.yaml:1: nested deeper than 32");
        }
    }
    char dashes[2000];
    for (int i = 0; i < 1000; i++) {
        memcpy(dashes + 2 * i, "- ", 2);
    }
    assert_refused(dashes, sizeof dashes, "f.yaml:1: nested deeper than 32");
    memset(text, '{', 1000);
    assert_refused(text, 1000, "f.yaml:1: a key is a list or a mapping");
}

static void test_truncated_texts_never_pass_and_name_a_line(void **state)
{
    (void)state;
    const char *const whole = "layers:\n  - {name: \"a\\x41\", kind: [1, 2]}\n";
    for (size_t bytes = 11; bytes < strlen(whole) - 1; bytes++) { /* cut within the braces */
        cvy_yaml *tree = NULL;
        cvy_status status = cvy_yaml_parse("f.yaml", whole, bytes, &tree);
        bool only_a_dash = bytes <= strlen("layers:\n  - ");
        assert_int_equal(status, only_a_dash ? CVY_OK : CVY_ERR_INPUT);
        if (status != CVY_OK) {
            assert_memory_equal(cvy_error_message(), "f.yaml:", 7);
        }
        cvy_yaml_destroy(&tree);
    }
}

static void test_binary_is_refused_on_one_line(void **state)
{
    (void)state;
    char bytes[512];
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (char)(i * 37 + 1);
    }
    assert_refused(bytes, sizeof bytes, "f.yaml:1: not YAML");
    assert_refused("a\0b", 3, "f.yaml:1: not YAML");
    assert_refused("a: 1\nb: 2\nc: \xff\n", 15, "f.yaml:3: not YAML: invalid leading UTF-8 octet");
    assert_refused("\xff\xfe\x00", 3, "f.yaml:1: not YAML");
    assert_refused("a: \"x\\0y\"\n", 10, "f.yaml:1: a text holds a zero byte");
    assert_refused("? \"k\\n\\e[1m\"\n: &x 1\n", 20, "f.yaml:2: anchors");
    assert_refused("", 0, "f.yaml:1: holds nothing");
    assert_refused("# only a comment\n", 17, "f.yaml:1: holds nothing");
    assert_refused("a: 1\n---\nb: 2\n", 14, "f.yaml:2: a second document begins");
}

static void test_messages_stay_one_line_when_values_hold_controls(void **state)
{
    (void)state;
    int64_t value;
    const cvy_yaml_node *root = parse_whole("a: \"1\\n2\\e[31m\"\n\"k\\nk\": 1\n");
    const char *const keys[] = {"a", NULL};
    assert_int_equal(cvy_yaml_get_int(cvy_yaml_find(root, "a"), "a", 0, 9, &value), CVY_ERR_INPUT);
    assert_string_equal(cvy_error_message(), "f.yaml:1: a: found '1?2?[31m', expected a whole number from 0 to 9");
    assert_int_equal(cvy_yaml_check_keys(root, keys), CVY_ERR_INPUT);
    assert_null(strchr(cvy_error_message(), '\n'));
}

static void test_huge_texts_are_refused(void **state)
{
    (void)state;
    size_t bytes = CVY_YAML_MAX_BYTES + 1;
    char *text = cvy_calloc(bytes, 1);
    assert_non_null(text);
    memset(text, ' ', bytes);
    assert_refused(text, bytes, "f.yaml:1: 16777217 bytes, expected at most 16777216");
    for (int i = 0; i < 2 * CVY_YAML_MAX_NODES; i += 2) { /* "[a,a,a,…": one node over the limit with the list */
        memcpy(text + i, i ? ",a" : "[a", 2);
    }
    assert_refused(text, 2 * CVY_YAML_MAX_NODES, "f.yaml:1: more than 1000000 entries");
    cvy_free(text);
}

static void test_files_are_loaded_and_missing_ones_named(void **state)
{
    const char *path = test_path(*state, "model.yaml");
    assert_true(put_test_file(path, "a: 1\nb: [\n", 10));
    cvy_yaml *tree = NULL;
    assert_int_equal(cvy_yaml_load(path, &tree), CVY_ERR_INPUT);
    assert_null(tree);
    assert_memory_equal(cvy_error_message(), path, strlen(path));
    assert_true(put_test_file(path, "a: 1\n", 5));
    assert_int_equal(cvy_yaml_load(path, &tree), CVY_OK);
    assert_string_equal(cvy_yaml_file(cvy_yaml_root(tree)), path);
    cvy_yaml_destroy(&tree);
    assert_null(tree);
    cvy_yaml_destroy(&tree);
    assert_int_equal(cvy_yaml_load(test_path(*state, "absent.yaml"), &tree), CVY_ERR_INPUT);
    assert_non_null(strstr(cvy_error_message(), "absent.yaml"));
    assert_int_equal(cvy_yaml_load(*state, &tree), CVY_ERR_INPUT); /* a folder */
}

/* Some programs put a mark in front of UTF-8: it is no part of the first key, and moves no column. */
static void test_a_mark_in_front_says_nothing(void **state)
{
    (void)state;
    static const char text[] = "\xef\xbb\xbf" "a: 1\nb: 2\n";
    cvy_yaml *tree = NULL;
    assert_int_equal(cvy_yaml_parse("f.yaml", text, sizeof text - 1, &tree), CVY_OK);
    assert_int_equal(cvy_yaml_size(cvy_yaml_root(tree)), 2);
    assert_string_equal(cvy_yaml_text(cvy_yaml_find(cvy_yaml_root(tree), "a")), "1");
    assert_string_equal(cvy_yaml_text(cvy_yaml_find(cvy_yaml_root(tree), "b")), "2");
    cvy_yaml_destroy(&tree);
}

/* Each allocation of a parse fails once: the answer is out of memory, and nothing leaks. */
static void test_exhausted_memory_is_told(void **state)
{
    (void)state;
    const char *text = "a: [1, 2, 3]\nb: {c: d}\n";
    int failures = 0;
    for (cvy_status status = CVY_ERR_MEMORY; status != CVY_OK; failures++) {
        cvy_yaml *tree = NULL;
        cvy_memory_fail_after(failures);
        status = cvy_yaml_parse("f.yaml", text, strlen(text), &tree);
        cvy_memory_fail_after(-1);
        assert_true(status == CVY_OK || status == CVY_ERR_MEMORY);
        cvy_yaml_destroy(&tree);
    }
    assert_true(failures >= 5); /* tree, name, nodes, texts, items */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_tree_has_keys_items_and_lines, clear),
        cmocka_unit_test_teardown(test_siblings_stay_in_order_whatever_lies_between, clear),
        cmocka_unit_test_teardown(test_numbers_are_whole_and_within_bounds, clear),
        cmocka_unit_test_teardown(test_reals_are_finite_and_within_bounds, clear),
        cmocka_unit_test_teardown(test_many_reals_are_a_list_or_a_text, clear),
        cmocka_unit_test_teardown(test_many_reals_are_rounded_once, clear),
        cmocka_unit_test_teardown(test_wrong_reals_are_told_by_their_line, clear),
        cmocka_unit_test_teardown(test_yes_and_no_have_three_spellings, clear),
        cmocka_unit_test_teardown(test_unknown_key_names_the_nearest, clear),
        cmocka_unit_test_teardown(test_texts_without_a_file_have_no_place_in_messages, clear),
        cmocka_unit_test(test_duplicate_keys_are_refused_however_many_keys),
        cmocka_unit_test(test_anchors_aliases_and_tags_are_refused),
        cmocka_unit_test_teardown(test_depth_is_limited, clear),
        cmocka_unit_test(test_truncated_texts_never_pass_and_name_a_line),
        cmocka_unit_test(test_binary_is_refused_on_one_line),
        cmocka_unit_test_teardown(test_messages_stay_one_line_when_values_hold_controls, clear),
        cmocka_unit_test(test_huge_texts_are_refused),
        cmocka_unit_test_setup_teardown(test_files_are_loaded_and_missing_ones_named, create_test_folder,
                                        remove_test_folder),
        cmocka_unit_test(test_a_mark_in_front_says_nothing),
        cmocka_unit_test(test_exhausted_memory_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
