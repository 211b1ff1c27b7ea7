/*
 * Options from YAML into the struct of their kind, driven by its table of fields. Whatever comes out lies within the
 * table's bounds, so layers and zoo models compute with it without looking again.
 */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "model/layer.h"
#include "model/model.h"

enum { WHAT_TEXT = CVY_MAX_NAME + 80 };

/* A field on its way: what messages call it, and where its value goes. */
typedef struct target {
    const cvy_field *field;
    void *value;
    char what[WHAT_TEXT];
} target;

static cvy_status parse_int(const target *to, const cvy_yaml_node *node, int64_t *value)
{
    return cvy_yaml_get_int(node, to->what, (int64_t)to->field->minimum, (int64_t)to->field->maximum, value);
}

static bool is_list(const cvy_yaml_node *node) { return cvy_yaml_node_kind(node) == CVY_YAML_SEQUENCE; }

/* A list of one entry an axis stands for itself, any other node for one entry that holds for all. */
static cvy_status count_axes(const target *to, const cvy_yaml_node *node, int *count_out)
{
    *count_out = is_list(node) ? cvy_yaml_size(node) : 1;
    if (*count_out < 1 || *count_out > 3) {
        return cvy_yaml_fail(node, "%s: found %d entries, expected 1 to 3", to->what, *count_out);
    }
    return CVY_OK;
}

static cvy_status parse_axes(const target *to, const cvy_yaml_node *node)
{
    cvy_axes *axes = to->value;
    CVY_TRY(count_axes(to, node, &axes->count));
    for (int i = 0; i < axes->count; i++) {
        CVY_TRY(parse_int(to, is_list(node) ? cvy_yaml_item(node, i) : node, &axes->value[i]));
    }
    return CVY_OK;
}

static cvy_status parse_pads(const target *to, const cvy_yaml_node *node)
{
    cvy_pads *pads = to->value;
    CVY_TRY(count_axes(to, node, &pads->count));
    for (int i = 0; i < pads->count; i++) {
        const cvy_yaml_node *entry = is_list(node) ? cvy_yaml_item(node, i) : node;
        bool pair = is_list(entry);
        if (pair && cvy_yaml_size(entry) != 2) {
            return cvy_yaml_fail(entry, "%s: found a list of %d, expected [low, high]", to->what,
                                 cvy_yaml_size(entry));
        }
        CVY_TRY(parse_int(to, pair ? cvy_yaml_item(entry, 0) : entry, &pads->before[i]));
        CVY_TRY(parse_int(to, pair ? cvy_yaml_item(entry, 1) : entry, &pads->after[i]));
    }
    return CVY_OK;
}

static cvy_status parse_shape(const target *to, const cvy_yaml_node *node)
{
    cvy_shape *shape = to->value;
    int size = is_list(node) ? cvy_yaml_size(node) : 0;
    if (size != 1 && size != 3 && size != 4) {
        return cvy_yaml_fail(node, "%s: expected [c], [c, h, w] or [c, d, h, w]", to->what);
    }
    *shape = (cvy_shape){.dims = size + 1, .extent = {1}};
    for (int i = 0; i < size; i++) {
        CVY_TRY(parse_int(to, cvy_yaml_item(node, i), &shape->extent[i + 1]));
    }
    return CVY_OK;
}

static cvy_status parse_choice(const target *to, const cvy_yaml_node *node)
{
    const char *text = cvy_yaml_text(node);
    const char *const *choices = to->field->choices;
    char list[200], word[CVY_WORD_TEXT];
    for (int i = 0; text && choices[i]; i++) {
        if (strcmp(text, choices[i]) == 0) {
            *(int *)to->value = i;
            return CVY_OK;
        }
    }
    return cvy_yaml_fail(node, "%s: found '%s', expected one of %s", to->what, cvy_print_word(text ? text : "[]", word),
                         cvy_print_words(choices, list, sizeof list));
}

static cvy_status parse_value(const target *to, const cvy_yaml_node *node)
{
    switch (to->field->type) {
    case CVY_FIELD_INT:
        return parse_int(to, node, to->value);
    case CVY_FIELD_REAL:
        return cvy_yaml_get_real(node, to->what, to->field->minimum, to->field->maximum, to->value);
    case CVY_FIELD_BOOL:
        return cvy_yaml_get_bool(node, to->what, to->value);
    case CVY_FIELD_AXES:
        return parse_axes(to, node);
    case CVY_FIELD_PADS:
        return parse_pads(to, node);
    case CVY_FIELD_SHAPE:
        return parse_shape(to, node);
    case CVY_FIELD_CHOICE:
        return parse_choice(to, node);
    }
    return CVY_OK;
}

static void set_default(const cvy_field *field, void *value)
{
    int64_t whole = (int64_t)field->value;
    switch (field->type) {
    case CVY_FIELD_INT:
        *(int64_t *)value = whole;
        break;
    case CVY_FIELD_REAL:
        *(double *)value = field->value;
        break;
    case CVY_FIELD_BOOL:
        *(bool *)value = whole != 0;
        break;
    case CVY_FIELD_AXES:
        *(cvy_axes *)value = (cvy_axes){.count = 1, .value = {whole}};
        break;
    case CVY_FIELD_PADS:
        *(cvy_pads *)value = (cvy_pads){.count = 1, .before = {whole}, .after = {whole}};
        break;
    case CVY_FIELD_CHOICE:
        *(int *)value = (int)whole;
        break;
    case CVY_FIELD_SHAPE: /* always required: no shape is a good guess */
        break;
    }
}

static bool is_known(const cvy_field *fields, const char *const *skip, const char *key)
{
    for (int i = 0; skip && skip[i]; i++) {
        if (strcmp(skip[i], key) == 0) {
            return true;
        }
    }
    for (int i = 0; fields && fields[i].name; i++) {
        if (strcmp(fields[i].name, key) == 0) {
            return true;
        }
    }
    return false;
}

/* Refuse a key, with what it was perhaps meant to be: an option first, then one of the caller's keys. */
static cvy_status fail_unknown(const cvy_field *fields, const char *const *skip, const char *owner,
                               const cvy_yaml_node *node, const char *key)
{
    enum { MOST = 30 };
    const char *names[MOST + 1];
    char list[300], word[CVY_WORD_TEXT];
    int count = 0;
    for (int i = 0; fields && fields[i].name && count < MOST; i++) {
        names[count++] = fields[i].name;
    }
    names[count] = NULL;
    const char *nearest = cvy_nearest(key, names);
    if (!nearest && skip) {
        nearest = cvy_nearest(key, skip);
    }
    for (int i = 0; skip && skip[i] && count < MOST; i++) {
        names[count++] = skip[i];
    }
    names[count] = NULL;
    cvy_print_word(key, word);
    cvy_print_words(names, list, sizeof list);
    const char *stop = owner ? ": " : "";
    owner = owner ? owner : "";
    if (nearest) {
        return cvy_yaml_fail(node, "%s%sunknown option '%s'; did you mean '%s'?", owner, stop, word, nearest);
    }
    return cvy_yaml_fail(node, "%s%sunknown option '%s', expected %s", owner, stop, word, count ? list : "none");
}

static cvy_status check_known(const cvy_field *fields, const char *const *skip, const char *owner,
                              const cvy_yaml_node *mapping)
{
    if (cvy_yaml_node_kind(mapping) != CVY_YAML_MAPPING) {
        return cvy_yaml_fail(mapping, "%s%sexpected a mapping of options", owner ? owner : "", owner ? ": " : "");
    }
    for (int i = 0; i < cvy_yaml_size(mapping); i++) {
        if (!is_known(fields, skip, cvy_yaml_key(mapping, i))) {
            return fail_unknown(fields, skip, owner, cvy_yaml_item(mapping, i), cvy_yaml_key(mapping, i));
        }
    }
    return CVY_OK;
}

cvy_status cvy_fields_parse(const cvy_field *fields, const cvy_yaml_node *mapping, const char *owner,
                            const char *const *skip, void *options)
{
    target to;
    if (mapping) {
        CVY_TRY(check_known(fields, skip, owner, mapping));
    }
    for (const cvy_field *field = fields; field && field->name; field++) {
        to.field = field;
        to.value = (char *)options + field->offset;
        snprintf(to.what, sizeof to.what, "%s%s%s", owner ? owner : "", owner ? ": " : "", field->name);
        const cvy_yaml_node *node = mapping ? cvy_yaml_find(mapping, field->name) : NULL;
        if (node) {
            CVY_TRY(parse_value(&to, node));
        } else if (!field->required) {
            set_default(field, to.value);
        } else if (mapping) {
            return cvy_yaml_fail(mapping, "%s: missing; it is %s", to.what, field->help);
        } else {
            return cvy_fail(CVY_ERR_INPUT, "%s: missing; it is %s", to.what, field->help);
        }
    }
    return CVY_OK;
}
