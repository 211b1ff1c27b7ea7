/* Machines as YAML, by the tables of the format. Defaults without a source are left out; reading puts them back. */
#include <stdio.h>
#include <stdlib.h>

#include "machine/fields.h"

/* Where a writer stands: blanks before a line, and whether the next line begins an entry of a list. */
typedef struct writer {
    const cvy_machine *machine;
    cvy_text *text;
    int indent;
    bool dash;
} writer;

static void start_line(writer *out)
{
    cvy_text_add(out->text, "%*s%s", out->dash ? out->indent - 2 : out->indent, "", out->dash ? "- " : "");
    out->dash = false;
}

/* A text in double quotes, where YAML knows two characters of its own. */
static void print_text(cvy_text *text, const char *line)
{
    cvy_text_add(text, "\"");
    for (const char *c = line; *c; c++) {
        cvy_text_add(text, "%s%c", *c == '"' || *c == '\\' ? "\\" : "", *c);
    }
    cvy_text_add(text, "\"");
}

static void print_real(cvy_text *text, double value)
{
    char digits[32];
    for (int precision = 1; precision <= 17; precision++) {
        snprintf(digits, sizeof digits, "%.*g", precision, value);
        if (strtod(digits, NULL) == value) {
            break;
        }
    }
    cvy_text_add(text, "%s", digits);
}

static void print_set(cvy_text *text, const cvy_machine_names_of *names, unsigned set)
{
    const char *before = "";
    cvy_text_add(text, "[");
    for (int i = 0; i < names->count; i++) {
        if (set >> i & 1u) {
            cvy_text_add(text, "%s%s", before, names->name(i));
            before = ", ";
        }
    }
    cvy_text_add(text, "]");
}

static void print_files(cvy_text *text, const char *const *file)
{
    cvy_text_add(text, "[");
    for (int i = 0; file[i]; i++) {
        cvy_text_add(text, "%s", i ? ", " : "");
        print_text(text, file[i]);
    }
    cvy_text_add(text, "]");
}

static void print_value(const writer *out, const cvy_machine_field *field, const void *value)
{
    char quantity[CVY_QUANTITY_TEXT];
    const int *whole = value;
    switch (field->type) {
    case CVY_MACHINE_QUANTITY:
        cvy_text_add(out->text, "%s", cvy_quantity_print(*(const double *)value, field->quantity, quantity));
        break;
    case CVY_MACHINE_SIZE:
        cvy_text_add(out->text, "%s",
                     cvy_quantity_print((double)*(const int64_t *)value, CVY_QUANTITY_SIZE, quantity));
        break;
    case CVY_MACHINE_REAL:
        print_real(out->text, *(const double *)value);
        break;
    case CVY_MACHINE_COUNT:
        cvy_text_add(out->text, "%d", *whole);
        break;
    case CVY_MACHINE_FLAG:
        cvy_text_add(out->text, "%s", *(const bool *)value ? "yes" : "no");
        break;
    case CVY_MACHINE_CHOICE:
        cvy_text_add(out->text, "%s", cvy_machine_name_of(field->names, *whole));
        break;
    case CVY_MACHINE_SET:
        print_set(out->text, field->names, *(const unsigned *)value);
        break;
    case CVY_MACHINE_TEXT:
        print_text(out->text, *(const char *const *)value);
        break;
    case CVY_MACHINE_FILES:
        print_files(out->text, value);
        break;
    case CVY_MACHINE_LEVEL:
        print_text(out->text, *whole == CVY_ANY ? "any" : out->machine->level[*whole].name);
        break;
    }
}

static bool is_default(const cvy_machine_field *field, const void *value)
{
    switch (field->type) {
    case CVY_MACHINE_QUANTITY:
    case CVY_MACHINE_REAL:
        return *(const double *)value == field->value;
    case CVY_MACHINE_SIZE:
        return *(const int64_t *)value == 0;
    case CVY_MACHINE_FLAG:
        return *(const bool *)value == (field->value != 0);
    case CVY_MACHINE_SET:
        return *(const unsigned *)value == 0;
    case CVY_MACHINE_TEXT:
    case CVY_MACHINE_FILES: /* the first of them */
        return !*(const char *const *)value;
    default:
        return *(const int *)value == (int)field->value;
    }
}

static void print_fields(writer *out, const cvy_machine_field *fields, const void *base)
{
    for (const cvy_machine_field *field = fields; field->key; field++) {
        const void *value = (const char *)base + field->offset;
        const char *source = cvy_machine_find_source(out->machine, value);
        if (!field->required && !source && is_default(field, value)) {
            continue;
        }
        start_line(out);
        cvy_text_add(out->text, "%s: %s", field->key, source ? "{value: " : "");
        print_value(out, field, value);
        if (source) {
            cvy_text_add(out->text, ", source: ");
            print_text(out->text, source);
            cvy_text_add(out->text, "}");
        }
        cvy_text_add(out->text, "\n");
    }
}

static void print_section(writer *out, const cvy_machine_section *section, const void *base);

static void print_list(writer *out, const cvy_machine_section *section, const void *base)
{
    int count = *(const int *)((const char *)base + section->count_offset);
    for (int i = 0; i < count; i++) {
        out->dash = true;
        print_section(out, section, (const char *)base + section->offset + (size_t)i * section->bytes);
        if (out->dash) { /* all of it is default */
            start_line(out);
            cvy_text_add(out->text, "{}\n");
        }
    }
}

/* A section without a line takes its heading back. */
static void print_section(writer *out, const cvy_machine_section *section, const void *base)
{
    print_fields(out, section->fields, base);
    for (const cvy_machine_section *inner = section->sections; inner && inner->key; inner++) {
        size_t before = out->text->length;
        start_line(out);
        cvy_text_add(out->text, "%s:\n", inner->key);
        size_t begun = out->text->length;
        out->indent += inner->most ? 4 : 2;
        if (inner->most) {
            print_list(out, inner, base);
        } else {
            print_section(out, inner, (const char *)base + inner->offset);
        }
        out->indent -= inner->most ? 4 : 2;
        if (out->text->length == begun && !out->text->failed) {
            out->text->length = before;
            out->text->data[before] = '\0';
        }
    }
}

void cvy_machine_print(const cvy_machine *machine, cvy_text *text)
{
    writer out = {.machine = machine, .text = text};
    print_section(&out, &cvy_machine_sections, machine);
}
