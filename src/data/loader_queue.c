/*
 * The order of samples: batches of the epoch in slots, slots in a queue, and a few samples of a slot to each thread
 * that asks. Threads share a batch, and start on the next while the last samples of this one are still being read. All
 * of it is called with the mutex held.
 */
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/random.h"
#include "data/loader_internal.h"

enum { CLAIMS_A_THREAD = 4 }; /* a batch is shared so finely that no thread waits long for another one's last samples */

static int find_free_slot(const cvy_loader *loader)
{
    for (int i = 0; i < loader->options.slots; i++) {
        if (loader->slot[i].place == SLOT_FREE) {
            return i;
        }
    }
    return -1;
}

/* The i-th slot of the queue. */
static cvy_loader_slot *find_queued(const cvy_loader *loader, int i)
{
    return &loader->slot[loader->queue[(loader->queue_first + i) % loader->options.slots]];
}

void cvy_loader_queue_restart(cvy_loader *loader, uint32_t epoch, int64_t first)
{
    for (int i = 0; i < loader->queued; i++) {
        cvy_loader_slot *queued = find_queued(loader, i);
        queued->place = queued->done == queued->claimed ? SLOT_FREE : SLOT_DROPPED;
    }
    loader->queued = 0;
    loader->run = (cvy_loader_run){
        .epoch = epoch, .number = loader->run.number + 1, .next = first, .failed_at = INT64_MAX};
    atomic_store(&loader->number, loader->run.number);
}

static void make_order(cvy_loader *loader)
{
    if (loader->options.shuffle) {
        cvy_random_order(loader->options.seed, loader->run.epoch, loader->count, loader->order);
    } else {
        for (int64_t i = 0; i < loader->count; i++) {
            loader->order[i] = i;
        }
    }
    loader->ordered = loader->run.number;
}

/* Queue a free slot for the next batch; false where there is none, of either. */
static bool open_slot(cvy_loader *loader)
{
    int free_slot = find_free_slot(loader);
    if (free_slot < 0 || loader->run.next >= loader->count) {
        return false;
    }
    const cvy_loader_options *o = &loader->options;
    int64_t samples = cvy_min_i64(o->batch, loader->count - loader->run.next);
    cvy_interval own = cvy_loader_find_share(o, samples);
    cvy_loader_slot *opened = &loader->slot[free_slot];
    *opened = (cvy_loader_slot){.wanted = o->no_images && o->no_labels ? 0 : own.end - own.begin};
    opened->place = opened->wanted ? SLOT_FILLING : SLOT_FILLED;
    opened->batch = (cvy_batch){.slot = free_slot, .first = loader->run.next, .samples = samples,
                                .own = own.end - own.begin, .own_first = own.begin};
    opened->batch.x = o->no_images ? NULL : (const float *)(const void *)cvy_loader_images(loader, free_slot);
    opened->batch.label = o->no_labels ? NULL : cvy_loader_labels(loader, free_slot);
    loader->run.next += samples;
    loader->queue[(loader->queue_first + loader->queued++) % loader->options.slots] = free_slot;
    return true;
}

/* Position in the epoch of the first sample of a slot that this rank has. */
static int64_t find_first(const cvy_loader_slot *slot) { return slot->batch.first + slot->batch.own_first; }

/* The queued slot whose samples are to be claimed next; opens one where there is none. NULL: nothing to do. */
static cvy_loader_slot *find_unclaimed(cvy_loader *loader)
{
    for (int i = 0; i < loader->queued; i++) {
        cvy_loader_slot *queued = find_queued(loader, i);
        if (queued->claimed < queued->wanted) {
            return find_first(queued) + queued->claimed < loader->run.failed_at ? queued : NULL;
        }
    }
    while (loader->run.failed_at == INT64_MAX && open_slot(loader)) {
        cvy_loader_slot *opened = find_queued(loader, loader->queued - 1);
        if (opened->wanted) {
            return opened;
        }
        pthread_cond_signal(&loader->ready); /* there is nothing to read of it */
    }
    return NULL;
}

bool cvy_loader_queue_claim(cvy_loader *loader, cvy_loader_claim *claim_out)
{
    cvy_loader_slot *from = find_unclaimed(loader);
    if (!from) {
        return false;
    }
    if (loader->ordered != loader->run.number) {
        make_order(loader);
    }
    int64_t share = cvy_ceil_div(from->wanted, (int64_t)CLAIMS_A_THREAD * loader->options.threads);
    int64_t left = from->wanted - from->claimed;
    *claim_out = (cvy_loader_claim){.slot = from->batch.slot,
                                    .at = from->claimed,
                                    .epoch = loader->run.epoch,
                                    .number = loader->run.number,
                                    .samples = cvy_min_i64(cvy_min_i64(share, CVY_LOADER_MAX_CLAIM), left)};
    memcpy(claim_out->index, loader->order + find_first(from) + from->claimed,
           (size_t)claim_out->samples * sizeof claim_out->index[0]);
    from->claimed += claim_out->samples;
    return true;
}

void cvy_loader_queue_finish(cvy_loader *loader, const cvy_loader_claim *mine, cvy_status status, int64_t failed)
{
    cvy_loader_slot *to = &loader->slot[mine->slot];
    to->done += mine->samples;
    if (to->place == SLOT_DROPPED) {
        to->place = to->done == to->claimed ? SLOT_FREE : SLOT_DROPPED;
        pthread_cond_broadcast(&loader->work);
        pthread_cond_signal(&loader->ready);
        return;
    }
    if (status != CVY_OK && find_first(to) + failed < loader->run.failed_at) {
        loader->run.failed_at = find_first(to) + failed;
        loader->status = status;
        snprintf(loader->message, sizeof loader->message, "%s", cvy_error_message());
    }
    if (to->done == to->wanted && loader->run.failed_at >= to->batch.first + to->batch.samples) {
        to->place = SLOT_FILLED;
    }
    pthread_cond_signal(&loader->ready);
}

bool cvy_loader_queue_has_dropped(const cvy_loader *loader)
{
    for (int i = 0; i < loader->options.slots; i++) {
        if (loader->slot[i].place == SLOT_DROPPED) {
            return true;
        }
    }
    return false;
}

/* Whether every slot is in the caller's hands: then no batch will ever come. */
static bool all_taken(const cvy_loader *loader)
{
    for (int i = 0; i < loader->options.slots; i++) {
        if (loader->slot[i].place != SLOT_TAKEN) {
            return false;
        }
    }
    return true;
}

cvy_loader_outlook cvy_loader_queue_look(const cvy_loader *loader)
{
    if (loader->queued) {
        const cvy_loader_slot *head = find_queued(loader, 0);
        bool failed = loader->run.failed_at < head->batch.first + head->batch.samples && head->done == head->claimed;
        return failed ? OUTLOOK_FAILURE : head->place == SLOT_FILLED ? OUTLOOK_BATCH : OUTLOOK_WAIT;
    }
    if (!loader->run.number) {
        return OUTLOOK_NOTHING;
    }
    if (loader->run.next == loader->count) {
        return OUTLOOK_END;
    }
    return all_taken(loader) ? OUTLOOK_NOTHING : OUTLOOK_WAIT;
}

void cvy_loader_queue_take(cvy_loader *loader, cvy_batch *batch_out)
{
    cvy_loader_slot *head = find_queued(loader, 0);
    *batch_out = head->batch;
    head->place = SLOT_TAKEN;
    loader->queue_first = (loader->queue_first + 1) % loader->options.slots;
    loader->queued--;
}
