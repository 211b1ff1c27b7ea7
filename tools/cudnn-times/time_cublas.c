/* A dense layer, row by row in memory: y = x W', dx = dy W, dW = dy' x; the bias' gradient is dy' times ones. */
#include <cublas_v2.h>

#include "times.h"

typedef struct dense {
    cublasHandle_t handle;
    int n, c, f, bias;
    float *x, *y, *w, *ones, *b;
} dense;

static const float one = 1.0f, zero = 0.0f;

static int check(cublasStatus_t status, const char *call)
{
    return status == CUBLAS_STATUS_SUCCESS ? 0 : complain(call, "cuBLAS refuses");
}

/* Columns are cuBLAS's order: a matrix by rows is its transpose. */
static int forward(void *context)
{
    const dense *d = context;
    float beta = d->bias ? one : zero;
    return check(cublasSgemm(d->handle, CUBLAS_OP_T, CUBLAS_OP_N, d->f, d->n, d->c, &one, d->w, d->c, d->x, d->c,
                             &beta, d->y, d->f), "cublasSgemm");
}

static int backward_data(void *context)
{
    const dense *d = context;
    return check(cublasSgemm(d->handle, CUBLAS_OP_N, CUBLAS_OP_N, d->c, d->n, d->f, &one, d->w, d->c, d->y, d->f,
                             &zero, d->x, d->c), "cublasSgemm");
}

static int backward_weights(void *context)
{
    const dense *d = context;
    if (check(cublasSgemm(d->handle, CUBLAS_OP_N, CUBLAS_OP_T, d->c, d->f, d->n, &one, d->x, d->c, d->y, d->f, &zero,
                          d->w, d->c), "cublasSgemm")) {
        return 1;
    }
    return d->bias ? check(cublasSgemv(d->handle, CUBLAS_OP_N, d->f, d->n, &one, d->y, d->f, d->ones, 1, &zero, d->b,
                                       1), "cublasSgemv")
                   : 0;
}

int time_cublas_dense(bench *b, const shape *s)
{
    dense d = {.n = s->n, .c = s->c, .f = s->f};
    int failed = 1;
    if (check(cublasCreate(&d.handle), "cublasCreate") ||
        check(cublasSetStream(d.handle, (cudaStream_t)b->stream), "cublasSetStream")) {
        return 1;
    }
    d.x = take_floats((size_t)s->n * (size_t)s->c);
    d.y = take_floats((size_t)s->n * (size_t)s->f);
    d.w = take_floats((size_t)s->c * (size_t)s->f);
    d.ones = take_floats((size_t)s->n);
    d.b = take_floats((size_t)s->f);
    if (d.x && d.y && d.w && d.ones && d.b) {
        failed = 0;
        for (d.bias = 0; d.bias < 2 && !failed; d.bias++) {
            failed = time_kernel(b, "dense", "forward", s, d.bias, forward, &d) ||
                     time_kernel(b, "dense", "backward-weights", s, d.bias, backward_weights, &d) ||
                     (!d.bias && time_kernel(b, "dense", "backward-data", s, 0, backward_data, &d));
        }
    }
    float *all[] = {d.x, d.y, d.w, d.ones, d.b};
    for (int i = 0; i < 5; i++) {
        free_floats(all[i]);
    }
    cublasDestroy(d.handle);
    return failed;
}
