/*
 * Reading ahead: threads fill slots, the caller takes them in order and gives them back.
 *
 * A thread claims a few samples under the mutex, in the order of the epoch, reads them without it, and reports back. So
 * threads share a batch, and start on the next while the last samples of this one are still being read.
 *
 * Invariants, all under the mutex: a slot is free, or in the queue (filling or filled), or taken by the caller, or
 * dropped: of an older run, with threads still at it. The queue holds batches of the run under way alone, in the order
 * of the epoch. A run is one cvy_loader_start(); another one empties the queue and bumps the run's number, at which
 * threads abandon what they were reading. So what the caller sees depends on (seed, epoch, first) only, never on timing
 * or the count of threads. Of failures the first in the order of the epoch is told, after the batches before it: all
 * samples before a failure have been claimed, and its batch is told of once they are done. Its words travel along,
 * since the record is thread-local.
 */
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/random.h"
#include "data/data.h"

enum { PART_ALIGNMENT = 64, MESSAGE_BYTES = 1024, MAX_CLAIM = 16, CLAIMS_A_THREAD = 4 };

typedef enum slot_place { SLOT_FREE, SLOT_FILLING, SLOT_FILLED, SLOT_TAKEN, SLOT_DROPPED } slot_place;

typedef struct slot_state {
    slot_place place;
    cvy_batch batch;
    int64_t claimed, done; /* of the batch's samples: given to threads; that threads have reported back */
} slot_state;

/* One run over an epoch. */
typedef struct run {
    uint32_t epoch;
    unsigned number;
    int64_t next;          /* position of the first sample that is in no slot yet */
    int64_t failed_at;     /* position of the first sample that could not be read; INT64_MAX: none */
} run;

/* Samples that one thread reads. */
typedef struct claim {
    int slot;
    int64_t at, samples;   /* from this place in the batch on */
    int64_t index[MAX_CLAIM];
    uint32_t epoch;
    unsigned number;
} claim;

/* What the caller has to expect. */
typedef enum outlook { OUTLOOK_WAIT, OUTLOOK_BATCH, OUTLOOK_FAILURE, OUTLOOK_END, OUTLOOK_NOTHING } outlook;

struct cvy_loader {
    const cvy_data *data;
    cvy_loader_options options;
    int64_t count;         /* samples of the split */
    int64_t sample_bytes, label_bytes, images_bytes, slot_bytes;
    pthread_t *thread;
    int threads;
    pthread_mutex_t mutex;
    pthread_cond_t work;   /* for threads: a start, a free slot, a batch to share, a stop */
    pthread_cond_t ready;  /* for the caller: a batch or a failure */
    bool stop;
    atomic_uint number;    /* of the run under way; read without the mutex to abandon an old one early */
    run run;               /* the first has number 1 */
    int64_t *order;        /* of the epoch of run `ordered` */
    unsigned ordered;
    slot_state *slot;            /* [slots] */
    int *queue;            /* ring [slots] of slots */
    int queue_first, queued;
    cvy_status status;     /* of the sample at failed_at */
    char message[MESSAGE_BYTES];
    double wait_s;         /* the caller's alone */
};

/* Bytes of the two parts of a slot; false where they do not fit into 64 bits. */
static bool measure_slot(const cvy_data *data, int64_t batch, int64_t *images_out, int64_t *slot_out)
{
    int64_t images, labels;
    if (!cvy_mul_i64(batch, cvy_data_sample_bytes(data), &images) || images > INT64_MAX / 4 ||
        !cvy_mul_i64(batch, cvy_data_label_bytes(data), &labels) || labels > INT64_MAX / 4) {
        return false;
    }
    *images_out = cvy_round_up(images, PART_ALIGNMENT);
    *slot_out = *images_out + cvy_round_up(labels, PART_ALIGNMENT);
    return true;
}

int64_t cvy_loader_slot_bytes(const cvy_data *data, int64_t batch)
{
    int64_t images, slot;
    return measure_slot(data, batch, &images, &slot) ? slot : INT64_MAX;
}

static unsigned char *find_images(const cvy_loader *loader, int slot)
{
    return (unsigned char *)loader->options.memory + slot * loader->slot_bytes;
}

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
static slot_state *find_queued(const cvy_loader *loader, int i)
{
    return &loader->slot[loader->queue[(loader->queue_first + i) % loader->options.slots]];
}

/* ---- the threads ---- */

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
    unsigned char *images = find_images(loader, free_slot);
    slot_state *opened = &loader->slot[free_slot];
    *opened = (slot_state){.place = SLOT_FILLING};
    opened->batch = (cvy_batch){.slot = free_slot, .first = loader->run.next};
    opened->batch.samples = cvy_min_i64(loader->options.batch, loader->count - loader->run.next);
    opened->batch.x = (const float *)(const void *)images;
    opened->batch.label = images + loader->images_bytes;
    loader->run.next += opened->batch.samples;
    loader->queue[(loader->queue_first + loader->queued++) % loader->options.slots] = free_slot;
    return true;
}

/* The queued slot whose samples are to be claimed next; opens one where there is none. NULL: nothing to do. */
static slot_state *find_unclaimed(cvy_loader *loader)
{
    for (int i = 0; i < loader->queued; i++) {
        slot_state *queued = find_queued(loader, i);
        if (queued->claimed < queued->batch.samples) {
            return queued->batch.first + queued->claimed < loader->run.failed_at ? queued : NULL;
        }
    }
    bool more = loader->run.failed_at == INT64_MAX && open_slot(loader);
    return more ? find_queued(loader, loader->queued - 1) : NULL;
}

/* Claim the next few samples of the run; false where there are none to read now. Mutex held. */
static bool claim_samples(cvy_loader *loader, claim *claim_out)
{
    slot_state *from = find_unclaimed(loader);
    if (!from) {
        return false;
    }
    if (loader->ordered != loader->run.number) {
        make_order(loader);
    }
    int64_t share = cvy_ceil_div(from->batch.samples, (int64_t)CLAIMS_A_THREAD * loader->options.threads);
    int64_t left = from->batch.samples - from->claimed;
    *claim_out = (claim){.slot = from->batch.slot, .at = from->claimed, .epoch = loader->run.epoch,
                         .number = loader->run.number,
                         .samples = cvy_min_i64(cvy_min_i64(share, MAX_CLAIM), left)};
    memcpy(claim_out->index, loader->order + from->batch.first + from->claimed,
           (size_t)claim_out->samples * sizeof claim_out->index[0]);
    from->claimed += claim_out->samples;
    return true;
}

/* Read sample @p i of a claim into its place. */
static cvy_status read_sample(const cvy_loader *loader, const claim *mine, int64_t i)
{
    unsigned char *image = find_images(loader, mine->slot);
    unsigned char *label = image + loader->images_bytes + (mine->at + i) * loader->label_bytes;
    float *x = (float *)(void *)(image + (mine->at + i) * loader->sample_bytes);
    return loader->options.augment
               ? cvy_data_read_augmented(loader->data, loader->options.split, mine->index[i], mine->epoch, x, label)
               : cvy_data_read(loader->data, loader->options.split, mine->index[i], x, label);
}

/* Read what was claimed; ends early, with whatever is left, where the run is no longer wanted. */
static cvy_status read_claim(const cvy_loader *loader, const claim *mine, int64_t *failed_out)
{
    cvy_status status = CVY_OK;
    int64_t i = 0;
    for (; i < mine->samples && status == CVY_OK && atomic_load(&loader->number) == mine->number; i++) {
        status = read_sample(loader, mine, i);
    }
    *failed_out = mine->at + i - 1;
    return status;
}

/* Take back what a thread has read; @p failed is the place in the batch of what it could not. Mutex held. */
static void finish_claim(cvy_loader *loader, const claim *mine, cvy_status status, int64_t failed)
{
    slot_state *to = &loader->slot[mine->slot];
    to->done += mine->samples;
    if (to->place == SLOT_DROPPED) {
        to->place = to->done == to->claimed ? SLOT_FREE : SLOT_DROPPED;
        pthread_cond_broadcast(&loader->work);
        return;
    }
    if (status != CVY_OK && to->batch.first + failed < loader->run.failed_at) {
        loader->run.failed_at = to->batch.first + failed;
        loader->status = status;
        snprintf(loader->message, sizeof loader->message, "%s", cvy_error_message());
    }
    if (to->done == to->batch.samples && loader->run.failed_at >= to->batch.first + to->batch.samples) {
        to->place = SLOT_FILLED;
    }
    pthread_cond_signal(&loader->ready);
}

static void *read_ahead(void *opaque)
{
    cvy_loader *loader = opaque;
    pthread_mutex_lock(&loader->mutex);
    while (!loader->stop) {
        claim mine;
        if (!claim_samples(loader, &mine)) {
            pthread_cond_wait(&loader->work, &loader->mutex);
            continue;
        }
        int64_t failed;
        pthread_cond_signal(&loader->work); /* there may be more for another thread */
        pthread_mutex_unlock(&loader->mutex);
        cvy_status status = read_claim(loader, &mine, &failed);
        pthread_mutex_lock(&loader->mutex);
        finish_claim(loader, &mine, status, failed);
    }
    pthread_mutex_unlock(&loader->mutex);
    return NULL;
}

/* ---- the caller ---- */

static cvy_status check_options(const cvy_data *data, const cvy_loader_options *options)
{
    int64_t images, slot_bytes, all;
    const cvy_data_info *info = cvy_data_get_info(data);
    CVY_REQUIRE(info->count[options->split] > 0, CVY_ERR_DATA, "the %s data set has no %s samples",
                cvy_data_kind_name(data), options->split == CVY_SPLIT_TRAIN ? "training" : "test");
    CVY_REQUIRE(options->batch >= 1 && options->slots >= 1 && options->memory, CVY_ERR_ARG,
                "a loader needs a batch, slots and memory, got batch %" PRId64 " and %d slots", options->batch,
                options->slots);
    CVY_REQUIRE(options->threads >= 0 && options->threads <= CVY_LOADER_MAX_THREADS, CVY_ERR_ARG,
                "a loader has 1 to %d threads, got %d", CVY_LOADER_MAX_THREADS, options->threads);
    CVY_REQUIRE(measure_slot(data, options->batch, &images, &slot_bytes) &&
                    cvy_mul_i64(slot_bytes, options->slots, &all), CVY_ERR_ARG,
                "%d slots of %" PRId64 " samples are beyond 2^63 bytes", options->slots, options->batch);
    return CVY_OK;
}

/* Start the threads with all signals blocked: they are the main thread's to handle. */
static cvy_status start_threads(cvy_loader *loader)
{
    sigset_t all, before;
    int error = 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (!error && loader->threads < loader->options.threads) {
        error = pthread_create(&loader->thread[loader->threads], NULL, read_ahead, loader);
        loader->threads += !error;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    CVY_REQUIRE(!error, CVY_ERR_MEMORY, "cannot start the loader's threads: %s", strerror(error));
    return CVY_OK;
}

void cvy_loader_destroy(cvy_loader **loader)
{
    cvy_loader *l = *loader;
    if (!l) {
        return;
    }
    pthread_mutex_lock(&l->mutex);
    l->stop = true;
    atomic_store(&l->number, l->run.number + 1); /* ends reads under way at their next sample */
    pthread_cond_broadcast(&l->work);
    pthread_mutex_unlock(&l->mutex);
    for (int i = 0; i < l->threads; i++) {
        pthread_join(l->thread[i], NULL);
    }
    pthread_cond_destroy(&l->ready);
    pthread_cond_destroy(&l->work);
    pthread_mutex_destroy(&l->mutex);
    cvy_free(l->thread);
    cvy_free(l->order);
    cvy_free(l->slot);
    cvy_free(l->queue);
    cvy_free(l);
    *loader = NULL;
}

cvy_status cvy_loader_create(const cvy_data *data, const cvy_loader_options *options, cvy_loader **loader_out)
{
    CVY_TRY(check_options(data, options));
    cvy_loader *loader = cvy_calloc(1, sizeof *loader);
    if (!loader) {
        return CVY_ERR_MEMORY;
    }
    loader->data = data;
    loader->options = *options;
    loader->options.threads = options->threads ? options->threads : 1;
    loader->count = cvy_data_get_info(data)->count[options->split];
    loader->sample_bytes = cvy_data_sample_bytes(data);
    loader->label_bytes = cvy_data_label_bytes(data);
    loader->run = (run){.next = loader->count, .failed_at = INT64_MAX}; /* nothing to read before the first start */
    (void)measure_slot(data, options->batch, &loader->images_bytes, &loader->slot_bytes);
    pthread_mutex_init(&loader->mutex, NULL);
    pthread_cond_init(&loader->work, NULL);
    pthread_cond_init(&loader->ready, NULL);
    loader->order = cvy_calloc((size_t)loader->count, sizeof *loader->order);
    loader->slot = cvy_calloc((size_t)options->slots, sizeof *loader->slot);
    loader->queue = cvy_calloc((size_t)options->slots, sizeof *loader->queue);
    loader->thread = cvy_calloc((size_t)loader->options.threads, sizeof *loader->thread);
    bool whole = loader->order && loader->slot && loader->queue && loader->thread;
    cvy_status status = whole ? start_threads(loader) : CVY_ERR_MEMORY;
    if (status != CVY_OK) {
        cvy_loader_destroy(&loader);
        return status;
    }
    *loader_out = loader;
    return CVY_OK;
}

cvy_status cvy_loader_start(cvy_loader *loader, uint32_t epoch, int64_t first)
{
    CVY_REQUIRE(first >= 0 && first <= loader->count, CVY_ERR_ARG,
                "an epoch of %" PRId64 " samples cannot start at sample %" PRId64, loader->count, first);
    pthread_mutex_lock(&loader->mutex);
    for (int i = 0; i < loader->queued; i++) {
        slot_state *queued = find_queued(loader, i);
        queued->place = queued->done == queued->claimed ? SLOT_FREE : SLOT_DROPPED;
    }
    loader->queued = 0;
    loader->run = (run){.epoch = epoch, .number = loader->run.number + 1, .next = first, .failed_at = INT64_MAX};
    atomic_store(&loader->number, loader->run.number);
    pthread_cond_broadcast(&loader->work);
    pthread_mutex_unlock(&loader->mutex);
    return CVY_OK;
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

/* What the caller has to expect as things are. Mutex held. */
static outlook look_ahead(const cvy_loader *loader)
{
    if (loader->queued) {
        const slot_state *head = find_queued(loader, 0);
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

/* Wait until there is something to tell. Mutex held, but not while waiting. */
static outlook wait_for_outlook(cvy_loader *loader)
{
    outlook found = look_ahead(loader);
    if (found != OUTLOOK_WAIT) {
        return found;
    }
    double begin_s = cvy_clock_s();
    while ((found = look_ahead(loader)) == OUTLOOK_WAIT) {
        pthread_cond_wait(&loader->ready, &loader->mutex);
    }
    loader->wait_s += cvy_clock_s() - begin_s;
    return found;
}

static void take_first(cvy_loader *loader, cvy_batch *batch_out)
{
    slot_state *head = find_queued(loader, 0);
    *batch_out = head->batch;
    head->place = SLOT_TAKEN;
    loader->queue_first = (loader->queue_first + 1) % loader->options.slots;
    loader->queued--;
}

cvy_status cvy_loader_next(cvy_loader *loader, cvy_batch *batch_out)
{
    cvy_status status = CVY_OK;
    pthread_mutex_lock(&loader->mutex);
    outlook found = wait_for_outlook(loader);
    if (found == OUTLOOK_BATCH) {
        take_first(loader, batch_out);
    } else if (found == OUTLOOK_END) {
        *batch_out = (cvy_batch){.first = loader->count, .slot = -1};
    } else if (found == OUTLOOK_FAILURE) {
        status = cvy_fail(loader->status, "%s", loader->message);
    } else {
        status = cvy_fail(CVY_ERR_ARG, loader->run.number ? "all %d slots of the loader are taken: give one back first"
                                                          : "the loader of %d slots was not started",
                          loader->options.slots);
    }
    pthread_mutex_unlock(&loader->mutex);
    return status;
}

void cvy_loader_release(cvy_loader *loader, const cvy_batch *batch)
{
    pthread_mutex_lock(&loader->mutex);
    if (batch->slot >= 0 && batch->slot < loader->options.slots && loader->slot[batch->slot].place == SLOT_TAKEN) {
        loader->slot[batch->slot].place = SLOT_FREE;
        pthread_cond_broadcast(&loader->work);
    }
    pthread_mutex_unlock(&loader->mutex);
}

double cvy_loader_wait_s(const cvy_loader *loader) { return loader->wait_s; }
