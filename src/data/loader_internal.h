/*
 * What the files of the loader share: loader.c is the caller's side, loader_share.c what is a rank's, loader_queue.c
 * the order of samples, and loader_threads.c reads them.
 *
 * Invariants, all under the mutex: a slot is free, or in the queue (filling or filled), or taken by the caller, or
 * dropped: of an older run, with threads still at it. The queue holds batches of the run under way alone, in the order
 * of the epoch. A run is one cvy_loader_start(); another one empties the queue and bumps the run's number, at which
 * threads abandon what they were reading. Of failures the first in the order of the epoch is told, after the batches
 * before it: all samples before a failure have been claimed, and its batch is told of once they are done. Its words
 * travel along, since the record is thread-local.
 */
#ifndef CVY_DATA_LOADER_INTERNAL_H
#define CVY_DATA_LOADER_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "data/loader.h"

enum { CVY_LOADER_MAX_CLAIM = 16, CVY_LOADER_MESSAGE = 1024 };

typedef enum cvy_loader_place { SLOT_FREE, SLOT_FILLING, SLOT_FILLED, SLOT_TAKEN, SLOT_DROPPED } cvy_loader_place;

typedef struct cvy_loader_slot {
    cvy_loader_place place;
    cvy_batch batch;
    int64_t wanted;        /**< samples to read: the batch's own ones, or none */
    int64_t claimed, done; /**< of these: given to threads; that threads have reported back */
} cvy_loader_slot;

/** What a slot holds of each sample, and where. */
typedef struct cvy_loader_layout {
    cvy_slab image, label;
    int64_t image_bytes, label_bytes; /**< of one sample; 0: none */
    int64_t images_bytes;             /**< of all, rounded up: labels are behind */
    int64_t slot_bytes;
} cvy_loader_layout;

/** A thread, and where it puts what it reads before it cuts slabs out of it; NULL: reads go where they belong. */
typedef struct cvy_loader_reader {
    cvy_loader *loader;
    pthread_t thread;
    float *x;
    void *label;
} cvy_loader_reader;

/** One run over an epoch. */
typedef struct cvy_loader_run {
    uint32_t epoch;
    unsigned number;       /**< the first is 1 */
    int64_t next;          /**< position of the first sample that is in no slot yet */
    int64_t failed_at;     /**< position of the first sample that could not be read; INT64_MAX: none */
} cvy_loader_run;

/** Samples that one thread reads. */
typedef struct cvy_loader_claim {
    int slot;
    int64_t at, samples;   /**< from this place in the rank's share on */
    int64_t index[CVY_LOADER_MAX_CLAIM];
    uint32_t epoch;
    unsigned number;       /**< of the run */
} cvy_loader_claim;

/** What the caller has to expect. */
typedef enum cvy_loader_outlook {
    OUTLOOK_WAIT,
    OUTLOOK_BATCH,
    OUTLOOK_FAILURE,
    OUTLOOK_END,
    OUTLOOK_NOTHING,       /**< nothing will ever come: never started, or the caller holds every slot */
} cvy_loader_outlook;

struct cvy_loader {
    const cvy_data *data;
    cvy_loader_options options;
    int64_t count;         /**< samples of the split */
    cvy_loader_layout layout;
    cvy_loader_reader *reader; /**< [options.threads] */
    unsigned char *scratch;    /**< of all readers */
    int threads;               /**< that were started */
    pthread_mutex_t mutex;
    pthread_cond_t work;   /**< for threads: a start, a free slot, a batch to share, a stop */
    pthread_cond_t ready;  /**< for the caller: a batch, a failure, or a dropped slot that is free */
    bool stop;
    atomic_uint number;    /**< of the run under way; read without the mutex to abandon an old one early */
    cvy_loader_run run;
    int64_t *order;        /**< of the epoch of run `ordered` */
    unsigned ordered;
    cvy_loader_slot *slot; /**< [slots] */
    int *queue;            /**< ring [slots] of slots */
    int queue_first, queued;
    cvy_status status;     /**< of the sample at failed_at */
    char message[CVY_LOADER_MESSAGE];
    double wait_s;         /**< the caller's alone */
};

/* ---- a rank's share ---- */

/** Lay out a slot; the batch is at least 1. @retval CVY_ERR_ARG a share beyond batch or sample, or 2^63 bytes */
cvy_status cvy_loader_lay_out(const cvy_data *data, const cvy_loader_options *options, cvy_loader_layout *layout_out);

/** What a rank has of a batch of so many samples. Cannot fail. */
cvy_interval cvy_loader_find_share(const cvy_loader_options *options, int64_t samples);

/* ---- the order of samples; mutex held ---- */

/** Empty the queue and go over an epoch from its sample @p first on. */
void cvy_loader_queue_restart(cvy_loader *loader, uint32_t epoch, int64_t first);

/** Claim the next few samples of the run, in the order of the epoch; false where there are none to read now. */
bool cvy_loader_queue_claim(cvy_loader *loader, cvy_loader_claim *claim_out);

/** Take back what a thread has read; @p failed is the place in the share of what it could not, where it failed. */
void cvy_loader_queue_finish(cvy_loader *loader, const cvy_loader_claim *mine, cvy_status status, int64_t failed);

/** Whether threads are still reading what an older run dropped. */
bool cvy_loader_queue_has_dropped(const cvy_loader *loader);

/** What the caller has to expect as things are. */
cvy_loader_outlook cvy_loader_queue_look(const cvy_loader *loader);

/** Hand the first batch of the queue, which is filled, to the caller. */
void cvy_loader_queue_take(cvy_loader *loader, cvy_batch *batch_out);

/* ---- the threads; mutex not held ---- */

/** Start the threads. @retval CVY_ERR_MEMORY not all could be started; those that were are still to be stopped */
cvy_status cvy_loader_threads_start(cvy_loader *loader);

/** Stop the threads and wait for their end. */
void cvy_loader_threads_stop(cvy_loader *loader);

/** Where the images of a slot lie, and its labels. */
static inline unsigned char *cvy_loader_images(const cvy_loader *loader, int slot)
{
    return (unsigned char *)loader->options.memory + slot * loader->layout.slot_bytes;
}

static inline unsigned char *cvy_loader_labels(const cvy_loader *loader, int slot)
{
    return cvy_loader_images(loader, slot) + loader->layout.images_bytes;
}

#endif
