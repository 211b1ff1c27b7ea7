/*
 * A plan file is believed line by line: the model must have the hash that was noted, the strategy must have the mesh,
 * its order and the micro-batches, and every layer must be in its place and stage. What is not said is as it is where
 * nobody says anything.
 */
#include "plan/plan_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/yaml.h"

/* Schedules see whether there is some, not how much. */
static const double SOME_MOMENTUM = 0.9;

/* A file while it is read. */
typedef struct reader {
    const char *path;
    const cvy_yaml_node *root;
    cvy_plan_file *file;
} reader;

/* The text of a key; NULL where it is not there and need not be. */
static cvy_status read_text(const reader *r, const char *key, bool needed, const char **text_out)
{
    const cvy_yaml_node *node = cvy_yaml_find(r->root, key);
    *text_out = node ? cvy_yaml_text(node) : NULL;
    if (*text_out || (!node && !needed)) {
        return CVY_OK;
    }
    return node ? cvy_yaml_fail(node, "%s: expected one value", key)
                : cvy_yaml_fail(r->root, "expected a plan, found no '%s'", key);
}

/* The index of a key's word among names; as it was where the key is not there. */
static cvy_status read_choice(const reader *r, const char *key, const char *(*name)(int), int count, int *index)
{
    const char *word;
    CVY_TRY(read_text(r, key, false, &word));
    for (int i = 0; word && i < count; i++) {
        if (strcmp(word, name(i)) == 0) {
            *index = i;
            return CVY_OK;
        }
    }
    return word ? cvy_yaml_fail(cvy_yaml_find(r->root, key), "%s: found '%.40s', unknown", key, word) : CVY_OK;
}

static cvy_status read_axes(const cvy_yaml_node *list, const char *key, unsigned *axes_out)
{
    unsigned axes = 0;
    if (cvy_yaml_node_kind(list) != CVY_YAML_SEQUENCE) {
        return cvy_yaml_fail(list, "%s: expected a list of axes", key);
    }
    for (int i = 0; i < cvy_yaml_size(list); i++) {
        const char *word = cvy_yaml_text(cvy_yaml_item(list, i));
        cvy_axis axis;
        if (!word || !cvy_axis_find(word, &axis)) {
            return cvy_yaml_fail(list, "%s: found '%.40s', expected axes of a mesh", key, word ? word : "a list");
        }
        axes |= CVY_AXIS_BIT(axis);
    }
    *axes_out = axes;
    return CVY_OK;
}

/* ---- model and strategy ---- */

static cvy_status keep_text(const char *text, char **owned)
{
    *owned = text ? cvy_strdup(text) : NULL;
    return text && !*owned ? CVY_ERR_MEMORY : CVY_OK;
}

static cvy_status open_model(reader *r, const char *instead)
{
    const char *text, *machine, *hash;
    char expected[20];
    CVY_TRY(read_text(r, "model", true, &text));
    CVY_TRY(read_text(r, "model-hash", true, &hash));
    CVY_TRY(read_text(r, "machine", false, &machine));
    CVY_TRY(keep_text(instead ? instead : text, &r->file->model_text));
    CVY_TRY(keep_text(machine, &r->file->machine_text));
    CVY_TRY(cvy_model_open(r->file->model_text, &r->file->model));
    snprintf(expected, sizeof expected, "%016" PRIx64, cvy_model_hash(r->file->model));
    if (strcmp(hash, expected) != 0) {
        return cvy_yaml_fail(cvy_yaml_find(r->root, "model-hash"), "the plan is of another model than %s",
                             cvy_model_name(r->file->model));
    }
    r->file->decisions.model = r->file->model_text;
    r->file->decisions.machine = r->file->machine_text;
    return CVY_OK;
}

/* The mesh is told for people; what it says must be what the strategy says. */
static cvy_status check_mesh(const reader *r, const cvy_mesh *mesh)
{
    const cvy_yaml_node *node = cvy_yaml_find(r->root, "mesh");
    if (node && cvy_yaml_node_kind(node) != CVY_YAML_MAPPING) {
        return cvy_yaml_fail(node, "mesh: expected the size of each axis");
    }
    for (int i = 0; node && i < cvy_yaml_size(node); i++) {
        cvy_axis axis;
        int64_t size;
        const char *key = cvy_yaml_key(node, i);
        if (!cvy_axis_find(key, &axis)) {
            return cvy_yaml_fail(cvy_yaml_item(node, i), "mesh: no axis '%.40s'", key);
        }
        CVY_TRY(cvy_yaml_get_int(cvy_yaml_item(node, i), key, 1, CVY_MAX_RANKS, &size));
        if (size != mesh->size[axis]) {
            return cvy_yaml_fail(cvy_yaml_item(node, i), "mesh: found %s %" PRId64 ", the strategy has %" PRId64, key,
                                 size, mesh->size[axis]);
        }
    }
    return CVY_OK;
}

/* So is the order of its axes; where there is one rank along an axis, its place says nothing. */
static cvy_status check_order(const reader *r, const cvy_mesh *mesh)
{
    const cvy_yaml_node *node = cvy_yaml_find(r->root, "rank-order");
    cvy_axis said[CVY_AXES];
    unsigned seen = 0;
    bool whole = node && cvy_yaml_node_kind(node) == CVY_YAML_SEQUENCE && cvy_yaml_size(node) == CVY_AXES;
    for (int i = 0; whole && i < CVY_AXES; i++) {
        const char *word = cvy_yaml_text(cvy_yaml_item(node, i));
        whole = word && cvy_axis_find(word, &said[i]) && !(seen & CVY_AXIS_BIT(said[i]));
        seen |= whole ? CVY_AXIS_BIT(said[i]) : 0;
    }
    if (node && !whole) {
        return cvy_yaml_fail(node, "rank-order: expected a list of all %d axes, slowest first", (int)CVY_AXES);
    }
    for (int i = 0, k = 0; node && i < CVY_AXES; i++) {
        while (mesh->size[mesh->order[i]] > 1 && mesh->size[said[k]] == 1) {
            k++;
        }
        if (mesh->size[mesh->order[i]] > 1 && said[k++] != mesh->order[i]) {
            return cvy_yaml_fail(node, "rank-order: found %s, the strategy has %s there", cvy_axis_name(said[k - 1]),
                                 cvy_axis_name(mesh->order[i]));
        }
    }
    return CVY_OK;
}

static cvy_status read_micro_batches(const reader *r, int64_t *parts)
{
    const cvy_yaml_node *node = cvy_yaml_find(r->root, "micro-batches");
    int64_t said = *parts;
    if (node) {
        CVY_TRY(cvy_yaml_get_int(node, "micro-batches", 1, 1 << 20, &said));
    }
    if (*parts && said != *parts) {
        return cvy_yaml_fail(node, "micro-batches: found %" PRId64 ", the strategy has %" PRId64, said, *parts);
    }
    *parts = said;
    return CVY_OK;
}

static cvy_status read_strategy(reader *r)
{
    cvy_strategy *strategy = &r->file->decisions.strategy;
    const cvy_yaml_node *node = cvy_yaml_find(r->root, "ranks");
    const char *text;
    int64_t ranks = 1, space[3];
    cvy_strategy_find_space(&r->file->model->layer[0].output, space);
    CVY_TRY(read_text(r, "strategy", true, &text));
    if (node) {
        CVY_TRY(cvy_yaml_get_int(node, "ranks", 1, CVY_MAX_RANKS, &ranks));
    }
    cvy_status status = cvy_strategy_parse(text, ranks, space, strategy);
    if (status != CVY_OK) {
        return cvy_fail_within(status, "%s:%d", r->path, cvy_yaml_line(cvy_yaml_find(r->root, "strategy")));
    }
    if (strategy->automatic) {
        return cvy_yaml_fail(r->root, "strategy: a plan has decided, expected another than auto");
    }
    CVY_TRY(read_micro_batches(r, &strategy->micro_batches));
    CVY_TRY(check_mesh(r, &strategy->mesh));
    return check_order(r, &strategy->mesh);
}

/* ---- training ---- */

static const char *name_precision(int i) { return cvy_precision_name((cvy_precision)i); }

static const char *name_recompute(int i) { return cvy_recompute_name((cvy_recompute)i); }

static const char *name_optimizer(int i) { return cvy_optimizer_names[i]; }

static cvy_status read_training(reader *r)
{
    enum { DEFAULT_OPTIMIZER = 1, OPTIMIZERS = 7 }; /* momentum, as convoy train has it */
    cvy_plan_decisions *d = &r->file->decisions;
    int precision = CVY_PRECISION_FP32, recompute = CVY_RECOMPUTE_NONE, optimizer = DEFAULT_OPTIMIZER;
    const cvy_yaml_node *batch = cvy_yaml_find(r->root, "batch"), *bucket = cvy_yaml_find(r->root, "bucket-bytes");
    const cvy_yaml_node *norms = cvy_yaml_find(r->root, "norm-axes");
    const cvy_yaml_node *shard = cvy_yaml_find(r->root, "shard-optimizer");
    if (!batch) {
        return cvy_yaml_fail(r->root, "expected a plan, found no 'batch'");
    }
    CVY_TRY(cvy_yaml_get_int(batch, "batch", 1, INT64_C(1) << 40, &d->batch));
    CVY_TRY(read_choice(r, "precision", name_precision, CVY_PRECISION_COUNT, &precision));
    CVY_TRY(read_choice(r, "recompute", name_recompute, CVY_RECOMPUTE_ALL + 1, &recompute));
    CVY_TRY(read_choice(r, "optimizer", name_optimizer, OPTIMIZERS, &optimizer));
    d->precision = (cvy_precision)precision;
    d->recompute = (cvy_recompute)recompute;
    (void)cvy_optimizer_find(cvy_optimizer_names[optimizer], SOME_MOMENTUM, &d->optimizer); /* it is in the list */
    d->bucket_bytes = -1;
    d->norms_given = norms != NULL;
    if (bucket) {
        CVY_TRY(cvy_yaml_get_int(bucket, "bucket-bytes", 0, INT64_C(1) << 50, &d->bucket_bytes));
    }
    if (norms) {
        CVY_TRY(read_axes(norms, "norm-axes", &d->norm_axes));
    }
    return shard ? cvy_yaml_get_bool(shard, "shard-optimizer", &d->shard_optimizer) : CVY_OK;
}

/* ---- layers ---- */

/* Stages begin in the order of the layers, where one tensor passes. */
static cvy_status read_stages(reader *r)
{
    const cvy_yaml_node *list = cvy_yaml_find(r->root, "stages");
    const cvy_model *model = r->file->model;
    const int stages = (int)r->file->decisions.strategy.mesh.size[CVY_AXIS_STAGE];
    if (!list) {
        return CVY_OK;
    }
    if (cvy_yaml_node_kind(list) != CVY_YAML_SEQUENCE || cvy_yaml_size(list) != stages) {
        return cvy_yaml_fail(list, "stages: expected the first layer of each of %d", stages);
    }
    bool *narrow = cvy_calloc((size_t)model->layers, sizeof *narrow);
    r->file->stages = cvy_calloc((size_t)stages + 1, sizeof *r->file->stages);
    cvy_status status = narrow && r->file->stages ? cvy_model_find_narrow(model, narrow) : CVY_ERR_MEMORY;
    for (int i = 0; i < stages && status == CVY_OK; i++) {
        const char *name = cvy_yaml_text(cvy_yaml_item(list, i));
        int layer = name ? cvy_model_find_layer(model, name) : -1;
        bool fits = i == 0 ? layer == 0 : layer > r->file->stages[i - 1] && narrow[layer - 1];
        if (!fits) {
            status = cvy_yaml_fail(list, "stages: '%.60s' cannot begin stage %d", name ? name : "a list", i);
        }
        r->file->stages[i] = layer;
    }
    cvy_free(narrow);
    if (status == CVY_OK) {
        r->file->stages[stages] = model->layers;
        r->file->decisions.stages = r->file->stages;
    }
    return status;
}

/* Stages of layers are told for people, too. */
static cvy_status check_stage(const reader *r, const cvy_yaml_node *entry, int index)
{
    const cvy_yaml_node *node = cvy_yaml_find(entry, "stage");
    int64_t said, stage = 0;
    if (!node || !r->file->stages) {
        return CVY_OK;
    }
    CVY_TRY(cvy_yaml_get_int(node, "stage", 0, INT32_MAX, &said));
    while (r->file->stages[stage + 1] <= index) {
        stage++;
    }
    return said == stage ? CVY_OK
                         : cvy_yaml_fail(node, "stage: found %" PRId64 ", by the list of stages it is %" PRId64, said,
                                         stage);
}

static cvy_status read_layer(const reader *r, const cvy_yaml_node *entry, int index)
{
    static const char *const keys[] = {"layer", "stage", "cut", "space", NULL};

    const cvy_layer *layer = &r->file->model->layer[index];
    cvy_layer_choice *choice = &r->file->choices[index];
    bool mapping = cvy_yaml_node_kind(entry) == CVY_YAML_MAPPING;
    const cvy_yaml_node *name = mapping ? cvy_yaml_find(entry, "layer") : NULL;
    const cvy_yaml_node *cut = mapping ? cvy_yaml_find(entry, "cut") : NULL;
    const cvy_yaml_node *space = mapping ? cvy_yaml_find(entry, "space") : NULL;
    *choice = (cvy_layer_choice){.cut = -1, .space = CVY_AXIS_SPACE};
    if (!name || !cvy_yaml_text(name) || strcmp(cvy_yaml_text(name), layer->name) != 0) {
        return cvy_yaml_fail(entry, "expected layer %s", layer->name);
    }
    CVY_TRY(cvy_yaml_check_keys(entry, keys));
    CVY_TRY(check_stage(r, entry, index));
    if (cut) {
        const char *word = cvy_yaml_text(cut);
        for (int i = CVY_CUT_WHOLE; word && i <= CVY_CUT_CHANNEL; i++) {
            choice->cut = strcmp(word, cvy_cut_names[i]) == 0 ? i : choice->cut;
        }
        if (choice->cut < 0) {
            return cvy_yaml_fail(cut, "cut: found '%.40s', expected whole, filter or channel", word ? word : "a list");
        }
    }
    return space ? read_axes(space, "space", &choice->space) : CVY_OK;
}

static cvy_status read_layers(reader *r)
{
    const cvy_yaml_node *list = cvy_yaml_find(r->root, "layers");
    const int layers = r->file->model->layers;
    if (!list) {
        return CVY_OK;
    }
    if (cvy_yaml_node_kind(list) != CVY_YAML_SEQUENCE || cvy_yaml_size(list) != layers) {
        return cvy_yaml_fail(list, "layers: expected a list of %d, those of %s", layers, r->file->model_text);
    }
    r->file->choices = cvy_calloc((size_t)layers, sizeof *r->file->choices);
    if (!r->file->choices) {
        return CVY_ERR_MEMORY;
    }
    for (int i = 0; i < layers; i++) {
        CVY_TRY(read_layer(r, cvy_yaml_item(list, i), i));
    }
    r->file->decisions.choices = r->file->choices;
    return CVY_OK;
}

static cvy_status read_formats(reader *r)
{
    const cvy_yaml_node *block = cvy_yaml_find(r->root, "block");
    int64_t found;
    if (!cvy_yaml_find(r->root, "formats") || !block) {
        return CVY_OK;
    }
    CVY_TRY(cvy_yaml_get_int(block, "block", 8, 16, &found));
    r->file->formats = cvy_calloc((size_t)r->file->model->layers, sizeof *r->file->formats);
    if (!r->file->formats) {
        return CVY_ERR_MEMORY;
    }
    r->file->decisions.block = (int)found;
    r->file->decisions.formats = r->file->formats;
    return cvy_plan_load_formats(r->path, r->file->model, (int)found, r->file->formats);
}

static cvy_status check_schema(const reader *r)
{
    const char *schema;
    if (cvy_yaml_node_kind(r->root) != CVY_YAML_MAPPING) {
        return cvy_yaml_fail(r->root, "expected a plan: a mapping");
    }
    CVY_TRY(read_text(r, "schema", false, &schema));
    return !schema || strcmp(schema, "1") == 0
               ? CVY_OK
               : cvy_yaml_fail(cvy_yaml_find(r->root, "schema"), "schema: found '%.20s', expected 1", schema);
}

/* Keys of plans of any kind: those of runs say what they take, and by which backend. */
static const char *const plan_keys[] = {
    "schema", "model", "model-hash", "machine", "strategy", "ranks", "mesh", "rank-order", "batch", "precision",
    "optimizer", "micro-batches", "recompute", "norm-axes", "bucket-bytes", "shard-optimizer", "stages", "layers",
    "block", "formats", "backend", "memory-bytes", NULL};

static cvy_status read_plan(reader *r, const char *model)
{
    CVY_TRY(check_schema(r));
    CVY_TRY(open_model(r, model));
    CVY_TRY(read_strategy(r));
    CVY_TRY(read_training(r));
    CVY_TRY(read_stages(r));
    CVY_TRY(read_layers(r));
    CVY_TRY(read_formats(r));
    return cvy_yaml_check_keys(r->root, plan_keys);
}

cvy_status cvy_plan_file_load(const char *path, const char *model, cvy_plan_file *file_out)
{
    cvy_yaml *yaml = NULL;
    cvy_plan_file file = {0};
    CVY_TRY(cvy_yaml_load(path, &yaml));
    reader r = {.path = path, .root = cvy_yaml_root(yaml), .file = &file};
    cvy_status status = read_plan(&r, model);
    cvy_yaml_destroy(&yaml);
    if (status != CVY_OK) {
        cvy_plan_file_clear(&file);
        return status;
    }
    *file_out = file;
    return CVY_OK;
}

void cvy_plan_file_clear(cvy_plan_file *file)
{
    cvy_model_destroy(&file->model);
    cvy_free(file->model_text);
    cvy_free(file->machine_text);
    cvy_free(file->choices);
    cvy_free(file->stages);
    cvy_free(file->formats);
    *file = (cvy_plan_file){0};
}
