/*
 * What limits a strategy, by the rules of Kahira et al. (HPDC 2021), table V, made computable: each with the number
 * behind it, and the change that would lift it.
 */
#ifndef CVY_ORACLE_LIMITS_H
#define CVY_ORACLE_LIMITS_H

#include "oracle/search.h"

enum { CVY_MAX_LIMITS = 11, CVY_LIMIT_TEXT = 200 };

typedef struct cvy_limit {
    const char *name;            /**< "gradient exchange", "layer-wise communication", … */
    double share;                /**< of the iteration, of the memory, or of the whole: see `what` */
    char what[CVY_LIMIT_TEXT];   /**< the number behind it, in words and units */
    char lift[CVY_LIMIT_TEXT];   /**< "with 2x link bandwidth 11 % faster; gone at 3.1x"; empty where nothing does */
} cvy_limit;

/** Find what limits an estimated strategy, the largest share first. @param[in] what_if also price the changes that
 * would lift them, each by a few more estimates. @param[out] limits_out CVY_MAX_LIMITS */
cvy_status cvy_limits_find(cvy_oracle *oracle, const cvy_estimate_question *question, const cvy_estimate *estimate,
                           bool what_if, cvy_limit *limits_out, int *count_out);

/** One sentence: why the pick of a search is the pick. Returns @p text, of CVY_WHY_TEXT bytes. */
const char *cvy_limits_say_why(const cvy_search *search, char *text);

#endif
