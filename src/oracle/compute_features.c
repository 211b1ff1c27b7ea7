/*
 * What predictors look at: an op becomes numbers, most of them logarithms of sizes, so that a time that goes as a power
 * of each is a line. Inputs as spec/scaling-model.md 1.4, and what kernels of vectors and caches depend on: the bytes
 * of each operand, which may fit a cache where all of them do not; channels that the last block of a format wastes; the
 * length of a row, over which inner loops run; whether strides divide the input.
 */
#include <math.h>

#include "oracle/compute.h"

/* What is known of an op, before it is made into features. */
typedef struct sizes {
    double n, c, f, groups, input, output, kernel, stride, flop, bytes, distance;
    double input_bytes, output_bytes, weight_bytes, row, block;
    bool relu, tiled;
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

/* What tells kernels apart: sizes of all of an op, the channels and places of maps, windows and groups. */
enum { OF_ALL = 1, OF_MAPS = 2, OF_WINDOWS = 4 };

static const struct {
    const char *name;
    getter get;
    int of;
} features[] = {
    {"n", get_n, OF_MAPS},
    {"c", get_c, OF_MAPS},
    {"f", get_f, OF_WINDOWS},
    {"groups", get_groups, OF_WINDOWS},
    {"input", get_input, OF_MAPS},
    {"output", get_output, OF_WINDOWS},
    {"kernel", get_kernel, OF_WINDOWS},
    {"stride", get_stride, OF_WINDOWS},
    {"flop", get_flop, OF_ALL},
    {"bytes", get_bytes, OF_ALL},
    {"columns", get_columns, OF_WINDOWS},
    {"depth", get_depth, OF_WINDOWS},
    {"is-1x1", is_1, OF_WINDOWS},
    {"is-3x3", is_9, OF_WINDOWS},
    {"distance", get_distance, OF_ALL},
    {"input-bytes", get_input_bytes, OF_ALL},
    {"output-bytes", get_output_bytes, OF_ALL},
    {"weight-bytes", get_weight_bytes, OF_WINDOWS},
    {"c-waste", get_c_waste, OF_MAPS},
    {"f-waste", get_f_waste, OF_WINDOWS},
    {"row", get_row, OF_WINDOWS},
    {"is-relu", is_relu, OF_ALL},
    {"overhang", get_overhang, OF_WINDOWS},
    {"is-whole", is_whole, OF_WINDOWS},
    {"is-tiled", is_tiled, OF_WINDOWS},
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

/* Ops without a window have one of 1; without an input or output tensor, the other stands for both. */
static sizes measure_op(const cvy_op *op, double flop, double bytes)
{
    const cvy_operand *x = cvy_op_find_either(op, CVY_ROLE_X, CVY_ROLE_DX);
    const cvy_operand *y = cvy_op_find_either(op, CVY_ROLE_Y, CVY_ROLE_DY);
    x = x ? x : y ? y : &op->operand[0];
    y = y ? y : x;
    bool windowed = cvy_op_convolves(op->kind) || op->kind == CVY_OP_POOL_MAX || op->kind == CVY_OP_POOL_AVERAGE;
    sizes s = {.n = (double)x->tensor.shape.extent[0], .c = 1.0, .f = 1.0, .groups = 1.0, .kernel = 1.0,
               .stride = 1.0, .input = multiply_space(x), .output = multiply_space(y), .flop = flop, .bytes = bytes};
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
        const cvy_window *window = &op->params.window.window;
        s.groups = (double)op->params.window.groups;
        for (int axis = 0; axis < 3; axis++) {
            s.kernel *= (double)window->kernel[axis];
            s.stride *= (double)window->stride[axis];
        }
        s.tiled = s.groups == 1.0 && s.stride == 1.0 && window->kernel[1] == window->kernel[2] &&
                  (window->kernel[1] == 3 || window->kernel[1] == 5);
        for (int axis = 0; axis < 3; axis++) {
            s.tiled = s.tiled && window->dilation[axis] == 1;
        }
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
