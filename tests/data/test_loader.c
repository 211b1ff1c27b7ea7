/*
 * The loader against a data set made here: a sample's pixels and label are its index, so every batch tells what was
 * read. Expected orders are cvy_random_order()'s, cut into batches by a plain loop.
 */
#include "data_test.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "base/memory.h"
#include "base/random.h"
#include "data/kind.h"
#include "data/loader.h"

enum { SAMPLES = 23, BATCH = 5, PIXELS = 3, MAX_SLOTS = 4, MAX_THREADS = 3, SEED = 11 };

/* What the set does when it is read; a read of a broken sample fails, `gate` holds readers up. */
typedef struct counted_set {
    int64_t broken, also_broken[2];
    pthread_mutex_t gate;
    atomic_int entered, reads, ended;
} counted_set;

static cvy_status read_counted(const void *opaque, cvy_split split, int64_t index, float *x_out, void *label_out)
{
    counted_set *set = *(counted_set *const *)opaque;
    (void)split;
    atomic_fetch_add(&set->entered, 1);
    pthread_mutex_lock(&set->gate);
    pthread_mutex_unlock(&set->gate);
    atomic_fetch_add(&set->reads, 1);
    CVY_REQUIRE(index != set->broken && index != set->also_broken[0] && index != set->also_broken[1], CVY_ERR_DATA, "volume-%d.bin: cut short", (int)index);
    for (int i = 0; i < PIXELS; i++) {
        x_out[i] = (float)(index * PIXELS + i);
    }
    *(int32_t *)label_out = (int32_t)index;
    atomic_fetch_add(&set->ended, 1);
    return CVY_OK;
}

static const cvy_data_kind counted_kind = {.name = "counted", .read = read_counted};

/* A set, a loader on it, and the memory of its slots. */
typedef struct bench {
    counted_set set;
    counted_set *set_pointer;
    cvy_data data;
    cvy_loader *loader;
    _Alignas(64) unsigned char memory[MAX_SLOTS * 128];
} bench;

static bench *make_bench(int slots, int threads, bool shuffle)
{
    bench *b = aligned_alloc(64, (sizeof *b + 63) / 64 * 64);
    assert_non_null(b);
    memset(b, 0, sizeof *b);
    b->set.broken = b->set.also_broken[0] = b->set.also_broken[1] = -1;
    pthread_mutex_init(&b->set.gate, NULL);
    b->set_pointer = &b->set;
    b->data = (cvy_data){.kind = &counted_kind,
                         .state = &b->set_pointer,
                         .info = {.sample = CVY_SHAPE(1, 1, PIXELS), .target = CVY_TARGET_CLASS, .classes = SAMPLES,
                                  .count = {SAMPLES, 0}}};
    /* 5 * 12 bytes of pixels and 5 * 4 of labels, each rounded up to 64 */
    cvy_loader_options options = {.split = CVY_SPLIT_TRAIN, .shuffle = shuffle, .seed = SEED, .batch = BATCH,
                                  .slots = slots, .threads = threads, .memory = b->memory};
    assert_int_equal(cvy_loader_slot_bytes(&b->data, &options), 128);
    assert_int_equal(cvy_loader_create(&b->data, &options, &b->loader), CVY_OK);
    return b;
}

static void end_bench(bench *b)
{
    cvy_loader_destroy(&b->loader);
    assert_null(b->loader);
    pthread_mutex_destroy(&b->set.gate);
    free(b);
}

/* Take every batch from @p first on and compare it with the order; gives each back at once. */
static void expect_rest(bench *b, const int64_t *order, int64_t first)
{
    for (int64_t at = first; at < SAMPLES; at += BATCH) {
        cvy_batch batch;
        assert_int_equal(cvy_loader_next(b->loader, &batch), CVY_OK);
        assert_int_equal(batch.first, at);
        assert_int_equal(batch.samples, at + BATCH <= SAMPLES ? BATCH : SAMPLES - at);
        assert_int_equal(batch.own, batch.samples);
        assert_int_equal(batch.own_first, 0);
        for (int64_t i = 0; i < batch.samples; i++) {
            assert_int_equal(((const int32_t *)batch.label)[i], order[at + i]);
            for (int p = 0; p < PIXELS; p++) {
                assert_true(batch.x[i * PIXELS + p] == (float)(order[at + i] * PIXELS + p));
            }
        }
        cvy_loader_release(b->loader, &batch);
    }
    for (int twice = 0; twice < 2; twice++) { /* the end stays the end */
        cvy_batch batch;
        assert_int_equal(cvy_loader_next(b->loader, &batch), CVY_OK);
        assert_int_equal(batch.samples, 0);
        cvy_loader_release(b->loader, &batch);
    }
}

/* 23 samples in batches of 5 are four whole ones and a tail of 3, whatever the count of slots. */
static void test_an_epoch_is_the_random_order_cut_into_batches(void **state)
{
    (void)state;
    static const int slots[] = {1, 2, 3, 4};
    for (int k = 0; k < 4 * MAX_THREADS; k++) {
        bench *b = make_bench(slots[k % 4], k / 4 + 1, true);
        for (uint32_t epoch = 0; epoch < 3; epoch++) {
            int64_t order[SAMPLES];
            bool seen[SAMPLES] = {false};
            cvy_random_order(SEED, epoch, SAMPLES, order);
            for (int i = 0; i < SAMPLES; i++) {
                assert_false(seen[order[i]]);
                seen[order[i]] = true;
            }
            assert_int_equal(cvy_loader_start(b->loader, epoch, 0), CVY_OK);
            expect_rest(b, order, 0);
        }
        assert_int_equal(atomic_load(&b->set.reads), 3 * SAMPLES);
        assert_true(cvy_loader_wait_s(b->loader) >= 0);
        end_bench(b);
    }
}

static void test_without_shuffling_samples_come_as_stored(void **state)
{
    (void)state;
    int64_t order[SAMPLES];
    bench *b = make_bench(2, 2, false);
    for (int i = 0; i < SAMPLES; i++) {
        order[i] = i;
    }
    assert_int_equal(cvy_loader_start(b->loader, 9, 0), CVY_OK);
    expect_rest(b, order, 0);
    end_bench(b);
}

static void test_a_start_in_the_middle_gives_the_same_rest(void **state)
{
    (void)state;
    int64_t order[SAMPLES];
    bench *b = make_bench(3, 2, true);
    cvy_random_order(SEED, 2, SAMPLES, order);
    for (int64_t first = 0; first <= SAMPLES; first++) {
        assert_int_equal(cvy_loader_start(b->loader, 2, first), CVY_OK);
        expect_rest(b, order, first);
    }
    assert_int_equal(cvy_loader_start(b->loader, 2, SAMPLES + 1), CVY_ERR_ARG);
    assert_int_equal(cvy_loader_start(b->loader, 2, -1), CVY_ERR_ARG);
    end_bench(b);
}

/* Starts pile up while the thread reads for an older one, and while the caller still holds a batch. */
static void test_a_new_start_drops_what_was_read_ahead(void **state)
{
    (void)state;
    int64_t order[SAMPLES];
    bench *b = NULL;
    cvy_random_order(SEED, 77, SAMPLES, order);
    for (int round = 0; round < 150; round++) {
        if (round % 50 == 0) {
            if (b) {
                end_bench(b);
            }
            b = make_bench(3, round / 50 + 1, true);
        }
        cvy_batch held;
        assert_int_equal(cvy_loader_start(b->loader, 5, 0), CVY_OK);
        assert_int_equal(cvy_loader_next(b->loader, &held), CVY_OK);
        const float kept = held.x[0];
        pthread_mutex_lock(&b->set.gate);
        assert_int_equal(cvy_loader_start(b->loader, 6, 10), CVY_OK);
        assert_int_equal(cvy_loader_start(b->loader, 77, 0), CVY_OK);
        pthread_mutex_unlock(&b->set.gate);
        expect_rest(b, order, 0);
        assert_true(held.x[0] == kept); /* a batch is the caller's until it is given back */
        cvy_loader_release(b->loader, &held);
        cvy_loader_release(b->loader, &held); /* twice does no harm */
    }
    end_bench(b);
}

/* The broken sample stands in the third batch: two come, then the failure with its file, again and again. */
static void test_a_failed_read_is_told_with_its_file_after_the_batches_before_it(void **state)
{
    (void)state;
    int64_t order[SAMPLES];
    char words[64];
    cvy_random_order(SEED, 1, SAMPLES, order);
    for (int k = 0; k < MAX_SLOTS * MAX_THREADS; k++) {
        bench *b = make_bench(k / MAX_THREADS + 1, k % MAX_THREADS + 1, true);
        cvy_batch batch;
        b->set.broken = order[2 * BATCH + 1];
        snprintf(words, sizeof words, "volume-%d.bin: cut short", (int)b->set.broken);
        assert_int_equal(cvy_loader_start(b->loader, 1, 0), CVY_OK);
        for (int i = 0; i < 2; i++) {
            assert_int_equal(cvy_loader_next(b->loader, &batch), CVY_OK);
            assert_int_equal(batch.first, i * BATCH);
            cvy_loader_release(b->loader, &batch);
        }
        for (int twice = 0; twice < 2; twice++) {
            cvy_error_clear();
            assert_int_equal(cvy_loader_next(b->loader, &batch), CVY_ERR_DATA);
            assert_string_equal(cvy_error_message(), words);
        }
        assert_int_equal(cvy_loader_start(b->loader, 1, 3 * BATCH), CVY_OK); /* behind it, all is well */
        expect_rest(b, order, 3 * BATCH);
        end_bench(b);
    }
}

/* Two broken samples in one batch, and one in the next: whichever thread is first, the first of the epoch is told. */
static void test_of_several_failures_the_first_in_order_is_told(void **state)
{
    (void)state;
    int64_t order[SAMPLES];
    char words[64];
    cvy_random_order(SEED, 1, SAMPLES, order);
    snprintf(words, sizeof words, "volume-%d.bin: cut short", (int)order[BATCH + 2]);
    for (int round = 0; round < 60; round++) {
        bench *b = make_bench(MAX_SLOTS, round % MAX_THREADS + 1, true);
        cvy_batch batch;
        b->set.broken = order[BATCH + 2];
        b->set.also_broken[0] = order[BATCH + 4];
        b->set.also_broken[1] = order[2 * BATCH];
        assert_int_equal(cvy_loader_start(b->loader, 1, 0), CVY_OK);
        assert_int_equal(cvy_loader_next(b->loader, &batch), CVY_OK);
        cvy_loader_release(b->loader, &batch);
        assert_int_equal(cvy_loader_next(b->loader, &batch), CVY_ERR_DATA);
        assert_string_equal(cvy_error_message(), words);
        end_bench(b);
    }
}

/* CIFAR's five samples, augmented: every count of threads gives the bits of reading one by one, in every epoch. */
static void test_augmented_batches_are_the_same_with_any_threads(void **state)
{
    (void)state;
    enum { COUNT = 5, ELEMENTS = 3072, SLOT = (2 * ELEMENTS * 4 + 64) };
    _Alignas(64) static unsigned char memory[3 * SLOT];
    static float x[ELEMENTS], before[COUNT][ELEMENTS];
    cvy_data_options wanted = class_options(CVY_TEST_DATA "/cifar10", CVY_SHAPE(3, 32, 32));
    cvy_data *data;
    int changed = 0;
    wanted.augmentation = (cvy_augmentation){.crop_padding = 4, .hflip = 0.5};
    assert_int_equal(cvy_data_open(&wanted, &data), CVY_OK);
    for (int threads = 1; threads <= MAX_THREADS; threads++) {
        cvy_loader_options options = {.split = CVY_SPLIT_TRAIN, .augment = true, .batch = 2, .slots = 3,
                                      .threads = threads, .memory = memory};
        cvy_loader *loader;
        assert_int_equal(cvy_loader_slot_bytes(data, &options), SLOT);
        assert_int_equal(cvy_loader_create(data, &options, &loader), CVY_OK);
        for (uint32_t epoch = 0; epoch < 20; epoch++) {
            cvy_batch batch;
            assert_int_equal(cvy_loader_start(loader, epoch, 0), CVY_OK);
            while (assert_int_equal(cvy_loader_next(loader, &batch), CVY_OK), batch.samples) {
                for (int64_t i = 0; i < batch.samples; i++) {
                    int64_t index = batch.first + i;
                    int32_t label;
                    assert_int_equal(cvy_data_read_augmented(data, CVY_SPLIT_TRAIN, index, epoch, x, &label), CVY_OK);
                    assert_memory_equal(batch.x + i * ELEMENTS, x, sizeof x);
                    assert_int_equal(((const int32_t *)batch.label)[i], label);
                    changed += memcmp(before[index], x, sizeof x) != 0;
                    memcpy(before[index], x, sizeof x);
                }
                cvy_loader_release(loader, &batch);
            }
        }
        cvy_loader_destroy(&loader);
    }
    assert_true(changed > 280); /* of 300, an epoch repeats the one before once in 162 */
    cvy_data_close(&data);
}

static void test_a_caller_who_keeps_every_slot_is_told(void **state)
{
    (void)state;
    cvy_batch batch[2], more;
    bench *b = make_bench(2, 3, true);
    assert_int_equal(cvy_loader_next(b->loader, &more), CVY_ERR_ARG);
    assert_non_null(strstr(cvy_error_message(), "not started"));
    assert_int_equal(cvy_loader_start(b->loader, 0, 0), CVY_OK);
    assert_int_equal(cvy_loader_next(b->loader, &batch[0]), CVY_OK);
    assert_int_equal(cvy_loader_next(b->loader, &batch[1]), CVY_OK);
    assert_int_not_equal(batch[0].slot, batch[1].slot);
    assert_int_equal(cvy_loader_next(b->loader, &more), CVY_ERR_ARG);
    assert_non_null(strstr(cvy_error_message(), "all 2 slots"));
    cvy_loader_release(b->loader, &batch[1]); /* in any order */
    assert_int_equal(cvy_loader_next(b->loader, &more), CVY_OK);
    assert_int_equal(more.first, 2 * BATCH);
    end_bench(b);
}

/* Idle, reading, full, with batches in the caller's hands, at the end, after a failure. */
static void test_a_loader_can_be_destroyed_at_any_moment(void **state)
{
    (void)state;
    for (int taken = -1; taken <= SAMPLES / BATCH + 1; taken++) {
        for (int keep = 0; keep < 2; keep++) {
            bench *b = make_bench(MAX_SLOTS, keep + 1, true);
            if (taken >= 0) {
                assert_int_equal(cvy_loader_start(b->loader, 0, 0), CVY_OK);
            }
            for (int i = 0; i < taken; i++) {
                cvy_batch batch;
                assert_int_equal(cvy_loader_next(b->loader, &batch), CVY_OK);
                if (!keep || i >= MAX_SLOTS - 1) {
                    cvy_loader_release(b->loader, &batch);
                }
            }
            end_bench(b);
        }
    }
    bench *b = make_bench(1, 2, true);
    b->set.broken = 0;
    assert_int_equal(cvy_loader_start(b->loader, 0, 0), CVY_OK);
    end_bench(b);
    cvy_loader *none = NULL;
    cvy_loader_destroy(&none);
}

/* Keeps the gate shut until the loader is being stopped, and a while longer. */
typedef struct gatekeeper {
    pthread_mutex_t *gate;
    atomic_bool shut, stopping;
} gatekeeper;

static void *keep_gate(void *opaque)
{
    gatekeeper *keeper = opaque;
    pthread_mutex_lock(keeper->gate);
    atomic_store(&keeper->shut, true);
    while (!atomic_load(&keeper->stopping)) {
        sched_yield();
    }
    for (int i = 0; i < 1000; i++) {
        sched_yield();
    }
    pthread_mutex_unlock(keeper->gate);
    return NULL;
}

/* Threads are in the middle of reads when the loader is stopped: it waits for them, and the slots are the caller's. */
static void test_a_stopped_loader_reads_nothing(void **state)
{
    (void)state;
    int64_t order[SAMPLES];
    bench *b = make_bench(3, MAX_THREADS, true);
    gatekeeper keeper = {.gate = &b->set.gate};
    pthread_t thread;
    cvy_batch batch;
    cvy_loader_stop(b->loader); /* before any start */
    assert_int_equal(pthread_create(&thread, NULL, keep_gate, &keeper), 0);
    while (!atomic_load(&keeper.shut)) {
        sched_yield();
    }
    assert_int_equal(cvy_loader_start(b->loader, 0, 0), CVY_OK);
    while (atomic_load(&b->set.entered) < MAX_THREADS) {
        sched_yield();
    }
    atomic_store(&keeper.stopping, true);
    cvy_loader_stop(b->loader);
    assert_int_equal(atomic_load(&b->set.entered), atomic_load(&b->set.ended));
    assert_int_equal(cvy_loader_next(b->loader, &batch), CVY_OK);
    assert_int_equal(batch.samples, 0);
    pthread_join(thread, NULL);
    cvy_random_order(SEED, 1, SAMPLES, order);
    assert_int_equal(cvy_loader_start(b->loader, 1, 10), CVY_OK);
    expect_rest(b, order, 10);
    end_bench(b);
}

static void test_options_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    cvy_loader *loader = NULL;
    bench *b = make_bench(1, 2, true);
    cvy_loader_options options = {.split = CVY_SPLIT_TEST, .batch = 1, .slots = 1, .memory = b->memory};
    assert_int_equal(cvy_loader_create(&b->data, &options, &loader), CVY_ERR_DATA);
    assert_non_null(strstr(cvy_error_message(), "no test samples"));
    options.split = CVY_SPLIT_TRAIN;
    options.batch = 0;
    assert_int_equal(cvy_loader_create(&b->data, &options, &loader), CVY_ERR_ARG);
    options.batch = INT64_MAX / 2;
    assert_int_equal(cvy_loader_create(&b->data, &options, &loader), CVY_ERR_ARG);
    assert_true(cvy_loader_slot_bytes(&b->data, &options) == INT64_MAX);
    options.batch = 1;
    options.slots = 0;
    assert_int_equal(cvy_loader_create(&b->data, &options, &loader), CVY_ERR_ARG);
    options.slots = 1;
    options.threads = CVY_LOADER_MAX_THREADS + 1;
    assert_int_equal(cvy_loader_create(&b->data, &options, &loader), CVY_ERR_ARG);
    options.threads = -1;
    assert_int_equal(cvy_loader_create(&b->data, &options, &loader), CVY_ERR_ARG);
    options.threads = 2;
    options.memory = NULL;
    assert_int_equal(cvy_loader_create(&b->data, &options, &loader), CVY_ERR_ARG);
    options.memory = b->memory;
    for (int i = 0; i < 5; i++) { /* the loader, its order, its slots, its queue, its threads */
        cvy_memory_fail_after(i);
        assert_int_equal(cvy_loader_create(&b->data, &options, &loader), CVY_ERR_MEMORY);
        cvy_memory_fail_after(-1);
    }
    assert_null(loader);
    end_bench(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_epoch_is_the_random_order_cut_into_batches),
        cmocka_unit_test(test_without_shuffling_samples_come_as_stored),
        cmocka_unit_test(test_a_start_in_the_middle_gives_the_same_rest),
        cmocka_unit_test(test_a_new_start_drops_what_was_read_ahead),
        cmocka_unit_test(test_a_failed_read_is_told_with_its_file_after_the_batches_before_it),
        cmocka_unit_test(test_of_several_failures_the_first_in_order_is_told),
        cmocka_unit_test(test_augmented_batches_are_the_same_with_any_threads),
        cmocka_unit_test(test_a_caller_who_keeps_every_slot_is_told),
        cmocka_unit_test(test_a_loader_can_be_destroyed_at_any_moment),
        cmocka_unit_test(test_a_stopped_loader_reads_nothing),
        cmocka_unit_test(test_options_that_make_no_sense_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
