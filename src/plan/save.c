/* A plan as YAML: what was decided, for people and for a run that goes on from it. */
#include <inttypes.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "plan/plan.h"

static void print_winograd(cvy_text *text, uint32_t passes)
{
    const char *before = ", winograd: [";
    for (int pass = 0; pass < CVY_PASS_COUNT; pass++) {
        if (passes >> pass & 1u) {
            cvy_text_add(text, "%s%s", before, cvy_op_pass_name((cvy_op_pass)pass));
            before = ", ";
        }
    }
    cvy_text_add(text, "%s", passes ? "]" : "");
}

static void print_layer(cvy_text *text, const cvy_layer *layer, const cvy_layer_formats *formats)
{
    cvy_text_add(text, "  - {layer: \"%s\", input: %s, output: %s", layer->name, cvy_format_name(formats->input),
                 cvy_format_name(formats->output));
    if (layer->parameters > 0) {
        cvy_text_add(text, ", weight: %s, weight-backward: %s, gradient: %s", cvy_format_name(formats->weight),
                     cvy_format_name(formats->weight_backward), cvy_format_name(formats->gradient));
        print_winograd(text, formats->winograd);
    }
    cvy_text_add(text, "}\n");
}

cvy_status cvy_plan_save(const cvy_plan *plan, const char *path)
{
    cvy_text text = {0};
    int64_t by_role[CVY_BUFFER_ROLE_COUNT];
    cvy_text_add(&text, "schema: 1\nmodel: \"%s\"\nmodel-hash: \"%016" PRIx64 "\"\nstrategy: serial\n",
                 cvy_model_name(plan->model), cvy_model_hash(plan->model));
    cvy_text_add(&text, "mesh: {sample: 1}\nbatch: %" PRId64 "\nprecision: %s\nbackend: %s\n", plan->options.batch,
                 plan->options.dtype == CVY_F64 ? "fp64" : "fp32",
                 plan->options.backends.count ? plan->options.backends.backend[0]->name : "none");
    cvy_text_add(&text, "block: %d\nmicro-batches: %d\nrecompute: %s\n", plan->options.block,
                 plan->options.micro_batches > 1 ? plan->options.micro_batches : 1,
                 cvy_recompute_name(plan->options.recompute));
    cvy_plan_memory(plan, by_role);
    cvy_text_add(&text, "memory-bytes: {");
    for (int i = 0; i < CVY_BUFFER_ROLE_COUNT; i++) {
        cvy_text_add(&text, "%s%s: %" PRId64, i ? ", " : "", cvy_buffer_role_name((cvy_buffer_role)i), by_role[i]);
    }
    cvy_text_add(&text, "}\nformats:\n");
    for (int i = 0; i < plan->model->layers; i++) {
        print_layer(&text, &plan->model->layer[i], &plan->formats[i]);
    }
    size_t bytes = text.length;
    char *yaml = cvy_text_take(&text);
    cvy_status status = yaml ? cvy_file_write(path, yaml, bytes, CVY_ERR_IO) : CVY_ERR_MEMORY;
    cvy_free(yaml);
    return status;
}
