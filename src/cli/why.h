/* The layers of a strategy, for convoy why. */
#ifndef CVY_CLI_WHY_H
#define CVY_CLI_WHY_H

#include "base/json.h"
#include "oracle/estimate.h"

/** Print the layers: cut, local shape, bytes, seconds; then why layers are not cut. @retval CVY_ERR_MEMORY */
cvy_status cli_print_layers(const cvy_trace *trace);

/** The same as a list. @param[out] list_out  a new reference; untouched on failure @retval CVY_ERR_MEMORY */
cvy_status cli_describe_layers(const cvy_trace *trace, json_t **list_out);

#endif
