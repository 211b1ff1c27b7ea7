/*
 * What limits a strategy, by the rules of Kahira et al. (HPDC 2021), table V, made computable: each with the number
 * behind it, and the change that would lift it.
 *
 * | limit                    | its share                                                     | limits above |
 * |--------------------------|---------------------------------------------------------------|--------------|
 * | gradient exchange        | what sticks out of it, by the iteration                       | 10 %         |
 * | layer-wise communication | redistributions between layers, likewise                      | 10 %         |
 * | P2P communication        | halos and messages between stages, likewise                   | 10 %         |
 * | network congestion       | what the iteration would save if no flow shared a link        | 10 %         |
 * | I/O and staging          | waiting for input, by the iteration                           | 10 %         |
 * | memory redundancy        | weights, gradients, state that other ranks hold, by all bytes | 50 %         |
 * | fragmentation            | the arena of an iteration by what lives in it, less 1         | 10 %         |
 * | weight update            | by all computation of the iteration                           | 5 %          |
 * | workload balance         | what the average rank stands idle, by the iteration           | 10 %         |
 * | computation redundancy   | operations of all ranks by those of one, less 1               | 10 %         |
 * | number of ranks          | by the most that the axes in use could have                   | 50 %         |
 */
#ifndef CVY_ORACLE_LIMITS_H
#define CVY_ORACLE_LIMITS_H

#include "oracle/search.h"

enum { CVY_MAX_LIMITS = 11, CVY_LIMIT_TEXT = 200 };

typedef struct cvy_limit {
    const char *name;          /**< as in the table above */
    double share;
    double threshold;          /**< that the share is above */
    char what[CVY_LIMIT_TEXT]; /**< the numbers behind it, in words and units */
    double faster;             /**< what the best change saves of an image's seconds; 0 where none was priced */
    double gone_at;            /**< by how much that change must be made for the share to be at the threshold; INFINITY:
                                    it never is; 0 where none was priced */
    char lift[CVY_LIMIT_TEXT]; /**< "with 2x link bandwidth 11 % faster, gone at 3.1x"; empty where nothing lifts it */
} cvy_limit;

/**
 * Find what limits an estimated strategy: what costs most of the iteration first, then limits of memory, then of ranks.
 * Not collective.
 *
 * A change is a copy of the machine, of the options or of the question with one thing made better, for which the
 * strategy is estimated again. Of those that make a limit's share less, or if none does of all, the one that saves most
 * at 2x is told.
 *
 * @param[in]  estimate    of @p question by @p oracle; one that is not feasible has no limits
 * @param[in]  what_if     also price changes, each by a few more estimates
 * @param[out] limits_out  room for CVY_MAX_LIMITS
 * @param[out] count_out   how many there are; untouched on failure
 * @retval CVY_ERR_MEMORY
 */
cvy_status cvy_limits_find(cvy_oracle *oracle, const cvy_estimate_question *question, const cvy_estimate *estimate,
                           bool what_if, cvy_limit *limits_out, int *count_out);

/**
 * One sentence: why the pick of a search is the pick, beside data parallelism. Cannot fail.
 *
 * @param[out] text  of CVY_WHY_TEXT bytes
 * @return @p text
 */
const char *cvy_limits_say_why(const cvy_search *search, char *text);

#endif
