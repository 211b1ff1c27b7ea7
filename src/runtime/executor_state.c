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

/* Element @p i of a parameter at its birth: two words a uniform number, four a pair of normal ones. */
static double draw_element(const cvy_init *init, uint64_t seed, int parameter, int64_t i)
{
    uint32_t block = (uint32_t)(i / 2);
    cvy_words words = cvy_random_words(seed, CVY_PURPOSE_INITIALISATION, (uint32_t)parameter, 0,
                                       (uint32_t)((uint64_t)(i / 2) >> 32), block);
    int lane = (int)(i % 2);
    double uniform = 2.0 * cvy_random_unit_double(words.v[2 * lane], words.v[2 * lane + 1]) - 1.0;
    double normal[2];
    cvy_random_normal_pair(words, normal);
    switch (init->kind) {
    case CVY_INIT_ZERO: return 0.0;
    case CVY_INIT_ONE: return 1.0;
    case CVY_INIT_KAIMING: return normal[lane] * sqrt(2.0 / init->fan_out);
    case CVY_INIT_XAVIER: return uniform * sqrt(6.0 / (init->fan_in + init->fan_out));
    case CVY_INIT_UNIFORM: return uniform / sqrt(init->fan_in);
    case CVY_INIT_NORMAL: return normal[lane] * init->scale;
    }
    return 0.0;
}

static cvy_status initialise_parameter(const cvy_model *model, int parameter, const cvy_state_tensor *tensor,
                                       uint64_t seed)
{
    const cvy_parameter_spec *spec = &model->parameter[parameter].spec;
    cvy_tensor logical = {.shape = spec->shape, .dtype = CVY_F64, .format = CVY_FORMAT_PLAIN};
    int64_t elements = cvy_shape_elements(&spec->shape);
    double *value = cvy_calloc((size_t)elements, sizeof *value);
    if (!value) {
        return CVY_ERR_MEMORY;
    }
    for (int64_t i = 0; i < elements; i++) {
        value[i] = draw_element(&spec->init, seed, parameter, i);
    }
    cvy_status status = cvy_tensor_copy(&logical, value, &tensor->tensor, tensor->data);
    cvy_free(value);
    return status;
}

cvy_status cvy_executor_initialise(cvy_executor *e, uint64_t seed)
{
    memset(e->persistent.base, 0, e->persistent.bytes);
    for (int i = 0; i < e->plan->model->parameters; i++) {
        const cvy_state_tensor *tensor = cvy_state_find(&e->state, e->plan->model->parameter[i].name);
        CVY_TRY(initialise_parameter(e->plan->model, i, tensor, seed));
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
