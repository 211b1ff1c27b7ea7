/*
 * Reading ahead: one thread fills slots, the caller takes them in order and gives them back.
 *
 * Invariants, all under the mutex: a slot is in exactly one place: free, being filled by the thread, in the queue, or
 * taken by the caller. The queue holds batches of the run under way alone, in the order of the epoch. A run is one
 * cvy_loader_start(); starting another empties the queue and bumps the run's number, and the thread drops whatever it
 * was filling for an older one. So what the caller sees depends on (seed, epoch, first) only, never on timing. A
 * failure ends the run, and is told after the batches before it; its words travel along, since the record is
 * thread-local.
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

enum { PART_ALIGNMENT = 64, MESSAGE_BYTES = 1024 };

typedef enum slot_place { SLOT_FREE, SLOT_FILLING, SLOT_QUEUED, SLOT_TAKEN } slot_place;

/* One run over an epoch, as the thread sees it. */
typedef struct run {
    uint32_t epoch;
    int64_t next;         /* position of the first sample that is in no slot yet */
    unsigned number;
} run;

struct cvy_loader {
    const cvy_data *data;
    cvy_loader_options options;
    int64_t count;        /* samples of the split */
    int64_t sample_bytes, label_bytes, images_bytes, slot_bytes;
    int64_t *order;       /* the thread's alone */
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t work;  /* for the thread: a start, a free slot, a stop */
    pthread_cond_t ready; /* for the caller: a batch, the end, a failure */
    bool stop, started, finished;
    atomic_uint number;   /* of the run under way; read without the mutex to abandon an old one early */
    run run;
    slot_place *place;    /* [slots] */
    cvy_batch *queue;     /* ring [slots] */
    int queue_first, queued;
    cvy_status status;    /* of the run */
    char message[MESSAGE_BYTES];
    double wait_s;        /* the caller's alone */
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
        if (loader->place[i] == SLOT_FREE) {
            return i;
        }
    }
    return -1;
}

/* ---- the thread ---- */

static void make_order(cvy_loader *loader, uint32_t epoch)
{
    if (loader->options.shuffle) {
        cvy_random_order(loader->options.seed, epoch, loader->count, loader->order);
        return;
    }
    for (int64_t i = 0; i < loader->count; i++) {
        loader->order[i] = i;
    }
}

/* Read one sample into its place in a slot. */
static cvy_status read_sample(const cvy_loader *loader, int64_t index, uint32_t epoch, int slot, int64_t at)
{
    unsigned char *image = find_images(loader, slot);
    unsigned char *label = image + loader->images_bytes + at * loader->label_bytes;
    float *x = (float *)(void *)(image + at * loader->sample_bytes);
    return loader->options.augment
               ? cvy_data_read_augmented(loader->data, loader->options.split, index, epoch, x, label)
               : cvy_data_read(loader->data, loader->options.split, index, x, label);
}

/* Read a batch's samples; stops early, with whatever status, where the run is no longer wanted. */
static cvy_status fill_slot(const cvy_loader *loader, const cvy_batch *batch, const run *now)
{
    for (int64_t i = 0; i < batch->samples && atomic_load(&loader->number) == now->number; i++) {
        CVY_TRY(read_sample(loader, loader->order[batch->first + i], now->epoch, batch->slot, i));
    }
    return CVY_OK;
}

/* Queue a batch that was filled, or keep the words of what went wrong. Mutex held. */
static void deliver(cvy_loader *loader, const cvy_batch *batch, cvy_status status)
{
    if (status == CVY_OK) {
        loader->place[batch->slot] = SLOT_QUEUED;
        loader->queue[(loader->queue_first + loader->queued++) % loader->options.slots] = *batch;
        loader->run.next += batch->samples;
    } else {
        loader->place[batch->slot] = SLOT_FREE;
        loader->status = status;
        snprintf(loader->message, sizeof loader->message, "%s", cvy_error_message());
    }
    loader->finished = status != CVY_OK || loader->run.next == loader->count;
    pthread_cond_signal(&loader->ready);
}

/* Fill one slot, or wait until there is one to fill. Mutex held, but not while reading. */
static void advance(cvy_loader *loader, unsigned *ordered)
{
    int slot = loader->started && !loader->finished ? find_free_slot(loader) : -1;
    if (slot < 0) {
        pthread_cond_wait(&loader->work, &loader->mutex);
        return;
    }
    const run now = loader->run;
    cvy_batch batch = {.slot = slot, .first = now.next};
    batch.samples = cvy_min_i64(loader->options.batch, loader->count - now.next);
    batch.x = (const float *)(const void *)find_images(loader, slot);
    batch.label = find_images(loader, slot) + loader->images_bytes;
    loader->place[slot] = SLOT_FILLING;
    pthread_mutex_unlock(&loader->mutex);
    if (*ordered != now.number) {
        make_order(loader, now.epoch);
        *ordered = now.number;
    }
    cvy_status status = fill_slot(loader, &batch, &now);
    pthread_mutex_lock(&loader->mutex);
    if (loader->run.number == now.number) {
        deliver(loader, &batch, status);
    } else {
        loader->place[slot] = SLOT_FREE;
    }
}

static void *read_ahead(void *opaque)
{
    cvy_loader *loader = opaque;
    unsigned ordered = 0; /* the run whose order is made; runs count from 1 */
    pthread_mutex_lock(&loader->mutex);
    while (!loader->stop) {
        advance(loader, &ordered);
    }
    pthread_mutex_unlock(&loader->mutex);
    return NULL;
}

/* ---- the caller ---- */

static cvy_status check_options(const cvy_data *data, const cvy_loader_options *options)
{
    int64_t images, slot, all;
    const cvy_data_info *info = cvy_data_get_info(data);
    CVY_REQUIRE(info->count[options->split] > 0, CVY_ERR_DATA, "the %s data set has no %s samples",
                cvy_data_kind_name(data), options->split == CVY_SPLIT_TRAIN ? "training" : "test");
    CVY_REQUIRE(options->batch >= 1 && options->slots >= 1 && options->memory, CVY_ERR_ARG,
                "a loader needs a batch, slots and memory, got batch %" PRId64 " and %d slots", options->batch,
                options->slots);
    CVY_REQUIRE(measure_slot(data, options->batch, &images, &slot) && cvy_mul_i64(slot, options->slots, &all),
                CVY_ERR_ARG, "%d slots of %" PRId64 " samples are beyond 2^63 bytes", options->slots, options->batch);
    return CVY_OK;
}

/* Start the thread with all signals blocked: they are the main thread's to handle. */
static cvy_status start_thread(cvy_loader *loader)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&loader->thread, NULL, read_ahead, loader);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    CVY_REQUIRE(!error, CVY_ERR_MEMORY, "cannot start the loader's thread: %s", strerror(error));
    return CVY_OK;
}

static void release_memory(cvy_loader *loader)
{
    pthread_cond_destroy(&loader->ready);
    pthread_cond_destroy(&loader->work);
    pthread_mutex_destroy(&loader->mutex);
    cvy_free(loader->order);
    cvy_free(loader->place);
    cvy_free(loader->queue);
    cvy_free(loader);
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
    loader->count = cvy_data_get_info(data)->count[options->split];
    loader->sample_bytes = cvy_data_sample_bytes(data);
    loader->label_bytes = cvy_data_label_bytes(data);
    (void)measure_slot(data, options->batch, &loader->images_bytes, &loader->slot_bytes);
    pthread_mutex_init(&loader->mutex, NULL);
    pthread_cond_init(&loader->work, NULL);
    pthread_cond_init(&loader->ready, NULL);
    loader->order = cvy_calloc((size_t)loader->count, sizeof *loader->order);
    loader->place = cvy_calloc((size_t)options->slots, sizeof *loader->place);
    loader->queue = cvy_calloc((size_t)options->slots, sizeof *loader->queue);
    cvy_status status = loader->order && loader->place && loader->queue ? start_thread(loader) : CVY_ERR_MEMORY;
    if (status != CVY_OK) {
        release_memory(loader);
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
    for (int i = 0; i < loader->options.slots; i++) {
        if (loader->place[i] == SLOT_QUEUED) {
            loader->place[i] = SLOT_FREE;
        }
    }
    loader->queued = 0;
    loader->status = CVY_OK;
    loader->started = true;
    loader->finished = first == loader->count;
    loader->run = (run){.epoch = epoch, .next = first, .number = loader->run.number + 1};
    atomic_store(&loader->number, loader->run.number);
    pthread_cond_signal(&loader->work);
    pthread_mutex_unlock(&loader->mutex);
    return CVY_OK;
}

/* Whether every slot is in the caller's hands: then no batch will ever come. Mutex held. */
static bool all_taken(const cvy_loader *loader)
{
    for (int i = 0; i < loader->options.slots; i++) {
        if (loader->place[i] != SLOT_TAKEN) {
            return false;
        }
    }
    return true;
}

/* Wait until there is a batch, an end, or a reason that neither will come. Mutex held. */
static void wait_for_batch(cvy_loader *loader)
{
    if (loader->queued || loader->finished || !loader->started || all_taken(loader)) {
        return;
    }
    double begin_s = cvy_clock_s();
    while (!loader->queued && !loader->finished) {
        pthread_cond_wait(&loader->ready, &loader->mutex);
    }
    loader->wait_s += cvy_clock_s() - begin_s;
}

cvy_status cvy_loader_next(cvy_loader *loader, cvy_batch *batch_out)
{
    cvy_status status = CVY_OK;
    pthread_mutex_lock(&loader->mutex);
    wait_for_batch(loader);
    if (loader->queued) {
        *batch_out = loader->queue[loader->queue_first];
        loader->place[batch_out->slot] = SLOT_TAKEN;
        loader->queue_first = (loader->queue_first + 1) % loader->options.slots;
        loader->queued--;
    } else if (loader->status != CVY_OK) {
        status = cvy_fail(loader->status, "%s", loader->message);
    } else if (loader->finished) {
        *batch_out = (cvy_batch){.first = loader->count, .slot = -1};
    } else {
        status = cvy_fail(CVY_ERR_ARG, loader->started ? "all %d slots of the loader are taken: give one back first"
                                                       : "the loader of %d slots was not started",
                          loader->options.slots);
    }
    pthread_mutex_unlock(&loader->mutex);
    return status;
}

void cvy_loader_release(cvy_loader *loader, const cvy_batch *batch)
{
    pthread_mutex_lock(&loader->mutex);
    if (batch->slot >= 0 && batch->slot < loader->options.slots && loader->place[batch->slot] == SLOT_TAKEN) {
        loader->place[batch->slot] = SLOT_FREE;
        pthread_cond_signal(&loader->work);
    }
    pthread_mutex_unlock(&loader->mutex);
}

double cvy_loader_wait_s(const cvy_loader *loader) { return loader->wait_s; }

void cvy_loader_destroy(cvy_loader **loader)
{
    if (!*loader) {
        return;
    }
    pthread_mutex_lock(&(*loader)->mutex);
    (*loader)->stop = true;
    atomic_store(&(*loader)->number, (*loader)->run.number + 1); /* ends a read under way at its next sample */
    pthread_cond_signal(&(*loader)->work);
    pthread_mutex_unlock(&(*loader)->mutex);
    pthread_join((*loader)->thread, NULL);
    release_memory(*loader);
    *loader = NULL;
}
