/*
 * Ops without neighbours: relu, add, dropout. All walk rows of w; each element is read before its place is written, so
 * the output may lie on an input.
 *
 * A dropout mask belongs to the sample's place in the global batch and to the logical element, never to memory: it is
 * the same in every format, and drawn anew in the backward pass.
 */
#include "backend/ref/ref.h"

#include "base/random.h"

/* What an element becomes, from one input or two. */
static double rectify(double x, double unused)
{
    (void)unused;
    return x < 0.0 ? 0.0 : x; /* NaN is not below 0 */
}

static double rectify_gradient(double y, double dy) { return y > 0.0 ? dy : 0.0; }

static double sum_pair(double x, double x1) { return x + x1; }

/* Map the elements of a and b (may be NULL) to those of y. */
static void map_elements(const cvy_ref_tensor *a, const cvy_ref_tensor *b, const cvy_ref_tensor *y,
                         double (*map)(double, double))
{
    for (int64_t row = 0; row < cvy_ref_rows(y); row++) {
        int64_t a_at = cvy_ref_row(a, row);
        int64_t b_at = b ? cvy_ref_row(b, row) : 0;
        int64_t y_at = cvy_ref_row(y, row);
        for (int64_t w = 0; w < y->extent[CVY_REF_W]; w++) {
            double first = cvy_ref_load(a, a_at + a->at[CVY_REF_W][w]);
            double second = b ? cvy_ref_load(b, b_at + b->at[CVY_REF_W][w]) : 0.0;
            cvy_ref_store(y, y_at + y->at[CVY_REF_W][w], map(first, second));
        }
    }
}

cvy_status cvy_ref_relu_forward(const cvy_ref_kernel *kernel, const cvy_run *run)
{
    (void)run;
    map_elements(cvy_ref_find(kernel, CVY_ROLE_X), NULL, cvy_ref_find(kernel, CVY_ROLE_Y), rectify);
    return CVY_OK;
}

cvy_status cvy_ref_relu_data(const cvy_ref_kernel *kernel, const cvy_run *run)
{
    (void)run;
    map_elements(cvy_ref_find(kernel, CVY_ROLE_Y), cvy_ref_find(kernel, CVY_ROLE_DY), cvy_ref_find(kernel, CVY_ROLE_DX),
                 rectify_gradient);
    return CVY_OK;
}

cvy_status cvy_ref_add_forward(const cvy_ref_kernel *kernel, const cvy_run *run)
{
    (void)run;
    map_elements(cvy_ref_find(kernel, CVY_ROLE_X), cvy_ref_find(kernel, CVY_ROLE_X1), cvy_ref_find(kernel, CVY_ROLE_Y),
                 sum_pair);
    return CVY_OK;
}

/* What element e of local sample n is multiplied with: 0 or 1 / (1 - probability). */
static double draw_factor(const cvy_op_params_dropout *params, const cvy_run *run, int64_t n, int64_t e)
{
    cvy_words words = cvy_random_words(run->seed, CVY_PURPOSE_DROPOUT, (uint32_t)params->layer, (uint32_t)run->step,
                                       (uint32_t)(run->sample_first + n), (uint32_t)(e / 4));
    bool dropped = (double)cvy_random_unit(words.v[e % 4]) < params->probability;
    return dropped ? 0.0 : 1.0 / (1.0 - params->probability);
}

static cvy_status drop(const cvy_ref_kernel *kernel, const cvy_run *run, cvy_role from, cvy_role to)
{
    const cvy_ref_tensor *x = cvy_ref_find(kernel, from);
    const cvy_ref_tensor *y = cvy_ref_find(kernel, to);
    int64_t rows = cvy_ref_rows(x) / x->extent[CVY_REF_N]; /* of a sample */
    int64_t width = x->extent[CVY_REF_W];
    for (int64_t row = 0; row < cvy_ref_rows(x); row++) {
        int64_t x_at = cvy_ref_row(x, row);
        int64_t y_at = cvy_ref_row(y, row);
        for (int64_t w = 0; w < width; w++) {
            double factor = draw_factor(&kernel->base.op.params.dropout, run, row / rows, row % rows * width + w);
            cvy_ref_store(y, y_at + y->at[CVY_REF_W][w], factor * cvy_ref_load(x, x_at + x->at[CVY_REF_W][w]));
        }
    }
    return CVY_OK;
}

cvy_status cvy_ref_dropout_forward(const cvy_ref_kernel *kernel, const cvy_run *run)
{
    return drop(kernel, run, CVY_ROLE_X, CVY_ROLE_Y);
}

cvy_status cvy_ref_dropout_data(const cvy_ref_kernel *kernel, const cvy_run *run)
{
    return drop(kernel, run, CVY_ROLE_DY, CVY_ROLE_DX);
}
