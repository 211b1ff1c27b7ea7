/*
 * The loader reads the samples of an epoch ahead, batch by batch, on threads of its own. What the caller gets depends
 * on (seed, epoch, first) only, never on timing or the count of threads. Of many ranks each has a loader that reads its
 * own share of each batch; the order of samples is the same for any ranks, and a sample is augmented as a whole.
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
    void *memory;        /**< slots * cvy_loader_slot_bytes(), which may be 0; borrowed */
    bool shared;         /**< this rank has a share of each batch; else all of it */
    cvy_interval share;  /**< shared: samples of each whole batch of all ranks that it has; may be empty */
    cvy_interval tail_share;    /**< shared: of the last batch of an epoch, of count % batch samples; may be empty */
    cvy_interval rows[3];       /**< d,h,w: the slab of each sample that it has; empty: all */
    cvy_interval label_rows[3]; /**< the same of a map of labels */
    bool no_images, no_labels;  /**< not wanted: neither read nor kept; both: samples are counted, nothing is read */
} cvy_loader_options;

/** One batch, valid until it is given back. */
typedef struct cvy_batch {
    const float *x;      /**< own * c*(d*)h*w, or slabs, plain order; NULL: no images */
    const void *label;   /**< int32_t [own] or [own * positions], or float [own * values]; NULL: no labels */
    int64_t samples;     /**< of all ranks; the last of an epoch may have fewer */
    int64_t first;       /**< position in the epoch of the first of these */
    int64_t own;         /**< samples here: this rank's; may be 0 */
    int64_t own_first;   /**< place in the batch of the first of these */
    int slot;
} cvy_batch;

/**
 * Bytes of one slot: images and labels of the largest share, each rounded up to 64; INT64_MAX where they do not fit, or
 * cvy_loader_create() refuses the share. Memory, slots and threads do not count.
 */
int64_t cvy_loader_slot_bytes(const cvy_data *data, const cvy_loader_options *options);

/**
 * Make a loader with its threads, idle. Released with cvy_loader_destroy(). All calls on a loader come from one thread.
 *
 * @retval CVY_ERR_DATA the split has no samples
 * @retval CVY_ERR_ARG  no batch, slots or memory, more than 63 bits of it, too many threads, or a share beyond the
 *                      batch or the sample
 */
cvy_status cvy_loader_create(const cvy_data *data, const cvy_loader_options *options, cvy_loader **loader_out);

/**
 * Start reading epoch @p epoch from its sample @p first on; what was being read is dropped. A batch that the caller has
 * taken stays as it is until it is given back.
 *
 * @retval CVY_ERR_ARG @p first is not within 0 to the count of samples; or not the first of a batch, which the shares
 *                     are of
 */
cvy_status cvy_loader_start(cvy_loader *loader, uint32_t epoch, int64_t first);

/**
 * Take the next batch; waits for it.
 *
 * @param[out] batch_out samples == 0 at the end of the epoch
 * @retval CVY_ERR_DATA a sample of this rank's could not be read; the file is named. Told until the next start
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
