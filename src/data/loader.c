/* The caller's side of the loader: takes filled slots in order and gives them back. */
#include "data/loader.h"

#include <inttypes.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/memory.h"
#include "data/loader_internal.h"

static cvy_status check_options(const cvy_data *data, const cvy_loader_options *options, cvy_loader_layout *layout_out)
{
    int64_t all;
    const cvy_data_info *info = cvy_data_get_info(data);
    CVY_REQUIRE(info->count[options->split] > 0, CVY_ERR_DATA, "the %s data set has no %s samples",
                cvy_data_kind_name(data), options->split == CVY_SPLIT_TRAIN ? "training" : "test");
    CVY_REQUIRE(options->batch >= 1 && options->slots >= 1, CVY_ERR_ARG,
                "a loader needs a batch and slots, got batch %" PRId64 " and %d slots", options->batch,
                options->slots);
    CVY_REQUIRE(options->threads >= 0 && options->threads <= CVY_LOADER_MAX_THREADS, CVY_ERR_ARG,
                "a loader has 1 to %d threads, got %d", CVY_LOADER_MAX_THREADS, options->threads);
    CVY_TRY(cvy_loader_lay_out(data, options, layout_out));
    CVY_REQUIRE(cvy_mul_i64(layout_out->slot_bytes, options->slots, &all), CVY_ERR_ARG,
                "%d slots of %" PRId64 " samples are beyond 2^63 bytes", options->slots, options->batch);
    CVY_REQUIRE(options->memory || all == 0, CVY_ERR_ARG, "a loader of %d slots needs %" PRId64 " bytes of memory",
                options->slots, all);
    return CVY_OK;
}

void cvy_loader_destroy(cvy_loader **loader)
{
    cvy_loader *l = *loader;
    if (!l) {
        return;
    }
    cvy_loader_threads_stop(l);
    pthread_cond_destroy(&l->ready);
    pthread_cond_destroy(&l->work);
    pthread_mutex_destroy(&l->mutex);
    cvy_free(l->reader);
    cvy_free(l->scratch);
    cvy_free(l->order);
    cvy_free(l->slot);
    cvy_free(l->queue);
    cvy_free(l);
    *loader = NULL;
}

/* Each thread's room for whole samples that slabs are to be cut from; none where nothing is cut. */
static cvy_status make_readers(cvy_loader *l)
{
    const cvy_loader_options *o = &l->options;
    bool cut_image = !o->no_images && !cvy_slab_is_whole(&l->layout.image) && !cvy_data_has_slabs(l->data, o->augment);
    bool cut_label = !o->no_labels && !cvy_slab_is_whole(&l->layout.label);
    int64_t image_bytes = cut_image ? cvy_round_up(cvy_data_sample_bytes(l->data), CVY_ARENA_ALIGNMENT) : 0;
    int64_t bytes = image_bytes + (cut_label ? cvy_round_up(cvy_data_label_bytes(l->data), CVY_ARENA_ALIGNMENT) : 0);
    l->reader = cvy_calloc((size_t)o->threads, sizeof *l->reader);
    if (!l->reader || (bytes && !(l->scratch = cvy_calloc((size_t)o->threads, (size_t)bytes)))) {
        return CVY_ERR_MEMORY;
    }
    for (int i = 0; i < o->threads; i++) {
        unsigned char *scratch = bytes ? l->scratch + i * bytes : NULL;
        l->reader[i] = (cvy_loader_reader){.loader = l,
                                           .x = cut_image ? (float *)(void *)scratch : NULL,
                                           .label = cut_label ? scratch + image_bytes : NULL};
    }
    return CVY_OK;
}

cvy_status cvy_loader_create(const cvy_data *data, const cvy_loader_options *options, cvy_loader **loader_out)
{
    cvy_loader_layout layout;
    CVY_TRY(check_options(data, options, &layout));
    cvy_loader *loader = cvy_calloc(1, sizeof *loader);
    if (!loader) {
        return CVY_ERR_MEMORY;
    }
    loader->data = data;
    loader->options = *options;
    loader->options.threads = options->threads ? options->threads : 1;
    loader->count = cvy_data_get_info(data)->count[options->split];
    loader->layout = layout;
    /* nothing to read before the first start */
    loader->run = (cvy_loader_run){.next = loader->count, .failed_at = INT64_MAX};
    pthread_mutex_init(&loader->mutex, NULL);
    pthread_cond_init(&loader->work, NULL);
    pthread_cond_init(&loader->ready, NULL);
    loader->order = cvy_calloc((size_t)loader->count, sizeof *loader->order);
    loader->slot = cvy_calloc((size_t)options->slots, sizeof *loader->slot);
    loader->queue = cvy_calloc((size_t)options->slots, sizeof *loader->queue);
    bool whole = loader->order && loader->slot && loader->queue && make_readers(loader) == CVY_OK;
    cvy_status status = whole ? cvy_loader_threads_start(loader) : CVY_ERR_MEMORY;
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
    CVY_REQUIRE(!loader->options.shared || first == loader->count || first % loader->options.batch == 0, CVY_ERR_ARG,
                "shares are of batches of %" PRId64 ": an epoch cannot start at sample %" PRId64,
                loader->options.batch, first);
    pthread_mutex_lock(&loader->mutex);
    cvy_loader_queue_restart(loader, epoch, first);
    pthread_cond_broadcast(&loader->work);
    pthread_mutex_unlock(&loader->mutex);
    return CVY_OK;
}

void cvy_loader_stop(cvy_loader *loader)
{
    pthread_mutex_lock(&loader->mutex);
    cvy_loader_queue_restart(loader, loader->run.epoch, loader->count);
    while (cvy_loader_queue_has_dropped(loader)) {
        pthread_cond_wait(&loader->ready, &loader->mutex);
    }
    pthread_mutex_unlock(&loader->mutex);
}

/* Wait until there is something to tell. Mutex held, but not while waiting. */
static cvy_loader_outlook wait_for_outlook(cvy_loader *loader)
{
    cvy_loader_outlook found = cvy_loader_queue_look(loader);
    if (found != OUTLOOK_WAIT) {
        return found;
    }
    double begin_s = cvy_clock_s();
    while ((found = cvy_loader_queue_look(loader)) == OUTLOOK_WAIT) {
        pthread_cond_wait(&loader->ready, &loader->mutex);
    }
    loader->wait_s += cvy_clock_s() - begin_s;
    return found;
}

cvy_status cvy_loader_next(cvy_loader *loader, cvy_batch *batch_out)
{
    cvy_status status = CVY_OK;
    pthread_mutex_lock(&loader->mutex);
    cvy_loader_outlook found = wait_for_outlook(loader);
    if (found == OUTLOOK_BATCH) {
        cvy_loader_queue_take(loader, batch_out);
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
