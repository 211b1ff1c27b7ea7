/* All ranks of a strategy: the plan of each, by rule. */
#ifndef CVY_TESTS_PLAN_RANKS_H
#define CVY_TESTS_PLAN_RANKS_H

#include <stdlib.h>

#include "plan/distribution.h"
#include "plan/plan.h"

typedef struct ranks {
    cvy_model *model;
    cvy_strategy strategy;
    cvy_distribution *distribution;
    int count;
    cvy_plan **plan;
} ranks;

/* Ranks that a strategy's text has: the product of its numbers, and 4 where it has none. */
static inline int count_ranks(const char *text)
{
    int count = 1, numbers = 0;
    for (const char *at = text; *at; at++) {
        if (at[0] == '=' && at[1] >= '1' && at[1] <= '9') {
            bool micro = at >= text + 7 && at[-1] == 's' && at[-2] == 'e'; /* micro-batches */
            count *= micro ? 1 : atoi(at + 1);
            numbers += !micro;
        }
    }
    return numbers ? count : 4;
}

/* False where the strategy is not feasible for the model. The options' batch and parallel options count. */
static inline bool open_ranks(const char *model, const char *strategy, const cvy_plan_options *options,
                              const cvy_distribution_options *given, ranks *r)
{
    int64_t space[3];
    cvy_distribution_options divided = given ? *given : (cvy_distribution_options){0};
    *r = (ranks){.count = count_ranks(strategy)};
    divided.batch = options->batch;
    if (cvy_model_open(model, &r->model) != CVY_OK) {
        fail_msg("%s", cvy_error_message());
    }
    cvy_space_get(&r->model->layer[0].output, space);
    if (cvy_strategy_parse(strategy, r->count, space, &r->strategy) != CVY_OK) {
        fail_msg("%s", cvy_error_message());
    }
    if (cvy_distribution_create(r->model, &r->strategy, &divided, &r->distribution) != CVY_OK) {
        cvy_model_destroy(&r->model);
        return false;
    }
    r->plan = calloc((size_t)r->count, sizeof *r->plan);
    for (int i = 0; i < r->count; i++) {
        cvy_plan_options own = *options;
        own.parallel.distribution = r->distribution;
        own.parallel.rank = i;
        if (cvy_plan_create(r->model, &own, &r->plan[i]) != CVY_OK) {
            fail_msg("%s %s, rank %d: %s", model, strategy, i, cvy_error_message());
        }
    }
    return true;
}

static inline void close_ranks(ranks *r)
{
    for (int i = 0; i < r->count; i++) {
        cvy_plan_destroy(&r->plan[i]);
    }
    free(r->plan);
    cvy_distribution_destroy(&r->distribution);
    cvy_model_destroy(&r->model);
}

#endif
