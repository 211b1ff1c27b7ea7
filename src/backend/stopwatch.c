/*
 * A kernel without vectors may take twenty times as long as the best one; run for the whole batch, a few of these take
 * longer than all others together. So what competes with a rival is first tried with a few samples. The answer is then
 * too large rather than too small (a kernel over fewer samples is no better filled), which the factors leave room for.
 */
#include "backend/stopwatch.h"

#ifdef _OPENMP
#include <omp.h>
#endif

static const double hopeless = 2.0;       /* times the rival, of one run of the whole batch */
static const double hopeless_trial = 3.0; /* times the rival, multiplied up from a few samples */

/* A trial is at least so many times smaller than the batch: else it saves too little. */
enum { TRIAL_SHARE = 4 };

/*
 * Flop a byte below which a trial is none: weights that are read once for any batch would be most of it. A core has
 * some 6 flop a byte of memory.
 */
static const double trial_flop_per_byte = 8.0;

struct cvy_stopwatch_entry {
    uint64_t hash;
    double seconds;
};

static int64_t count_threads(void)
{
#ifdef _OPENMP
    return omp_get_max_threads();
#else
    return 1;
#endif
}

static bool has_samples(cvy_role role)
{
    return role == CVY_ROLE_X || role == CVY_ROLE_Y || role == CVY_ROLE_DX || role == CVY_ROLE_DY;
}

/* The op for one sample a thread; false where that tells nothing of the whole. */
static bool make_trial(const cvy_op *op, cvy_op *trial, double *times_out)
{
    int64_t samples = op->operand[0].tensor.shape.extent[0], few = count_threads();
    if (!cvy_op_convolves(op->kind) || !has_samples(op->operand[0].role) || samples < TRIAL_SHARE * few) {
        return false;
    }
    *trial = *op;
    for (int i = 0; i < trial->operands; i++) {
        if (has_samples(trial->operand[i].role)) {
            trial->operand[i].tensor.shape.extent[0] = few;
        }
    }
    *times_out = (double)samples / (double)few;
    return cvy_op_flop(trial) >= trial_flop_per_byte * cvy_op_bytes(trial);
}

/* Whether a trial is run as the whole batch is: a backend may leave a small batch to another one. */
static bool runs_alike(const cvy_backend_chain *chain, const cvy_op *trial, const cvy_op *op)
{
    const cvy_backend *one = NULL, *other = NULL;
    cvy_quality quality = cvy_backend_quality(chain, trial, &one);
    return quality == cvy_backend_quality(chain, op, &other) && one == other;
}

/* Try it with a few samples: sets the seconds and answers true in @p lost_out where it loses even so. */
static cvy_status try_few(const cvy_stopwatch *stopwatch, const cvy_op *op, double rival_s, double *seconds,
                          bool *lost_out)
{
    static const cvy_measure_effort once = {.least_runs = 1, .most_runs = 1, .long_s = CVY_STOPWATCH_LONG_S};
    cvy_op trial;
    double times, few_s;
    *lost_out = false;
    if (!make_trial(op, &trial, &times) || !runs_alike(stopwatch->chain, &trial, op)) {
        return CVY_OK;
    }
    CVY_TRY(cvy_kernel_measure(stopwatch->chain, &trial, &once, &few_s));
    *lost_out = times * few_s > hopeless_trial * rival_s;
    *seconds = *lost_out ? times * few_s : *seconds;
    return CVY_OK;
}

static cvy_status measure_anew(const cvy_stopwatch *stopwatch, const cvy_op *op, double rival_s, double *seconds)
{
    cvy_measure_effort effort = stopwatch->effort;
    bool lost = false;
    effort.long_s = CVY_STOPWATCH_LONG_S;
    if (rival_s >= CVY_STOPWATCH_LONG_S) {
        effort.hopeless_s = hopeless * rival_s;
        CVY_TRY(try_few(stopwatch, op, rival_s, seconds, &lost));
    }
    return lost ? CVY_OK : cvy_kernel_measure(stopwatch->chain, op, &effort, seconds);
}

cvy_status cvy_stopwatch_measure(cvy_stopwatch *stopwatch, const cvy_op *op, double rival_s, double *seconds_out)
{
    uint64_t hash = cvy_op_hash(op);
    for (int i = 0; i < stopwatch->entries; i++) {
        if (stopwatch->entry[i].hash == hash) {
            *seconds_out = stopwatch->entry[i].seconds;
            return CVY_OK;
        }
    }
    CVY_TRY(cvy_array_reserve(&stopwatch->entry, stopwatch->entries, &stopwatch->capacity, sizeof *stopwatch->entry));
    CVY_TRY(measure_anew(stopwatch, op, rival_s, seconds_out));
    stopwatch->entry[stopwatch->entries++] = (struct cvy_stopwatch_entry){hash, *seconds_out};
    return CVY_OK;
}

void cvy_stopwatch_clear(cvy_stopwatch *stopwatch)
{
    cvy_free(stopwatch->entry);
    stopwatch->entry = NULL;
    stopwatch->entries = stopwatch->capacity = 0;
}
