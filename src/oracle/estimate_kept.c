/*
 * Plans that are priced again. Planning takes most of an estimate, and what it decides hangs on the model, the
 * strategy, the options and the habits of the framework, not on rates; but stages are balanced by the seconds of
 * layers, which rates change.
 */
#include <string.h>

#include "base/memory.h"
#include "oracle/estimate_internal.h"

void cvy_kept_plans_clear(cvy_kept_plans *kept)
{
    for (int i = 0; i < kept->plans; i++) {
        cvy_plan_destroy(&kept->plan[i].plan);
    }
    cvy_free(kept->plan);
    cvy_free(kept->stages);
    cvy_distribution_destroy(&kept->distribution);
    *kept = (cvy_kept_plans){.plans = 0};
}

cvy_plan *cvy_kept_plans_find(const cvy_kept_plans *kept, int64_t rank)
{
    for (int i = 0; i < kept->plans; i++) {
        if (kept->plan[i].rank == rank) {
            return kept->plan[i].plan;
        }
    }
    return NULL;
}

cvy_status cvy_kept_plans_add(cvy_kept_plans *kept, int64_t rank, cvy_plan *plan)
{
    CVY_TRY(cvy_array_reserve(&kept->plan, kept->plans, &kept->capacity, sizeof *kept->plan));
    kept->plan[kept->plans].rank = rank;
    kept->plan[kept->plans++].plan = plan;
    return CVY_OK;
}

/* Bytes that no member fills may differ: then plans are made for nothing, and are right. */
static bool is_planned_alike(const cvy_kept_plans *kept, const cvy_oracle *o)
{
    bool wide = kept->options.precision == CVY_PRECISION_FP64, now = o->options.precision == CVY_PRECISION_FP64;
    cvy_oracle_options options = o->options;
    options.precision = kept->options.precision;
    return wide == now && memcmp(&kept->options, &options, sizeof options) == 0 &&
           memcmp(&kept->execution, &o->machine->execution, sizeof kept->execution) == 0;
}

bool cvy_kept_plans_hold(cvy_kept_plans *kept, const cvy_oracle *oracle, const int *stages, int count)
{
    size_t bytes = ((size_t)count + 1) * sizeof *stages;
    bool alike = kept->distribution && is_planned_alike(kept, oracle) && !stages == !kept->stages &&
                 (!stages || memcmp(stages, kept->stages, bytes) == 0);
    if (!alike) {
        cvy_kept_plans_clear(kept);
    }
    return alike;
}

cvy_status cvy_kept_plans_begin(cvy_kept_plans *kept, const cvy_oracle *oracle, const int *stages, int count,
                                cvy_distribution *distribution)
{
    size_t bytes = ((size_t)count + 1) * sizeof *stages;
    if (stages) {
        kept->stages = cvy_calloc(1, bytes);
        if (!kept->stages) {
            return CVY_ERR_MEMORY;
        }
        memcpy(kept->stages, stages, bytes);
    }
    memcpy(&kept->options, &oracle->options, sizeof kept->options);
    memcpy(&kept->execution, &oracle->machine->execution, sizeof kept->execution);
    kept->distribution = distribution;
    return CVY_OK;
}
