/*
 * An op is what a kernel computes, without graph and without code: kind, pass, parameters, and one tensor description
 * for each operand. The plan makes ops, a backend makes kernels of them, the oracle prices them.
 *
 * One-letter sizes everywhere: n samples, c input channels, f filters, d h w input, od oh ow output, kd kh kw kernel,
 * g groups. 2-D is 3-D with d = od = kd = 1 in parameters; tensors of 2-D ops have no d dimension.
 */
#ifndef CVY_OP_OP_H
#define CVY_OP_OP_H

#include <stddef.h>
#include <stdint.h>

#include "tensor/interval.h"
#include "tensor/tensor.h"

/*
 * What the ops compute, exactly:
 *
 * CONVOLUTION     cross-correlation, as PyTorch's. w is f,c/g,(kd),kh,kw, or g,f/g,c/g,… with `grouped` set. db is
 *                 the sum of dy.
 * TRANSPOSED_CONVOLUTION  the data gradient of a convolution as an op of its own, PyTorch's ConvTranspose: y is b
 *                 plus, for every position o of x and tap k, x w at o stride - before + k dilation, where that is in y.
 *                 The window is that of the convolution from y to x, of which each position counts, so that y has
 *                 (positions - 1) stride + dilation (kernel - 1) + 1 - before - after; PyTorch's output_padding is
 *                 taken off `after`. w is c,f/g,(kd),kh,kw, or g,c/g,f/g,… with `grouped` set. db is the sum of dy.
 * DENSE           y = x w^T + b; x [n, in], w [out, in].
 * POOL_MAX        padding never wins; of equal values the first in kd,kh,kw order wins, and takes the gradient.
 *                 `window` is u8 where the window has at most 256 positions, else i32; same format as y.
 * POOL_AVERAGE    divides by the window, or with count_padding off by the positions inside the input.
 * POOL_GLOBAL     y is n,c,1,1(,1): the sum over space divided by `positions`, or where that is 0 by those of x.
 * POOL_ADAPTIVE   position o of an axis is the mean over [floor(o in / out), ceil((o + 1) in / out)) of it: PyTorch's.
 * BATCH_NORM      y = w (x - mean) / sqrt(variance + epsilon) + b, statistics over n and space, variance biased.
 *                 dw = sum dy (x - mean) / sqrt(variance + epsilon), db = sum dy, dx = PyTorch's, all terms.
 *                 GRAD_APPLY of a batch of which no sample is valid: dx = 0, as others had the statistics.
 *                 COMMIT: running = (1 - momentum) running + momentum new, with the variance times
 *                 count / (count - 1) (count 1: as it is).
 *                 MERGE: the running ones stand for `merged` elements and become those of `count`; with d = mean -
 *                 running mean and s = 1 - merged / count: running mean += s d, running variance = (1 - s) running +
 *                 s variance + s (1 - s) d^2 (Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for
 *                 computing sample variances", 1979).
 * RELU            y = max(x, 0); dx = y > 0 ? dy : 0, with dy1 dx = y > 0 ? dy + dy1 : 0. NaN stays NaN, here and in
 *                 the activations that follow.
 * RELU6           y = min(max(x, 0), 6); dx = 0 < y < 6 ? dy : 0.
 * LEAKY_RELU      y = x > 0 ? x : slope x; dx = y > 0 ? dy : slope dy (slope >= 0, so y tells the sign of x).
 * SIGMOID         y = 1 / (1 + exp(-x)); dx = dy y (1 - y).
 * TANH            y = tanh(x); dx = dy (1 - y^2).
 * SILU            y = x s with s = 1 / (1 + exp(-x)); dx = dy s (1 + x (1 - s)).
 * HARD_SWISH      y = x min(max(x + 3, 0), 6) / 6; dx = dy times 0 where x < -3, 1 where x >= 3, else x / 3 + 1/2.
 * DROPOUT         an element is dropped where cvy_random_unit(word) < probability; word = lane e % 4 of
 *                 cvy_random_words(seed, DROPOUT, layer, step, sample_first + n, e / 4), e the logical element within
 *                 the whole sample, of which x may have a share; survivors times 1 / (1 - probability). dx the same of
 *                 dy: the mask is drawn anew, not kept.
 * STOCHASTIC_DEPTH  a sample is dropped, all of it, where cvy_random_unit(lane 0 of cvy_random_words(seed,
 *                 STOCHASTIC_DEPTH, layer, step, sample_first + n, 0)) < probability, else multiplied with
 *                 1 / (1 - probability); dx the same of dy.
 * MULTIPLY        y = x x1 with x1 n,c,1,1(,1) (n,c where x is): one factor for a channel of a sample.
 *                 dx = dy x1; dx1 = sum over space of dy x.
 * SOFTMAX_CROSS_ENTROPY  x [n, classes], or n,classes,(d),h,w with a label for each position.
 *                 loss[0] = loss_scale * sum over valid samples of the mean over positions of - sum over classes of
 *                 q log p, with q = (1 - smoothing) onehot + smoothing / classes; loss[1] is the count of positions of
 *                 valid samples whose largest x (first of equals) is at the label.
 *                 dx = loss_scale (p - q) / positions, 0 for samples from `samples` on. Where space is cut, means over
 *                 positions are sums divided by `positions`; where that is 0, by those of x.
 * SOFT_DICE       x and label as above, p = softmax of x over classes, q = onehot of the label. With two sums over a
 *                 sample's positions that `overlap` keeps of each class, a = 2 sum of p q and b = sum of p + sum of q,
 *                 loss[0] = loss_scale * sum over valid samples of the mean over classes of
 *                 1 - (a + epsilon) / (b + epsilon); loss[1] as above. Sums are of one sample, so the loss is a mean
 *                 over samples. dx = loss_scale p (r - sum over classes of p r), 0 for samples from `samples` on, with
 *                 r = ((a + epsilon) / (b + epsilon) - 2 q) / ((b + epsilon) classes).
 * MEAN_SQUARED_ERROR  x and label [n, values]. loss[0] = loss_scale * sum over valid samples of mean over values of
 *                 (x - label)^2; loss[1] = 0. dx = loss_scale * 2 (x - label) / values, 0 for invalid samples.
 * SGD             g = dw + weight_decay w; v = momentum v + g (where there is `momentum`);
 *                 w -= learning_rate (nesterov ? g + momentum v : v).
 * ADAMW           w *= 1 - learning_rate weight_decay; m = beta1 m + (1 - beta1) g; s = beta2 s + (1 - beta2) g^2;
 *                 w -= learning_rate (m / (1 - beta1^update)) / (sqrt(s / (1 - beta2^update)) + epsilon).
 * ADAM            g = dw + weight_decay w; then as ADAMW, without its decay.
 * CONCAT          y is x, x1, … one after the other along the channels; their formats may differ.
 * SLICE           the gradient of one input of a concat: dx is the channels of dy from `first` on.
 * GROUP_NORM      y = w (x - mean) / sqrt(variance + epsilon) + b, statistics of each sample over the c / g channels of
 *                 a group and space, variance biased; w and b by channel. Gradients as PyTorch's, all terms.
 * LOCAL_RESPONSE_NORM  y = x scale^-beta, scale = k + alpha / size * sum of x^2 over the `size` channels from
 *                 c - size / 2 on (rounded down), those that there are. dx differentiates scale too.
 * SQUARE_SUM      squares[slot] = sum of x^2, in double; the other places are not touched.
 * CLIP            scale[0] = min(1, clip_norm / (sqrt(sum of squares) + 1e-6)), PyTorch's.
 * LARS            r = 1, or where there are `squares`, |dw|^2 at slot and |w|^2 behind it:
 *                 r = trust |w| / (|dw| + weight_decay |w|), 1 where a norm is 0;
 *                 v = momentum v + learning_rate r (dw + weight_decay w); w -= v.
 * LAMB_DIRECTION  m and s as ADAMW's; dw becomes the direction
 *                 (m / (1 - beta1^update)) / (sqrt(s / (1 - beta2^update)) + epsilon) + weight_decay w.
 * LAMB            r = 1, or where there are `squares`, of the direction at slot and of w behind it:
 *                 r = |w| / |direction|, 1 where a norm is 0; w -= learning_rate r direction.
 * AVERAGE         average = decay average + (1 - decay) w.
 * PICK            y is x without the indices of dimension `dim` that lie in none of `intervals`: a rank's share of it.
 * FRAME           y has `output` positions along d,h,w; its position p is position p + `first` of x, or 0 where x has
 *                 none: a share of space within the rows that a window needs, and the other way round.
 * With `winograd` a CONVOLUTION is the same sum by other arithmetic, Winograd's minimal filtering (Lavin and Gray,
 * arXiv:1509.09308): fewer products, and rounding errors a few times larger. It is an order, not a hint: a
 * backend that has no such kernel refuses the op; `ref` has none, `cpu` some for windows of 5x5.
 * With `relu` y is max(., 0) of what is said above, and NaN stays NaN: forward of CONVOLUTION, DENSE and ADD; FORWARD,
 * INFERENCE and NORMALISE of BATCH_NORM; FORWARD, INFERENCE of POOL_MAX. Of numbers below 0 a convolution or a dense
 * layer may leave a trace, 1e-19 of them, not 0.
 * In the gradients of a BATCH_NORM with `relu` dy counts only where w (x - mean) / sqrt(variance + epsilon) + b, which
 * is what y was made of, is above 0: they take b, a vector, as y would be one more pass over memory.
 * In the other gradients with `relu` it is x that a relu has made, and dx is the gradient before it: 0 where x is not
 * above 0, of POOL_AVERAGE, POOL_GLOBAL, SLICE and LOCAL_RESPONSE_NORM. POOL_MAX and DROPOUT look at y, which is above
 * 0 where the x that it was taken from is; whether the relu stands before or behind them is the same.
 * Where a rule takes `scale`, dw stands for scale[0] dw, and |dw| for scale[0] |dw|; where clip_value is above 0, dw is
 * then cut to [-clip_value, clip_value].
 * Optimizers go over the padding too; it is zero and stays zero. Operands of one op have one floating type, f32 or f64,
 * but for `window`, class labels (i32), `loss`, `overlap`, `squares` and `scale` (f64).
 */
typedef enum cvy_op_kind {
    CVY_OP_CONVOLUTION,
    CVY_OP_DENSE,
    CVY_OP_POOL_MAX,
    CVY_OP_POOL_AVERAGE,
    CVY_OP_POOL_GLOBAL, /**< mean over space */
    CVY_OP_BATCH_NORM,
    CVY_OP_RELU,
    CVY_OP_DROPOUT,
    CVY_OP_ADD,         /**< y = x + x1; without operand x1 never made */
    CVY_OP_SOFTMAX_CROSS_ENTROPY,
    CVY_OP_MEAN_SQUARED_ERROR,
    CVY_OP_REORDER,     /**< same logical elements, other format or type; shapes may differ as a flatten does */
    CVY_OP_SGD,
    CVY_OP_ADAMW,
    CVY_OP_POOL_ADAPTIVE, /**< mean over bins, to a given output; numbers are part of hashes: add at the end */
    CVY_OP_RELU6,
    CVY_OP_LEAKY_RELU,
    CVY_OP_SIGMOID,
    CVY_OP_TANH,
    CVY_OP_SILU,
    CVY_OP_HARD_SWISH,
    CVY_OP_MULTIPLY,
    CVY_OP_STOCHASTIC_DEPTH,
    CVY_OP_ADAM,
    CVY_OP_CONCAT,
    CVY_OP_SLICE,
    CVY_OP_GROUP_NORM,
    CVY_OP_LOCAL_RESPONSE_NORM,
    CVY_OP_SQUARE_SUM,
    CVY_OP_CLIP,
    CVY_OP_LARS,
    CVY_OP_LAMB_DIRECTION,
    CVY_OP_LAMB,
    CVY_OP_AVERAGE,
    CVY_OP_TRANSPOSED_CONVOLUTION,
    CVY_OP_SOFT_DICE,
    CVY_OP_PICK,
    CVY_OP_FRAME,
    CVY_OP_KIND_COUNT
} cvy_op_kind;

/**
 * Which computation of the kind. Backward is two passes, data and weights, wherever a library allows it;
 * CVY_PASS_BACKWARD makes all gradients at once (the fused local batch norm).
 */
typedef enum cvy_op_pass {
    CVY_PASS_FORWARD,
    CVY_PASS_INFERENCE,  /**< forward for evaluation: batch norm with running statistics, loss without saved values */
    CVY_PASS_BACKWARD_DATA,
    CVY_PASS_BACKWARD_WEIGHTS,
    CVY_PASS_BACKWARD,
    CVY_PASS_STATS,      /**< batch norm: mean and variance of x */
    CVY_PASS_NORMALISE,  /**< batch norm: y from x and statistics */
    CVY_PASS_GRAD_STATS, /**< batch norm: dgamma, dbeta (the two sums that the data gradient needs) */
    CVY_PASS_GRAD_APPLY, /**< batch norm: dx from those sums */
    CVY_PASS_COMMIT,     /**< batch norm: running statistics; once a mini-batch, never on recomputation */
    CVY_PASS_UPDATE,     /**< optimizers */
    CVY_PASS_MERGE,      /**< batch norm: statistics of some elements join those of others */
    CVY_PASS_COUNT
} cvy_op_pass;

/** What an operand is to its op. */
typedef enum cvy_role {
    CVY_ROLE_X,                /**< first input */
    CVY_ROLE_X1,               /**< second input of add, multiply, concat */
    CVY_ROLE_Y,                /**< output */
    CVY_ROLE_DX,               /**< gradient of the loss with respect to x */
    CVY_ROLE_DY,               /**< … to y */
    CVY_ROLE_W,                /**< weights (gamma of a norm; the whole parameter of an optimizer) */
    CVY_ROLE_B,                /**< bias (beta of a norm) */
    CVY_ROLE_DW,               /**< … to w */
    CVY_ROLE_DB,               /**< … to b */
    CVY_ROLE_MEAN,             /**< [c], of this batch; [n, g] of a group norm */
    CVY_ROLE_VARIANCE,         /**< as the mean, biased (divided by the count) */
    CVY_ROLE_RUNNING_MEAN,     /**< [c], over batches */
    CVY_ROLE_RUNNING_VARIANCE, /**< [c], over batches, unbiased */
    CVY_ROLE_WINDOW,           /**< max pooling: index (kd,kh,kw order) of the largest element, shaped as y */
    CVY_ROLE_PROBABILITY,      /**< softmax over classes, shaped as x */
    CVY_ROLE_LABEL,            /**< i32 [n] or [n,(d),h,w], plain: classes; for squared error values shaped as x */
    CVY_ROLE_LOSS,             /**< f64 [2]: loss of the batch (already scaled), correct predictions */
    CVY_ROLE_MOMENTUM,         /**< velocity of SGD; first moment of the Adams */
    CVY_ROLE_MOMENT2,          /**< second moment of the Adams */
    CVY_ROLE_DX1,              /**< gradient of the loss with respect to x1 */
    CVY_ROLE_X2,               /**< third input of concat */
    CVY_ROLE_X3,               /**< fourth input of concat */
    CVY_ROLE_SQUARES,          /**< f64 [slots]: sums of squares, of which each parameter has its places */
    CVY_ROLE_SCALE,            /**< f64 [1]: what clipping multiplies every gradient with */
    CVY_ROLE_AVERAGE,          /**< of a parameter over updates */
    CVY_ROLE_OVERLAP,          /**< f64 [n, classes, 2], plain: the sums of soft Dice */
    CVY_ROLE_DY1,              /**< a second part of the gradient to y, added to dy */
    CVY_ROLE_COUNT
} cvy_role;

/** How a step touches an operand. */
typedef enum cvy_access {
    CVY_ACCESS_NONE = 0,
    CVY_ACCESS_READ = 1,
    CVY_ACCESS_WRITE = 2,
    CVY_ACCESS_UPDATE = 3, /**< read, then written: accumulate, in place */
} cvy_access;

/** Kernel window of a convolution or a pooling, in d,h,w order; 2-D has kernel 1, stride 1, padding 0 in d. */
typedef struct cvy_window {
    int64_t kernel[3];
    int64_t stride[3];
    int64_t dilation[3]; /**< 1 is dense */
    int64_t before[3];   /**< padding at the low end */
    int64_t after[3];    /**< padding at the high end; negative where the last positions are not used */
} cvy_window;

typedef struct cvy_op_params_window {
    cvy_window window;
    int64_t groups;     /**< of convolutions, transposed or not; else 1 */
    bool count_padding; /**< average pooling: divide by the whole window (PyTorch's default) */
    bool winograd;      /**< CONVOLUTION: by Winograd's minimal filtering alone; see above */
} cvy_op_params_window;

typedef struct cvy_op_params_norm {
    double epsilon;
    double momentum;   /**< running = (1 - momentum) running + momentum new */
    int64_t count;     /**< elements a channel that statistics were taken over, all ranks (COMMIT's unbiasing,
                            GRAD_APPLY's means; BACKWARD is local and counts x); MERGE: after it */
    int64_t merged;    /**< MERGE: elements that the running ones stood for before it */
} cvy_op_params_norm;

typedef struct cvy_op_params_adaptive {
    int64_t output[3]; /**< positions that come out along d, h, w; d is 1 in 2-D */
} cvy_op_params_adaptive;

typedef struct cvy_op_params_global {
    int64_t positions; /**< of a whole sample, where x has a share of its space; 0: x has all of it */
} cvy_op_params_global;

typedef struct cvy_op_params_pick {
    int dim;
    cvy_intervals intervals; /**< of indices of x, at least one */
} cvy_op_params_pick;

typedef struct cvy_op_params_frame {
    int64_t first[3];  /**< position of x, along d,h,w, that is the first of y; below 0 where y begins before x */
    int64_t output[3]; /**< positions of y; d is 1 in 2-D */
} cvy_op_params_frame;

typedef struct cvy_op_params_dropout {
    double probability; /**< of dropping; survivors are scaled by 1 / (1 - probability) */
    int32_t layer;      /**< index of the layer: part of the random counter */
    int stretched;      /**< DROPOUT of a share: the one of c,d,h,w of which x has several stretches, ... */
    cvy_intervals stretches; /**< ... and these; none where it has one of each */
    int64_t whole[4];   /**< extents c,d,h,w of a whole sample, where x has a share of it; 0: x has all of it */
    int64_t first[4];   /**< index of x's first in each; that of `stretched` is not looked at */
} cvy_op_params_dropout;

typedef struct cvy_op_params_activation {
    double slope; /**< of leaky relu below 0 */
} cvy_op_params_activation;

typedef struct cvy_op_params_loss {
    double smoothing; /**< cross-entropy: share of the label's weight that is spread evenly over all classes */
    double epsilon;   /**< soft Dice: added above and below the line */
    int64_t positions; /**< cross-entropy: of a whole sample, where x has a share of its space; 0: x has all of it */
} cvy_op_params_loss;

typedef struct cvy_op_params_optimizer {
    double momentum;              /**< SGD */
    bool nesterov;
    double beta1, beta2, epsilon; /**< ADAMW, ADAM */
    double weight_decay;
    double clip_value;            /**< gradients are cut to it at both ends; 0: they are not */
    double trust;                 /**< LARS */
    int64_t slot, slots;          /**< LARS, LAMB: the parameter's two places in `squares`, of so many */
} cvy_op_params_optimizer;

typedef struct cvy_op_params_slice {
    int64_t first; /**< channel of dy that is channel 0 of dx */
} cvy_op_params_slice;

typedef struct cvy_op_params_group_norm {
    double epsilon;
    int64_t groups; /**< divides the channels */
} cvy_op_params_group_norm;

typedef struct cvy_op_params_response {
    int64_t size; /**< channels that are summed over */
    double alpha, beta, k;
} cvy_op_params_response;

typedef struct cvy_op_params_squares {
    int64_t slot, slots; /**< SQUARE_SUM writes one of so many places */
    double clip_norm;    /**< CLIP: the largest norm of all gradients together */
} cvy_op_params_squares;

typedef struct cvy_op_params_average {
    double decay; /**< share that the average keeps in an update */
} cvy_op_params_average;

enum { CVY_MAX_OPERANDS = 9 };

/** An operand: its role and its description in memory. */
typedef struct cvy_operand {
    cvy_role role;
    cvy_access access;
    cvy_tensor tensor;
} cvy_operand;

/** What a kernel computes. */
typedef struct cvy_op {
    cvy_op_kind kind;
    cvy_op_pass pass;
    bool relu; /**< the op is a relu's too, where cvy_op_takes_relu() */
    union {
        cvy_op_params_window window;       /**< CONVOLUTION, TRANSPOSED_CONVOLUTION, POOL_MAX, POOL_AVERAGE */
        cvy_op_params_adaptive adaptive;   /**< POOL_ADAPTIVE */
        cvy_op_params_norm norm;           /**< BATCH_NORM */
        cvy_op_params_dropout dropout;     /**< DROPOUT, STOCHASTIC_DEPTH */
        cvy_op_params_activation activation; /**< LEAKY_RELU */
        cvy_op_params_loss loss;           /**< SOFTMAX_CROSS_ENTROPY, SOFT_DICE */
        cvy_op_params_optimizer optimizer; /**< pass UPDATE, but for what stands below */
        cvy_op_params_slice slice;         /**< SLICE */
        cvy_op_params_group_norm group;    /**< GROUP_NORM */
        cvy_op_params_response response;   /**< LOCAL_RESPONSE_NORM */
        cvy_op_params_squares squares;     /**< SQUARE_SUM, CLIP */
        cvy_op_params_average average;     /**< AVERAGE */
        cvy_op_params_global global;       /**< POOL_GLOBAL */
        cvy_op_params_pick pick;           /**< PICK */
        cvy_op_params_frame frame;         /**< FRAME */
    } params;
    int operands;
    cvy_operand operand[CVY_MAX_OPERANDS]; /**< in the order of the signature; optional ones may be left out */
} cvy_op;

/** One place in a signature. */
typedef struct cvy_signature_place {
    cvy_role role;
    cvy_access access;
    bool optional;
} cvy_signature_place;

/** Operands that a (kind, pass) takes, in order. */
typedef struct cvy_signature {
    int places;
    cvy_signature_place place[CVY_MAX_OPERANDS];
} cvy_signature;

/** The signature of a pass; NULL where the kind has no such pass. The table in op.c is the law. */
const cvy_signature *cvy_op_signature(cvy_op_kind kind, cvy_op_pass pass);

/** "convolution", "dense", … Cannot fail. */
const char *cvy_op_kind_name(cvy_op_kind kind);

/** Whether a kind is a convolution, transposed or not: a window of weights, in groups. */
bool cvy_op_convolves(cvy_op_kind kind);

/** Whether a kind goes element by element, the same work whatever the shapes: activations, sums, updates. */
bool cvy_op_is_elementwise(cvy_op_kind kind);

/** Whether an op is a convolution with one filter for each channel. */
bool cvy_op_is_depthwise(const cvy_op *op);

/** Whether a kind is a loss of classes, one of each sample or of each position of it. */
bool cvy_op_classifies(cvy_op_kind kind);

/** Whether a kind multiplies with weights, which have formats of their own: convolutions and dense layers. */
bool cvy_op_has_weights(cvy_op_kind kind);

/** Whether an op is a convolution that asks for Winograd's algorithm. */
bool cvy_op_by_winograd(const cvy_op *op);

/** Whether a pass of a kind may be a relu's too. */
bool cvy_op_takes_relu(cvy_op_kind kind, cvy_op_pass pass);

/** Whether an operand is there with `relu` only: the relu's gradient tells by it where y or x is 0. */
bool cvy_op_tells_relu(cvy_op_kind kind, cvy_op_pass pass, cvy_role role);

/** "forward", "backward-data", … Cannot fail. */
const char *cvy_op_pass_name(cvy_op_pass pass);

/** "x", "dw", … Cannot fail. */
const char *cvy_role_name(cvy_role role);

/** Whether a role is a few numbers of the whole net, in double, whatever shape and type the others have. */
bool cvy_role_is_total(cvy_role role);

/** The operand of a role; NULL where the op has none. */
const cvy_operand *cvy_op_find(const cvy_op *op, cvy_role role);

/** The operand of a role, or else of another: of a tensor or its gradient, whichever a pass has; NULL without both. */
const cvy_operand *cvy_op_find_either(const cvy_op *op, cvy_role role, cvy_role other);

/** The position of a role among the operands; -1 where the op has none. */
int cvy_op_index(const cvy_op *op, cvy_role role);

/** The position of a role, or else of another, as cvy_op_find_either() finds it; -1 without both. */
int cvy_op_index_either(const cvy_op *op, cvy_role role, cvy_role other);

/**
 * Append an operand; the access comes from the signature.
 *
 * @retval CVY_ERR_ARG the signature has no such place, or operands are out of order
 */
cvy_status cvy_op_add(cvy_op *op, cvy_role role, const cvy_tensor *tensor);

/**
 * Check an op: every place that is not optional is filled, formats fit, shapes agree with each other.
 *
 * @retval CVY_ERR_ARG names the op, the operand, what was found and expected
 */
cvy_status cvy_op_check(const cvy_op *op);

/**
 * Whether the output (the first written operand) may lie on the memory of input @p role: every backend must then give
 * the same result in place. Said for activations, dropout and stochastic depth (y on x, dx on dy or dy1), for multiply
 * (the same; never on x1 or on dx1), add, batch norm's inference and dx on dy, and group norm's y on x and dx on dy.
 */
bool cvy_op_in_place(const cvy_op *op, cvy_role role);

/**
 * The description that an operand of @p role must have, given kind, pass, parameters and x: for outputs, statistics,
 * windows, probabilities, loss. Format plain for vectors and [n,c]; as x otherwise. The inputs of a concat beside x
 * have channels of their own: they are described as x.
 *
 * @param[in]  op        its parameters; operands are not looked at
 * @param[in]  x         the first input (for POOL…, with n)
 * @param[in]  filters   outputs of a convolution or dense layer, channels of a concat or of what is sliced; else not
 *                       looked at
 * @retval CVY_ERR_INPUT a window does not fit into the input
 */
cvy_status cvy_op_describe(const cvy_op *op, const cvy_tensor *x, int64_t filters, cvy_role role,
                           cvy_tensor *tensor_out);

/** Output extent of a window along axis @p axis (0 d, 1 h, 2 w) over an input of @p extent; below 1 where none fits. */
int64_t cvy_window_output(const cvy_window *window, int axis, int64_t extent);

/** The least input extent over which a window has @p positions positions; below 1 where there is none. */
int64_t cvy_window_input(const cvy_window *window, int axis, int64_t positions);

/** The space (d,h,w) of a tensor n,c,…; d = 1 in 2-D, all 1 for n,c. */
void cvy_space_get(const cvy_shape *shape, int64_t space_out[3]);

/** The extents c,d,h,w of a sample of a tensor n,…; 1 where it has no such dimension. */
void cvy_sample_get(const cvy_shape *shape, int64_t sample_out[4]);

/**
 * Floating point operations of an op. A multiply-add counts 2. Positions of a window that fall into the padding count,
 * as everywhere in the field.
 */
double cvy_op_flop(const cvy_op *op);

/**
 * What an op moves of an operand: the operand itself, but of one that it takes a part out of (PICK, SLICE) as much as
 * that part, which is what it writes. Borrowed from @p op; cannot fail.
 */
const cvy_tensor *cvy_op_moved(const cvy_op *op, int operand);

/** Bytes that an op must read and write once, with padding of formats; an operand that is updated counts twice. */
double cvy_op_bytes(const cvy_op *op);

/** A hash of all that the op says: equal ops have equal hashes, on every machine. */
uint64_t cvy_op_hash(const cvy_op *op);

/** Write one line such as "convolution forward relu x 8x3x32x32:plain w 16x3x3x3:o8 y …"; returns @p text. */
enum { CVY_OP_TEXT = 640 };
const char *cvy_op_print(const cvy_op *op, char *text);

#endif
