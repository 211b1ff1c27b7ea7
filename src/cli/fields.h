/* Options of layers and zoo models, for people. */
#ifndef CVY_CLI_FIELDS_H
#define CVY_CLI_FIELDS_H

#include "model/layer.h"

/** "28", "yes", "kaiming", "required"; empty where the field's help tells. @p text takes up to @p bytes. */
const char *cli_print_field_default(const cvy_field *field, char *text, size_t bytes);

#endif
