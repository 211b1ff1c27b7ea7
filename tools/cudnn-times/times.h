/* What the files of cudnn-times share: shapes, a stopwatch on the device, and what a failing library says. */
#ifndef CUDNN_TIMES_H
#define CUDNN_TIMES_H

#include <stddef.h>
#include <stdio.h>

/** Sizes of a row: n samples, c channels, h w positions, f filters or outputs, k the window, g groups. */
typedef struct shape {
    int n, c, h, w, f, k, stride, pad, g;
} shape;

/** What is timed, and where rows go. */
typedef struct bench {
    FILE *out;
    void *stream;            /* a cudaStream_t */
    void *begin, *end;       /* a cudaEvent_t each */
    int runs;                /* of each kernel, behind one that warms up */
    size_t memory_bytes;     /* larger shapes are left out */
} bench;

/** A kernel: run once on the bench's stream. Returns 0, or says what failed. */
typedef int kernel(void *context);

/** Time a kernel by events, the median of runs, and write its row. Returns 0. */
int time_kernel(bench *b, const char *name, const char *pass, const shape *s, int bias, kernel *run, void *context);

/** Memory of floats on the device, not all 0; NULL and words where there is none. */
float *take_floats(size_t count);
void free_floats(float *floats);

/** cuDNN's kernels of a shape: convolution, its bias, pooling, relu, batch norm, dropout, add. Return 0. */
int time_cudnn_convolution(bench *b, const shape *s);
int time_cudnn_maps(bench *b, const shape *s);

/** Softmax over f classes of n samples, there and back. */
int time_cudnn_softmax(bench *b, const shape *s);

/** cuBLAS's products of a dense layer of c inputs and f outputs. */
int time_cublas_dense(bench *b, const shape *s);

/** NCCL's all-reduce over all devices of this process, from 64 bytes on: rows `ranks,bytes,seconds`. */
int time_nccl(FILE *out, int runs);

/** Word a failure of a library; 1. */
int complain(const char *call, const char *words);

#endif
