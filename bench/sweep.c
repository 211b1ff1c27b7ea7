/*
 * How long a study takes on one core: resnet50 over 5 parameters of 5 values on 11 numbers of ranks, 32 samples a rank,
 * data parallelism alone and with the search for better strategies. Usage: sweep [MODEL [MACHINE]].
 */
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>

#include "base/order.h"
#include "oracle/sweep.h"

enum { ROUNDS = 3, SAMPLES = 32, MOST_RANKS = 1024 };

static cvy_sweep_options make_options(bool search)
{
    cvy_sweep_options o = {.oracle = {.precision = CVY_PRECISION_FP32, .bucket_bytes = -1,
                                      .optimizer = {.params = {.momentum = 0.9}}},
                           .batch = SAMPLES, .batch_per_rank = true, .strategies = 1, .strategy = {"data"},
                           .search = search};
    for (int64_t ranks = 1; ranks <= MOST_RANKS; ranks *= 2) {
        o.ranks[o.rank_counts++] = ranks;
    }
    for (int p = CVY_VARIED_BATCH; p <= CVY_VARIED_LINK_LATENCY; p++) {
        cvy_sweep_axis *axis = &o.axis[o.axes++];
        axis->parameter = (cvy_varied)p;
        for (double factor = 0.25; factor <= 4.0; factor *= 2.0) {
            axis->value[axis->values++].factor = factor;
        }
    }
    return o;
}

static cvy_status measure(const cvy_model *model, const cvy_machine *machine, bool search)
{
    cvy_sweep_options options = make_options(search);
    double seconds[ROUNDS];
    int64_t estimates = 0;
    int points = 0;
    for (int i = 0; i < ROUNDS; i++) {
        cvy_sweep *sweep = NULL;
        CVY_TRY(cvy_sweep_create(model, machine, &options, &sweep));
        seconds[i] = sweep->sweep_s;
        estimates = sweep->estimates;
        points = sweep->points;
        cvy_sweep_destroy(&sweep);
    }
    cvy_sort_doubles(seconds, ROUNDS);
    printf("sweep, %-16s %d points, %" PRId64 " estimates in %.3f s\n", search ? "data and search:" : "data alone:",
           points, estimates, seconds[ROUNDS / 2]);
    return CVY_OK;
}

int main(int count, char **words)
{
    cvy_model *model = NULL;
    cvy_machine *machine = NULL;
    mallopt(M_TRIM_THRESHOLD, 1 << 28); /* as the program does */
    mallopt(M_MMAP_THRESHOLD, 1 << 25);
    cvy_status status = cvy_model_open(count > 1 ? words[1] : "resnet50", &model);
    status = status == CVY_OK ? cvy_machine_open(count > 2 ? words[2] : "abci", &machine) : status;
    status = status == CVY_OK ? measure(model, machine, false) : status;
    status = status == CVY_OK ? measure(model, machine, true) : status;
    if (status != CVY_OK) {
        fprintf(stderr, "sweep: %s\n", cvy_error_message());
    }
    cvy_machine_destroy(&machine);
    cvy_model_destroy(&model);
    return status != CVY_OK;
}
