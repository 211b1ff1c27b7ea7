/*
 * A value of an option, from text and back. Fields are reached by offset and copied as bytes, so an enumeration in the
 * struct may stand behind a choice. Text from outside is read whole or refused: "64x", "", "nan" are no numbers.
 */
#include "base/option_value.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

/* Bounds that stand for "no bound" when they are told to people. */
static const double UNBOUNDED = 1e15;

static void *find_field(const cvy_option *option, void *values) { return (char *)values + option->offset; }

static const void *get_field(const cvy_option *option, const void *values)
{
    return (const char *)values + option->offset;
}

/* Only the start of what was found: a line of a file may be long. */
#define FOUND "found '%.60s'"

static cvy_status fail_bounds(const cvy_option *option, const char *where, const char *kind, const char *text)
{
    bool beyond = strtod(text, NULL) > option->maximum; /* then the bound is told, which is no secret */
    if (option->maximum >= UNBOUNDED && !beyond) {
        return cvy_fail(CVY_ERR_INPUT, "%s: expected %s of at least %.15g, " FOUND, where, kind, option->minimum, text);
    }
    return cvy_fail(CVY_ERR_INPUT, "%s: expected %s from %.15g to %.16g, " FOUND, where, kind, option->minimum,
                    option->maximum, text);
}

static cvy_status set_whole(const cvy_option *option, const char *where, const char *text, void *values)
{
    char *end;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    bool whole = end != text && !isspace((unsigned char)text[0]) && errno == 0;
    bool per_rank = option->type == CVY_OPTION_COUNT && whole && strcmp(end, "/rank") == 0;
    if (per_rank) {
        end += strlen(end);
    }
    if (!whole || *end || (double)number < option->minimum || (double)number > option->maximum) {
        return fail_bounds(option, where,
                           option->type == CVY_OPTION_COUNT ? "a count (N or N/rank)" : "a whole number", text);
    }
    int64_t value = per_rank ? -number : number;
    memcpy(find_field(option, values), &value, sizeof value);
    return CVY_OK;
}

static cvy_status set_real(const cvy_option *option, const char *where, const char *text, void *values)
{
    char *end;
    double value = strtod(text, &end);
    bool whole = end != text && !isspace((unsigned char)text[0]) && *end == '\0' && isfinite(value);
    if (!whole || value < option->minimum || value > option->maximum) {
        return fail_bounds(option, where, "a number", text);
    }
    memcpy(find_field(option, values), &value, sizeof value);
    return CVY_OK;
}

static cvy_status set_flag(const cvy_option *option, const char *where, const char *text, void *values)
{
    static const char *const words[] = {"no", "yes", "false", "true", "off", "on", "0", "1"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (!text || strcmp(text, words[i]) == 0) {
            bool value = !text || i % 2 == 1;
            memcpy(find_field(option, values), &value, sizeof value);
            return CVY_OK;
        }
    }
    return cvy_fail(CVY_ERR_INPUT, "%s: expected yes or no, " FOUND, where, text);
}

static cvy_status set_choice(const cvy_option *option, const char *where, const char *text, void *values)
{
    cvy_text list = {0};
    for (int i = 0; option->choices[i]; i++) {
        if (strcmp(option->choices[i], text) == 0) {
            memcpy(find_field(option, values), &i, sizeof i);
            cvy_text_destroy(&list);
            return CVY_OK;
        }
        cvy_text_add(&list, "%s%s", i == 0 ? "" : option->choices[i + 1] ? ", " : " or ", option->choices[i]);
    }
    const char *nearest = cvy_nearest(text, option->choices);
    cvy_status status = cvy_fail(CVY_ERR_INPUT, "%s: expected %s, " FOUND "%s%s%s", where, list.data ? list.data : "",
                                 text, nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
    cvy_text_destroy(&list);
    return status;
}

cvy_status cvy_option_set(const cvy_option *option, const char *where, const char *text, void *values)
{
    CVY_REQUIRE(option->type == CVY_OPTION_FLAG || (text && *text), CVY_ERR_INPUT, "%s: expected %s, found nothing",
                where, option->argument ? option->argument : "a value");
    switch (option->type) {
    case CVY_OPTION_FLAG: return set_flag(option, where, text, values);
    case CVY_OPTION_INT:
    case CVY_OPTION_COUNT: return set_whole(option, where, text, values);
    case CVY_OPTION_REAL: return set_real(option, where, text, values);
    case CVY_OPTION_CHOICE: return set_choice(option, where, text, values);
    case CVY_OPTION_TEXT: cvy_option_set_text(option, values, text); return CVY_OK;
    case CVY_OPTION_HEADING: break;
    }
    return cvy_fail(CVY_ERR_ARG, "%s: a heading has no value", where);
}

const char *cvy_option_get_text(const cvy_option *option, const void *values)
{
    const char *value;
    memcpy(&value, get_field(option, values), sizeof value);
    return value;
}

void cvy_option_set_text(const cvy_option *option, void *values, const char *text)
{
    memcpy(find_field(option, values), &text, sizeof text);
}

/* 15 digits where they read back as the same double, up to 17 where it takes them. */
static void print_real(double value, cvy_text *text)
{
    char digits[32];
    for (int precision = 15; precision <= 17; precision++) {
        snprintf(digits, sizeof digits, "%.*g", precision, value);
        if (strtod(digits, NULL) == value) {
            break;
        }
    }
    cvy_text_add(text, "%s", digits);
}

static void print_whole(const cvy_option *option, int64_t value, cvy_text *text)
{
    bool per_rank = option->type == CVY_OPTION_COUNT && value < 0;
    cvy_text_add(text, "%lld%s", (long long)(per_rank ? -value : value), per_rank ? "/rank" : "");
}

bool cvy_option_print(const cvy_option *option, const void *values, cvy_text *text)
{
    const void *field = get_field(option, values);
    int64_t whole;
    double real;
    bool flag;
    int choice;
    switch (option->type) {
    case CVY_OPTION_FLAG:
        memcpy(&flag, field, sizeof flag);
        cvy_text_add(text, "%s", flag ? "yes" : "no");
        return true;
    case CVY_OPTION_INT:
    case CVY_OPTION_COUNT:
        memcpy(&whole, field, sizeof whole);
        print_whole(option, whole, text);
        return true;
    case CVY_OPTION_REAL:
        memcpy(&real, field, sizeof real);
        print_real(real, text);
        return true;
    case CVY_OPTION_CHOICE:
        memcpy(&choice, field, sizeof choice);
        cvy_text_add(text, "%s", option->choices[choice]);
        return true;
    case CVY_OPTION_TEXT:
        if (cvy_option_get_text(option, values)) {
            cvy_text_add(text, "%s", cvy_option_get_text(option, values));
            return true;
        }
        return false;
    case CVY_OPTION_HEADING: break;
    }
    return false;
}

const char *cvy_option_print_usage(const cvy_option *option, char *text, size_t bytes)
{
    if (option->type == CVY_OPTION_FLAG) {
        snprintf(text, bytes, "--%s", option->name);
    } else {
        snprintf(text, bytes, "--%s %s", option->name, option->argument ? option->argument : "VALUE");
    }
    return text;
}

const char *cvy_option_print_variable(const char *name, char *text, size_t bytes)
{
    int length = snprintf(text, bytes, "CONVOY_%s", name);
    for (int i = 0; i < length && (size_t)i < bytes - 1; i++) {
        text[i] = text[i] == '-' ? '_' : (char)toupper((unsigned char)text[i]);
    }
    return text;
}
