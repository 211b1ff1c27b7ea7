/*
 * What predictors look at: an op becomes numbers, most of them logarithms of sizes, so that a time that goes as a power
 * of each is a line. Inputs as spec/scaling-model.md 1.4, and what kernels of vectors and caches depend on: the bytes
 * of each operand, which may fit a cache where all of them do not; channels that the last block of a format wastes; the
 * length of a row, over which inner loops run; whether strides divide the input.
 */
#include <math.h>

#include "base/checked.h"
#include "oracle/compute_internal.h"

/* What is known of an op, before it is made into features. */
typedef struct sizes {
    double n, c, f, groups, input, output, kernel, stride, flop, bytes, distance;
    double input_bytes, output_bytes, weight_bytes, row, block;
    double inside, products, points; /* see below */
    bool relu, tiled, plain;
} sizes;

typedef double (*getter)(const sizes *s);

static double get_n(const sizes *s) { return log2(s->n); }
static double get_c(const sizes *s) { return log2(s->c); }
static double get_f(const sizes *s) { return log2(s->f); }
static double get_groups(const sizes *s) { return log2(s->groups); }
static double get_input(const sizes *s) { return log2(s->input); }
static double get_output(const sizes *s) { return log2(s->output); }
static double get_kernel(const sizes *s) { return log2(s->kernel); }
static double get_stride(const sizes *s) { return log2(s->stride); }
static double get_flop(const sizes *s) { return log2(fmax(s->flop, 1.0)); }
static double get_bytes(const sizes *s) { return log2(fmax(s->bytes, 1.0)); }
static double get_columns(const sizes *s) { return log2(s->n * s->output); }
static double get_depth(const sizes *s) { return log2(s->c / s->groups * s->kernel); }
static double get_distance(const sizes *s) { return log2(fmax(s->distance, 1.0)); }
static double is_1(const sizes *s) { return s->kernel == 1.0; }
static double is_9(const sizes *s) { return s->kernel == 9.0; }
static double get_input_bytes(const sizes *s) { return log2(fmax(s->input_bytes, 1.0)); }
static double get_output_bytes(const sizes *s) { return log2(fmax(s->output_bytes, 1.0)); }
static double get_weight_bytes(const sizes *s) { return log2(fmax(s->weight_bytes, 1.0)); }
static double get_row(const sizes *s) { return log2(s->row); }
static double is_relu(const sizes *s) { return s->relu; }

/*
 * By how much the places that strides pass over are more than the input's: above 0 where a stride leaves a rest, for
 * which libraries have slower kernels, below where the input has no padding.
 */
static double get_overhang(const sizes *s) { return log2(s->output * s->stride / s->input); }

/* By how much whole blocks are more than the channels of a group. */
static double find_waste(const sizes *s, double channels)
{
    double own = fmax(channels / s->groups, 1.0);
    return log2(ceil(own / s->block) * s->block / own);
}

static double get_c_waste(const sizes *s) { return find_waste(s, s->c); }
static double get_f_waste(const sizes *s) { return find_waste(s, s->f); }

/* Channels and filters of a group that fill blocks, as some algorithms ask. */
static double is_whole(const sizes *s) { return get_c_waste(s) == 0.0 && get_f_waste(s) == 0.0; }

/* Windows that Winograd's algorithm may take: of 3 or 5 along height and width alike, at every step. */
static double is_tiled(const sizes *s) { return s->tiled; }

/* The share of a window's places that lie on the map, over all of its positions: kernels leave the others out. */
static double get_inside(const sizes *s) { return log2(s->inside); }

/* Products of Winograd's algorithm, of whole tiles and blocks, by those of the sum itself; 0 of what is not tiled. */
static double get_products(const sizes *s) { return s->tiled ? log2(s->products / s->flop) : 0.0; }

/* What it holds at the points of its tiles, by the products of the sum. */
static double get_points(const sizes *s) { return s->tiled ? log2(s->points / s->flop) : 0.0; }

/* An image as it comes, which is in no blocks. */
static double is_plain(const sizes *s) { return s->plain; }

/* What tells kernels apart: sizes of all of an op, the channels and places of maps, windows and groups. */
enum { OF_ALL = 1, OF_MAPS = 2, OF_WINDOWS = 4 };

static const struct {
    const char *name;
    getter get;
    int of;
} features[] = {
    [CVY_FEATURE_N] = {"n", get_n, OF_MAPS},
    [CVY_FEATURE_C] = {"c", get_c, OF_MAPS},
    [CVY_FEATURE_F] = {"f", get_f, OF_WINDOWS},
    [CVY_FEATURE_GROUPS] = {"groups", get_groups, OF_WINDOWS},
    [CVY_FEATURE_INPUT] = {"input", get_input, OF_MAPS},
    [CVY_FEATURE_OUTPUT] = {"output", get_output, OF_WINDOWS},
    [CVY_FEATURE_KERNEL] = {"kernel", get_kernel, OF_WINDOWS},
    [CVY_FEATURE_STRIDE] = {"stride", get_stride, OF_WINDOWS},
    [CVY_FEATURE_FLOP] = {"flop", get_flop, OF_ALL},
    [CVY_FEATURE_BYTES] = {"bytes", get_bytes, OF_ALL},
    [CVY_FEATURE_COLUMNS] = {"columns", get_columns, OF_WINDOWS},
    [CVY_FEATURE_DEPTH] = {"depth", get_depth, OF_WINDOWS},
    [CVY_FEATURE_IS_1X1] = {"is-1x1", is_1, OF_WINDOWS},
    [CVY_FEATURE_IS_3X3] = {"is-3x3", is_9, OF_WINDOWS},
    [CVY_FEATURE_DISTANCE] = {"distance", get_distance, OF_ALL},
    [CVY_FEATURE_INPUT_BYTES] = {"input-bytes", get_input_bytes, OF_ALL},
    [CVY_FEATURE_OUTPUT_BYTES] = {"output-bytes", get_output_bytes, OF_ALL},
    [CVY_FEATURE_WEIGHT_BYTES] = {"weight-bytes", get_weight_bytes, OF_WINDOWS},
    [CVY_FEATURE_C_WASTE] = {"c-waste", get_c_waste, OF_MAPS},
    [CVY_FEATURE_F_WASTE] = {"f-waste", get_f_waste, OF_WINDOWS},
    [CVY_FEATURE_ROW] = {"row", get_row, OF_WINDOWS},
    [CVY_FEATURE_IS_RELU] = {"is-relu", is_relu, OF_ALL},
    [CVY_FEATURE_OVERHANG] = {"overhang", get_overhang, OF_WINDOWS},
    [CVY_FEATURE_IS_WHOLE] = {"is-whole", is_whole, OF_WINDOWS},
    [CVY_FEATURE_IS_TILED] = {"is-tiled", is_tiled, OF_WINDOWS},
    [CVY_FEATURE_INSIDE] = {"inside", get_inside, OF_WINDOWS},
    [CVY_FEATURE_PRODUCTS] = {"products", get_products, OF_WINDOWS},
    [CVY_FEATURE_POINTS] = {"points", get_points, OF_WINDOWS},
    [CVY_FEATURE_IS_PLAIN] = {"is-plain", is_plain, OF_WINDOWS},
};
_Static_assert(sizeof features / sizeof features[0] == CVY_KERNEL_FEATURES, "each feature has a name");

/* What time depends on, of an op of a kind. */
static int find_what_matters(cvy_op_kind kind)
{
    if (cvy_op_is_elementwise(kind)) {
        return OF_ALL; /* whatever the shape */
    }
    switch (kind) {
    case CVY_OP_BATCH_NORM:
    case CVY_OP_GROUP_NORM:
    case CVY_OP_LOCAL_RESPONSE_NORM:
    case CVY_OP_POOL_GLOBAL:
    case CVY_OP_MULTIPLY:
    case CVY_OP_SOFTMAX_CROSS_ENTROPY:
    case CVY_OP_SOFT_DICE: return OF_ALL | OF_MAPS; /* y is as large as x, or follows from it */
    default: return OF_ALL | OF_MAPS | OF_WINDOWS;
    }
}

bool cvy_kernel_feature_matters(int kernel, int feature)
{
    int kind = kernel < CVY_OP_KIND_COUNT ? kernel : CVY_OP_CONVOLUTION;
    return (find_what_matters((cvy_op_kind)kind) & features[feature].of) != 0;
}

static double multiply_space(const cvy_operand *operand)
{
    double space = 1.0;
    for (int i = 2; operand && i < operand->tensor.shape.dims; i++) {
        space *= (double)operand->tensor.shape.extent[i];
    }
    return space;
}

/* Of a tap the positions at which it lies on a map of so many places. */
static double count_on_map(const cvy_window *window, int axis, int64_t tap, int64_t input, int64_t output)
{
    int64_t stride = window->stride[axis], offset = window->before[axis] - tap * window->dilation[axis];
    int64_t first = offset > 0 ? cvy_ceil_div(offset, stride) : 0;
    int64_t behind = input + offset > 0 ? cvy_ceil_div(input + offset, stride) : 0;
    return (double)cvy_max_i64(cvy_min_i64(behind, output) - first, 0);
}

static double find_inside(const cvy_window *window, const int64_t input[3], const int64_t output[3])
{
    double share = 1.0;
    for (int axis = 0; axis < 3; axis++) {
        double on_map = 0.0;
        for (int64_t tap = 0; tap < window->kernel[axis]; tap++) {
            on_map += count_on_map(window, axis, tap, input[axis], output[axis]);
        }
        share *= fmax(on_map, 1.0) / (double)(window->kernel[axis] * output[axis]);
    }
    return share;
}

static bool is_tileable(const cvy_window *window)
{
    bool tiled = window->kernel[1] == window->kernel[2] && (window->kernel[1] == 3 || window->kernel[1] == 5);
    for (int axis = 0; axis < 3; axis++) {
        tiled = tiled && window->stride[axis] == 1 && window->dilation[axis] == 1;
    }
    return tiled;
}

/* Tiles of 4 x 4 outputs, each of (3 + kernel)^2 points, over blocks of 16 channels (backend/cpu/winograd.h). */
static void count_tiles(const cvy_window *window, const int64_t source[3], const int64_t target[3],
                        double source_channels, double target_channels, sizes *s)
{
    const double step = 4.0, block = 16.0, side = step + (double)window->kernel[1] - 1.0;
    double tiles = s->n * ceil((double)target[1] / step) * ceil((double)target[2] / step) * side * side;
    double from = ceil(source_channels / block) * block, to = ceil(target_channels / block) * block;
    s->products = 2.0 * tiles * (double)target[0] * (double)window->kernel[0] * from * to;
    s->points = tiles * ((double)source[0] * from + (double)target[0] * to);
}

static void measure_window(const cvy_op *op, const cvy_tensor *x, const cvy_tensor *y, sizes *s)
{
    const cvy_window *window = &op->params.window.window;
    int64_t input[3], output[3];
    bool back = op->pass == CVY_PASS_BACKWARD_DATA;
    cvy_space_get(&x->shape, input);
    cvy_space_get(&y->shape, output);
    s->groups = (double)op->params.window.groups;
    for (int axis = 0; axis < 3; axis++) {
        s->kernel *= (double)window->kernel[axis];
        s->stride *= (double)window->stride[axis];
    }
    s->inside = op->kind == CVY_OP_TRANSPOSED_CONVOLUTION ? 1.0 : find_inside(window, input, output);
    s->plain = x->format == CVY_FORMAT_PLAIN;
    s->tiled = op->kind == CVY_OP_CONVOLUTION && s->groups == 1.0 && is_tileable(window);
    if (s->tiled) {
        count_tiles(window, back ? output : input, back ? input : output, back ? s->f : s->c, back ? s->c : s->f, s);
    }
}

/* Ops without a window have one of 1; without an input or output tensor, the other stands for both. */
static sizes measure_op(const cvy_op *op, double flop, double bytes)
{
    const cvy_operand *x = cvy_op_find_either(op, CVY_ROLE_X, CVY_ROLE_DX);
    const cvy_operand *y = cvy_op_find_either(op, CVY_ROLE_Y, CVY_ROLE_DY);
    x = x ? x : y ? y : &op->operand[0];
    y = y ? y : x;
    bool windowed = cvy_op_convolves(op->kind) || op->kind == CVY_OP_POOL_MAX || op->kind == CVY_OP_POOL_AVERAGE;
    sizes s = {.n = (double)x->tensor.shape.extent[0], .c = 1.0, .f = 1.0, .groups = 1.0, .kernel = 1.0,
               .stride = 1.0, .inside = 1.0, .input = multiply_space(x), .output = multiply_space(y), .flop = flop,
               .bytes = bytes};
    const cvy_operand *w = cvy_op_find_either(op, CVY_ROLE_W, CVY_ROLE_DW);
    s.input_bytes = (double)cvy_tensor_bytes(&x->tensor);
    s.output_bytes = (double)cvy_tensor_bytes(&y->tensor);
    s.weight_bytes = w ? (double)cvy_tensor_bytes(&w->tensor) : 0.0;
    s.row = y->tensor.shape.dims > 2 ? (double)y->tensor.shape.extent[y->tensor.shape.dims - 1] : 1.0;
    s.block = x->tensor.format == CVY_FORMAT_C8 || y->tensor.format == CVY_FORMAT_C8 ? 8.0 : 16.0;
    s.relu = op->relu;
    s.c = x->tensor.shape.dims > 1 ? (double)x->tensor.shape.extent[1] : 1.0;
    s.f = y->tensor.shape.dims > 1 ? (double)y->tensor.shape.extent[1] : 1.0;
    if (windowed) {
        measure_window(op, &x->tensor, &y->tensor, &s);
    }
    return s;
}

const char *cvy_kernel_feature_name(int feature) { return features[feature].name; }

void cvy_kernel_get_features(const cvy_op *op, double flop, double bytes, double distance_bytes, double *feature_out)
{
    sizes s = measure_op(op, flop, bytes);
    s.distance = fmin(fmax(distance_bytes, bytes), CVY_FARTHEST_BYTES);
    for (int i = 0; i < CVY_KERNEL_FEATURES; i++) {
        feature_out[i] = features[i].get(&s);
    }
}
