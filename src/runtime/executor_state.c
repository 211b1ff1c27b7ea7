/* The persistent tensors of an executor by their names, and how they are born. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "runtime/executor_internal.h"

/* What stands before a parameter's name; NULL where the buffer is no tensor of the state. */
static const char *find_prefix(const cvy_buffer *b)
{
    switch (b->content) {
    case CVY_CONTENT_PARAMETER: return "";
    case CVY_CONTENT_MOMENT: return b->part == 0 ? "momentum." : "moment2.";
    case CVY_CONTENT_AVERAGE: return "ema.";
    default: return NULL;
    }
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

cvy_status cvy_executor_list_state(cvy_executor *e)
{
    cvy_schedule_kind kind = e->plan->options.training ? CVY_SCHEDULE_TRAIN : CVY_SCHEDULE_EVALUATE;
    const cvy_schedule *s = &e->plan->schedule[kind];
    size_t room = (size_t)e->plan->persistent_buffers + 1;
    e->state.tensor = cvy_calloc(room, sizeof *e->state.tensor);
    e->state_names = cvy_calloc(room, sizeof *e->state_names);
    if (!e->state.tensor || !e->state_names) {
        return CVY_ERR_MEMORY;
    }
    for (int i = 0; i < e->plan->persistent_buffers; i++) {
        const cvy_buffer *b = &s->buffer[i];
        const char *prefix = find_prefix(b);
        if (!prefix) {
            continue;
        }
        const cvy_parameter *parameter = &e->plan->model->parameter[b->parameter];
        const char *name = parameter->name;
        if (*prefix) {
            name = e->state_names[e->state.count] = print_name(prefix, name);
            if (!name) {
                return CVY_ERR_MEMORY;
            }
        }
        e->state.tensor[e->state.count++] = (cvy_state_tensor){.name = name,
                                                               .optimizer = *prefix != '\0',
                                                               .shape = parameter->spec.shape,
                                                               .tensor = b->tensor,
                                                               .data = cvy_executor_memory(e, kind, i)};
    }
    return CVY_OK;
}

void cvy_executor_release_state(cvy_executor *e)
{
    for (int i = 0; e->state_names && i < e->state.count; i++) {
        cvy_free(e->state_names[i]);
    }
    cvy_free(e->state_names);
    cvy_free(e->state.tensor);
}

/* A parameter at its birth. */
typedef struct birth {
    const cvy_init *init;
    uint64_t seed;
    int parameter;
} birth;

/* Element @p i: two words a uniform number, four a pair of normal ones. */
static double draw_element(const void *context, int64_t i)
{
    const birth *b = context;
    int64_t pair = i / 2;
    cvy_words words = cvy_random_words(b->seed, CVY_PURPOSE_INITIALISATION, (uint32_t)b->parameter, 0,
                                       (uint32_t)((uint64_t)pair >> 32), (uint32_t)pair);
    int lane = (int)(i % 2);
    double uniform = 2.0 * cvy_random_unit_double(words.v[2 * lane], words.v[2 * lane + 1]) - 1.0;
    double normal[2];
    switch (b->init->kind) {
    case CVY_INIT_ZERO: return 0.0;
    case CVY_INIT_ONE: return 1.0;
    case CVY_INIT_XAVIER: return uniform * sqrt(6.0 / (b->init->fan_in + b->init->fan_out));
    case CVY_INIT_UNIFORM: return uniform / sqrt(b->init->fan_in);
    case CVY_INIT_KAIMING:
    case CVY_INIT_NORMAL:
        cvy_random_normal_pair(words, normal);
        return normal[lane] * (b->init->kind == CVY_INIT_NORMAL ? b->init->scale : sqrt(2.0 / b->init->fan_out));
    }
    return 0.0;
}

cvy_status cvy_executor_initialise(cvy_executor *e, uint64_t seed)
{
    memset(e->persistent.base, 0, e->persistent.bytes);
    for (int i = 0; i < e->plan->model->parameters; i++) {
        const cvy_state_tensor *tensor = cvy_state_find(&e->state, e->plan->model->parameter[i].name);
        const birth b = {.init = &e->plan->model->parameter[i].spec.init, .seed = seed, .parameter = i};
        cvy_tensor_fill(&tensor->tensor, tensor->data, draw_element, &b);
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
