/* The persistent tensors of an executor by their names, and how they are born. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "runtime/executor_internal.h"

static const char *moment_prefix(int part) { return part == 0 ? "momentum" : "moment2"; }

static char *print_moment_name(const char *parameter, int part)
{
    size_t bytes = strlen(parameter) + 16;
    char *name = cvy_calloc(bytes, 1);
    if (name) {
        snprintf(name, bytes, "%s.%s", moment_prefix(part), parameter);
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
        if (b->content != CVY_CONTENT_PARAMETER && b->content != CVY_CONTENT_MOMENT) {
            continue;
        }
        const cvy_parameter *parameter = &e->plan->model->parameter[b->parameter];
        const char *name = parameter->name;
        if (b->content == CVY_CONTENT_MOMENT) {
            name = e->state_names[e->state.count] = print_moment_name(name, b->part);
            if (!name) {
                return CVY_ERR_MEMORY;
            }
        }
        e->state.tensor[e->state.count++] = (cvy_state_tensor){.name = name,
                                                               .optimizer = b->content == CVY_CONTENT_MOMENT,
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
    return CVY_OK;
}
