/* The threads: each claims a few samples under the mutex, reads them without it, and reports back. */
#include <signal.h>
#include <string.h>

#include "base/pulse.h"
#include "data/loader_internal.h"

/* Read sample @p i of a claim: whole, or where the data set can, its slab alone. */
static cvy_status read_stored(const cvy_loader *loader, const cvy_loader_claim *mine, int64_t i, float *x, void *label)
{
    const cvy_loader_options *o = &loader->options;
    const cvy_slab *slab = &loader->layout.image;
    if (!cvy_slab_is_whole(slab) && cvy_data_has_slabs(loader->data, o->augment)) {
        return cvy_data_read_slab(loader->data, o->split, mine->index[i], slab, x, label);
    }
    return o->augment ? cvy_data_read_augmented(loader->data, o->split, mine->index[i], mine->epoch, x, label)
                      : cvy_data_read(loader->data, o->split, mine->index[i], x, label);
}

/* Read sample @p i of a claim into its place. */
static cvy_status read_sample(const cvy_loader_reader *reader, const cvy_loader_claim *mine, int64_t i)
{
    const cvy_loader *loader = reader->loader;
    const cvy_loader_layout *layout = &loader->layout;
    void *image = cvy_loader_images(loader, mine->slot) + (mine->at + i) * layout->image_bytes;
    void *label = cvy_loader_labels(loader, mine->slot) + (mine->at + i) * layout->label_bytes;
    float *x_to = loader->options.no_images ? NULL : reader->x ? reader->x : image;
    void *label_to = loader->options.no_labels ? NULL : reader->label ? reader->label : label;
    CVY_TRY(read_stored(loader, mine, i, x_to, label_to));
    if (reader->x) {
        cvy_slab_cut(&layout->image, reader->x, image);
    }
    if (reader->label) {
        cvy_slab_cut(&layout->label, reader->label, label);
    }
    return CVY_OK;
}

/* Read what was claimed; ends early, with whatever is left, where the run is no longer wanted. */
static cvy_status read_claim(const cvy_loader_reader *reader, const cvy_loader_claim *mine, int64_t *failed_out)
{
    const cvy_loader *loader = reader->loader;
    cvy_status status = CVY_OK;
    int64_t i = 0;
    for (; i < mine->samples && status == CVY_OK && atomic_load(&loader->number) == mine->number; i++) {
        status = read_sample(reader, mine, i);
        cvy_pulse_beat();
    }
    *failed_out = mine->at + i - 1;
    return status;
}

static void *read_ahead(void *opaque)
{
    const cvy_loader_reader *reader = opaque;
    cvy_loader *loader = reader->loader;
    pthread_mutex_lock(&loader->mutex);
    while (!loader->stop) {
        cvy_loader_claim mine;
        if (!cvy_loader_queue_claim(loader, &mine)) {
            pthread_cond_wait(&loader->work, &loader->mutex);
            continue;
        }
        int64_t failed;
        pthread_cond_signal(&loader->work); /* there may be more for another thread */
        pthread_mutex_unlock(&loader->mutex);
        cvy_status status = read_claim(reader, &mine, &failed);
        pthread_mutex_lock(&loader->mutex);
        cvy_loader_queue_finish(loader, &mine, status, failed);
    }
    pthread_mutex_unlock(&loader->mutex);
    return NULL;
}

/* All signals are blocked in the threads: they are the main thread's to handle. */
cvy_status cvy_loader_threads_start(cvy_loader *loader)
{
    sigset_t all, before;
    int error = 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (!error && loader->threads < loader->options.threads) {
        cvy_loader_reader *reader = &loader->reader[loader->threads];
        error = pthread_create(&reader->thread, NULL, read_ahead, reader);
        loader->threads += !error;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    CVY_REQUIRE(!error, CVY_ERR_MEMORY, "cannot start the loader's threads: %s", strerror(error));
    return CVY_OK;
}

void cvy_loader_threads_stop(cvy_loader *loader)
{
    pthread_mutex_lock(&loader->mutex);
    loader->stop = true;
    atomic_store(&loader->number, loader->run.number + 1); /* ends reads under way at their next sample */
    pthread_cond_broadcast(&loader->work);
    pthread_mutex_unlock(&loader->mutex);
    for (int i = 0; i < loader->threads; i++) {
        pthread_join(loader->reader[i].thread, NULL);
    }
}
