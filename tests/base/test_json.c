/* JSON from outside: limits, words of a failure, and values that come back to the same bits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <float.h>
#include <math.h>

#include "base/json.h"
#include "base/memory.h"
#include "folder.h"

static const cvy_json_source source = {"file.json", CVY_ERR_CHECKPOINT};

static json_t *parse(const char *text)
{
    json_t *json = NULL;
    assert_int_equal(cvy_json_parse(&source, text, strlen(text), &json), CVY_OK);
    return json;
}

static void test_broken_text_is_told_with_its_line(void **state)
{
    (void)state;
    static const char *const broken[] = {"",
                                         "{",
                                         "{\"a\": 1,}",
                                         "{\"a\": 1} x",
                                         "{\"a\": 1, \"a\": 2}",
                                         "{\"a\": \"\xff\"}",
                                         "{\"a\\u0000\": 1}",
                                         "nul",
                                         "{\"a\": 1e999}",
                                         "{\"a\": 99999999999999999999}"};
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
        json_t *json = NULL;
        assert_int_equal(cvy_json_parse(&source, broken[i], strlen(broken[i]), &json), CVY_ERR_CHECKPOINT);
        assert_null(json);
        assert_ptr_equal(strstr(cvy_error_message(), "file.json:"), cvy_error_message());
    }
    json_t *json = NULL;
    assert_int_equal(cvy_json_parse(&source, "{\n\n\"a\" 1}", 10, &json), CVY_ERR_CHECKPOINT);
    assert_non_null(strstr(cvy_error_message(), "file.json:3:"));
    assert_int_equal(cvy_json_parse(&source, "{}\0{}", 5, &json), CVY_ERR_CHECKPOINT);
}

/* "a" takes 3 bytes and a blank before it, the object 9, [1] is cut after 2. */
static void test_values_are_taken_one_by_one_out_of_a_text(void **state)
{
    (void)state;
    static const char text[] = " \"a\": {\"b\": [1]} ,[1]";
    json_t *json = NULL;
    size_t at = 0;
    assert_int_equal(cvy_json_parse_at(&source, text, sizeof text - 1, 100, &at, &json), CVY_OK);
    assert_int_equal(at, 4);
    assert_string_equal(json_string_value(json), "a");
    json_decref(json);
    at = 5;
    assert_int_equal(cvy_json_parse_at(&source, text, sizeof text - 1, 12, &at, &json), CVY_OK);
    assert_int_equal(at, 16);
    assert_true(json_is_object(json));
    json_decref(json);
    json = NULL;
    assert_int_equal(cvy_json_parse_at(&source, text, sizeof text - 1, 100, &at, &json), CVY_ERR_CHECKPOINT);
    assert_non_null(strstr(cvy_error_message(), "file.json: byte 18: "));
    at = 18;
    assert_int_equal(cvy_json_parse_at(&source, text, sizeof text - 1, 2, &at, &json), CVY_ERR_CHECKPOINT);
    assert_string_equal(cvy_error_message(), "file.json: byte 18: a value of more than 2 bytes, the most that is read");
    assert_int_equal(cvy_json_parse_at(&source, text, 20, 100, &at, &json), CVY_ERR_CHECKPOINT);
    assert_int_equal(at, 18);
    assert_null(json);
}

/* A parser that recurses once a bracket would overrun the stack. */
static void test_deep_nesting_is_refused(void **state)
{
    (void)state;
    enum { DEPTH = 1000000 };
    char *text = malloc(DEPTH);
    memset(text, '[', DEPTH);
    json_t *json = NULL;
    assert_int_equal(cvy_json_parse(&source, text, DEPTH, &json), CVY_ERR_CHECKPOINT);
    free(text);
}

static void test_wrong_values_name_the_key_what_was_found_and_what_was_expected(void **state)
{
    (void)state;
    json_t *json = parse("{\"i\": 7, \"r\": 1.5, \"s\": \"x\", \"b\": true, \"n\": null, \"a\": [], \"o\": {}}");
    int64_t i = -1;
    double r = -1;
    bool b = false;
    const char *s = NULL;
    const json_t *child = NULL;
    assert_int_equal(cvy_json_get_int(json, "i", &source, 7, 7, &i), CVY_OK);
    assert_int_equal(i, 7);
    assert_int_equal(cvy_json_get_int(json, "i", &source, 8, 9, &i), CVY_ERR_CHECKPOINT);
    assert_string_equal(cvy_error_message(), "file.json: i: found 7, expected a whole number from 8 to 9");
    assert_int_equal(cvy_json_get_int(json, "r", &source, 0, 9, &i), CVY_ERR_CHECKPOINT);
    assert_string_equal(cvy_error_message(), "file.json: r: found 1.5, expected a whole number from 0 to 9");
    assert_int_equal(cvy_json_get_int(json, "none", &source, 0, 9, &i), CVY_ERR_CHECKPOINT);
    assert_string_equal(cvy_error_message(), "file.json: none: found nothing, expected a whole number from 0 to 9");
    assert_int_equal(cvy_json_get_real(json, "i", &source, 0, 9, &r), CVY_OK);
    assert_true(r == 7);
    assert_int_equal(cvy_json_get_real(json, "r", &source, 2, 9, &r), CVY_ERR_CHECKPOINT);
    assert_int_equal(cvy_json_get_real(json, "s", &source, -HUGE_VAL, HUGE_VAL, &r), CVY_ERR_CHECKPOINT);
    assert_int_equal(cvy_json_get_bool(json, "b", &source, &b), CVY_OK);
    assert_true(b);
    assert_int_equal(cvy_json_get_bool(json, "i", &source, &b), CVY_ERR_CHECKPOINT);
    assert_int_equal(cvy_json_get_text(json, "s", &source, &s), CVY_OK);
    assert_string_equal(s, "x");
    assert_int_equal(cvy_json_get_text(json, "n", &source, &s), CVY_ERR_CHECKPOINT);
    assert_string_equal(cvy_error_message(), "file.json: n: found null, expected a text");
    assert_int_equal(cvy_json_get_child(json, "a", &source, JSON_ARRAY, &child), CVY_OK);
    assert_int_equal(cvy_json_get_child(json, "a", &source, JSON_OBJECT, &child), CVY_ERR_CHECKPOINT);
    assert_string_equal(cvy_error_message(), "file.json: a: found an array, expected an object");
    json_decref(json);
}

static void assert_same_bits(double a, double b) { assert_memory_equal(&a, &b, sizeof a); }

static void test_doubles_and_words_come_back_to_the_same_bits(void **state)
{
    static const double numbers[] = {0.0,     -0.0,     0.1,      1.0 / 3, DBL_MAX, -DBL_MIN, 4.9406564584124654e-324,
                                     1e23,    1.0,      -7e15,    HUGE_VAL, -HUGE_VAL};
    static const uint64_t words[] = {0, 1, UINT64_MAX, UINT64_C(0x8000000000000001)};
    const char *path = test_path(*state, "f.json");
    const cvy_json_source file = {path, CVY_ERR_IO};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        json_t *json = json_pack("{s:o, s:o}", "x", cvy_json_real(numbers[i]), "w", cvy_json_word(words[i % 4]));
        assert_int_equal(cvy_json_save(path, json, CVY_ERR_IO), CVY_OK);
        json_decref(json);
        assert_int_equal(cvy_json_load(&file, 1000, &json), CVY_OK);
        double number;
        uint64_t word;
        assert_int_equal(cvy_json_get_real(json, "x", &file, -HUGE_VAL, HUGE_VAL, &number), CVY_OK);
        assert_same_bits(number, numbers[i]);
        assert_int_equal(cvy_json_get_word(json, "w", &file, &word), CVY_OK);
        assert_true(word == words[i % 4]);
        json_decref(json);
    }
}

static void test_words_have_16_digits(void **state)
{
    (void)state;
    json_t *json = parse("{\"a\": \"0123\", \"b\": \"-123456789abcdef\", \"c\": 5, \"d\": \"0123456789ABCDEF\"}");
    uint64_t word;
    for (const char *key = "abcd"; *key; key++) {
        const char name[] = {*key, '\0'};
        assert_int_equal(cvy_json_get_word(json, name, &source, &word), CVY_ERR_CHECKPOINT);
    }
    json_decref(json);
}

static void test_a_long_or_missing_file_is_refused(void **state)
{
    const char *path = test_path(*state, "f.json");
    const cvy_json_source file = {path, CVY_ERR_INPUT};
    json_t *json = NULL;
    assert_int_equal(cvy_json_load(&file, 1000, &json), CVY_ERR_INPUT);
    assert_true(put_test_file(path, "[1,2,3]", 7));
    assert_int_equal(cvy_json_load(&file, 6, &json), CVY_ERR_INPUT);
    assert_int_equal(cvy_json_load(&file, 7, &json), CVY_OK);
    json_decref(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_broken_text_is_told_with_its_line),
        cmocka_unit_test(test_values_are_taken_one_by_one_out_of_a_text),
        cmocka_unit_test(test_deep_nesting_is_refused),
        cmocka_unit_test(test_wrong_values_name_the_key_what_was_found_and_what_was_expected),
        cmocka_unit_test_setup_teardown(test_doubles_and_words_come_back_to_the_same_bits, create_test_folder,
                                        remove_test_folder),
        cmocka_unit_test(test_words_have_16_digits),
        cmocka_unit_test_setup_teardown(test_a_long_or_missing_file_is_refused, create_test_folder, remove_test_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
