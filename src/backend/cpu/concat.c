/*
 * Concat and slice: channels moved from one tensor into another, over every activation format and between any two.
 * Lanes beyond the last channel become zero.
 */
#include "backend/cpu/sides.h"
#include "backend/cpu/vector.h"

/* What lies at @p relu as @p to does is of a relu: its 0 takes no gradient. */
CVY_VECTOR static void copy_masked(const float *from, int64_t from_stride, const float *relu, float *to,
                                   int64_t to_stride, int64_t channels, int64_t positions)
{
    bool dense = channels == from_stride && channels == to_stride;
    int64_t rows = dense ? 1 : positions, width = dense ? channels * positions : channels;
    for (int64_t i = 0; i < rows; i++) {
#pragma omp simd
        for (int64_t c = 0; c < width; c++) {
            to[i * to_stride + c] = relu[i * to_stride + c] > 0 ? from[i * from_stride + c] : 0;
        }
    }
}

/* Take all channels of @p to out of another side, where @p relu, which lies as @p to, is above 0. */
static void slice_masked(const cvy_side *from, int64_t first, const cvy_side *relu, const cvy_side *to,
                         const cvy_region *where)
{
    for (int64_t done = 0, run; done < to->channels; done += run) {
        run = cvy_side_run(to, done, cvy_side_run(from, first + done, to->channels - done));
        copy_masked(cvy_side_at(from, where, first + done), from->position_stride, cvy_side_at(relu, where, done),
                    cvy_side_at(to, where, done), to->position_stride, run, where->last - where->first);
    }
}

static cvy_status run_concat(const cvy_cpu_kernel *kernel, void *const *operand, void *scratch, const cvy_run *run)
{
    const cvy_op *op = &kernel->base.op;
    int inputs = op->operands - 1;
    const cvy_side_cut c = cvy_side_cut_positions(&op->operand[inputs].tensor);
    cvy_side part[CVY_MAX_OPERANDS];
    (void)scratch;
    (void)run;
    for (int i = 0; i <= inputs; i++) {
        part[i] = cvy_side_view(&op->operand[i].tensor, operand[i]);
    }
    bool large = cvy_tensor_elements(&op->operand[inputs].tensor) > CVY_CPU_SERIAL_ELEMENTS;
#pragma omp parallel for schedule(static) if (large)
    for (int64_t index = 0; index < c.samples * c.pieces; index++) {
        cvy_region where = cvy_side_region(&c, index);
        int64_t target = 0;
        for (int i = 0; i < inputs; i++) {
            cvy_sides_copy(&part[i], 0, &part[inputs], target, part[i].channels, &where);
            target += part[i].channels;
        }
        cvy_side_clear_padding(&part[inputs], &where);
    }
    return CVY_OK;
}

static cvy_status run_slice(const cvy_cpu_kernel *kernel, void *const *operand, void *scratch, const cvy_run *run)
{
    const cvy_op *op = &kernel->base.op;
    int last = op->operands - 1;
    const cvy_side_cut c = cvy_side_cut_positions(&op->operand[last].tensor);
    const cvy_side dy = cvy_side_view(&op->operand[0].tensor, operand[0]);
    const cvy_side dx = cvy_side_view(&op->operand[last].tensor, operand[last]);
    const cvy_side x = cvy_side_view(&op->operand[last].tensor, operand[1]); /* of a relu */
    int64_t first = op->params.slice.first;
    (void)scratch;
    (void)run;
    bool large = cvy_tensor_elements(&op->operand[last].tensor) > CVY_CPU_SERIAL_ELEMENTS;
#pragma omp parallel for schedule(static) if (large)
    for (int64_t index = 0; index < c.samples * c.pieces; index++) {
        cvy_region where = cvy_side_region(&c, index);
        if (op->relu) {
            slice_masked(&dy, first, &x, &dx, &where);
        } else {
            cvy_sides_copy(&dy, first, &dx, 0, dx.channels, &where);
        }
        cvy_side_clear_padding(&dx, &where);
    }
    return CVY_OK;
}

static cvy_cpu_run find(const cvy_op *op)
{
    for (int i = 0; i < op->operands; i++) {
        if (!cvy_columns_fit(&op->operand[i].tensor)) {
            return NULL;
        }
    }
    if (op->relu && !cvy_tensor_same_layout(&op->operand[1].tensor, &op->operand[2].tensor)) {
        return NULL;
    }
    return op->kind == CVY_OP_CONCAT ? run_concat : run_slice;
}

const cvy_cpu_family cvy_cpu_concat = {.find = find};
