/* What takes fields, with what each field takes: models of the zoo, kinds of layers. Also the kinds of data sets. */
#include "cli/fields.h"
#include "cli/manual/pages.h"
#include "cli/manual/scdoc.h"
#include "model/model.h"
#if CVY_HAVE_TRAIN
#include "data/data.h"
#endif

static void add_values(const cvy_field *field, cvy_text *text)
{
    switch (field->type) {
    case CVY_FIELD_INT: cvy_text_add(text, "A whole number"); break;
    case CVY_FIELD_REAL: cvy_text_add(text, "A number"); break;
    case CVY_FIELD_BOOL: cvy_text_add(text, "*yes* or *no*"); return;
    case CVY_FIELD_CHOICE: scdoc_add_choices(text, field->choices); return;
    case CVY_FIELD_SHAPE: cvy_text_add(text, "A shape"); return;
    case CVY_FIELD_AXES: cvy_text_add(text, "Axes: whole numbers"); break;
    case CVY_FIELD_PADS: cvy_text_add(text, "Pads: whole numbers"); break;
    }
    scdoc_add_range(text, field->minimum, field->maximum);
}

static void add_field(const cvy_field *field, cvy_text *text)
{
    char value[64];
    cli_print_field_default(field, value, sizeof value);
    cvy_text_add(text, "*%s*\n\t", field->name);
    if (field->help) {
        scdoc_add_sentence(text, field->help);
        cvy_text_add(text, " ");
    }
    add_values(field, text);
    if (field->required) {
        cvy_text_add(text, "; required.\n\n");
    } else if (*value) {
        cvy_text_add(text, "; default: *");
        scdoc_add_plain(text, value);
        cvy_text_add(text, "*.\n\n");
    } else {
        cvy_text_add(text, ".\n\n");
    }
}

static void add_entry(const char *name, const char *help, const cvy_field *field, cvy_text *text)
{
    cvy_text_add(text, "## ");
    scdoc_add_plain(text, name);
    cvy_text_add(text, "\n\n");
    scdoc_add_sentence(text, help);
    cvy_text_add(text, "\n\n");
    for (; field && field->name; field++) {
        add_field(field, text);
    }
}

void manual_add_models(const manual_page *page, cvy_text *text)
{
    const cvy_zoo_entry *entry;
    (void)page;
    for (int i = 0; (entry = cvy_zoo_get(i)); i++) {
        add_entry(entry->name, entry->help, entry->fields, text);
    }
}

void manual_add_layers(const manual_page *page, cvy_text *text)
{
    const cvy_layer_kind *kind;
    (void)page;
    for (int i = 0; (kind = cvy_layer_kind_get(i)); i++) {
        add_entry(kind->name, kind->help, kind->fields, text);
        if (kind->max_inputs > kind->min_inputs) {
            cvy_text_add(text, "Takes %d to %d inputs.\n\n", kind->min_inputs, kind->max_inputs);
        } else if (kind->max_inputs > 1) {
            cvy_text_add(text, "Takes %d inputs.\n\n", kind->max_inputs);
        }
    }
}

void manual_add_data_kinds(const manual_page *page, cvy_text *text)
{
    (void)page;
#if CVY_HAVE_TRAIN
    const cvy_data_kind *kind;
    for (int i = 0; (kind = cvy_data_kind_get(i)); i++) {
        cvy_text_add(text, "*%s*\n\t", kind->name);
        scdoc_add_sentence(text, kind->help);
        cvy_text_add(text, "\n\n");
    }
#else
    (void)text;
#endif
}
