/*
 * jansson parses and prints; here are limits and words. It keeps the order of keys, refuses what is not UTF-8, bounds
 * the depth (2,048), prints doubles with 17 digits, which read back to the same bits, and knows the locale's decimal
 * point.
 */
#include "base/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"

cvy_status cvy_json_parse(const cvy_json_source *source, const char *text, size_t bytes, json_t **json_out)
{
    json_error_t error;
    json_t *json = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
    if (!json && json_error_code(&error) == json_error_out_of_memory) {
        return cvy_fail(CVY_ERR_MEMORY, "%s: no memory for its JSON", source->file);
    }
    CVY_REQUIRE(json, source->status, "%s:%d:%d: %s", source->file, error.line, error.column, error.text);
    *json_out = json;
    return CVY_OK;
}

cvy_status cvy_json_parse_at(const cvy_json_source *source, const char *text, size_t bytes, size_t most, size_t *at,
                             json_t **json_out)
{
    json_error_t error;
    const size_t flags = JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_DISABLE_EOF_CHECK;
    bool cut = bytes - *at > most;
    json_t *json = json_loadb(text + *at, cut ? most : bytes - *at, flags, &error);
    enum json_error_code code = json ? json_error_unknown : json_error_code(&error);
    CVY_REQUIRE(code != json_error_out_of_memory, CVY_ERR_MEMORY, "%s: no memory for its JSON", source->file);
    CVY_REQUIRE(!cut || code != json_error_premature_end_of_input, source->status,
                "%s: byte %zu: a value of more than %zu bytes, the most that is read", source->file, *at, most);
    CVY_REQUIRE(json, source->status, "%s: byte %zu: %s", source->file, *at + (size_t)error.position, error.text);
    *at += (size_t)error.position; /* without the check for an end, how much was taken */
    *json_out = json;
    return CVY_OK;
}

cvy_status cvy_json_load(const cvy_json_source *source, size_t limit_bytes, json_t **json_out)
{
    char *text;
    size_t bytes;
    CVY_TRY(cvy_file_read(source->file, limit_bytes, source->status, &text, &bytes));
    cvy_status status = cvy_json_parse(source, text, bytes, json_out);
    cvy_free(text);
    return status;
}

cvy_status cvy_json_save(const char *path, const json_t *json, cvy_status status)
{
    char *text = json_dumps(json, JSON_INDENT(2));
    CVY_REQUIRE(text, CVY_ERR_MEMORY, "%s: no memory for its JSON", path);
    size_t length = strlen(text);
    text[length] = '\n'; /* the final zero is not written */
    cvy_status result = cvy_file_write(path, text, length + 1, status);
    free(text);
    return result;
}

enum { FOUND_TEXT = 64 };

/* Say what stands where something else was expected. */
static const char *print_found(const json_t *value, char *text)
{
    switch (value ? json_typeof(value) : JSON_NULL) {
    case JSON_OBJECT: return "an object";
    case JSON_ARRAY: return "an array";
    case JSON_STRING: snprintf(text, FOUND_TEXT, "\"%.40s\"", json_string_value(value)); return text;
    case JSON_INTEGER: snprintf(text, FOUND_TEXT, "%" JSON_INTEGER_FORMAT, json_integer_value(value)); return text;
    case JSON_REAL: snprintf(text, FOUND_TEXT, "%.9g", json_real_value(value)); return text;
    case JSON_TRUE: return "true";
    case JSON_FALSE: return "false";
    default: return value ? "null" : "nothing";
    }
}

/* Word a wrong value: FILE: KEY: found …, expected …. */
static cvy_status fail_at(const cvy_json_source *source, const char *key, const json_t *value, const char *expected)
{
    char text[FOUND_TEXT];
    return cvy_fail(source->status, "%s: %s: found %s, expected %s", source->file, key, print_found(value, text),
                    expected);
}

cvy_status cvy_json_get_int(const json_t *object, const char *key, const cvy_json_source *source, int64_t minimum,
                            int64_t maximum, int64_t *value_out)
{
    const json_t *value = json_object_get(object, key);
    json_int_t number = json_integer_value(value);
    if (!json_is_integer(value) || number < minimum || number > maximum) {
        char expected[96];
        snprintf(expected, sizeof expected, "a whole number from %" PRId64 " to %" PRId64, minimum, maximum);
        return fail_at(source, key, value, expected);
    }
    *value_out = number;
    return CVY_OK;
}

/* Numbers, and the texts of cvy_json_real(); NaN for all else. */
static double read_real(const json_t *value)
{
    const char *text = json_string_value(value);
    if (text) {
        return strcmp(text, "inf") == 0 ? HUGE_VAL : strcmp(text, "-inf") == 0 ? -HUGE_VAL : NAN;
    }
    return json_is_number(value) ? json_number_value(value) : NAN;
}

cvy_status cvy_json_get_real(const json_t *object, const char *key, const cvy_json_source *source, double minimum,
                             double maximum, double *value_out)
{
    const json_t *value = json_object_get(object, key);
    double number = read_real(value);
    if (!(number >= minimum && number <= maximum)) {
        char expected[96];
        snprintf(expected, sizeof expected, "a number from %.9g to %.9g", minimum, maximum);
        return fail_at(source, key, value, expected);
    }
    *value_out = number;
    return CVY_OK;
}

cvy_status cvy_json_get_bool(const json_t *object, const char *key, const cvy_json_source *source, bool *value_out)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_boolean(value)) {
        return fail_at(source, key, value, "true or false");
    }
    *value_out = json_is_true(value);
    return CVY_OK;
}

enum { WORD_DIGITS = 16 };

cvy_status cvy_json_get_word(const json_t *object, const char *key, const cvy_json_source *source, uint64_t *value_out)
{
    const json_t *value = json_object_get(object, key);
    const char *text = json_string_value(value);
    if (!text || strlen(text) != WORD_DIGITS || strspn(text, "0123456789abcdef") != WORD_DIGITS) {
        return fail_at(source, key, value, "16 hexadecimal digits");
    }
    *value_out = strtoull(text, NULL, 16);
    return CVY_OK;
}

cvy_status cvy_json_get_text(const json_t *object, const char *key, const cvy_json_source *source,
                             const char **text_out)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_string(value)) {
        return fail_at(source, key, value, "a text");
    }
    *text_out = json_string_value(value);
    return CVY_OK;
}

cvy_status cvy_json_get_child(const json_t *object, const char *key, const cvy_json_source *source, json_type type,
                              const json_t **child_out)
{
    const json_t *value = json_object_get(object, key);
    if (!value || json_typeof(value) != type) {
        return fail_at(source, key, value, type == JSON_OBJECT ? "an object" : "an array");
    }
    *child_out = value;
    return CVY_OK;
}

json_t *cvy_json_real(double value)
{
    if (isfinite(value)) {
        return json_real(value);
    }
    return json_string(isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
}

json_t *cvy_json_word(uint64_t value)
{
    char text[WORD_DIGITS + 1];
    snprintf(text, sizeof text, "%016" PRIx64, value);
    return json_string(text);
}
