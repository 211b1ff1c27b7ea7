/* What the files of limits share: a strategy in its surroundings, what may be changed of them, and how far it goes. */
#ifndef CVY_ORACLE_LIMITS_INTERNAL_H
#define CVY_ORACLE_LIMITS_INTERNAL_H

#include <stddef.h>

#include "oracle/estimate_internal.h"
#include "oracle/limits.h"

/** A strategy in its surroundings, as they are or changed. */
typedef struct cvy_limits_case {
    const cvy_oracle *oracle; /**< of the machine and the options as they are */
    const cvy_model *model;
    const cvy_machine *machine;
    const cvy_oracle_options *options;
    const cvy_estimate_question *question;
    cvy_kept_plans *kept;     /**< of the question; NULL: none */
} cvy_limits_case;

/**
 * As cvy_limits_find() without changes, with the plans that were made for the question before.
 *
 * @param[in,out] kept  as of cvy_oracle_estimate_kept()
 */
cvy_status cvy_limits_find_kept(cvy_oracle *oracle, const cvy_estimate_question *question,
                                const cvy_estimate *estimate, cvy_kept_plans *kept, cvy_limit *limits_out,
                                int *count_out);

/** Append to a text of @p room bytes, printf style; what does not fit is left out. */
void cvy_limits_append(char *text, size_t room, const char *format, ...) __attribute__((format(printf, 3, 4)));

/** What may be made better. */
typedef enum cvy_change {
    CVY_CHANGE_LINK_BANDWIDTH,
    CVY_CHANGE_LINK_LATENCY,
    CVY_CHANGE_OVERLAP,
    CVY_CHANGE_STORAGE,
    CVY_CHANGE_STAGING,
    CVY_CHANGE_MEMORY_BANDWIDTH,
    CVY_CHANGE_PEAK,
    CVY_CHANGE_SHARDING,
    CVY_CHANGE_KEEPING,
    CVY_CHANGE_MICRO_BATCHES,
    CVY_CHANGE_BATCH,
    CVY_CHANGE_COUNT /**< none */
} cvy_change;

/** The share by which a limit is judged. */
typedef struct cvy_measure {
    double share;
    char what[CVY_LIMIT_TEXT];
} cvy_measure;

/** A rule: a row of the table in limits.c. */
typedef struct cvy_limit_rule {
    const char *name;
    double threshold;
    cvy_change changes[4]; /**< that could lift it; then CVY_CHANGE_COUNT */
    /** The share and what it is made of. @retval CVY_ERR_MEMORY */
    cvy_status (*measure)(const cvy_limits_case *now, const cvy_estimate *estimate, cvy_measure *measure_out);
} cvy_limit_rule;

/** A strategy with one change made, and priced. */
typedef struct cvy_priced {
    bool priced;           /**< else `estimate` says nothing yet */
    int64_t batch;
    cvy_estimate estimate; /**< perhaps not feasible */
} cvy_priced;

/** What is priced once and asked several times: each change made twice as good, and as good as can be. */
typedef struct cvy_what_ifs {
    cvy_limits_case now;
    const cvy_estimate *estimate;
    cvy_priced doubled[CVY_CHANGE_COUNT], ideal[CVY_CHANGE_COUNT];
} cvy_what_ifs;

/**
 * Find the change that lifts a limit, and by how much it must be made; fills in `faster`, `gone_at` and `lift`.
 *
 * @param[in,out] limit  its share is above its threshold
 * @retval CVY_ERR_MEMORY
 */
cvy_status cvy_limits_lift(cvy_what_ifs *what_ifs, const cvy_limit_rule *rule, cvy_limit *limit);

/** Estimate the strategy on a machine with so many ports that no flow shares a link. @retval CVY_ERR_MEMORY */
cvy_status cvy_limits_estimate_alone(const cvy_limits_case *now, cvy_estimate *estimate_out);

/**
 * The most ranks that the axes in use could have together, each by itself, of this model, batch and machine.
 *
 * @param[out] most_out  at least the ranks of the strategy
 * @param[out] text      of CVY_LIMIT_TEXT bytes: the axes, and the most of each
 * @retval CVY_ERR_MEMORY
 */
cvy_status cvy_limits_most_ranks(const cvy_limits_case *now, double *most_out, char *text);

#endif
