/*
 * How often each step of a rank's schedule runs in an iteration. Without stages the schedule is the iteration: once. A
 * stage is planned for two micro-batches, the first and the last: all that are as large as the first run as it does,
 * the others as the last. Gradients are added up behind each micro-batch but the first, statistics of norms are merged
 * likewise, and the exchange of gradients and the update come once.
 */
#include "base/memory.h"
#include "oracle/estimate_internal.h"

bool cvy_step_passes_stage(const cvy_schedule *s, const cvy_step *step)
{
    if (step->kind != CVY_STEP_EXCHANGE) {
        return false;
    }
    const cvy_exchange *exchange = &s->exchange[step->exchange];
    return exchange->messages > 0 && s->message[exchange->first_message].peer_offset[CVY_AXIS_STAGE] != 0;
}

bool cvy_step_passes_forward(const cvy_schedule *s, const cvy_step *step)
{
    const cvy_message *message = &s->message[s->exchange[step->exchange].first_message];
    return (message->peer_offset[CVY_AXIS_STAGE] > 0) != message->receive;
}

bool cvy_step_sums_gradient(const cvy_schedule *s, const cvy_step *step)
{
    if (step->kind != CVY_STEP_LOCAL || step->phase != CVY_PHASE_BACKWARD || s->op[step->op].kind != CVY_OP_ADD) {
        return false;
    }
    const cvy_buffer *sum = &s->buffer[s->use[step->first_use + s->op[step->op].operands - 1].buffer];
    return sum->content == CVY_CONTENT_GRADIENT && sum->parameter >= 0;
}

static double count_times(const cvy_pricing *pricing, const cvy_schedule *s, const cvy_step *step)
{
    double all = (double)pricing->micro_batches, larger = (double)pricing->larger;
    if (pricing->stages == 1) {
        return 1.0;
    }
    if (step->op >= 0 && (s->op[step->op].pass == CVY_PASS_MERGE || cvy_step_sums_gradient(s, step))) {
        return all - 1.0;
    }
    if (cvy_step_ends_iteration(step)) {
        return 1.0;
    }
    return step->micro_batch == 0 ? larger : all - larger;
}

/* The last step of a micro-batch's forward: it goes to the next stage, or the loss is looked at. */
static bool ends_forward(const cvy_schedule *s, const cvy_step *step)
{
    if (cvy_step_passes_stage(s, step)) {
        return cvy_step_passes_forward(s, step) && !s->message[s->exchange[step->exchange].first_message].receive;
    }
    return step->kind == CVY_STEP_CONTROL && step->phase == CVY_PHASE_FORWARD;
}

cvy_status cvy_price_count(const cvy_pricing *pricing, cvy_priced_rank *rank)
{
    const cvy_schedule *s = &rank->plan->schedule[CVY_SCHEDULE_TRAIN];
    int gone_forward = 0; /* micro-batches, in their order */
    rank->times = cvy_calloc((size_t)s->steps + 1, sizeof *rank->times);
    rank->forward = cvy_calloc((size_t)s->steps + 1, sizeof *rank->forward);
    if (!rank->times || !rank->forward) {
        return CVY_ERR_MEMORY;
    }
    for (int i = 0; i < s->steps; i++) {
        const cvy_step *step = &s->step[i];
        rank->times[i] = count_times(pricing, s, step);
        rank->forward[i] = step->micro_batch >= gone_forward && !cvy_step_ends_iteration(step);
        gone_forward += ends_forward(s, step);
    }
    return CVY_OK;
}
