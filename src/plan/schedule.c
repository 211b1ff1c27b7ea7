/* What a schedule is by itself: release, aliases, hash, words. */
#include "plan/schedule.h"

#include "base/hash.h"
#include "base/memory.h"

void cvy_schedule_clear(cvy_schedule *s)
{
    cvy_free(s->step);
    cvy_free(s->buffer);
    cvy_free(s->op);
    cvy_free(s->choice);
    cvy_free(s->use);
    cvy_free(s->dependency);
    cvy_free(s->exchange);
    cvy_free(s->message);
    *s = (cvy_schedule){0};
}

int cvy_schedule_root(const cvy_schedule *schedule, int buffer)
{
    while (schedule->buffer[buffer].alias_of >= 0) {
        buffer = schedule->buffer[buffer].alias_of;
    }
    return buffer;
}

int64_t cvy_schedule_alias_offset(const cvy_schedule *schedule, int buffer)
{
    int64_t offset = 0;
    while (schedule->buffer[buffer].alias_of >= 0) {
        offset += schedule->buffer[buffer].alias_offset;
        buffer = schedule->buffer[buffer].alias_of;
    }
    return offset;
}

cvy_interval cvy_schedule_micro_batch(const cvy_schedule *schedule, int micro_batch)
{
    return cvy_intervals_share(schedule->batch, schedule->micro_batches, micro_batch).at[0];
}

/* What a communication step says; nothing of steps that send nothing, which keep their hashes. */
static uint64_t mix_exchange(uint64_t hash, const cvy_schedule *s, const cvy_exchange *exchange)
{
    const int64_t said[] = {exchange->collective, exchange->axes, exchange->bytes, exchange->bucket, exchange->sum,
                            exchange->merge,      exchange->messages};
    for (size_t k = 0; k < sizeof said / sizeof said[0]; k++) {
        hash = cvy_hash_word(hash, (uint64_t)said[k]);
    }
    for (int i = 0; i < exchange->messages; i++) {
        const cvy_message *message = &s->message[exchange->first_message + i];
        for (int axis = 0; axis < 6; axis++) {
            hash = cvy_hash_word(hash, (uint64_t)message->peer_offset[axis]);
        }
        hash = cvy_hash_word(hash, (uint64_t)message->bytes);
        hash = cvy_hash_word(hash, message->receive);
    }
    return hash;
}

uint64_t cvy_schedule_hash(const cvy_schedule *s)
{
    uint64_t hash = CVY_HASH_INIT;
    for (int i = 0; i < s->steps; i++) {
        const cvy_step *step = &s->step[i];
        const int64_t said[] = {step->kind,   step->phase, step->layer, step->micro_batch, step->chunk,
                                step->stream, step->issue, step->every, step->offset,      step->uses};
        for (size_t k = 0; k < sizeof said / sizeof said[0]; k++) {
            hash = cvy_hash_word(hash, (uint64_t)said[k]);
        }
        hash = cvy_hash_word(hash, step->op >= 0 ? cvy_op_hash(&s->op[step->op]) : UINT64_MAX);
        hash = step->exchange >= 0 ? mix_exchange(hash, s, &s->exchange[step->exchange]) : hash;
        for (int k = 0; k < step->uses; k++) {
            const cvy_use *use = &s->use[step->first_use + k];
            hash = cvy_hash_word(hash, (uint64_t)use->buffer);
            hash = cvy_hash_word(hash, (uint64_t)use->access);
            hash = cvy_hash_word(hash, (uint64_t)s->buffer[use->buffer].offset);
        }
    }
    return hash;
}

const char *cvy_stream_name(cvy_stream stream)
{
    static const char *const name[CVY_STREAM_COUNT] = {
        [CVY_STREAM_MAIN] = "compute",
        [CVY_STREAM_GRADIENTS] = "gradients",
        [CVY_STREAM_FORWARD_IN] = "from the stage before",
        [CVY_STREAM_FORWARD_OUT] = "to the stage after",
        [CVY_STREAM_GRADIENT_IN] = "from the stage after",
        [CVY_STREAM_GRADIENT_OUT] = "to the stage before",
    };
    return name[stream];
}

const char *cvy_phase_name(cvy_phase phase)
{
    static const char *const name[CVY_PHASE_COUNT] = {
        [CVY_PHASE_IO] = "io",
        [CVY_PHASE_FORWARD] = "forward",
        [CVY_PHASE_RECOMPUTE] = "recompute",
        [CVY_PHASE_BACKWARD] = "backward",
        [CVY_PHASE_HALO] = "halo",
        [CVY_PHASE_REDISTRIBUTE] = "redistribute",
        [CVY_PHASE_GRADIENT_EXCHANGE] = "gradient_exchange",
        [CVY_PHASE_UPDATE] = "update",
    };
    return name[phase];
}

const char *cvy_buffer_role_name(cvy_buffer_role role)
{
    static const char *const name[CVY_BUFFER_ROLE_COUNT] = {
        [CVY_BUFFER_WEIGHTS] = "weights",
        [CVY_BUFFER_GRADIENTS] = "gradients",
        [CVY_BUFFER_OPTIMIZER] = "optimizer",
        [CVY_BUFFER_ACTIVATIONS] = "activations",
        [CVY_BUFFER_WORKSPACE] = "workspace",
        [CVY_BUFFER_COMMUNICATION] = "communication",
        [CVY_BUFFER_DATA] = "data",
    };
    return name[role];
}
