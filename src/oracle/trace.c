/* What an estimate looked at, taken over from it. */
#include "base/memory.h"
#include "oracle/estimate_internal.h"

cvy_status cvy_trace_take(cvy_trace *trace, cvy_pricing *pricing, cvy_priced_rank *rank, int count)
{
    trace->rank = cvy_calloc((size_t)count, sizeof *trace->rank);
    if (!trace->rank) {
        return CVY_ERR_MEMORY;
    }
    trace->ranks = count;
    trace->distribution = pricing->distribution;
    pricing->distribution = NULL;
    for (int i = 0; i < count; i++) {
        trace->rank[i] = (cvy_trace_rank){
            .plan = rank[i].plan, .rank = rank[i].rank, .times = rank[i].times, .start_s = rank[i].start_s};
        rank[i].plan = NULL;
        rank[i].times = rank[i].start_s = NULL;
    }
    return CVY_OK;
}

void cvy_trace_destroy(cvy_trace **trace)
{
    if (trace && *trace) {
        for (int i = 0; i < (*trace)->ranks; i++) {
            cvy_plan_destroy(&(*trace)->rank[i].plan);
            cvy_free((*trace)->rank[i].times);
            cvy_free((*trace)->rank[i].start_s);
        }
        cvy_free((*trace)->rank);
        cvy_free((*trace)->slice);
        cvy_distribution_destroy(&(*trace)->distribution);
        cvy_free(*trace);
        *trace = NULL;
    }
}
