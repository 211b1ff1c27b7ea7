/*
 * The persistent tensors of an executor by their names, and how they are born. All ranks list all of the model, in one
 * order, whatever each has of it; and an element is born from its number in the whole tensor, so that all ranks
 * together have what one would have.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "plan/distribution.h"
#include "runtime/executor_internal.h"
#include "runtime/sharing.h"
#include "runtime/state_copy.h"

/* The kinds of tensors in their order: what stands before a parameter's name. */
static const struct {
    cvy_content content;
    int part;
    const char *prefix;
} kinds[] = {
    {CVY_CONTENT_PARAMETER, -1, ""},
    {CVY_CONTENT_MOMENT, 0, "momentum."},
    {CVY_CONTENT_MOMENT, 1, "moment2."},
    {CVY_CONTENT_AVERAGE, -1, "ema."},
};

static cvy_schedule_kind find_schedule(const cvy_executor *e)
{
    return e->plan->options.training ? CVY_SCHEDULE_TRAIN : CVY_SCHEDULE_EVALUATE;
}

/* Whether ranks have state of a kind for a parameter; on each it may be a part, or nothing. */
static bool is_listed(const cvy_executor *e, int kind, const cvy_parameter *parameter)
{
    const cvy_plan_options *options = &e->plan->options;
    switch (kinds[kind].content) {
    case CVY_CONTENT_PARAMETER: return true;
    case CVY_CONTENT_MOMENT:
        return options->training && parameter->spec.trainable &&
               kinds[kind].part < cvy_optimizer_moments(&options->optimizer);
    default: return options->training && options->average > 0.0;
    }
}

/* A persistent buffer of this rank; -1 where it has none. */
static int find_buffer(const cvy_executor *e, cvy_content content, int part, int parameter)
{
    const cvy_schedule *s = &e->plan->schedule[find_schedule(e)];
    for (int i = 0; i < e->plan->persistent_buffers; i++) {
        const cvy_buffer *b = &s->buffer[i];
        if (b->content == content && b->parameter == parameter && (part < 0 || b->part == part)) {
            return i;
        }
    }
    return -1;
}

static char *print_name(const char *prefix, const char *parameter)
{
    size_t bytes = strlen(parameter) + 16;
    char *name = cvy_calloc(bytes, 1);
    if (name) {
        snprintf(name, bytes, "%s%s", prefix, parameter);
    }
    return name;
}

/* Axes along which ranks have a norm's statistics each its own: they cut what it is taken from, and do not share it. */
static unsigned find_apart(const cvy_executor *e, int layer)
{
    const cvy_plan_parallel *parallel = &e->plan->options.parallel;
    if (!parallel->distribution) {
        return 0;
    }
    unsigned cut = parallel->distribution->layer[layer].input_split & CVY_AXIS_SPACE;
    cut |= parallel->distribution->strategy.mesh.size[CVY_AXIS_SAMPLE] > 1 ? CVY_AXIS_BIT(CVY_AXIS_SAMPLE) : 0;
    return cut & ~parallel->norm_axes;
}

/* Elements a channel that a norm's running statistics get from an iteration. */
static int64_t count_norm(const cvy_executor *e, int layer)
{
    const cvy_schedule *s = &e->plan->schedule[find_schedule(e)];
    for (int i = 0; i < s->steps; i++) {
        const cvy_op *op = s->step[i].op >= 0 && s->step[i].layer == layer ? &s->op[s->step[i].op] : NULL;
        if (op && op->kind == CVY_OP_BATCH_NORM && op->pass == CVY_PASS_COMMIT) {
            return op->params.norm.count;
        }
    }
    return 1; /* they are not trained here, so all have the same */
}

static void describe_statistic(const cvy_executor *e, cvy_state_tensor *tensor)
{
    const cvy_parameter *parameter = &e->plan->model->parameter[tensor->parameter];
    cvy_role role = parameter->spec.role;
    if (role == CVY_ROLE_RUNNING_MEAN || role == CVY_ROLE_RUNNING_VARIANCE) {
        tensor->apart = find_apart(e, parameter->layer) != 0;
        tensor->count = count_norm(e, parameter->layer);
    }
}

/* What is held: where an update is shared out a piece, in the memory of the part that it has of the parameter. */
static void describe_part(const cvy_executor *e, int buffer, cvy_state_tensor *tensor)
{
    const cvy_schedule *s = &e->plan->schedule[find_schedule(e)];
    const cvy_buffer *b = &s->buffer[buffer];
    const cvy_buffer *part = &s->buffer[find_buffer(e, CVY_CONTENT_PARAMETER, -1, tensor->parameter)];
    tensor->data = cvy_executor_memory(e, find_schedule(e), buffer);
    tensor->tensor = part->tensor;
    tensor->holding = (cvy_holding){.global = part->global, .stretched = part->stretched, .stretches = part->stretches};
    memcpy(tensor->holding.local, part->local, sizeof part->local);
    if (!cvy_tensor_equal(&b->tensor, &part->tensor)) {
        tensor->holding.piece = b->local[0];
    }
}

static cvy_status list_tensor(cvy_executor *e, int kind, int parameter)
{
    const cvy_parameter *of = &e->plan->model->parameter[parameter];
    cvy_state_tensor *tensor = &e->state.tensor[e->state.count];
    int buffer = find_buffer(e, kinds[kind].content, kinds[kind].part, parameter);
    *tensor = (cvy_state_tensor){.name = of->name,
                                 .optimizer = kind > 0,
                                 .shape = of->spec.shape,
                                 .tensor = {.shape = of->spec.shape, .dtype = e->plan->options.dtype},
                                 .parameter = parameter};
    if (kind > 0) {
        tensor->name = e->state_names[e->state.count] = print_name(kinds[kind].prefix, of->name);
    }
    e->state.count++;
    if (buffer >= 0) {
        describe_part(e, buffer, tensor);
    }
    if (kinds[kind].content != CVY_CONTENT_MOMENT) {
        describe_statistic(e, tensor);
    }
    return tensor->name ? CVY_OK : CVY_ERR_MEMORY;
}

cvy_status cvy_executor_list_state(cvy_executor *e)
{
    const cvy_model *model = e->plan->model;
    int count = (int)(sizeof kinds / sizeof kinds[0]);
    size_t room = (size_t)count * (size_t)model->parameters + 1;
    e->state.tensor = cvy_calloc(room, sizeof *e->state.tensor);
    e->state_names = cvy_calloc(room, sizeof *e->state_names);
    if (!e->state.tensor || !e->state_names) {
        return CVY_ERR_MEMORY;
    }
    for (int kind = 0; kind < count; kind++) {
        for (int i = 0; i < model->parameters; i++) {
            CVY_TRY(is_listed(e, kind, &model->parameter[i]) ? list_tensor(e, kind, i) : CVY_OK);
        }
    }
    return CVY_OK;
}

cvy_status cvy_executor_share_state(cvy_executor *e, cvy_comm *comm)
{
    return cvy_comm_ranks(comm) > 1 ? cvy_sharing_create(comm, &e->state, &e->state.sharing) : CVY_OK;
}

void cvy_executor_release_state(cvy_executor *e)
{
    for (int i = 0; e->state_names && i < e->state.count; i++) {
        cvy_free(e->state_names[i]);
    }
    cvy_free(e->state_names);
    cvy_free(e->state.tensor);
    cvy_sharing_destroy(&e->state.sharing);
}

/* Two neighbours that are drawn together: uniform numbers of -1 to 1, or normal ones. */
typedef struct drawn {
    int64_t pair; /* -1: none yet */
    double value[2];
} drawn;

/* A parameter at its birth. */
typedef struct birth {
    const cvy_init *init;
    uint64_t seed;
    int parameter;
    drawn *last;
} birth;

/* Elements 2 pair and 2 pair + 1: two words a uniform number, four a pair of normal ones. */
static void draw_pair(const birth *b, int64_t pair)
{
    bool normal = b->init->kind == CVY_INIT_KAIMING || b->init->kind == CVY_INIT_NORMAL;
    cvy_words words = cvy_random_words(b->seed, CVY_PURPOSE_INITIALISATION, (uint32_t)b->parameter, 0,
                                       (uint32_t)((uint64_t)pair >> 32), (uint32_t)pair);
    b->last->pair = pair;
    if (normal) {
        cvy_random_normal_pair(words, b->last->value);
        return;
    }
    for (int lane = 0; lane < 2; lane++) {
        b->last->value[lane] = 2.0 * cvy_random_unit_double(words.v[2 * lane], words.v[2 * lane + 1]) - 1.0;
    }
}

/* Elements are mostly asked for in their order: the second of a pair is there already. */
static double draw_element(const void *context, int64_t i)
{
    const birth *b = context;
    if (b->init->kind == CVY_INIT_ZERO || b->init->kind == CVY_INIT_ONE) {
        return b->init->kind == CVY_INIT_ONE ? 1.0 : 0.0;
    }
    if (b->last->pair != i / 2) {
        draw_pair(b, i / 2);
    }
    double value = b->last->value[i % 2];
    switch (b->init->kind) {
    case CVY_INIT_XAVIER: return value * sqrt(6.0 / (b->init->fan_in + b->init->fan_out));
    case CVY_INIT_UNIFORM: return value / sqrt(b->init->fan_in);
    case CVY_INIT_KAIMING: return value * sqrt(2.0 / b->init->fan_out);
    default: return value * b->init->scale;
    }
}

cvy_status cvy_executor_initialise(cvy_executor *e, uint64_t seed)
{
    memset(e->persistent.base, 0, e->persistent.bytes);
    for (int i = 0; i < e->plan->model->parameters; i++) {
        drawn last = {.pair = -1};
        const birth b = {.init = &e->plan->model->parameter[i].spec.init, .seed = seed, .parameter = i, .last = &last};
        cvy_state_fill(&e->state.tensor[i], draw_element, &b); /* the parameters come first */
    }
    cvy_executor_start_averages(e);
    return CVY_OK;
}

void cvy_executor_start_averages(cvy_executor *e)
{
    cvy_schedule_kind kind = e->plan->options.training ? CVY_SCHEDULE_TRAIN : CVY_SCHEDULE_EVALUATE;
    for (int i = 0; i < e->plan->persistent_buffers; i++) {
        const cvy_buffer *b = &e->plan->schedule[kind].buffer[i];
        if (b->content == CVY_CONTENT_AVERAGE) { /* of one layout with its parameter */
            int parameter = cvy_executor_find(e, kind, CVY_CONTENT_PARAMETER, -1, b->parameter);
            memcpy(cvy_executor_memory(e, kind, i), cvy_executor_memory(e, kind, parameter), (size_t)b->bytes);
        }
    }
}
