/* The threads: each claims a few samples under the mutex, reads them without it, and reports back. */
#include <signal.h>
#include <string.h>

#include "data/loader_internal.h"

/* Read sample @p i of a claim into its place. */
static cvy_status read_sample(const cvy_loader *loader, const cvy_loader_claim *mine, int64_t i)
{
    unsigned char *image = cvy_loader_images(loader, mine->slot);
    unsigned char *label = image + loader->images_bytes + (mine->at + i) * loader->label_bytes;
    float *x = (float *)(void *)(image + (mine->at + i) * loader->sample_bytes);
    return loader->options.augment
               ? cvy_data_read_augmented(loader->data, loader->options.split, mine->index[i], mine->epoch, x, label)
               : cvy_data_read(loader->data, loader->options.split, mine->index[i], x, label);
}

/* Read what was claimed; ends early, with whatever is left, where the run is no longer wanted. */
static cvy_status read_claim(const cvy_loader *loader, const cvy_loader_claim *mine, int64_t *failed_out)
{
    cvy_status status = CVY_OK;
    int64_t i = 0;
    for (; i < mine->samples && status == CVY_OK && atomic_load(&loader->number) == mine->number; i++) {
        status = read_sample(loader, mine, i);
    }
    *failed_out = mine->at + i - 1;
    return status;
}

static void *read_ahead(void *opaque)
{
    cvy_loader *loader = opaque;
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
        cvy_status status = read_claim(loader, &mine, &failed);
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
        error = pthread_create(&loader->thread[loader->threads], NULL, read_ahead, loader);
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
        pthread_join(loader->thread[i], NULL);
    }
}
