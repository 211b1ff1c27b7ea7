/*
 * Convolution as the definition says: y[n,f,o] = b[f] + sum over taps k and input channels i of the group of
 * x[n,c,o stride - before + k dilation] w[f,i,k]. The gradients turn the same sum around: each gathers the products
 * that its element takes part in, so every element is summed in double and written once.
 *
 * A transposed convolution is the same with x and y in each other's place: its forward pass is the gradient of data,
 * and the other way round.
 *
 * Elements are summed a tile at a time, some positions by some filters or channels, each in the order of the formula:
 * what a tile loads it uses many times, and no sum waits for the one before. Whole nets are verified by these loops.
 */
#include "backend/ref/ref.h"

enum { POSITIONS = 32, ROWS = 8 }; /* of a tile: its sums lie in 2 KB */

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

/* Some elements of a tensor, one after the other in the order n,d,h,w, of any channel. */
typedef struct tile {
    int64_t count;
    int64_t n[POSITIONS], at[POSITIONS][3];
} tile;

/* Elements of one channel, in all samples. */
static int64_t count_elements(const cvy_ref_tensor *tensor)
{
    const int64_t *extent = tensor->extent;
    return extent[CVY_REF_N] * extent[CVY_REF_D] * extent[CVY_REF_H] * extent[CVY_REF_W];
}

static void take_tile(const cvy_ref_tensor *tensor, int64_t first, tile *t)
{
    int64_t rest = count_elements(tensor) - first;
    t->count = rest < POSITIONS ? rest : POSITIONS;
    for (int64_t j = 0; j < t->count; j++) {
        int64_t index = first + j;
        for (int axis = 2; axis >= 0; axis--) {
            t->at[j][axis] = index % tensor->extent[CVY_REF_D + axis];
            index /= tensor->extent[CVY_REF_D + axis];
        }
        t->n[j] = index;
    }
}

static int64_t find_offset(const cvy_ref_tensor *tensor, int64_t n, const int64_t at[3])
{
    for (int axis = 0; axis < 3; axis++) {
        if (at[axis] < 0 || at[axis] >= tensor->extent[CVY_REF_D + axis]) {
            return -1;
        }
    }
    return tensor->at[CVY_REF_N][n] + cvy_ref_point(tensor, CVY_REF_D, at);
}

/* Where each element of a tile of y finds tap k in x, but for the channel; -1 in the padding. False: none does. */
static bool find_taps(const convolution *parts, const tile *t, const int64_t k[3], int64_t *offset)
{
    bool any = false;
    for (int64_t j = 0; j < t->count; j++) {
        int64_t i[3];
        for (int axis = 0; axis < 3; axis++) {
            i[axis] = cvy_ref_tap(parts->window, axis, t->at[j][axis], k[axis]);
        }
        offset[j] = find_offset(parts->x, t->n[j], i);
        any = any || offset[j] >= 0;
    }
    return any;
}

/* Where each element of a tile of x finds the position in y whose tap k it is; -1 where none is. */
static bool find_positions(const convolution *parts, const tile *t, const int64_t k[3], int64_t *offset)
{
    bool any = false;
    for (int64_t j = 0; j < t->count; j++) {
        int64_t o[3];
        for (int axis = 0; axis < 3; axis++) {
            o[axis] = cvy_ref_position(parts->window, axis, t->at[j][axis], k[axis], parts->out[axis]);
        }
        offset[j] = find_offset(parts->y, t->n[j], o);
        any = any || offset[j] >= 0;
    }
    return any;
}

/* The elements of a channel; 0 where there is none. */
static void load_channel(const cvy_ref_tensor *tensor, int64_t channel, const int64_t *offset, int64_t count,
                         double *value)
{
    for (int64_t j = 0; j < count; j++) {
        value[j] = offset[j] < 0 ? 0.0 : cvy_ref_load(tensor, offset[j] + tensor->at[CVY_REF_C][channel]);
    }
}

/* A pass that makes elements of `to` of elements of `from`: y of x, or dx of dy. */
typedef struct sweep {
    const convolution *parts;
    const cvy_ref_tensor *to, *from;
    int to_dim, from_dim;  /* of the weights */
    bool (*find)(const convolution *parts, const tile *t, const int64_t k[3], int64_t *offset);
    int64_t group, row, rows; /* of the channels of `to`: rows from `row` on, of a group */
} sweep;

/* Sum over taps, and the channels of the group in `from`. */
static void sum_tile(const sweep *s, const tile *t, double sum[ROWS][POSITIONS])
{
    const cvy_ref_tensor *w = s->parts->w;
    int64_t channels = w->extent[s->from_dim], k[3] = {0, 0, 0}, offset[POSITIONS];
    double value[POSITIONS];
    do {
        int64_t tap = w->at[CVY_REF_G][s->group] + cvy_ref_point(w, CVY_REF_KD, k);
        bool any = s->find(s->parts, t, k, offset);
        for (int64_t c = 0; any && c < channels; c++) {
            load_channel(s->from, s->group * channels + c, offset, t->count, value);
            for (int64_t r = 0; r < s->rows; r++) {
                double weight = cvy_ref_load(w, tap + w->at[s->to_dim][s->row + r] + w->at[s->from_dim][c]);
                for (int64_t j = 0; j < t->count; j++) {
                    sum[r][j] += value[j] * weight;
                }
            }
        }
    } while (cvy_ref_next(k, s->parts->window->kernel));
}

static void store_tile(const sweep *s, const tile *t, double sum[ROWS][POSITIONS], bool relu)
{
    int64_t first = s->group * s->parts->w->extent[s->to_dim] + s->row;
    for (int64_t r = 0; r < s->rows; r++) {
        double bias = s->parts->b ? cvy_ref_load(s->parts->b, first + r) : 0.0;
        for (int64_t j = 0; j < t->count; j++) {
            double value = bias + sum[r][j];
            bool rectified = relu && value < 0.0; /* NaN stays */
            cvy_ref_store(s->to, cvy_ref_plane(s->to, t->n[j], first + r) + cvy_ref_point(s->to, CVY_REF_D, t->at[j]),
                          rectified ? 0.0 : value);
        }
    }
}

static void run_sweep(sweep *s, bool relu)
{
    int64_t elements = count_elements(s->to), rows = s->parts->w->extent[s->to_dim];
    tile t;
    for (int64_t first = 0; first < elements; first += POSITIONS) {
        take_tile(s->to, first, &t);
        for (s->group = 0; s->group < s->parts->w->extent[CVY_REF_G]; s->group++) {
            for (s->row = 0; s->row < rows; s->row += ROWS) {
                double sum[ROWS][POSITIONS] = {{0.0}};
                s->rows = rows - s->row < ROWS ? rows - s->row : ROWS;
                sum_tile(s, &t, sum);
                store_tile(s, &t, sum, relu);
            }
        }
    }
}

cvy_status cvy_ref_convolution_forward(const cvy_ref_kernel *kernel, const cvy_run *run)
{
    convolution parts = get_parts(kernel);
    sweep s = {.parts = &parts, .to = parts.y, .from = parts.x, .to_dim = CVY_REF_O, .from_dim = CVY_REF_I,
               .find = find_taps};
    (void)run;
    run_sweep(&s, kernel->base.op.relu);
    return CVY_OK;
}

cvy_status cvy_ref_convolution_data(const cvy_ref_kernel *kernel, const cvy_run *run)
{
    convolution parts = get_parts(kernel);
    sweep s = {.parts = &parts, .to = parts.x, .from = parts.y, .to_dim = CVY_REF_I, .from_dim = CVY_REF_O,
               .find = find_positions};
    (void)run;
    run_sweep(&s, false);
    return CVY_OK;
}

/* ---- gradients of weights ---- */

/* Filters by channels of a group: the weights of a tile, each of one tap. */
typedef struct patch {
    int64_t group, filter, channel, filters, channels;
} patch;

/* Sum over samples and positions of x at tap k times dy. */
static void sum_patch(const convolution *parts, const patch *p, const int64_t k[3], double sum[ROWS][ROWS])
{
    const cvy_ref_tensor *x = parts->x, *dy = parts->y;
    int64_t elements = count_elements(dy), x_offset[POSITIONS], dy_offset[POSITIONS];
    double x_value[ROWS][POSITIONS], dy_value[ROWS][POSITIONS];
    tile t;
    for (int64_t first = 0; first < elements; first += POSITIONS) {
        take_tile(dy, first, &t);
        if (!find_taps(parts, &t, k, x_offset)) {
            continue;
        }
        for (int64_t j = 0; j < t.count; j++) {
            dy_offset[j] = find_offset(dy, t.n[j], t.at[j]);
        }
        for (int64_t c = 0; c < p->channels; c++) {
            load_channel(x, p->group * parts->channels + p->channel + c, x_offset, t.count, x_value[c]);
        }
        for (int64_t f = 0; f < p->filters; f++) {
            load_channel(dy, p->group * parts->filters + p->filter + f, dy_offset, t.count, dy_value[f]);
        }
        for (int64_t j = 0; j < t.count; j++) {
            for (int64_t f = 0; f < p->filters; f++) {
                for (int64_t c = 0; c < p->channels; c++) {
                    sum[f][c] += x_value[c][j] * dy_value[f][j];
                }
            }
        }
    }
}

static void make_patch(const convolution *parts, const patch *p)
{
    const cvy_ref_tensor *dw = parts->w;
    int64_t k[3] = {0, 0, 0};
    do {
        double sum[ROWS][ROWS] = {{0.0}};
        int64_t tap = dw->at[CVY_REF_G][p->group] + cvy_ref_point(dw, CVY_REF_KD, k);
        sum_patch(parts, p, k, sum);
        for (int64_t f = 0; f < p->filters; f++) {
            for (int64_t c = 0; c < p->channels; c++) {
                cvy_ref_store(dw, tap + dw->at[CVY_REF_O][p->filter + f] + dw->at[CVY_REF_I][p->channel + c],
                              sum[f][c]);
            }
        }
    } while (cvy_ref_next(k, parts->window->kernel));
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
    const cvy_ref_tensor *dy = cvy_ref_find(kernel, CVY_ROLE_DY);
    patch p = {0};
    (void)run;
    for (p.group = 0; p.group < parts.w->extent[CVY_REF_G]; p.group++) {
        for (p.filter = 0; p.filter < parts.filters; p.filter += ROWS) {
            p.filters = parts.filters - p.filter < ROWS ? parts.filters - p.filter : ROWS;
            for (p.channel = 0; p.channel < parts.channels; p.channel += ROWS) {
                p.channels = parts.channels - p.channel < ROWS ? parts.channels - p.channel : ROWS;
                make_patch(&parts, &p);
            }
        }
    }
    for (int64_t f = 0; parts.b && f < dy->extent[CVY_REF_C]; f++) {
        cvy_ref_store(parts.b, f, sum_filter(dy, f));
    }
    return CVY_OK;
}
