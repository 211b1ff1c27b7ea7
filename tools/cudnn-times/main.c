/*
 * Times of cuDNN's and cuBLAS's kernels as a CSV that `convoy calibrate --import` reads, and of NCCL's all-reduce.
 *
 *   cudnn-times KERNELS.csv [SHAPES [SEED]]   SHAPES of each kind (default 100)
 *   cudnn-times --all-reduce FILE.csv         over all devices of this machine
 *
 * Shapes are drawn by their logarithms, as convoy calibrate draws them: samples 1 to 256, channels and filters 1 to
 * 2048, sides 1 to 230, kernels 1 to 11.
 */
#include <cuda_runtime.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "times.h"

enum { MOST_RUNS = 64 };

int complain(const char *call, const char *words)
{
    fprintf(stderr, "cudnn-times: %s: %s\n", call, words);
    return 1;
}

static int check(cudaError_t error, const char *call)
{
    return error == cudaSuccess ? 0 : complain(call, cudaGetErrorString(error));
}

float *take_floats(size_t count)
{
    void *floats = NULL;
    if (check(cudaMalloc(&floats, count * sizeof(float)), "cudaMalloc") ||
        check(cudaMemset(floats, 0x3c, count * sizeof(float)), "cudaMemset")) { /* 0x3c3c3c3c is 0.0115 */
        cudaFree(floats);
        return NULL;
    }
    return floats;
}

void free_floats(float *floats) { cudaFree(floats); }

/* ---- the stopwatch ---- */

static int compare(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static int run_timed(bench *b, kernel *run, void *context, float *milliseconds)
{
    if (check(cudaEventRecord((cudaEvent_t)b->begin, (cudaStream_t)b->stream), "cudaEventRecord") || run(context) ||
        check(cudaEventRecord((cudaEvent_t)b->end, (cudaStream_t)b->stream), "cudaEventRecord") ||
        check(cudaEventSynchronize((cudaEvent_t)b->end), "cudaEventSynchronize")) {
        return 1;
    }
    return check(cudaEventElapsedTime(milliseconds, (cudaEvent_t)b->begin, (cudaEvent_t)b->end),
                 "cudaEventElapsedTime");
}

int time_kernel(bench *b, const char *name, const char *pass, const shape *s, int bias, kernel *run, void *context)
{
    float ms[MOST_RUNS];
    if (run_timed(b, run, context, &ms[0])) { /* warms up */
        return 1;
    }
    for (int i = 0; i < b->runs; i++) {
        if (run_timed(b, run, context, &ms[i])) {
            return 1;
        }
    }
    qsort(ms, (size_t)b->runs, sizeof ms[0], compare);
    double middle = ms[b->runs / 2], apart = ms[3 * (b->runs - 1) / 4] - ms[(b->runs - 1) / 4];
    fprintf(b->out, "%s,%s,%d,%d,", name, pass, s->n, s->c);
    if (s->h > 0) {
        fprintf(b->out, "%d,%d,", s->h, s->w);
    } else {
        fprintf(b->out, ",,");
    }
    fprintf(b->out, "%d,%d,%d,%d,%d,%d,%d,%.6g,%.3g\n", s->f, s->k, s->k, s->stride, s->pad, s->g, bias,
            middle / 1e3, apart / 2.0 / middle);
    return ferror(b->out) ? complain("the table", "cannot be written") : 0;
}

/* ---- shapes ---- */

static unsigned long long state;

/* From 0 to 1: a linear congruential generator (Knuth, MMIX). */
static double draw(void)
{
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (double)(state >> 11) / 9007199254740992.0;
}

static int draw_log(int least, int most)
{
    return (int)(least * exp(draw() * log((double)most / least)) + 0.5);
}

static int draw_channels(int most)
{
    int channels = draw_log(1, most);
    return draw() < 0.5 && channels < most - 8 ? (channels + 7) / 8 * 8 : channels;
}

static shape draw_shape(void)
{
    static const int kernels[] = {1, 1, 1, 3, 3, 3, 3, 5, 7, 11};
    shape s = {.n = draw_log(1, 256), .c = draw_channels(2048), .f = draw_channels(2048), .g = 1};
    s.k = kernels[(int)(draw() * 10)];
    s.h = s.w = draw_log(1, 230);
    s.stride = draw() < 0.75 ? 1 : 2;
    s.pad = draw() < 0.75 ? (s.k - 1) / 2 : 0;
    if (draw() < 0.125) { /* by depth */
        s.f = s.g = s.c;
    }
    return s;
}

/* Whether it has outputs, and all of it fits. */
static int is_possible(const bench *b, const shape *s)
{
    double map = (double)s->n * s->h * s->w, most = s->c > s->f ? s->c : s->f;
    double bytes = 4.0 * (3.0 * map * most + 3.0 * (double)s->c * s->f * s->k * s->k);
    return s->h + 2 * s->pad >= s->k && bytes < (double)b->memory_bytes;
}

static int time_shapes(bench *b, int shapes)
{
    fprintf(b->out, "kernel,pass,n,c,h,w,f,kh,kw,stride,pad,g,bias,seconds,error\n");
    for (int i = 0; i < shapes;) {
        shape s = draw_shape();
        shape products = {.n = draw_log(1, 512), .c = draw_log(8, 9216), .f = draw_log(2, 4096), .k = 1, .stride = 1,
                          .g = 1};
        shape classes = {.n = draw_log(1, 1024), .c = draw_log(2, 1000), .f = 1, .k = 1, .stride = 1, .g = 1};
        if (!is_possible(b, &s)) {
            continue;
        }
        if (time_cudnn_convolution(b, &s) || time_cudnn_maps(b, &s) || time_cublas_dense(b, &products) ||
            time_cudnn_softmax(b, &classes)) {
            return 1;
        }
        fprintf(stderr, "\r%d of %d shapes", ++i, shapes);
    }
    fprintf(stderr, "\n");
    return 0;
}

static int time_all(FILE *out, int shapes)
{
    size_t free_bytes = 0, all_bytes = 0;
    bench b = {.out = out, .runs = 21};
    cudaStream_t stream;
    cudaEvent_t begin, end;
    if (check(cudaMemGetInfo(&free_bytes, &all_bytes), "cudaMemGetInfo") ||
        check(cudaStreamCreate(&stream), "cudaStreamCreate") || check(cudaEventCreate(&begin), "cudaEventCreate") ||
        check(cudaEventCreate(&end), "cudaEventCreate")) {
        return 1;
    }
    b.stream = stream;
    b.begin = begin;
    b.end = end;
    b.memory_bytes = free_bytes / 4; /* workspaces want their part */
    return time_shapes(&b, shapes);
}

int main(int argc, char **argv)
{
    int nccl = argc == 3 && strcmp(argv[1], "--all-reduce") == 0;
    if (argc < 2 || (argv[1][0] == '-' && !nccl)) {
        fprintf(stderr, "usage: cudnn-times KERNELS.csv [SHAPES [SEED]] | --all-reduce FILE.csv\n");
        return 2;
    }
    FILE *out = fopen(argv[nccl ? 2 : 1], "w");
    if (!out) {
        return complain(argv[nccl ? 2 : 1], "cannot be written");
    }
    state = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
    int failed = nccl ? time_nccl(out, 21) : time_all(out, argc > 2 ? atoi(argv[2]) : 100);
    return fclose(out) != 0 || failed;
}
