/* A plan as YAML: what was decided, for people and for a run that goes on from it. */
#include <inttypes.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "plan/plan_file.h"

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

static void print_layer_formats(cvy_text *text, const cvy_layer *layer, const cvy_layer_formats *formats)
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

static void print_formats(cvy_text *text, const cvy_model *model, const cvy_layer_formats *formats)
{
    cvy_text_add(text, "formats:\n");
    for (int i = 0; i < model->layers; i++) {
        print_layer_formats(text, &model->layer[i], &formats[i]);
    }
}

/* A text in double quotes, whatever it holds. */
static void print_quoted(cvy_text *text, const char *key, const char *words)
{
    cvy_text_add(text, "%s: \"", key);
    for (; *words; words++) {
        cvy_text_add(text, *words == '"' || *words == '\\' ? "\\%c" : "%c", *words);
    }
    cvy_text_add(text, "\"\n");
}

static void print_axes(cvy_text *text, unsigned axes)
{
    const char *before = "";
    cvy_text_add(text, "[");
    for (int axis = 0; axis < CVY_AXES; axis++) {
        if (axes & CVY_AXIS_BIT(axis)) {
            cvy_text_add(text, "%s%s", before, cvy_axis_name((cvy_axis)axis));
            before = ", ";
        }
    }
    cvy_text_add(text, "]");
}

static void print_strategy(cvy_text *text, const cvy_strategy *strategy)
{
    const cvy_mesh *mesh = &strategy->mesh;
    char words[CVY_STRATEGY_TEXT];
    cvy_text_add(text, "strategy: \"%s\"\nranks: %" PRId64 "\nmesh: {", cvy_strategy_print(strategy, words),
                 mesh->ranks);
    for (int axis = 0; axis < CVY_AXES; axis++) {
        cvy_text_add(text, "%s%s: %" PRId64, axis ? ", " : "", cvy_axis_name((cvy_axis)axis), mesh->size[axis]);
    }
    cvy_text_add(text, "}\nrank-order: [");
    for (int i = 0; i < CVY_AXES; i++) {
        cvy_text_add(text, "%s%s", i ? ", " : "", cvy_axis_name(mesh->order[i]));
    }
    cvy_text_add(text, "] # slowest first\n");
}

/* Why a layer is whole along an axis, where the mesh has it: words for people. */
static void print_reasons(cvy_text *text, const cvy_layer_distribution *layer)
{
    const char *before = " # ";
    for (int axis = 0; axis < CVY_AXES; axis++) {
        if (layer->why_whole[axis]) {
            cvy_text_add(text, "%snot by %s: %s", before, cvy_axis_name((cvy_axis)axis), layer->why_whole[axis]);
            before = "; ";
        }
    }
}

/* Where the strategy leaves a layer whole, nothing is chosen, and nothing said: it will be left whole again. */
static void print_layer(cvy_text *text, const cvy_distribution *d, int index, const cvy_layer_choice *choice)
{
    const cvy_layer_distribution *layer = &d->layer[index];
    unsigned space = (layer->input_split | layer->raw_split) & CVY_AXIS_SPACE;
    bool weights = layer->cut == CVY_CUT_FILTER || layer->cut == CVY_CUT_CHANNEL;
    cvy_text_add(text, "  - {layer: \"%s\", stage: %d", d->model->layer[index].name, layer->stage);
    if (weights || (choice && choice->cut == CVY_CUT_WHOLE)) {
        cvy_text_add(text, ", cut: %s", cvy_cut_names[weights ? layer->cut : CVY_CUT_WHOLE]);
    }
    if (space || choice) {
        cvy_text_add(text, ", space: ");
        print_axes(text, choice ? choice->space : space);
    }
    cvy_text_add(text, "}");
    print_reasons(text, layer);
    cvy_text_add(text, "\n");
}

static void print_training(cvy_text *text, const cvy_plan_decisions *decided)
{
    cvy_text_add(text, "batch: %" PRId64 "\nprecision: %s\noptimizer: %s\n", decided->batch,
                 cvy_precision_name(decided->precision), cvy_optimizer_find_name(&decided->optimizer));
    cvy_text_add(text, "micro-batches: %" PRId64 "\nrecompute: %s\n",
                 decided->strategy.micro_batches > 1 ? decided->strategy.micro_batches : 1,
                 cvy_recompute_name(decided->recompute));
    if (decided->norms_given) {
        cvy_text_add(text, "norm-axes: ");
        print_axes(text, decided->norm_axes);
        cvy_text_add(text, "\n");
    }
    if (decided->bucket_bytes >= 0) {
        cvy_text_add(text, "bucket-bytes: %" PRId64 "\n", decided->bucket_bytes);
    }
    cvy_text_add(text, "shard-optimizer: %s\n", decided->shard_optimizer ? "yes" : "no");
}

/* ---- all of it ---- */

/* The stages and, layer by layer, the cuts. */
static void print_distribution(cvy_text *text, const cvy_distribution *d, const cvy_layer_choice *choices)
{
    const int stages = (int)d->strategy.mesh.size[CVY_AXIS_STAGE];
    cvy_text_add(text, "stages: [");
    for (int i = 0; i < stages; i++) {
        cvy_text_add(text, "%s\"%s\"", i ? ", " : "", d->model->layer[d->stages[i]].name);
    }
    cvy_text_add(text, "] # the first layer of each\nlayers:\n");
    for (int i = 0; i < d->model->layers; i++) {
        print_layer(text, d, i, choices ? &choices[i] : NULL);
    }
}

static void print_decisions(cvy_text *text, const cvy_model *model, const cvy_plan_decisions *decided,
                            const cvy_distribution *distribution)
{
    cvy_text_add(text, "schema: 1\n");
    print_quoted(text, "model", decided->model);
    cvy_text_add(text, "model-hash: \"%016" PRIx64 "\"\n", cvy_model_hash(model));
    if (decided->machine) {
        print_quoted(text, "machine", decided->machine);
    }
    print_strategy(text, &decided->strategy);
    print_training(text, decided);
    if (distribution) {
        print_distribution(text, distribution, decided->choices);
    }
}

/* Formats come last: of a file that is cut off they are not whole, and not believed. */
static cvy_status finish(cvy_text *text, const cvy_model *model, const cvy_plan_decisions *decided, const char *path)
{
    if (decided->formats) {
        cvy_text_add(text, "block: %d\n", decided->block);
        print_formats(text, model, decided->formats);
    }
    return cvy_file_write_text(path, text, CVY_ERR_IO);
}

cvy_status cvy_plan_file_save(const cvy_plan_decisions *decisions, const cvy_distribution *distribution,
                              const char *path)
{
    cvy_text text = {0};
    print_decisions(&text, distribution->model, decisions, distribution);
    return finish(&text, distribution->model, decisions, path);
}

/* ---- of a run ---- */

/* What a plan was made for and what it decided, as a plan file says it. */
static cvy_plan_decisions describe(const cvy_plan *plan)
{
    static const int64_t alone[CVY_AXES] = {1, 1, 1, 1, 1, 1};
    const cvy_plan_options *o = &plan->options;
    const cvy_distribution *d = o->parallel.distribution;
    cvy_plan_decisions decided = {.model = cvy_model_name(plan->model),
                                  .batch = o->batch,
                                  .precision = o->dtype == CVY_F64 ? CVY_PRECISION_FP64 : CVY_PRECISION_FP32,
                                  .optimizer = o->optimizer,
                                  .recompute = o->recompute,
                                  .shard_optimizer = o->parallel.shard_optimizer,
                                  .norms_given = d != NULL,
                                  .norm_axes = o->parallel.norm_axes,
                                  .bucket_bytes = d ? o->parallel.bucket_bytes : -1,
                                  .choices = d ? d->choices : NULL,
                                  .formats = plan->formats,
                                  .block = o->block};
    if (d) {
        decided.strategy = d->strategy;
    } else {
        (void)cvy_mesh_setup(alone, NULL, &decided.strategy.mesh); /* one rank is a mesh */
    }
    decided.strategy.micro_batches = plan->schedule[CVY_SCHEDULE_TRAIN].micro_batches;
    return decided;
}

cvy_status cvy_plan_save(const cvy_plan *plan, const char *path)
{
    cvy_text text = {0};
    int64_t by_role[CVY_BUFFER_ROLE_COUNT];
    const cvy_plan_decisions decided = describe(plan);
    print_decisions(&text, plan->model, &decided, plan->options.parallel.distribution);
    cvy_text_add(&text, "backend: %s\n",
                 plan->options.backends.count ? plan->options.backends.backend[0]->name : "none");
    cvy_plan_memory(plan, by_role);
    cvy_text_add(&text, "memory-bytes: {");
    for (int i = 0; i < CVY_BUFFER_ROLE_COUNT; i++) {
        cvy_text_add(&text, "%s%s: %" PRId64, i ? ", " : "", cvy_buffer_role_name((cvy_buffer_role)i), by_role[i]);
    }
    cvy_text_add(&text, "}\n");
    return finish(&text, plan->model, &decided, path);
}
