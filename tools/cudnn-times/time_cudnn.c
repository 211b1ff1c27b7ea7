/*
 * cuDNN's kernels of one shape. Convolutions run by the algorithm that cuDNN finds to be the fastest here, as
 * frameworks do after their first iterations. Tensors are plain (NCHW), numbers float.
 */
#include <cudnn.h>

#include "times.h"

/* Everything that a kernel of a shape may ask for. */
typedef struct work {
    cudnnHandle_t handle;
    cudnnTensorDescriptor_t x, y, bias, channels;
    cudnnFilterDescriptor_t w;
    cudnnConvolutionDescriptor_t convolution;
    cudnnPoolingDescriptor_t pooling;
    cudnnActivationDescriptor_t relu;
    cudnnDropoutDescriptor_t dropout;
    cudnnConvolutionFwdAlgo_t forward;
    cudnnConvolutionBwdDataAlgo_t backward_data;
    cudnnConvolutionBwdFilterAlgo_t backward_weights;
    size_t workspace_bytes, states_bytes, reserve_bytes;
    float *xs, *ys, *dxs, *dys, *ws, *dws, *bs, *scratch, *states, *reserve;
    int biased;
} work;

static const float one = 1.0f, zero = 0.0f;

static int check(cudnnStatus_t status, const char *call)
{
    return status == CUDNN_STATUS_SUCCESS ? 0 : complain(call, cudnnGetErrorString(status));
}

/* For functions that return what the call does. */
#define TRY(call) \
    do { \
        if (check(call, #call)) { \
            return 1; \
        } \
    } while (0)

/* ---- kernels ---- */

static int convolve(void *context)
{
    work *k = context;
    TRY(cudnnConvolutionForward(k->handle, &one, k->x, k->xs, k->w, k->ws, k->convolution, k->forward, k->scratch,
                                k->workspace_bytes, &zero, k->y, k->ys));
    return k->biased ? check(cudnnAddTensor(k->handle, &one, k->bias, k->bs, &one, k->y, k->ys), "cudnnAddTensor") : 0;
}

static int convolve_back(void *context)
{
    work *k = context;
    TRY(cudnnConvolutionBackwardData(k->handle, &one, k->w, k->ws, k->y, k->dys, k->convolution, k->backward_data,
                                     k->scratch, k->workspace_bytes, &zero, k->x, k->dxs));
    return 0;
}

static int convolve_weights(void *context)
{
    work *k = context;
    TRY(cudnnConvolutionBackwardFilter(k->handle, &one, k->x, k->xs, k->y, k->dys, k->convolution,
                                       k->backward_weights, k->scratch, k->workspace_bytes, &zero, k->w, k->dws));
    return k->biased ? check(cudnnConvolutionBackwardBias(k->handle, &one, k->y, k->dys, &zero, k->bias, k->bs),
                             "cudnnConvolutionBackwardBias")
                     : 0;
}

static int pool(void *context)
{
    work *k = context;
    TRY(cudnnPoolingForward(k->handle, k->pooling, &one, k->x, k->xs, &zero, k->y, k->ys));
    return 0;
}

static int pool_back(void *context)
{
    work *k = context;
    TRY(cudnnPoolingBackward(k->handle, k->pooling, &one, k->y, k->ys, k->y, k->dys, k->x, k->xs, &zero, k->x,
                             k->dxs));
    return 0;
}

static int activate(void *context)
{
    work *k = context;
    TRY(cudnnActivationForward(k->handle, k->relu, &one, k->x, k->xs, &zero, k->x, k->dxs));
    return 0;
}

static int activate_back(void *context)
{
    work *k = context;
    TRY(cudnnActivationBackward(k->handle, k->relu, &one, k->x, k->xs, k->x, k->dxs, k->x, k->xs, &zero, k->x,
                                k->dxs));
    return 0;
}

/* Scale, shift, running and saved statistics, and gradients: six vectors of channels, one behind the other. */
static int normalise(void *context)
{
    work *k = context;
    TRY(cudnnBatchNormalizationForwardTraining(k->handle, CUDNN_BATCHNORM_SPATIAL, &one, &zero, k->x, k->xs, k->x,
                                               k->dxs, k->channels, k->ws, k->ws, 0.1, k->bs, k->bs, 1e-5, k->states,
                                               k->reserve));
    return 0;
}

static int normalise_back(void *context)
{
    work *k = context;
    TRY(cudnnBatchNormalizationBackward(k->handle, CUDNN_BATCHNORM_SPATIAL, &one, &zero, &one, &zero, k->x, k->xs,
                                        k->x, k->dxs, k->x, k->dxs, k->channels, k->ws, k->dws, k->bs, 1e-5,
                                        k->states, k->reserve));
    return 0;
}

static int drop(void *context)
{
    work *k = context;
    TRY(cudnnDropoutForward(k->handle, k->dropout, k->x, k->xs, k->x, k->dxs, k->reserve, k->reserve_bytes));
    return 0;
}

static int drop_back(void *context)
{
    work *k = context;
    TRY(cudnnDropoutBackward(k->handle, k->dropout, k->x, k->dxs, k->x, k->xs, k->reserve, k->reserve_bytes));
    return 0;
}

static int add(void *context)
{
    work *k = context;
    TRY(cudnnAddTensor(k->handle, &one, k->x, k->xs, &one, k->x, k->dxs));
    return 0;
}

static int classify(void *context)
{
    work *k = context;
    TRY(cudnnSoftmaxForward(k->handle, CUDNN_SOFTMAX_LOG, CUDNN_SOFTMAX_MODE_INSTANCE, &one, k->x, k->xs, &zero, k->x,
                            k->dxs));
    return 0;
}

static int classify_back(void *context)
{
    work *k = context;
    TRY(cudnnSoftmaxBackward(k->handle, CUDNN_SOFTMAX_LOG, CUDNN_SOFTMAX_MODE_INSTANCE, &one, k->x, k->dxs, k->x,
                             k->xs, &zero, k->x, k->xs));
    return 0;
}

/* ---- what they need ---- */

static void clear(work *k)
{
    float *all[] = {k->xs, k->ys, k->dxs, k->dys, k->ws, k->dws, k->bs, k->scratch, k->states, k->reserve};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        free_floats(all[i]);
    }
    if (k->handle) {
        cudnnDestroyTensorDescriptor(k->x);
        cudnnDestroyTensorDescriptor(k->y);
        cudnnDestroyTensorDescriptor(k->bias);
        cudnnDestroyTensorDescriptor(k->channels);
        cudnnDestroyFilterDescriptor(k->w);
        cudnnDestroyConvolutionDescriptor(k->convolution);
        cudnnDestroyPoolingDescriptor(k->pooling);
        cudnnDestroyActivationDescriptor(k->relu);
        cudnnDestroyDropoutDescriptor(k->dropout);
        cudnnDestroy(k->handle);
    }
}

static int make_handles(const bench *b, work *k)
{
    TRY(cudnnCreate(&k->handle));
    TRY(cudnnSetStream(k->handle, (cudaStream_t)b->stream));
    TRY(cudnnCreateTensorDescriptor(&k->x));
    TRY(cudnnCreateTensorDescriptor(&k->y));
    TRY(cudnnCreateTensorDescriptor(&k->bias));
    TRY(cudnnCreateTensorDescriptor(&k->channels));
    TRY(cudnnCreateFilterDescriptor(&k->w));
    TRY(cudnnCreateConvolutionDescriptor(&k->convolution));
    TRY(cudnnCreatePoolingDescriptor(&k->pooling));
    TRY(cudnnCreateActivationDescriptor(&k->relu));
    TRY(cudnnCreateDropoutDescriptor(&k->dropout));
    return 0;
}

static int set_tensor(cudnnTensorDescriptor_t tensor, int n, int c, int h, int w)
{
    TRY(cudnnSetTensor4dDescriptor(tensor, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, n, c, h, w));
    return 0;
}

static size_t most(size_t a, size_t b) { return a > b ? a : b; }

/* The fastest algorithms, and the largest workspace that they want. */
static int find_algorithms(work *k)
{
    cudnnConvolutionFwdAlgoPerf_t forward;
    cudnnConvolutionBwdDataAlgoPerf_t data;
    cudnnConvolutionBwdFilterAlgoPerf_t weights;
    int found;
    TRY(cudnnFindConvolutionForwardAlgorithm(k->handle, k->x, k->w, k->convolution, k->y, 1, &found, &forward));
    TRY(cudnnFindConvolutionBackwardDataAlgorithm(k->handle, k->w, k->y, k->convolution, k->x, 1, &found, &data));
    TRY(cudnnFindConvolutionBackwardFilterAlgorithm(k->handle, k->x, k->y, k->convolution, k->w, 1, &found,
                                                    &weights));
    k->forward = forward.algo;
    k->backward_data = data.algo;
    k->backward_weights = weights.algo;
    k->workspace_bytes = most(forward.memory, most(data.memory, weights.memory));
    k->scratch = take_floats(k->workspace_bytes / sizeof(float) + 1);
    return !k->scratch;
}

static int take_maps(work *k, const shape *s, size_t outputs, size_t weights)
{
    size_t inputs = (size_t)s->n * (size_t)s->c * (size_t)s->h * (size_t)s->w;
    k->xs = take_floats(inputs);
    k->dxs = take_floats(inputs);
    k->ys = take_floats(outputs);
    k->dys = take_floats(outputs);
    k->ws = take_floats(weights);
    k->dws = take_floats(weights);
    k->bs = take_floats((size_t)(s->f > s->c ? s->f : s->c));
    return !(k->xs && k->dxs && k->ys && k->dys && k->ws && k->dws && k->bs);
}

static int set_up_convolution(work *k, const shape *s)
{
    int n, f, oh, ow;
    size_t weights = (size_t)s->f * (size_t)(s->c / s->g) * (size_t)s->k * (size_t)s->k;
    TRY(cudnnSetFilter4dDescriptor(k->w, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, s->f, s->c / s->g, s->k, s->k));
    TRY(cudnnSetConvolution2dDescriptor(k->convolution, s->pad, s->pad, s->stride, s->stride, 1, 1,
                                        CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
    TRY(cudnnSetConvolutionGroupCount(k->convolution, s->g));
    if (set_tensor(k->x, s->n, s->c, s->h, s->w)) {
        return 1;
    }
    TRY(cudnnGetConvolution2dForwardOutputDim(k->convolution, k->x, k->w, &n, &f, &oh, &ow));
    return set_tensor(k->y, n, f, oh, ow) || set_tensor(k->bias, 1, f, 1, 1) ||
           take_maps(k, s, (size_t)n * (size_t)f * (size_t)oh * (size_t)ow, weights) || find_algorithms(k);
}

int time_cudnn_convolution(bench *b, const shape *s)
{
    work k = {.handle = NULL};
    int failed = make_handles(b, &k) || set_up_convolution(&k, s);
    for (k.biased = 0; k.biased < 2 && !failed; k.biased++) {
        failed = time_kernel(b, "convolution", "forward", s, k.biased, convolve, &k) ||
                 time_kernel(b, "convolution", "backward-weights", s, k.biased, convolve_weights, &k) ||
                 (!k.biased && time_kernel(b, "convolution", "backward-data", s, 0, convolve_back, &k));
    }
    clear(&k);
    return failed;
}

/* ---- what passes over maps ---- */

/* A window of 2 or 3 at stride 2. */
static int set_up_maps(work *k, const shape *s)
{
    int n, c, oh, ow;
    if (set_tensor(k->x, s->n, s->c, s->h, s->w) || set_tensor(k->channels, 1, s->c, 1, 1)) {
        return 1;
    }
    TRY(cudnnSetPooling2dDescriptor(k->pooling, CUDNN_POOLING_MAX, CUDNN_NOT_PROPAGATE_NAN, s->k, s->k, 0, 0,
                                    s->stride, s->stride));
    TRY(cudnnGetPooling2dForwardOutputDim(k->pooling, k->x, &n, &c, &oh, &ow));
    TRY(cudnnSetActivationDescriptor(k->relu, CUDNN_ACTIVATION_RELU, CUDNN_NOT_PROPAGATE_NAN, 0.0));
    TRY(cudnnDropoutGetStatesSize(k->handle, &k->states_bytes));
    TRY(cudnnDropoutGetReserveSpaceSize(k->x, &k->reserve_bytes));
    size_t states = most(k->states_bytes / sizeof(float), (size_t)s->c);
    k->states = take_floats(states + 1);
    k->reserve = take_floats(most(k->reserve_bytes / sizeof(float), (size_t)s->c) + 1);
    return !k->states || !k->reserve || set_tensor(k->y, n, c, oh, ow) ||
           take_maps(k, s, (size_t)n * (size_t)c * (size_t)oh * (size_t)ow, (size_t)s->c) ||
           check(cudnnSetDropoutDescriptor(k->dropout, k->handle, 0.5f, k->states, k->states_bytes, 1),
                 "cudnnSetDropoutDescriptor");
}

int time_cudnn_maps(bench *b, const shape *s)
{
    static const struct {
        const char *name, *pass;
        kernel *run;
        int windowed;
    } rows[] = {{"max-pool", "forward", pool, 1},         {"max-pool", "backward-data", pool_back, 1},
                {"relu", "forward", activate, 0},         {"relu", "backward-data", activate_back, 0},
                {"dropout", "forward", drop, 0},          {"dropout", "backward-data", drop_back, 0},
                {"batch-norm", "forward", normalise, 0},  {"batch-norm", "backward", normalise_back, 0},
                {"add", "forward", add, 0}}; /* norms write over the states of dropout, so they come behind it */
    work k = {.handle = NULL};
    shape map = {.n = s->n, .c = s->c, .h = s->h, .w = s->w, .f = s->c, .k = 1, .stride = 1, .g = 1}, windowed = map;
    windowed.k = s->h < 3 ? s->h : 2 + s->n % 2;
    windowed.stride = windowed.k > 1 ? 2 : 1;
    int failed = make_handles(b, &k) || set_up_maps(&k, &windowed);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0] && !failed; i++) {
        failed = time_kernel(b, rows[i].name, rows[i].pass, rows[i].windowed ? &windowed : &map, 0, rows[i].run, &k);
    }
    clear(&k);
    return failed;
}

int time_cudnn_softmax(bench *b, const shape *s)
{
    work k = {.handle = NULL};
    shape map = *s;
    map.h = map.w = 1;
    int failed = make_handles(b, &k) || set_tensor(k.x, s->n, s->c, 1, 1) || take_maps(&k, &map, 1, 1) ||
                 time_kernel(b, "softmax-cross-entropy", "forward", s, 0, classify, &k) ||
                 time_kernel(b, "softmax-cross-entropy", "backward-data", s, 0, classify_back, &k);
    clear(&k);
    return failed;
}
