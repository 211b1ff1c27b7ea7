/*
 * Machine files into cvy_machine, by the tables of the format. A value is written plainly, or as {value: …, source: …};
 * a `source` in a mapping is that of all values in it that have none of their own. Whatever comes out lies within the
 * tables' bounds.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/utf8.h"
#include "machine/fields.h"
#include "machine/internal.h"

enum { MAX_TEXT = 200, MAX_SOURCE = 400, WHAT_TEXT = 120, MAX_KEYS = 32 };

/* A value on its way: where it goes and what messages call it. */
typedef struct target {
    cvy_machine *machine;
    const cvy_machine_field *field;
    void *value;
    const char *what;
} target;

static cvy_status keep_line(const target *to, const cvy_yaml_node *node, const char *what, size_t most,
                            const char **line_out)
{
    const char *text = cvy_yaml_text(node);
    if (!text || !*text || !cvy_utf8_is_line(text, most)) {
        return cvy_yaml_fail(node, "%s: expected a line of 1 to %zu bytes, no control characters", what, most);
    }
    return cvy_machine_keep(to->machine, text, line_out);
}

static cvy_status fail_word(const target *to, const cvy_yaml_node *node, const char *const *words)
{
    char word[CVY_WORD_TEXT], list[400];
    const char *text = cvy_yaml_text(node);
    const char *nearest = text ? cvy_nearest(text, words) : NULL;
    cvy_print_word(text ? text : "a list or mapping", word);
    if (nearest) {
        return cvy_yaml_fail(node, "%s: unknown '%s'; did you mean '%s'?", to->what, word, nearest);
    }
    return cvy_yaml_fail(node, "%s: found '%s', expected one of %s", to->what, word,
                         cvy_print_words(words, list, sizeof list));
}

static cvy_status parse_choice(const target *to, const cvy_yaml_node *node, int *value_out)
{
    enum { MOST = CVY_KERNEL_COUNT + 2 };
    const cvy_machine_names_of *names = to->field->names;
    const char *text = cvy_yaml_text(node), *words[MOST];
    int count = 0;
    for (int i = names->any ? CVY_ANY : 0; i < names->count; i++) {
        words[count++] = cvy_machine_name_of(names, i);
        if (text && strcmp(text, words[count - 1]) == 0) {
            *value_out = i;
            return CVY_OK;
        }
    }
    words[count] = NULL;
    return fail_word(to, node, words);
}

static cvy_status parse_set(const target *to, const cvy_yaml_node *node)
{
    unsigned set = 0;
    if (cvy_yaml_node_kind(node) != CVY_YAML_SEQUENCE) {
        return cvy_yaml_fail(node, "%s: expected %s", to->what, to->field->help);
    }
    for (int i = 0; i < cvy_yaml_size(node); i++) {
        int bit = 0;
        CVY_TRY(parse_choice(to, cvy_yaml_item(node, i), &bit));
        set |= 1u << bit;
    }
    *(unsigned *)to->value = set;
    return CVY_OK;
}

static cvy_status parse_files(const target *to, const cvy_yaml_node *node)
{
    const char **file = to->value;
    if (cvy_yaml_node_kind(node) != CVY_YAML_SEQUENCE || cvy_yaml_size(node) > CVY_MAX_FILES) {
        return cvy_yaml_fail(node, "%s: expected %s, at most %d", to->what, to->field->help, (int)CVY_MAX_FILES);
    }
    for (int i = 0; i < cvy_yaml_size(node); i++) {
        CVY_TRY(keep_line(to, cvy_yaml_item(node, i), to->what, MAX_TEXT, &file[i]));
    }
    return CVY_OK;
}

static cvy_status parse_level(const target *to, const cvy_yaml_node *node)
{
    const cvy_machine *machine = to->machine;
    const char *text = cvy_yaml_text(node), *words[CVY_MAX_LEVELS + 2] = {"any"};
    for (int i = 0; i < machine->levels; i++) {
        words[i + 1] = machine->level[i].name;
    }
    words[machine->levels + 1] = NULL;
    for (int i = 0; text && words[i]; i++) {
        if (strcmp(text, words[i]) == 0) {
            *(int *)to->value = i - 1;
            return CVY_OK;
        }
    }
    return fail_word(to, node, words);
}

static cvy_status parse_number(const target *to, const cvy_yaml_node *node)
{
    const cvy_machine_field *field = to->field;
    int64_t whole = 0;
    double bytes = 0;
    switch (field->type) {
    case CVY_MACHINE_QUANTITY:
        return cvy_yaml_get_quantity(node, to->what, field->quantity, field->minimum, field->maximum, to->value);
    case CVY_MACHINE_SIZE:
        CVY_TRY(cvy_yaml_get_quantity(node, to->what, CVY_QUANTITY_SIZE, field->minimum, field->maximum, &bytes));
        *(int64_t *)to->value = llround(bytes);
        return CVY_OK;
    case CVY_MACHINE_COUNT:
        CVY_TRY(cvy_yaml_get_int(node, to->what, (int64_t)field->minimum, (int64_t)field->maximum, &whole));
        *(int *)to->value = (int)whole;
        return CVY_OK;
    default:
        return cvy_yaml_get_real(node, to->what, field->minimum, field->maximum, to->value);
    }
}

static cvy_status parse_value(const target *to, const cvy_yaml_node *node)
{
    switch (to->field->type) {
    case CVY_MACHINE_FLAG:
        return cvy_yaml_get_bool(node, to->what, to->value);
    case CVY_MACHINE_CHOICE:
        return parse_choice(to, node, to->value);
    case CVY_MACHINE_SET:
        return parse_set(to, node);
    case CVY_MACHINE_TEXT:
        return keep_line(to, node, to->what, MAX_TEXT, to->value);
    case CVY_MACHINE_FILES:
        return parse_files(to, node);
    case CVY_MACHINE_LEVEL:
        return parse_level(to, node);
    default:
        return parse_number(to, node);
    }
}

static void set_default(const cvy_machine_field *field, void *value)
{
    switch (field->type) {
    case CVY_MACHINE_QUANTITY:
    case CVY_MACHINE_REAL:
        *(double *)value = field->value;
        break;
    case CVY_MACHINE_COUNT:
    case CVY_MACHINE_CHOICE:
    case CVY_MACHINE_LEVEL:
        *(int *)value = (int)field->value;
        break;
    case CVY_MACHINE_FLAG:
        *(bool *)value = field->value != 0;
        break;
    default: /* the machine was empty: no bytes, no, no names, no text */
        break;
    }
}

static cvy_status add_source(cvy_machine *machine, const void *value, const char *text)
{
    CVY_TRY(cvy_array_reserve(&machine->source, machine->sources, &machine->sources_capacity,
                              sizeof *machine->source));
    machine->source[machine->sources++] =
        (cvy_source){.offset = (size_t)((const char *)value - (const char *)machine), .text = text};
    return CVY_OK;
}

/* A value, plain or with its source; names are not figures and have no source but one that is said at them. */
static cvy_status read_value(const target *to, const cvy_yaml_node *node, const char *source)
{
    static const char *const keys[] = {"value", "source", NULL};
    const cvy_yaml_node *value = node;
    bool figure = to->field->type != CVY_MACHINE_TEXT && to->field->type != CVY_MACHINE_FILES;
    source = figure ? source : NULL;
    if (cvy_yaml_node_kind(node) == CVY_YAML_MAPPING) {
        CVY_TRY(cvy_yaml_check_keys(node, keys));
        value = cvy_yaml_find(node, "value");
        if (!value) {
            return cvy_yaml_fail(node, "%s: missing value; it is %s", to->what, to->field->help);
        }
        if (cvy_yaml_find(node, "source")) {
            CVY_TRY(keep_line(to, cvy_yaml_find(node, "source"), "source", MAX_SOURCE, &source));
        }
    }
    CVY_TRY(parse_value(to, value));
    return source ? add_source(to->machine, to->value, source) : CVY_OK;
}

static cvy_status check_keys(const cvy_machine_section *section, const cvy_yaml_node *mapping, const char *what)
{
    const char *keys[MAX_KEYS];
    int count = 0;
    for (const cvy_machine_field *field = section->fields; field->key; field++) {
        keys[count++] = field->key;
    }
    for (const cvy_machine_section *inner = section->sections; inner && inner->key; inner++) {
        keys[count++] = inner->key;
    }
    for (int i = 0; section->also && section->also[i]; i++) {
        keys[count++] = section->also[i];
    }
    keys[count++] = "source";
    keys[count] = NULL;
    if (cvy_yaml_node_kind(mapping) != CVY_YAML_MAPPING) {
        return cvy_yaml_fail(mapping, "%s%sexpected a mapping", what, *what ? ": " : "");
    }
    return cvy_yaml_check_keys(mapping, keys);
}

static const char *print_what(char *text, const char *what, const char *key)
{
    snprintf(text, WHAT_TEXT, "%.60s%s%s", what, *what ? ": " : "", key);
    return text;
}

static cvy_status read_fields(cvy_machine *machine, const cvy_machine_section *section, const cvy_yaml_node *mapping,
                              const char *what, const char *source, void *base)
{
    char name[WHAT_TEXT];
    for (const cvy_machine_field *field = section->fields; field->key; field++) {
        const cvy_yaml_node *node = mapping ? cvy_yaml_find(mapping, field->key) : NULL;
        target to = {.machine = machine, .field = field, .value = (char *)base + field->offset,
                     .what = print_what(name, what, field->key)};
        set_default(field, to.value);
        if (node) {
            CVY_TRY(read_value(&to, node, source));
        } else if (mapping && field->required) {
            return cvy_yaml_fail(mapping, "%s: missing; it is %s", to.what, field->help);
        }
    }
    return CVY_OK;
}

static cvy_status read_section(cvy_machine *machine, const cvy_machine_section *section, const cvy_yaml_node *mapping,
                               const char *what, const char *source, void *base);

static cvy_status read_list(cvy_machine *machine, const cvy_machine_section *section, const cvy_yaml_node *list,
                            const char *what, const char *source, void *base)
{
    char name[WHAT_TEXT];
    int *count = (int *)((char *)base + section->count_offset);
    if (cvy_yaml_node_kind(list) != CVY_YAML_SEQUENCE || cvy_yaml_size(list) > section->most) {
        return cvy_yaml_fail(list, "%s: expected %s, at most %d", what, section->help, section->most);
    }
    for (int i = 0; i < cvy_yaml_size(list); i++) {
        void *entry = (char *)base + section->offset + (size_t)i * section->bytes;
        snprintf(name, sizeof name, "%.60s %d", what, i + 1);
        CVY_TRY(read_section(machine, section, cvy_yaml_item(list, i), name, source, entry));
        *count = i + 1;
    }
    return CVY_OK;
}

/* One mapping, or without one its defaults. */
static cvy_status read_section(cvy_machine *machine, const cvy_machine_section *section, const cvy_yaml_node *mapping,
                               const char *what, const char *source, void *base)
{
    char name[WHAT_TEXT];
    if (mapping) {
        const target to = {.machine = machine};
        CVY_TRY(check_keys(section, mapping, what));
        const cvy_yaml_node *own = cvy_yaml_find(mapping, "source");
        if (own) {
            CVY_TRY(keep_line(&to, own, print_what(name, what, "source"), MAX_SOURCE, &source));
        }
    }
    CVY_TRY(read_fields(machine, section, mapping, what, source, base));
    for (const cvy_machine_section *inner = section->sections; inner && inner->key; inner++) {
        const cvy_yaml_node *node = mapping ? cvy_yaml_find(mapping, inner->key) : NULL;
        print_what(name, what, inner->key);
        if (!node && inner->required && mapping) {
            return cvy_yaml_fail(mapping, "%s: missing; it is %s", name, inner->help);
        }
        if (inner->most == 0) {
            CVY_TRY(read_section(machine, inner, node, name, source, (char *)base + inner->offset));
        } else if (node) {
            CVY_TRY(read_list(machine, inner, node, name, source, base));
        }
    }
    return CVY_OK;
}

cvy_status cvy_machine_read(const cvy_yaml_node *root, cvy_machine *machine)
{
    return read_section(machine, &cvy_machine_sections, root, "", NULL, machine);
}
