/* Seconds of a kernel by the clock: what plans choose formats by, and what a floor is summed from. */
#ifndef CVY_BACKEND_MEASURE_H
#define CVY_BACKEND_MEASURE_H

#include "backend/backend.h"
#include "backend/probe.h"
#include "base/memory.h"

/** How much to spend on a kernel. */
typedef struct cvy_measure_effort {
    int least_runs;   /**< after one that warms up */
    int most_runs;
    double enough_s;  /**< no further run is begun once the runs took so long together */
    bool median;      /**< the middle run counts, as for what is held against a median; else the fastest */
    double steady;    /**< no further run is begun once the median is known to this share of it; 0: not looked at */
    double hopeless_s; /**< no further run is begun once one took longer; 0: not looked at */
    double long_s;    /**< a run that warms up and takes longer counts like the others: what is cold at its beginning is
                           little of it; 0, or with a probe: none counts */
    unsigned char *between; /**< memory that all threads together go through before each run, as other layers go through
                                 theirs, so that operands are no nearer than they would be; NULL: none; borrowed */
    size_t between_bytes;
    bool evict; /**< operands are thrown out of all caches before each run, as far as the processor can be asked to */
    cvy_probe *probe; /**< run between the runs, every few milliseconds: the seconds of each run are as if the probe had
                           always taken its mean; NULL: seconds by the clock; borrowed */
} cvy_measure_effort;

#define CVY_MEASURE_QUICK {.least_runs = 2, .most_runs = 8, .enough_s = 0.01}
#define CVY_MEASURE_TYPICAL {.least_runs = 3, .most_runs = 9, .enough_s = 0.02, .median = true}

/** No effort has more runs. */
enum { CVY_MEASURE_MAX_RUNS = 64 };

/**
 * Measure one run of an op with the first backend of the chain that takes it: the fastest of some runs, since what
 * disturbs a run only ever makes it longer, or the median of them.
 *
 * Not collective. Takes the memory of the operands meanwhile, in one arena; floats are some number between 1/2 and 3/2
 * each, since a processor may be faster with zeros, all else is zeroed.
 *
 * @param[out] seconds_out   of one run with the threads that are set
 * @retval CVY_ERR_UNSUPPORTED nobody takes the op
 * @retval CVY_ERR_MEMORY      the operands do not fit
 */
cvy_status cvy_kernel_measure(const cvy_backend_chain *chain, const cvy_op *op, const cvy_measure_effort *effort,
                              double *seconds_out);

/** Runs of a kernel. */
typedef struct cvy_measured_runs {
    double seconds[CVY_MEASURE_MAX_RUNS]; /**< of each run, the shortest first */
    int runs;
    cvy_probe_time probe; /**< mean of the probes before, between and behind them; zeros without a probe */
} cvy_measured_runs;

/** Measure runs of an op, as cvy_kernel_measure() does. */
cvy_status cvy_kernel_measure_runs(const cvy_backend_chain *chain, const cvy_op *op, const cvy_measure_effort *effort,
                                   cvy_measured_runs *runs_out);

/**
 * Take the memory of a kernel's operands, zeroed, one behind the other as a plan would place them, and of its scratch.
 *
 * @param[out] arena_out  released with cvy_arena_destroy(), also after a failure
 * @param[out] operand    addresses; room for CVY_MAX_OPERANDS
 */
cvy_status cvy_kernel_take_memory(const cvy_kernel *kernel, cvy_arena *arena_out, void **operand, void **scratch);

/** Write numbers into a kernel's operands: floats from 1/2 to 3/2; all else stays as it is. */
void cvy_kernel_fill(const cvy_kernel *kernel, void *const *operand);

/** How far a median of sorted seconds is known, relative: 1.57 quartile distances by the root of the runs. */
double cvy_measure_doubt(const double *seconds, int runs);

#endif
