/*
 * Outputs on inputs' memory. A step may write its output over an input that nobody reads after it, where its op allows
 * that: all of its memory, from where the root of its aliases begins. A root lives as long as any of them.
 */
#include "base/memory.h"
#include "plan/builder.h"

/* Last step that uses each buffer or anything that lies on its memory, at the root; -1 where unused. */
static void find_last_uses(const cvy_schedule *s, int *last)
{
    for (int i = 0; i < s->buffers; i++) {
        last[i] = -1;
    }
    for (int i = 0; i < s->steps; i++) {
        for (int k = 0; k < s->step[i].uses; k++) {
            last[cvy_schedule_root(s, s->use[s->step[i].first_use + k].buffer)] = i;
        }
    }
}

/* Whether a step's output may take over the memory of one of its inputs. */
static bool may_take_over(const cvy_schedule *s, int step, int input, int output, const int *last)
{
    const cvy_buffer *x = &s->buffer[s->use[input].buffer];
    const cvy_buffer *y = &s->buffer[s->use[output].buffer];
    int root = cvy_schedule_root(s, s->use[input].buffer);
    return y->alias_of < 0 && !y->persistent && !s->buffer[root].persistent && last[root] == step &&
           s->buffer[root].bytes == y->bytes && x->bytes == y->bytes && cvy_tensor_same_layout(&x->tensor, &y->tensor);
}

static int find_output(const cvy_op *op)
{
    for (int i = 0; i < op->operands; i++) {
        if (op->operand[i].access == CVY_ACCESS_WRITE) {
            return i;
        }
    }
    return -1;
}

cvy_status cvy_schedule_place_in_place(cvy_schedule *s)
{
    int *last = cvy_calloc((size_t)s->buffers + 1, sizeof *last);
    if (!last) {
        return CVY_ERR_MEMORY;
    }
    find_last_uses(s, last);
    for (int i = 0; i < s->steps; i++) {
        const cvy_step *step = &s->step[i];
        const cvy_op *op = step->op >= 0 ? &s->op[step->op] : NULL;
        int output = op ? find_output(op) : -1;
        for (int k = 0; output >= 0 && k < op->operands; k++) {
            int input = step->first_use + k;
            if (k != output && cvy_op_in_place(op, op->operand[k].role) &&
                may_take_over(s, i, input, step->first_use + output, last)) {
                int y = s->use[step->first_use + output].buffer;
                int root = cvy_schedule_root(s, s->use[input].buffer);
                s->buffer[y].alias_of = root; /* at once: sums of thousands of micro-batches are one chain */
                s->use[step->first_use + output].in_place = true;
                last[root] = last[y];
                break;
            }
        }
    }
    cvy_free(last);
    return CVY_OK;
}
