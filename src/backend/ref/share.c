/* A rank's share of a tensor: some indices of one dimension, or rows of space with more or fewer around them. */
#include "backend/ref/ref.h"

/* Dimension @p dim of a tensor as the loops see it. */
static int find_dimension(const cvy_ref_kernel *kernel, int dim)
{
    return dim < 2 ? dim : 5 - kernel->base.op.operand[0].tensor.shape.dims + dim;
}

/* Copy the element at @p from of x to @p to of y; an index below 0 or beyond x stands for 0. */
static void copy_element(const cvy_ref_tensor *x, const int64_t from[5], const cvy_ref_tensor *y, const int64_t to[5])
{
    int64_t x_at = 0, y_at = 0;
    bool inside = true;
    for (int i = 0; i < 5 && inside; i++) {
        inside = from[i] >= 0 && from[i] < x->extent[i];
        x_at += inside ? x->at[i][from[i]] : 0;
    }
    for (int i = 0; i < 5; i++) {
        y_at += y->at[i][to[i]];
    }
    cvy_ref_store(y, y_at, inside ? cvy_ref_load(x, x_at) : 0.0);
}

/* For every element of y, the one of x that lies @p shift further on; in dimension @p dim, at places[index]. */
static void copy_all(const cvy_ref_tensor *x, const cvy_ref_tensor *y, const int64_t shift[5], int dim,
                     const cvy_intervals *picked)
{
    int64_t elements = 1;
    for (int i = 0; i < 5; i++) {
        elements *= y->extent[i];
    }
    for (int64_t e = 0; e < elements; e++) {
        int64_t to[5], from[5], rest = e;
        for (int i = 4; i >= 0; i--) {
            to[i] = rest % y->extent[i];
            from[i] = to[i] + shift[i];
            rest /= y->extent[i];
        }
        for (int k = 0; picked && k < picked->count; k++) { /* the k-th interval begins behind those before it */
            int64_t length = picked->at[k].end - picked->at[k].begin;
            if (from[dim] < length) {
                from[dim] += picked->at[k].begin;
                break;
            }
            from[dim] -= length;
        }
        copy_element(x, from, y, to);
    }
}

cvy_status cvy_ref_pick(const cvy_ref_kernel *kernel, const cvy_run *run)
{
    const cvy_op_params_pick *pick = &kernel->base.op.params.pick;
    (void)run;
    copy_all(cvy_ref_find(kernel, CVY_ROLE_X), cvy_ref_find(kernel, CVY_ROLE_Y), (int64_t[5]){0},
             find_dimension(kernel, pick->dim), &pick->intervals);
    return CVY_OK;
}

cvy_status cvy_ref_frame(const cvy_ref_kernel *kernel, const cvy_run *run)
{
    const int64_t *first = kernel->base.op.params.frame.first;
    (void)run;
    copy_all(cvy_ref_find(kernel, CVY_ROLE_X), cvy_ref_find(kernel, CVY_ROLE_Y),
             (int64_t[5]){0, 0, first[0], first[1], first[2]}, 0, NULL);
    return CVY_OK;
}
