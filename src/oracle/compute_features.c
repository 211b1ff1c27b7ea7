/*
 * What predictors look at: an op becomes numbers, most of them logarithms of sizes, so that a time that goes as a power
 * of each is a line. Inputs as spec/scaling-model.md 1.4.
 */
#include <math.h>

#include "oracle/compute.h"

/* What is known of an op, before it is made into features. */
typedef struct sizes {
    double n, c, f, groups, input, output, kernel, stride, flop, bytes, distance;
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

static const struct {
    const char *name;
    getter get;
} features[] = {
    {"n", get_n},           {"c", get_c},           {"f", get_f},         {"groups", get_groups},
    {"input", get_input},   {"output", get_output}, {"kernel", get_kernel}, {"stride", get_stride},
    {"flop", get_flop},     {"bytes", get_bytes},   {"columns", get_columns}, {"depth", get_depth},
    {"is-1x1", is_1},       {"is-3x3", is_9},        {"distance", get_distance},
};
_Static_assert(sizeof features / sizeof features[0] == CVY_KERNEL_FEATURES, "each feature has a name");

static double multiply_space(const cvy_operand *operand)
{
    double space = 1.0;
    for (int i = 2; operand && i < operand->tensor.shape.dims; i++) {
        space *= (double)operand->tensor.shape.extent[i];
    }
    return space;
}

static const cvy_operand *find_either(const cvy_op *op, cvy_role first, cvy_role second)
{
    const cvy_operand *operand = cvy_op_find(op, first);
    return operand ? operand : cvy_op_find(op, second);
}

/* Ops without a window have one of 1; without an input or output tensor, the other stands for both. */
static sizes measure_op(const cvy_op *op, double flop, double bytes)
{
    const cvy_operand *x = find_either(op, CVY_ROLE_X, CVY_ROLE_DX), *y = find_either(op, CVY_ROLE_Y, CVY_ROLE_DY);
    x = x ? x : y ? y : &op->operand[0];
    y = y ? y : x;
    bool windowed = cvy_op_convolves(op->kind) || op->kind == CVY_OP_POOL_MAX || op->kind == CVY_OP_POOL_AVERAGE;
    sizes s = {.n = (double)x->tensor.shape.extent[0], .c = 1.0, .f = 1.0, .groups = 1.0, .kernel = 1.0,
               .stride = 1.0, .input = multiply_space(x), .output = multiply_space(y), .flop = flop, .bytes = bytes};
    s.c = x->tensor.shape.dims > 1 ? (double)x->tensor.shape.extent[1] : 1.0;
    s.f = y->tensor.shape.dims > 1 ? (double)y->tensor.shape.extent[1] : 1.0;
    if (windowed) {
        const cvy_window *window = &op->params.window.window;
        s.groups = (double)op->params.window.groups;
        for (int axis = 0; axis < 3; axis++) {
            s.kernel *= (double)window->kernel[axis];
            s.stride *= (double)window->stride[axis];
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
