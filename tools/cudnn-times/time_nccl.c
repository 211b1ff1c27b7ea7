/* An all-reduce of all devices of this process, each size from an idle network on, as long as on the slowest device. */
#include <cuda_runtime.h>
#include <nccl.h>
#include <stdlib.h>
#include <time.h>

#include "times.h"

enum { MOST_DEVICES = 64, FIRST_BYTES = 64, LAST_BYTES = 256 << 20 };

typedef struct world {
    int devices;
    ncclComm_t comm[MOST_DEVICES];
    cudaStream_t stream[MOST_DEVICES];
    float *buffer[MOST_DEVICES];
} world;

static int check_nccl(ncclResult_t result, const char *call)
{
    return result == ncclSuccess ? 0 : complain(call, ncclGetErrorString(result));
}

static int check(cudaError_t error, const char *call)
{
    return error == cudaSuccess ? 0 : complain(call, cudaGetErrorString(error));
}

static int set_up(world *w)
{
    if (check(cudaGetDeviceCount(&w->devices), "cudaGetDeviceCount")) {
        return 1;
    }
    if (w->devices < 2 || w->devices > MOST_DEVICES) {
        return complain("all-reduce", "2 to 64 devices are needed");
    }
    for (int i = 0; i < w->devices; i++) {
        if (check(cudaSetDevice(i), "cudaSetDevice") || check(cudaStreamCreate(&w->stream[i]), "cudaStreamCreate") ||
            !(w->buffer[i] = take_floats(LAST_BYTES / sizeof(float)))) {
            return 1;
        }
    }
    return check_nccl(ncclCommInitAll(w->comm, w->devices, NULL), "ncclCommInitAll");
}

static int reduce(world *w, size_t bytes, double *seconds)
{
    struct timespec begin, end;
    timespec_get(&begin, TIME_UTC);
    if (check_nccl(ncclGroupStart(), "ncclGroupStart")) {
        return 1;
    }
    for (int i = 0; i < w->devices; i++) {
        if (check_nccl(ncclAllReduce(w->buffer[i], w->buffer[i], bytes / sizeof(float), ncclFloat, ncclSum, w->comm[i],
                                     w->stream[i]), "ncclAllReduce")) {
            return 1;
        }
    }
    if (check_nccl(ncclGroupEnd(), "ncclGroupEnd")) {
        return 1;
    }
    for (int i = 0; i < w->devices; i++) {
        if (check(cudaSetDevice(i), "cudaSetDevice") ||
            check(cudaStreamSynchronize(w->stream[i]), "cudaStreamSynchronize")) {
            return 1;
        }
    }
    timespec_get(&end, TIME_UTC);
    *seconds = (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
    return 0;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int time_sizes(world *w, FILE *out, int runs)
{
    double *seconds = malloc((size_t)runs * sizeof *seconds);
    int failed = !seconds;
    fprintf(out, "ranks,bytes,seconds\n");
    for (size_t bytes = FIRST_BYTES; bytes <= LAST_BYTES && !failed; bytes *= 4) {
        failed = reduce(w, bytes, &seconds[0]); /* warms up */
        for (int i = 0; i < runs && !failed; i++) {
            failed = reduce(w, bytes, &seconds[i]);
        }
        if (!failed) {
            qsort(seconds, (size_t)runs, sizeof *seconds, compare);
            fprintf(out, "%d,%zu,%.6g\n", w->devices, bytes, seconds[runs / 2]);
        }
    }
    free(seconds);
    return failed;
}

int time_nccl(FILE *out, int runs)
{
    world w = {.devices = 0};
    return set_up(&w) || time_sizes(&w, out, runs);
}
