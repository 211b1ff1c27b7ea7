/* What the files of the search share: private to the oracle. */
#ifndef CVY_ORACLE_SEARCH_INTERNAL_H
#define CVY_ORACLE_SEARCH_INTERNAL_H

#include "oracle/bound.h"
#include "oracle/search.h"

enum { CVY_FAMILIES = 32, CVY_PROSPECT_PLACES = 2048 };

/** A strategy with its bound. */
typedef struct cvy_configuration {
    cvy_strategy strategy;
    cvy_recompute recompute;
    cvy_bounded bounded;
    bool feasible; /**< a place that is taken, by one that can be */
} cvy_configuration;

/** What bounds tell: of each family the most promising, and of all of them those that rank first. */
typedef struct cvy_prospects {
    const cvy_search_options *options;
    const cvy_machine *machine;
    double limit_bytes;                           /**< of a device; INFINITY: unknown */
    cvy_configuration family[CVY_FAMILIES]; /**< best that may fit; where none may, the one of the fewest bytes */
    cvy_configuration lightest;                   /**< the fewest bytes of all */
    cvy_configuration impossible_one[CVY_FAMILIES]; /**< one whose block cannot cut the model */
    int64_t impossible_count[CVY_FAMILIES];
    int places;
    cvy_configuration *place;                     /**< a heap, the least promising in front; once sorted, the best */
    int64_t configurations, left_out;
} cvy_prospects;

/** The kind of a strategy: which axes it has, and its channel cut. */
int cvy_strategy_find_kind(const cvy_strategy *strategy);

/** What an objective ranks by; then by seconds. */
double cvy_objective_value(cvy_objective objective, double iteration_s, double bytes);

/** Bound all strategies. @param[out] prospects  released with cvy_prospects_clear() whatever comes of it */
cvy_status cvy_prospects_fill(cvy_oracle *oracle, cvy_bound *bound, const cvy_search_options *options,
                           cvy_prospects *prospects);

/** Release and empty. */
void cvy_prospects_clear(cvy_prospects *prospects);

/** Put candidates in order, find the pick, data parallelism and the front. */
void cvy_search_rank(cvy_search *search, const cvy_search_options *options);

#endif
