/*
 * The loader reads the samples of an epoch ahead, batch by batch, on threads of its own. What the caller gets depends
 * on (seed, epoch, first) only, never on timing or the count of threads.
 */
#ifndef CVY_DATA_LOADER_H
#define CVY_DATA_LOADER_H

#include "data/data.h"

typedef struct cvy_loader cvy_loader;

enum { CVY_LOADER_MAX_THREADS = 256 };

/** Samples of one epoch of one split, in order, batch by batch. */
typedef struct cvy_loader_options {
    cvy_split split;
    bool shuffle;        /**< order is cvy_random_order(seed, epoch); else as stored */
    bool augment;        /**< as the data set was opened to; else samples are as stored */
    uint64_t seed;
    int64_t batch;
    int slots;           /**< at least 2 to read ahead */
    int threads;         /**< 0 is 1; what is read does not depend on it */
    void *memory;        /**< slots * (batch * (sample bytes + label bytes)), each part rounded up to 64; borrowed */
} cvy_loader_options;

/** One batch, valid until it is given back. */
typedef struct cvy_batch {
    const float *x;      /**< samples * c*(d*)h*w, plain order */
    const void *label;   /**< int32_t [samples] or [samples * positions], or float [samples * values] */
    int64_t samples;     /**< the last of an epoch may have fewer */
    int64_t first;       /**< position in the epoch of its first sample */
    int slot;
} cvy_batch;

/** Bytes of one slot: images and labels, each rounded up to 64; INT64_MAX where they do not fit. */
int64_t cvy_loader_slot_bytes(const cvy_data *data, int64_t batch);

/**
 * Make a loader with its threads, idle. Released with cvy_loader_destroy(). All calls on a loader come from one thread.
 *
 * @retval CVY_ERR_DATA the split has no samples
 * @retval CVY_ERR_ARG  no batch, slots or memory, more than 63 bits of it, or too many threads
 */
cvy_status cvy_loader_create(const cvy_data *data, const cvy_loader_options *options, cvy_loader **loader_out);

/**
 * Start reading epoch @p epoch from its sample @p first on; what was being read is dropped. A batch that the caller has
 * taken stays as it is until it is given back.
 *
 * @retval CVY_ERR_ARG @p first is not within 0 to the count of samples
 */
cvy_status cvy_loader_start(cvy_loader *loader, uint32_t epoch, int64_t first);

/**
 * Take the next batch; waits for it.
 *
 * @param[out] batch_out samples == 0 at the end of the epoch
 * @retval CVY_ERR_DATA a sample could not be read; the file is named. Told until the next start
 * @retval CVY_ERR_ARG  not started, or the caller holds every slot
 */
cvy_status cvy_loader_next(cvy_loader *loader, cvy_batch *batch_out);

/** Give a batch's slot back for reading ahead; in any order, the end's empty batch too. */
void cvy_loader_release(cvy_loader *loader, const cvy_batch *batch);

/**
 * Drop what is being read and wait until no thread reads: then the slots' memory is the caller's, but for batches that
 * it holds, until the next start. cvy_loader_next() tells the end of the epoch.
 */
void cvy_loader_stop(cvy_loader *loader);

/** Seconds that cvy_loader_next() waited, since creation. */
double cvy_loader_wait_s(const cvy_loader *loader);

/** Stop the threads and release; sets NULL. */
void cvy_loader_destroy(cvy_loader **loader);

#endif
