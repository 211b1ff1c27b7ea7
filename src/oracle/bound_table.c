/*
 * The steps of a model on one rank, as a plan by rule has them: what is fused there is fused here. Recomputation adds
 * steps of its own phase; those are all that is taken of the plans that recompute, with what lives at their peaks.
 */
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "oracle/bound_internal.h"

enum { SAMPLES = 8 }; /* of the plans; their peaks are taken as those of every size */

static cvy_bound_like judge_parameter(const cvy_tensor *tensor)
{
    return tensor->shape.dims > 1 ? CVY_LIKE_WEIGHTS : CVY_LIKE_VECTOR;
}

static cvy_bound_like judge_role(const cvy_operand *operand)
{
    switch (operand->role) {
    case CVY_ROLE_X:
    case CVY_ROLE_DX:
    case CVY_ROLE_PROBABILITY: return CVY_LIKE_INPUT;
    case CVY_ROLE_X1:
    case CVY_ROLE_DX1: return (cvy_bound_like)(CVY_LIKE_INPUT + 1);
    case CVY_ROLE_X2: return (cvy_bound_like)(CVY_LIKE_INPUT + 2);
    case CVY_ROLE_X3: return (cvy_bound_like)(CVY_LIKE_INPUT + 3);
    case CVY_ROLE_Y:
    case CVY_ROLE_DY:
    case CVY_ROLE_DY1:
    case CVY_ROLE_WINDOW: return CVY_LIKE_OUTPUT;
    case CVY_ROLE_W:
    case CVY_ROLE_B:
    case CVY_ROLE_DW:
    case CVY_ROLE_DB:
    case CVY_ROLE_MOMENTUM:
    case CVY_ROLE_MOMENT2:
    case CVY_ROLE_AVERAGE:
    case CVY_ROLE_RUNNING_MEAN:
    case CVY_ROLE_RUNNING_VARIANCE: return judge_parameter(&operand->tensor);
    case CVY_ROLE_MEAN:
    case CVY_ROLE_VARIANCE: return operand->tensor.shape.dims > 1 ? CVY_LIKE_SAMPLES : CVY_LIKE_VECTOR;
    case CVY_ROLE_LABEL:
    case CVY_ROLE_OVERLAP: return CVY_LIKE_SAMPLES;
    default: return CVY_LIKE_WHOLE;
    }
}

/* Of a concat's gradient, whose slice it is. */
static cvy_bound_like judge_slice(const cvy_layer *layer, const cvy_buffer *dx)
{
    int input = 0;
    while (input + 1 < layer->inputs && layer->input[input] != dx->layer) {
        input++;
    }
    return (cvy_bound_like)(CVY_LIKE_INPUT + input);
}

/* Steps that no layer asked for work on an output or on a parameter; updates on parameters. */
static cvy_bound_like judge(const cvy_model *model, const cvy_schedule *s, const cvy_step *step, int i)
{
    const cvy_operand *operand = &s->op[step->op].operand[i];
    const cvy_buffer *buffer = &s->buffer[s->use[step->first_use + i].buffer];
    if (cvy_role_is_total(operand->role)) {
        return CVY_LIKE_WHOLE;
    }
    if (step->kind == CVY_STEP_UPDATE || (step->kind == CVY_STEP_LOCAL && buffer->parameter >= 0)) {
        return judge_parameter(&operand->tensor);
    }
    if (s->op[step->op].kind == CVY_OP_SLICE && operand->role == CVY_ROLE_DX) {
        return judge_slice(&model->layer[step->layer], buffer);
    }
    return step->kind == CVY_STEP_LOCAL ? CVY_LIKE_OUTPUT : judge_role(operand);
}

static cvy_status add_op(const cvy_model *model, const cvy_schedule *s, const cvy_step *step, cvy_bound_table *table,
                         int *index_out)
{
    cvy_bound_op entry = {.op = s->op[step->op], .hash = cvy_op_hash(&s->op[step->op])};
    for (int i = 0; i < entry.op.operands; i++) {
        entry.like[i] = (unsigned char)judge(model, s, step, i);
        entry.hash = cvy_hash_word(entry.hash, entry.like[i]);
    }
    for (int i = 0; i < table->ops; i++) {
        if (table->op[i].hash == entry.hash) {
            *index_out = i;
            return CVY_OK;
        }
    }
    CVY_TRY(cvy_array_reserve(&table->op, table->ops, &table->op_capacity, sizeof entry));
    table->op[table->ops] = entry;
    *index_out = table->ops++;
    return CVY_OK;
}

static bool find_set(const cvy_step *step, cvy_recompute recompute, cvy_bound_set *set_out)
{
    static const cvy_bound_set again[] = {[CVY_RECOMPUTE_CHEAP] = CVY_BOUND_CHEAP, [CVY_RECOMPUTE_ALL] = CVY_BOUND_ALL};
    if (step->op < 0 || step->layer < 0) {
        return false;
    }
    switch (step->phase) {
    case CVY_PHASE_FORWARD: *set_out = CVY_BOUND_FORWARD; return recompute == CVY_RECOMPUTE_NONE;
    case CVY_PHASE_BACKWARD: *set_out = CVY_BOUND_BACKWARD; return recompute == CVY_RECOMPUTE_NONE;
    case CVY_PHASE_UPDATE: *set_out = CVY_BOUND_UPDATE; return recompute == CVY_RECOMPUTE_NONE;
    case CVY_PHASE_RECOMPUTE:
        *set_out = recompute == CVY_RECOMPUTE_NONE ? CVY_BOUND_UPDATE : again[recompute];
        return recompute != CVY_RECOMPUTE_NONE;
    default: return false;
    }
}

static cvy_status add_pieces(const cvy_model *model, const cvy_schedule *s, cvy_recompute recompute,
                             cvy_bound_table *table)
{
    for (int i = 0; i < s->steps; i++) {
        cvy_bound_piece piece = {.layer = s->step[i].layer};
        if (find_set(&s->step[i], recompute, &piece.set)) {
            CVY_TRY(add_op(model, s, &s->step[i], table, &piece.op));
            CVY_TRY(cvy_array_reserve(&table->piece, table->pieces, &table->piece_capacity, sizeof piece));
            table->piece[table->pieces++] = piece;
        }
    }
    return CVY_OK;
}

/* Formats' padding is not held to be there: a slice may have none. */
static cvy_status add_held(const cvy_schedule *s, cvy_recompute recompute, cvy_bound_table *table)
{
    for (int i = 0; i < s->buffers; i++) {
        const cvy_buffer *b = &s->buffer[i];
        bool lives = b->persistent || (b->first_step <= s->memory.peak_step && s->memory.peak_step <= b->last_step);
        bool known = b->content == CVY_CONTENT_PARAMETER || b->content == CVY_CONTENT_GRADIENT ||
                     b->content == CVY_CONTENT_MOMENT || b->content == CVY_CONTENT_OUTPUT ||
                     b->content == CVY_CONTENT_OUTPUT_GRADIENT;
        if (b->alias_of >= 0 || !lives || !known) {
            continue;
        }
        double elements = (double)cvy_shape_elements(&b->tensor.shape);
        cvy_bound_held held = {.content = b->content, .layer = b->layer, .consumer = b->part,
                               .parameter = b->parameter,
                               .elements = b->parameter >= 0 ? elements : elements / SAMPLES};
        CVY_TRY(cvy_array_reserve(&table->held_buffer[recompute], table->held[recompute],
                                  &table->held_capacity[recompute], sizeof held));
        table->held_buffer[recompute][table->held[recompute]++] = held;
    }
    return CVY_OK;
}

static cvy_status add_plan(const cvy_model *model, const cvy_plan_options *options, cvy_bound_table *table)
{
    cvy_plan *plan = NULL;
    CVY_TRY(cvy_plan_create(model, options, &plan));
    const cvy_schedule *s = &plan->schedule[CVY_SCHEDULE_TRAIN];
    cvy_status status = add_pieces(model, s, options->recompute, table);
    status = status == CVY_OK ? add_held(s, options->recompute, table) : status;
    cvy_plan_destroy(&plan);
    return status;
}

cvy_status cvy_bound_table_fill(const cvy_model *model, const cvy_machine *machine, const cvy_optimizer *optimizer,
                                cvy_bound_table *table)
{
    bool gpu = machine->device.kind == CVY_DEVICE_GPU;
    cvy_plan_options plan = {.batch = SAMPLES, .dtype = CVY_F32, .training = true, .train_only = true,
                             .unfused = machine->execution.fuse == CVY_FUSING_NONE, .optimizer = *optimizer,
                             .layout = gpu ? CVY_LAYOUT_PLAIN : CVY_LAYOUT_AUTO,
                             .block = cvy_device_block(&machine->device)};
    table->kind = cvy_calloc((size_t)model->layers, sizeof *table->kind);
    if (!table->kind) {
        return CVY_ERR_MEMORY;
    }
    for (int i = 0; i < model->layers; i++) {
        const cvy_layer *layer = &model->layer[i];
        cvy_op op = {.kind = CVY_OP_KIND_COUNT};
        if (layer->kind->make_op) {
            layer->kind->make_op(layer, &model->layer[layer->input[0]].output, CVY_PASS_FORWARD, &op);
        }
        table->kind[i] = op.kind;
    }
    for (int i = 0; i < CVY_RECOMPUTE_COUNT; i++) {
        plan.recompute = (cvy_recompute)i;
        CVY_TRY(add_plan(model, &plan, table));
    }
    return CVY_OK;
}

void cvy_bound_table_clear(cvy_bound_table *table)
{
    cvy_free(table->op);
    cvy_free(table->piece);
    cvy_free(table->kind);
    for (int i = 0; i < CVY_RECOMPUTE_COUNT; i++) {
        cvy_free(table->held_buffer[i]);
    }
    *table = (cvy_bound_table){0};
}
