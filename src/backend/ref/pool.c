/*
 * Pooling. The maximum of a window is its first largest element in kd,kh,kw order, and the first NaN beats all, so that
 * a diverged activation is not hidden. Gradients are gathered by input element: the positions that see it, in double.
 */
#include "backend/ref/ref.h"

#include <math.h>

static void get_space(const cvy_ref_tensor *tensor, int64_t space_out[3])
{
    for (int axis = 0; axis < 3; axis++) {
        space_out[axis] = tensor->extent[CVY_REF_D + axis];
    }
}

/* Input element under tap k of position o; false in the padding. */
static bool find_tap(const cvy_window *window, const int64_t o[3], const int64_t k[3], const int64_t in[3],
                     int64_t i_out[3])
{
    bool inside = true;
    for (int axis = 0; axis < 3; axis++) {
        i_out[axis] = cvy_ref_tap(window, axis, o[axis], k[axis]);
        inside = inside && i_out[axis] >= 0 && i_out[axis] < in[axis];
    }
    return inside;
}

/* Position whose tap k is input element i; false where none is. */
static bool find_position(const cvy_window *window, const int64_t i[3], const int64_t k[3], const int64_t out[3],
                          int64_t o_out[3])
{
    bool seen = true;
    for (int axis = 0; axis < 3; axis++) {
        o_out[axis] = cvy_ref_position(window, axis, i[axis], k[axis], out[axis]);
        seen = seen && o_out[axis] >= 0;
    }
    return seen;
}

/* Index of a tap in kd,kh,kw order. */
static int64_t tap_index(const cvy_window *window, const int64_t k[3])
{
    return (k[0] * window->kernel[1] + k[1]) * window->kernel[2] + k[2];
}

static int64_t load_winner(const cvy_ref_tensor *window, int64_t offset)
{
    return window->dtype == CVY_U8 ? ((const uint8_t *)window->data)[offset] : ((const int32_t *)window->data)[offset];
}

static void store_winner(const cvy_ref_tensor *window, int64_t offset, int64_t winner)
{
    if (window->dtype == CVY_U8) {
        ((uint8_t *)window->data)[offset] = (uint8_t)winner;
    } else {
        ((int32_t *)window->data)[offset] = (int32_t)winner;
    }
}

/* The largest element of a window of the plane at @p plane, and its tap. */
static double find_largest(const cvy_window *window, const cvy_ref_tensor *x, int64_t plane, const int64_t o[3],
                           int64_t *winner_out)
{
    int64_t in[3];
    int64_t k[3] = {0, 0, 0};
    double largest = -INFINITY;
    get_space(x, in);
    *winner_out = -1;
    do {
        int64_t i[3];
        if (!find_tap(window, o, k, in, i)) {
            continue;
        }
        double value = cvy_ref_load(x, plane + cvy_ref_point(x, CVY_REF_D, i));
        if (*winner_out < 0 || value > largest || (isnan(value) && !isnan(largest))) {
            largest = value;
            *winner_out = tap_index(window, k);
        }
    } while (cvy_ref_next(k, window->kernel));
    return largest;
}

cvy_status cvy_ref_pool_max_forward(const cvy_ref_kernel *kernel, const cvy_run *run)
{
    const cvy_window *window = &kernel->base.op.params.window.window;
    const cvy_ref_tensor *x = cvy_ref_find(kernel, CVY_ROLE_X);
    const cvy_ref_tensor *y = cvy_ref_find(kernel, CVY_ROLE_Y);
    const cvy_ref_tensor *winners = cvy_ref_find(kernel, CVY_ROLE_WINDOW); /* NULL in inference */
    int64_t out[3];
    get_space(y, out);
    (void)run;
    for (int64_t n = 0; n < y->extent[CVY_REF_N]; n++) {
        for (int64_t c = 0; c < y->extent[CVY_REF_C]; c++) {
            int64_t o[3] = {0, 0, 0};
            do {
                int64_t winner;
                double largest = find_largest(window, x, cvy_ref_plane(x, n, c), o, &winner);
                largest = kernel->base.op.relu && largest < 0.0 ? 0.0 : largest; /* NaN stays */
                cvy_ref_store(y, cvy_ref_plane(y, n, c) + cvy_ref_point(y, CVY_REF_D, o), largest);
                if (winners) {
                    store_winner(winners, cvy_ref_plane(winners, n, c) + cvy_ref_point(winners, CVY_REF_D, o), winner);
                }
            } while (cvy_ref_next(o, out));
        }
    }
    return CVY_OK;
}

/* What tells the gradient of max pooling where it goes; y and winners lie as dy. */
typedef struct winnings {
    const cvy_ref_tensor *dy, *y, *winners; /* y NULL: no relu */
} winnings;

/* Sum of dy over the positions that input element i has won. */
static double sum_won(const cvy_window *window, const winnings *from, int64_t plane, const int64_t i[3])
{
    int64_t out[3];
    int64_t k[3] = {0, 0, 0};
    double sum = 0.0;
    get_space(from->dy, out);
    do {
        int64_t o[3];
        if (find_position(window, i, k, out, o)) {
            int64_t at = plane + cvy_ref_point(from->dy, CVY_REF_D, o);
            bool won = load_winner(from->winners, at) == tap_index(window, k) && cvy_ref_lets_through(from->y, at);
            sum += won ? cvy_ref_load(from->dy, at) : 0.0;
        }
    } while (cvy_ref_next(k, window->kernel));
    return sum;
}

cvy_status cvy_ref_pool_max_data(const cvy_ref_kernel *kernel, const cvy_run *run)
{
    const cvy_window *window = &kernel->base.op.params.window.window;
    const winnings from = {cvy_ref_find(kernel, CVY_ROLE_DY), cvy_ref_find(kernel, CVY_ROLE_Y),
                           cvy_ref_find(kernel, CVY_ROLE_WINDOW)};
    const cvy_ref_tensor *dx = cvy_ref_find(kernel, CVY_ROLE_DX);
    int64_t in[3];
    get_space(dx, in);
    (void)run;
    for (int64_t n = 0; n < dx->extent[CVY_REF_N]; n++) {
        for (int64_t c = 0; c < dx->extent[CVY_REF_C]; c++) {
            int64_t i[3] = {0, 0, 0};
            do {
                cvy_ref_store(dx, cvy_ref_plane(dx, n, c) + cvy_ref_point(dx, CVY_REF_D, i),
                              sum_won(window, &from, cvy_ref_plane(from.dy, n, c), i));
            } while (cvy_ref_next(i, in));
        }
    }
    return CVY_OK;
}

/* Where x is one, of a relu: whether it lets through what comes to the element at n,c and i. */
static bool passes_relu(const cvy_ref_tensor *x, int64_t n, int64_t c, const int64_t i[3])
{
    return !x || cvy_ref_lets_through(x, cvy_ref_plane(x, n, c) + cvy_ref_point(x, CVY_REF_D, i));
}

/* What the mean at position o divides by: the whole window, or its taps inside the input. */
static double count_positions(const cvy_op_params_window *params, const int64_t o[3], const int64_t in[3])
{
    const cvy_window *window = &params->window;
    int64_t count = 1;
    for (int axis = 0; axis < 3; axis++) {
        int64_t inside = 0;
        for (int64_t k = 0; k < window->kernel[axis]; k++) {
            int64_t i = cvy_ref_tap(window, axis, o[axis], k);
            inside += params->count_padding || (i >= 0 && i < in[axis]);
        }
        count *= inside;
    }
    return (double)count;
}

static double sum_window(const cvy_window *window, const cvy_ref_tensor *x, int64_t plane, const int64_t o[3])
{
    int64_t in[3];
    int64_t k[3] = {0, 0, 0};
    double sum = 0.0;
    get_space(x, in);
    do {
        int64_t i[3];
        if (find_tap(window, o, k, in, i)) {
            sum += cvy_ref_load(x, plane + cvy_ref_point(x, CVY_REF_D, i));
        }
    } while (cvy_ref_next(k, window->kernel));
    return sum;
}

cvy_status cvy_ref_pool_average_forward(const cvy_ref_kernel *kernel, const cvy_run *run)
{
    const cvy_op_params_window *params = &kernel->base.op.params.window;
    const cvy_ref_tensor *x = cvy_ref_find(kernel, CVY_ROLE_X);
    const cvy_ref_tensor *y = cvy_ref_find(kernel, CVY_ROLE_Y);
    int64_t in[3], out[3];
    get_space(x, in);
    get_space(y, out);
    (void)run;
    for (int64_t n = 0; n < y->extent[CVY_REF_N]; n++) {
        for (int64_t c = 0; c < y->extent[CVY_REF_C]; c++) {
            int64_t o[3] = {0, 0, 0};
            do {
                double sum = sum_window(&params->window, x, cvy_ref_plane(x, n, c), o);
                cvy_ref_store(y, cvy_ref_plane(y, n, c) + cvy_ref_point(y, CVY_REF_D, o),
                              sum / count_positions(params, o, in));
            } while (cvy_ref_next(o, out));
        }
    }
    return CVY_OK;
}

/* Sum of dy, each over its count, of the positions that see input element i. */
static double sum_shares(const cvy_op_params_window *params, const cvy_ref_tensor *dy, int64_t plane,
                         const int64_t i[3], const int64_t in[3])
{
    int64_t out[3];
    int64_t k[3] = {0, 0, 0};
    double sum = 0.0;
    get_space(dy, out);
    do {
        int64_t o[3];
        if (find_position(&params->window, i, k, out, o)) {
            sum += cvy_ref_load(dy, plane + cvy_ref_point(dy, CVY_REF_D, o)) / count_positions(params, o, in);
        }
    } while (cvy_ref_next(k, params->window.kernel));
    return sum;
}

cvy_status cvy_ref_pool_average_data(const cvy_ref_kernel *kernel, const cvy_run *run)
{
    const cvy_op_params_window *params = &kernel->base.op.params.window;
    const cvy_ref_tensor *dy = cvy_ref_find(kernel, CVY_ROLE_DY);
    const cvy_ref_tensor *x = cvy_ref_find(kernel, CVY_ROLE_X); /* NULL: no relu */
    const cvy_ref_tensor *dx = cvy_ref_find(kernel, CVY_ROLE_DX);
    int64_t in[3];
    get_space(dx, in);
    (void)run;
    for (int64_t n = 0; n < dx->extent[CVY_REF_N]; n++) {
        for (int64_t c = 0; c < dx->extent[CVY_REF_C]; c++) {
            int64_t i[3] = {0, 0, 0};
            do {
                double sum = sum_shares(params, dy, cvy_ref_plane(dy, n, c), i, in);
                cvy_ref_store(dx, cvy_ref_plane(dx, n, c) + cvy_ref_point(dx, CVY_REF_D, i),
                              passes_relu(x, n, c, i) ? sum : 0.0);
            } while (cvy_ref_next(i, in));
        }
    }
    return CVY_OK;
}

static double divide_by(const cvy_ref_kernel *kernel, const int64_t in[3])
{
    int64_t said = kernel->base.op.params.global.positions;
    return (double)(said ? said : in[0] * in[1] * in[2]);
}

cvy_status cvy_ref_pool_global_forward(const cvy_ref_kernel *kernel, const cvy_run *run)
{
    const cvy_ref_tensor *x = cvy_ref_find(kernel, CVY_ROLE_X);
    const cvy_ref_tensor *y = cvy_ref_find(kernel, CVY_ROLE_Y);
    int64_t in[3];
    get_space(x, in);
    (void)run;
    for (int64_t n = 0; n < x->extent[CVY_REF_N]; n++) {
        for (int64_t c = 0; c < x->extent[CVY_REF_C]; c++) {
            int64_t plane = cvy_ref_plane(x, n, c);
            int64_t i[3] = {0, 0, 0};
            double sum = 0.0;
            do {
                sum += cvy_ref_load(x, plane + cvy_ref_point(x, CVY_REF_D, i));
            } while (cvy_ref_next(i, in));
            cvy_ref_store(y, cvy_ref_plane(y, n, c), sum / divide_by(kernel, in));
        }
    }
    return CVY_OK;
}

cvy_status cvy_ref_pool_global_data(const cvy_ref_kernel *kernel, const cvy_run *run)
{
    const cvy_ref_tensor *dy = cvy_ref_find(kernel, CVY_ROLE_DY);
    const cvy_ref_tensor *x = cvy_ref_find(kernel, CVY_ROLE_X); /* NULL: no relu */
    const cvy_ref_tensor *dx = cvy_ref_find(kernel, CVY_ROLE_DX);
    int64_t in[3];
    get_space(dx, in);
    (void)run;
    for (int64_t n = 0; n < dx->extent[CVY_REF_N]; n++) {
        for (int64_t c = 0; c < dx->extent[CVY_REF_C]; c++) {
            double share = cvy_ref_load(dy, cvy_ref_plane(dy, n, c)) / divide_by(kernel, in);
            int64_t i[3] = {0, 0, 0};
            do {
                cvy_ref_store(dx, cvy_ref_plane(dx, n, c) + cvy_ref_point(dx, CVY_REF_D, i),
                              passes_relu(x, n, c, i) ? share : 0.0);
            } while (cvy_ref_next(i, in));
        }
    }
    return CVY_OK;
}
