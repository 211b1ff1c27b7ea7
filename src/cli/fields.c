/* A default that its own bounds forbid stands for something else, which the help of the field says. */
#include "cli/fields.h"

#include <stdio.h>

const char *cli_print_field_default(const cvy_field *field, char *text, size_t bytes)
{
    text[0] = '\0';
    if (field->required) {
        snprintf(text, bytes, "required");
    } else if (field->type == CVY_FIELD_CHOICE) {
        snprintf(text, bytes, "%s", field->choices[(int)field->value]);
    } else if (field->type == CVY_FIELD_BOOL) {
        snprintf(text, bytes, "%s", field->value != 0 ? "yes" : "no");
    } else if (field->value >= field->minimum && field->value <= field->maximum) {
        snprintf(text, bytes, "%.15g", field->value);
    }
    return text;
}
