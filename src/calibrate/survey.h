/*
 * A survey of a machine's kernels: shapes of every family are drawn and measured, round by round, until a budget is
 * spent. Within a round the order is shuffled, so that a machine that slows down does not do so for one kind of op.
 * Between two runs of a kernel other memory is touched, as other layers touch theirs in a training. Of ten kernels one
 * has nothing between, two have so much that no cache holds their operands, the others 256 KiB to most_between bytes,
 * even by their logarithm: nine tenths of the time of the zoo's iterations go to layers with 1 to 17 MB between.
 */
#ifndef CVY_CALIBRATE_SURVEY_H
#define CVY_CALIBRATE_SURVEY_H

#include "calibrate/journal.h"
#include "calibrate/meter.h"
#include "calibrate/noise.h"
#include "calibrate/shapes.h"

/** How far a survey is. */
typedef struct cvy_kernel_survey_progress {
    int kernels;    /**< measured so far, with those of a journal */
    double spent_s; /**< in all sessions */
    double left_s;
} cvy_kernel_survey_progress;

/** What to survey. */
typedef struct cvy_kernel_survey_options {
    uint64_t seed;
    cvy_shape_limits limits;
    double most_between;   /**< bytes to touch between two runs of a kernel, at most */
    double budget_s;       /**< no further kernel is begun once so much was spent; the first round is always whole */
    int rounds;            /**< shapes of each family, at most */
    const cvy_op *op;      /**< ops to measure before all others, as those of a model; borrowed */
    const double *distance; /**< of each of them: bytes touched since its operands were; borrowed */
    int ops;
    cvy_journal *journal;  /**< what it has is not measured again; borrowed */
    void (*tell)(void *context, const cvy_kernel_survey_progress *progress); /**< after each kernel; NULL: nobody */
    bool (*stop)(void *context); /**< asked before each kernel whether to end here; NULL: never */
    void *context;
} cvy_kernel_survey_options;

/** A kernel that was measured. */
typedef struct cvy_kernel_survey_row {
    cvy_op op;
    cvy_metered metered;  /**< as it was measured */
    cvy_kernel_time time; /**< at the machine's usual pace */
    int family;  /**< -1: of the options' own ops */
    int shape;   /**< the same number for all passes of one shape, and for no other */
} cvy_kernel_survey_row;

/** What came out. Starts from {0}. */
typedef struct cvy_kernel_survey {
    cvy_kernel_survey_row *row;
    int rows, capacity;
    int refused;     /**< ops that no backend runs, or for which there is no memory */
    int rounds;      /**< whole ones */
    bool stopped;    /**< it was asked to end early */
    double spent_s;
    double probe_s;       /**< of the probe at the usual pace; 0: there was none */
    double interruptions; /**< what interrupts kernels adds to their undisturbed time, as a share of it */
    cvy_noise_report noise;
} cvy_kernel_survey;

/**
 * Survey. Not collective.
 *
 * @param[out] survey_out      released with cvy_kernel_survey_clear(), also after a failure
 * @retval CVY_ERR_INFEASIBLE  limits that no shape of a family keeps
 * @retval CVY_ERR_IO          the journal cannot be written
 * @retval CVY_ERR_MEMORY
 */
cvy_status cvy_kernel_survey_run(const cvy_meter *meter, const cvy_kernel_survey_options *options,
                                 cvy_kernel_survey *survey_out);

/** Release and empty. */
void cvy_kernel_survey_clear(cvy_kernel_survey *survey);

#endif
