/*
 * Values of YAML nodes: numbers within bounds, quantities with units, yes and no, known keys. Refusals say what was
 * found and expected.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "base/text.h"
#include "base/yaml.h"

enum { FOUND = CVY_WORD_TEXT + 2 };

static const char real_characters[] = "+-.eE0123456789"; /* no hexadecimal, no infinity */

/* What a node holds, for messages; @p text has room for FOUND bytes. */
static const char *print_found(const cvy_yaml_node *node, char *text)
{
    char word[CVY_WORD_TEXT];
    const char *value = cvy_yaml_text(node);
    if (value) {
        snprintf(text, FOUND, "'%s'", cvy_print_word(value, word));
    } else {
        snprintf(text, FOUND, "%s", cvy_yaml_node_kind(node) == CVY_YAML_SEQUENCE ? "a list" : "a mapping");
    }
    return text;
}

cvy_status cvy_yaml_get_int(const cvy_yaml_node *node, const char *what, int64_t minimum, int64_t maximum,
                            int64_t *value_out)
{
    char found[FOUND];
    const char *text = cvy_yaml_text(node);
    bool whole = text && *text && strspn(text, "+-0123456789") == strlen(text);
    char *end = NULL;
    errno = 0;
    long long value = whole ? strtoll(text, &end, 10) : 0;
    if (!whole || *end || errno || value < minimum || value > maximum) {
        if (minimum == INT64_MIN && maximum == INT64_MAX) {
            return cvy_yaml_fail(node, "%s: found %s, expected a whole number", what, print_found(node, found));
        }
        if (maximum == INT64_MAX) {
            return cvy_yaml_fail(node, "%s: found %s, expected a whole number of at least %" PRId64, what,
                                 print_found(node, found), minimum);
        }
        return cvy_yaml_fail(node, "%s: found %s, expected a whole number from %" PRId64 " to %" PRId64, what,
                             print_found(node, found), minimum, maximum);
    }
    *value_out = value;
    return CVY_OK;
}

cvy_status cvy_yaml_get_real(const cvy_yaml_node *node, const char *what, double minimum, double maximum,
                             double *value_out)
{
    char found[FOUND];
    const char *text = cvy_yaml_text(node);
    bool plain = text && *text && strspn(text, real_characters) == strlen(text);
    char *end = NULL;
    double value = plain ? strtod(text, &end) : 0;
    if (!plain || *end || !isfinite(value) || value < minimum || value > maximum) {
        return cvy_yaml_fail(node, "%s: found %s, expected a number from %g to %g", what, print_found(node, found),
                             minimum, maximum);
    }
    *value_out = value;
    return CVY_OK;
}

/* ---- many numbers ---- */

/* The next word of a text, as a node's numbers stand in one; its length, 0 at the end. */
static size_t next_word(const char **text)
{
    const char *at = *text, *end;
    while (*at == ' ' || *at == '\n' || *at == '\t') {
        at++;
    }
    for (end = at; *end && *end != ' ' && *end != '\n' && *end != '\t';) {
        end++;
    }
    *text = at;
    return (size_t)(end - at);
}

int cvy_yaml_count_reals(const cvy_yaml_node *node)
{
    const char *text = cvy_yaml_text(node);
    int count = cvy_yaml_node_kind(node) == CVY_YAML_SEQUENCE ? cvy_yaml_size(node) : 0;
    for (size_t length; text && (length = next_word(&text)); text += length) {
        count++;
    }
    return count;
}

static bool read_word(const char *word, size_t length, double *value_out)
{
    char *end = NULL;
    if (strspn(word, real_characters) < length) {
        return false;
    }
    *value_out = strtod(word, &end);
    return end == word + length;
}

/* Numbers of a text: libyaml makes a node of each entry of a list, which takes several times as long. */
static cvy_status get_words(const cvy_yaml_node *node, const char *what, double minimum, double maximum,
                            double *value_out)
{
    const char *text = cvy_yaml_text(node);
    for (size_t length; (length = next_word(&text)); text += length) {
        double value;
        if (!read_word(text, length, &value) || !(value >= minimum && value <= maximum)) {
            char found[CVY_WORD_TEXT], shown[CVY_WORD_TEXT];
            snprintf(found, sizeof found, "%.*s", (int)(length < sizeof found ? length : sizeof found), text);
            return cvy_yaml_fail_at(node, text, "%s: found '%s', expected a number from %g to %g", what,
                                    cvy_print_word(found, shown), minimum, maximum);
        }
        *value_out++ = value;
    }
    return CVY_OK;
}

cvy_status cvy_yaml_get_reals(const cvy_yaml_node *node, const char *what, int count, double minimum, double maximum,
                              double *value_out)
{
    int found = cvy_yaml_count_reals(node);
    if (found != count || cvy_yaml_node_kind(node) == CVY_YAML_MAPPING) {
        return cvy_yaml_fail(node, "%s: found %d numbers, expected %d", what, found, count);
    }
    if (cvy_yaml_text(node)) {
        return get_words(node, what, minimum, maximum, value_out);
    }
    for (int i = 0; i < count; i++) {
        CVY_TRY(cvy_yaml_get_real(cvy_yaml_item(node, i), what, minimum, maximum, &value_out[i]));
    }
    return CVY_OK;
}

/* ---- others ---- */

cvy_status cvy_yaml_get_quantity(const cvy_yaml_node *node, const char *what, cvy_quantity kind, double minimum,
                                 double maximum, double *value_out)
{
    char found[FOUND], low[CVY_QUANTITY_TEXT], high[CVY_QUANTITY_TEXT];
    double value;
    if (!cvy_quantity_parse(cvy_yaml_text(node), kind, &value)) {
        return cvy_yaml_fail(node, "%s: found %s, expected %s", what, print_found(node, found),
                             cvy_quantity_expected(kind));
    }
    if (value < minimum || value > maximum) {
        return cvy_yaml_fail(node, "%s: found %s, expected from %s to %s", what, print_found(node, found),
                             cvy_quantity_print(minimum, kind, low), cvy_quantity_print(maximum, kind, high));
    }
    *value_out = value;
    return CVY_OK;
}

cvy_status cvy_yaml_get_bool(const cvy_yaml_node *node, const char *what, bool *value_out)
{
    static const char *const word[] = {"no", "yes", "false", "true", "off", "on"};
    char found[FOUND];
    const char *text = cvy_yaml_text(node);
    for (int i = 0; text && i < 6; i++) {
        if (strcasecmp(text, word[i]) == 0) {
            *value_out = i % 2;
            return CVY_OK;
        }
    }
    return cvy_yaml_fail(node, "%s: found %s, expected yes or no", what, print_found(node, found));
}

static cvy_status fail_key(const cvy_yaml_node *node, const char *key, const char *const *keys)
{
    const char *nearest = cvy_nearest(key, keys);
    if (nearest) {
        return cvy_yaml_fail(node, "unknown key '%.60s'; did you mean '%s'?", key, nearest);
    }
    cvy_text list = {0};
    for (int i = 0; keys[i]; i++) {
        cvy_text_add(&list, "%s%s", i ? ", " : "", keys[i]);
    }
    char *known = cvy_text_take(&list);
    if (!known) {
        return CVY_ERR_MEMORY;
    }
    cvy_status status = cvy_yaml_fail(node, "unknown key '%.60s', expected %s", key, known[0] ? known : "none");
    cvy_free(known);
    return status;
}

cvy_status cvy_yaml_check_keys(const cvy_yaml_node *mapping, const char *const *keys)
{
    if (cvy_yaml_node_kind(mapping) != CVY_YAML_MAPPING) {
        char found[FOUND];
        return cvy_yaml_fail(mapping, "found %s, expected a mapping", print_found(mapping, found));
    }
    for (int i = 0; i < cvy_yaml_size(mapping); i++) {
        const char *key = cvy_yaml_key(mapping, i);
        int known = 0;
        while (keys[known] && strcmp(keys[known], key) != 0) {
            known++;
        }
        if (!keys[known]) {
            return fail_key(cvy_yaml_item(mapping, i), key, keys);
        }
    }
    return CVY_OK;
}
