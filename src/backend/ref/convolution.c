/*
 * Convolution as the definition says: y[n,f,o] = b[f] + sum over taps k and input channels i of the group of
 * x[n,c,o stride - before + k dilation] w[f,i,k]. The gradients turn the same sum around: each gathers the products
 * that its element takes part in, so every element is summed in double and written once.
 *
 * A transposed convolution is the same with x and y in each other's place: its forward pass is the gradient of data,
 * and the other way round.
 */
#include "backend/ref/ref.h"

/* The tensors of a pass by the part they play, whether as value or as gradient. */
typedef struct convolution {
    const cvy_window *window;
    const cvy_ref_tensor *x, *w, *b, *y;
    int64_t channels, filters; /* of one group */
    int64_t in[3], out[3];
} convolution;

static const cvy_ref_tensor *find_either(const cvy_ref_kernel *kernel, cvy_role value, cvy_role gradient)
{
    const cvy_ref_tensor *tensor = cvy_ref_find(kernel, value);
    return tensor ? tensor : cvy_ref_find(kernel, gradient);
}

static convolution get_parts(const cvy_ref_kernel *kernel)
{
    convolution parts = {
        .window = &kernel->base.op.params.window.window,
        .x = find_either(kernel, CVY_ROLE_X, CVY_ROLE_DX),
        .w = find_either(kernel, CVY_ROLE_W, CVY_ROLE_DW),
        .b = find_either(kernel, CVY_ROLE_B, CVY_ROLE_DB),
        .y = find_either(kernel, CVY_ROLE_Y, CVY_ROLE_DY),
    };
    if (kernel->base.op.kind == CVY_OP_TRANSPOSED_CONVOLUTION) {
        const cvy_ref_tensor *x = parts.x;
        parts.x = parts.y;
        parts.y = x;
    }
    parts.filters = parts.w->extent[CVY_REF_O];
    parts.channels = parts.w->extent[CVY_REF_I];
    for (int axis = 0; axis < 3; axis++) {
        parts.in[axis] = parts.x->extent[CVY_REF_D + axis];
        parts.out[axis] = parts.y->extent[CVY_REF_D + axis];
    }
    return parts;
}

static bool is_inside(const int64_t index[3], const int64_t extent[3])
{
    for (int axis = 0; axis < 3; axis++) {
        if (index[axis] < 0 || index[axis] >= extent[axis]) {
            return false;
        }
    }
    return true;
}

/* Sum over taps and the channels of filter f's group. */
static double sum_over_taps(const convolution *parts, int64_t n, int64_t f, const int64_t o[3])
{
    const cvy_ref_tensor *x = parts->x;
    const cvy_ref_tensor *w = parts->w;
    int64_t group = f / parts->filters;
    int64_t filter = w->at[CVY_REF_G][group] + w->at[CVY_REF_O][f % parts->filters];
    const int64_t *channel = x->at[CVY_REF_C] + group * parts->channels;
    int64_t k[3] = {0, 0, 0};
    double sum = 0.0;
    do {
        int64_t i[3];
        for (int axis = 0; axis < 3; axis++) {
            i[axis] = cvy_ref_tap(parts->window, axis, o[axis], k[axis]);
        }
        if (!is_inside(i, parts->in)) {
            continue;
        }
        int64_t x_at = x->at[CVY_REF_N][n] + cvy_ref_point(x, CVY_REF_D, i);
        int64_t w_at = filter + cvy_ref_point(w, CVY_REF_KD, k);
        for (int64_t c = 0; c < parts->channels; c++) {
            sum += cvy_ref_load(x, x_at + channel[c]) * cvy_ref_load(w, w_at + w->at[CVY_REF_I][c]);
        }
    } while (cvy_ref_next(k, parts->window->kernel));
    return sum;
}

cvy_status cvy_ref_convolution_forward(const cvy_ref_kernel *kernel, const cvy_run *run)
{
    convolution parts = get_parts(kernel);
    const cvy_ref_tensor *y = parts.y;
    (void)run;
    for (int64_t n = 0; n < y->extent[CVY_REF_N]; n++) {
        for (int64_t f = 0; f < y->extent[CVY_REF_C]; f++) {
            double bias = parts.b ? cvy_ref_load(parts.b, f) : 0.0;
            int64_t plane = cvy_ref_plane(y, n, f);
            int64_t o[3] = {0, 0, 0};
            do {
                double value = bias + sum_over_taps(&parts, n, f, o);
                bool rectified = kernel->base.op.relu && value < 0.0; /* NaN stays */
                cvy_ref_store(y, plane + cvy_ref_point(y, CVY_REF_D, o), rectified ? 0.0 : value);
            } while (cvy_ref_next(o, parts.out));
        }
    }
    return CVY_OK;
}

/* Sum over the positions that see input element i of channel c, and the filters of its group. */
static double sum_over_positions(const convolution *parts, int64_t n, int64_t c, const int64_t i[3])
{
    const cvy_ref_tensor *dy = parts->y;
    const cvy_ref_tensor *w = parts->w;
    int64_t group = c / parts->channels;
    int64_t channel = w->at[CVY_REF_G][group] + w->at[CVY_REF_I][c % parts->channels];
    const int64_t *filter = dy->at[CVY_REF_C] + group * parts->filters;
    int64_t k[3] = {0, 0, 0};
    double sum = 0.0;
    do {
        int64_t o[3];
        for (int axis = 0; axis < 3; axis++) {
            o[axis] = cvy_ref_position(parts->window, axis, i[axis], k[axis], parts->out[axis]);
        }
        if (!is_inside(o, parts->out)) {
            continue;
        }
        int64_t dy_at = dy->at[CVY_REF_N][n] + cvy_ref_point(dy, CVY_REF_D, o);
        int64_t w_at = channel + cvy_ref_point(w, CVY_REF_KD, k);
        for (int64_t f = 0; f < parts->filters; f++) {
            sum += cvy_ref_load(dy, dy_at + filter[f]) * cvy_ref_load(w, w_at + w->at[CVY_REF_O][f]);
        }
    } while (cvy_ref_next(k, parts->window->kernel));
    return sum;
}

cvy_status cvy_ref_convolution_data(const cvy_ref_kernel *kernel, const cvy_run *run)
{
    convolution parts = get_parts(kernel);
    const cvy_ref_tensor *dx = parts.x;
    (void)run;
    for (int64_t n = 0; n < dx->extent[CVY_REF_N]; n++) {
        for (int64_t c = 0; c < dx->extent[CVY_REF_C]; c++) {
            double bias = parts.b ? cvy_ref_load(parts.b, c) : 0.0;
            int64_t plane = cvy_ref_plane(dx, n, c);
            int64_t i[3] = {0, 0, 0};
            do {
                cvy_ref_store(dx, plane + cvy_ref_point(dx, CVY_REF_D, i), bias + sum_over_positions(&parts, n, c, i));
            } while (cvy_ref_next(i, parts.in));
        }
    }
    return CVY_OK;
}

/* Sum over one row of outputs, at n,f,od,oh, of dy times x at tap kw; @p x_row is where the row of inputs begins. */
static double sum_over_row(const convolution *parts, int64_t x_row, int64_t dy_row, int64_t kw)
{
    const int64_t *x_at = parts->x->at[CVY_REF_W];
    const int64_t *dy_at = parts->y->at[CVY_REF_W];
    double sum = 0.0;
    for (int64_t ow = 0; ow < parts->out[2]; ow++) {
        int64_t i = cvy_ref_tap(parts->window, 2, ow, kw);
        if (i >= 0 && i < parts->in[2]) {
            sum += cvy_ref_load(parts->x, x_row + x_at[i]) * cvy_ref_load(parts->y, dy_row + dy_at[ow]);
        }
    }
    return sum;
}

/* Sum over samples and positions of x at tap k times dy, for filter f and channel c. */
static double sum_over_samples(const convolution *parts, int64_t f, int64_t c, const int64_t k[3])
{
    const cvy_ref_tensor *x = parts->x;
    const cvy_ref_tensor *dy = parts->y;
    const int64_t rows[3] = {dy->extent[CVY_REF_N], parts->out[0], parts->out[1]};
    int64_t row[3] = {0, 0, 0}; /* n, od, oh */
    double sum = 0.0;
    do {
        int64_t d = cvy_ref_tap(parts->window, 0, row[1], k[0]);
        int64_t h = cvy_ref_tap(parts->window, 1, row[2], k[1]);
        if (d >= 0 && d < parts->in[0] && h >= 0 && h < parts->in[1]) {
            int64_t x_row = cvy_ref_plane(x, row[0], c) + x->at[CVY_REF_D][d] + x->at[CVY_REF_H][h];
            int64_t dy_row = cvy_ref_plane(dy, row[0], f) + dy->at[CVY_REF_D][row[1]] + dy->at[CVY_REF_H][row[2]];
            sum += sum_over_row(parts, x_row, dy_row, k[2]);
        }
    } while (cvy_ref_next(row, rows));
    return sum;
}

static double sum_filter(const cvy_ref_tensor *dy, int64_t f)
{
    const int64_t *out = &dy->extent[CVY_REF_D];
    double sum = 0.0;
    for (int64_t n = 0; n < dy->extent[CVY_REF_N]; n++) {
        int64_t plane = cvy_ref_plane(dy, n, f);
        int64_t o[3] = {0, 0, 0};
        do {
            sum += cvy_ref_load(dy, plane + cvy_ref_point(dy, CVY_REF_D, o));
        } while (cvy_ref_next(o, out));
    }
    return sum;
}

cvy_status cvy_ref_convolution_weights(const cvy_ref_kernel *kernel, const cvy_run *run)
{
    convolution parts = get_parts(kernel);
    const cvy_ref_tensor *dw = parts.w;
    const cvy_ref_tensor *dy = cvy_ref_find(kernel, CVY_ROLE_DY);
    (void)run;
    for (int64_t f = 0; f < parts.y->extent[CVY_REF_C]; f++) {
        int64_t group = f / parts.filters;
        int64_t filter = dw->at[CVY_REF_G][group] + dw->at[CVY_REF_O][f % parts.filters];
        for (int64_t i = 0; i < parts.channels; i++) {
            int64_t plane = filter + dw->at[CVY_REF_I][i];
            int64_t k[3] = {0, 0, 0};
            do {
                cvy_ref_store(dw, plane + cvy_ref_point(dw, CVY_REF_KD, k),
                              sum_over_samples(&parts, f, group * parts.channels + i, k));
            } while (cvy_ref_next(k, parts.window->kernel));
        }
    }
    for (int64_t f = 0; parts.b && f < dy->extent[CVY_REF_C]; f++) {
        cvy_ref_store(parts.b, f, sum_filter(dy, f));
    }
    return CVY_OK;
}
