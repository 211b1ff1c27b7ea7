/*
 * Loaders of many ranks: together they read what one rank alone does, each sample once, and each rank's slots hold its
 * samples and its slab of each. The set is made here: a pixel tells its sample and its place. Shares and slabs are cut
 * by plain loops; what is cut is the whole sample, read by itself.
 */
#include "data_test.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/random.h"
#include "data/kind.h"
#include "data/loader.h"

enum { MAX_COUNT = 40, MAX_RANKS = 8, MAX_ELEMENTS = 600, SEED = 11, GUARD = 64, GUARD_BYTE = 0xA5 };

/* ---- a set ---- */

typedef struct numbered_set {
    int64_t elements, labels, broken;
    bool values;             /* labels are floats */
    atomic_int reads, images, label_reads;
} numbered_set;

static cvy_status read_numbered(const void *opaque, cvy_split split, int64_t index, float *x_out, void *label_out)
{
    numbered_set *set = *(numbered_set *const *)opaque;
    (void)split;
    atomic_fetch_add(&set->reads, 1);
    atomic_fetch_add(&set->images, x_out != NULL);
    atomic_fetch_add(&set->label_reads, label_out != NULL);
    CVY_REQUIRE(index != set->broken, CVY_ERR_DATA, "volume-%d.bin: cut short", (int)index);
    for (int64_t i = 0; x_out && i < set->elements; i++) {
        x_out[i] = (float)(index * 1000 + i + 1);
    }
    for (int64_t i = 0; label_out && i < set->labels; i++) {
        if (set->values) {
            ((float *)label_out)[i] = (float)(index * 1000 + i);
        } else {
            ((int32_t *)label_out)[i] = (int32_t)(index * 1000 + i);
        }
    }
    return CVY_OK;
}

static const cvy_data_kind numbered_kind = {.name = "numbered", .read = read_numbered};

typedef struct numbered {
    numbered_set set;
    numbered_set *set_pointer;
    cvy_data data;
} numbered;

/* Classes where @p map has no dimensions, else a map of them. */
static void make_numbered(numbered *n, int64_t count, cvy_shape sample, cvy_shape map, bool augmented)
{
    memset(n, 0, sizeof *n);
    n->set.elements = cvy_shape_elements(&sample);
    n->set.labels = map.dims ? cvy_shape_elements(&map) : 1;
    n->set.broken = -1;
    n->set_pointer = &n->set;
    n->data = (cvy_data){.kind = &numbered_kind, .state = &n->set_pointer, .seed = 7,
                         .info = {.sample = sample, .target = map.dims ? CVY_TARGET_MAP : CVY_TARGET_CLASS,
                                  .classes = 1, .map = map, .count = {count, count}}};
    if (augmented) {
        n->data.augmentation = (cvy_augmentation){.crop_padding = 1, .hflip = 0.5};
    }
}

/* ---- a loader in memory of exactly its size, with guards behind ---- */

typedef struct guarded {
    cvy_loader *loader;
    unsigned char *memory;
    int64_t bytes;
} guarded;

static guarded open_guarded(const cvy_data *data, cvy_loader_options options)
{
    guarded g = {.bytes = options.slots * cvy_loader_slot_bytes(data, &options)};
    g.memory = aligned_alloc(64, (size_t)(g.bytes + GUARD));
    assert_non_null(g.memory);
    memset(g.memory, GUARD_BYTE, (size_t)(g.bytes + GUARD));
    options.memory = g.memory;
    if (cvy_loader_create(data, &options, &g.loader) != CVY_OK) {
        fail_msg("%s", cvy_error_message());
    }
    return g;
}

static void close_guarded(guarded *g)
{
    cvy_loader_destroy(&g->loader);
    for (int i = 0; i < GUARD; i++) {
        assert_int_equal(g->memory[g->bytes + i], GUARD_BYTE);
    }
    free(g->memory);
}

/* Share @p rank of so many samples. */
static cvy_interval share_of(int64_t samples, int ranks, int rank)
{
    return (cvy_interval){samples * rank / ranks, samples * (rank + 1) / ranks};
}

static cvy_loader_options rank_options(const cvy_data *data, int64_t batch, int ranks, int rank)
{
    int64_t count = cvy_data_get_info(data)->count[CVY_SPLIT_TRAIN];
    return (cvy_loader_options){.split = CVY_SPLIT_TRAIN, .shuffle = true, .augment = true, .seed = SEED,
                                .batch = batch, .slots = 2, .threads = 1, .shared = true,
                                .share = share_of(batch, ranks, rank),
                                .tail_share = share_of(count % batch, ranks, rank)};
}

/* ---- the union ---- */

/* Walk an epoch of one rank from @p first on; note in `seen` who had which position. */
static void walk_rank(const numbered *n, const cvy_loader_options *options, uint32_t epoch, int64_t first, int *seen)
{
    int64_t order[MAX_COUNT], count = n->data.info.count[0];
    float x[MAX_ELEMENTS];
    int32_t label;
    guarded g = open_guarded(&n->data, *options);
    cvy_random_order(SEED, epoch, count, order);
    assert_int_equal(cvy_loader_start(g.loader, epoch, first), CVY_OK);
    for (int64_t at = first; at < count; at += options->batch) {
        int64_t samples = at + options->batch <= count ? options->batch : count - at;
        cvy_interval mine = samples == options->batch ? options->share : options->tail_share;
        cvy_batch batch;
        assert_int_equal(cvy_loader_next(g.loader, &batch), CVY_OK);
        assert_int_equal(batch.first, at);
        assert_int_equal(batch.samples, samples);
        assert_int_equal(batch.own, mine.end - mine.begin);
        assert_int_equal(batch.own_first, mine.begin);
        for (int64_t i = 0; i < batch.own; i++) {
            int64_t position = at + mine.begin + i;
            assert_int_equal(cvy_data_read_augmented(&n->data, CVY_SPLIT_TRAIN, order[position], epoch, x, &label),
                             CVY_OK);
            assert_memory_equal(batch.x + i * n->set.elements, x, (size_t)n->set.elements * sizeof x[0]);
            assert_int_equal(((const int32_t *)batch.label)[i], order[position] * 1000);
            seen[position]++;
        }
        cvy_loader_release(g.loader, &batch);
    }
    cvy_batch end;
    assert_int_equal(cvy_loader_next(g.loader, &end), CVY_OK);
    assert_int_equal(end.samples, 0);
    close_guarded(&g);
}

/* Tails, batches smaller than the ranks, starts in the middle: every sample is some rank's, and no sample is two's. */
static void test_ranks_together_read_each_sample_of_an_epoch_once(void **state)
{
    (void)state;
    static const int64_t counts[] = {1, 7, 12, 23}, batches[] = {1, 3, 4, 5, 12, 30};
    int turn = 0;
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
        for (size_t k = 0; k < sizeof batches / sizeof batches[0]; k++) {
            for (int ranks = 1; ranks <= MAX_RANKS; ranks++) {
                numbered n;
                int seen[MAX_COUNT] = {0};
                uint32_t epoch = (uint32_t)++turn;
                int64_t whole = counts[c] / batches[k], first = turn % (whole + 1) * batches[k];
                make_numbered(&n, counts[c], CVY_SHAPE(2, 3, 4), (cvy_shape){.dims = 0}, true);
                for (int rank = 0; rank < ranks; rank++) {
                    cvy_loader_options options = rank_options(&n.data, batches[k], ranks, rank);
                    options.threads = 1 + (turn + rank) % 3;
                    options.slots = 1 + (turn + rank) % 4;
                    walk_rank(&n, &options, epoch, first, seen);
                }
                for (int64_t i = 0; i < counts[c]; i++) {
                    assert_int_equal(seen[i], i >= first);
                }
                /* once by a loader, and once to compare with */
                assert_int_equal(atomic_load(&n.set.reads), 2 * (counts[c] - first));
            }
        }
    }
}

/* Of 5 samples over 8 ranks, three ranks have none, ever: they take no memory and read nothing, but count along. */
static void test_a_rank_without_samples_has_its_turns(void **state)
{
    (void)state;
    numbered n;
    make_numbered(&n, 13, CVY_SHAPE(1, 2, 2), (cvy_shape){.dims = 0}, false);
    cvy_loader_options options = rank_options(&n.data, 5, 8, 0);
    options.share = options.tail_share = (cvy_interval){2, 2};
    cvy_loader *loader = NULL;
    assert_int_equal(cvy_loader_slot_bytes(&n.data, &options), 0);
    assert_int_equal(cvy_loader_create(&n.data, &options, &loader), CVY_OK);
    for (uint32_t epoch = 0; epoch < 50; epoch++) {
        cvy_batch batch;
        assert_int_equal(cvy_loader_start(loader, epoch, 0), CVY_OK);
        for (int i = 0; i < 3; i++) {
            assert_int_equal(cvy_loader_next(loader, &batch), CVY_OK);
            assert_int_equal(batch.first, 5 * i);
            assert_int_equal(batch.samples, i == 2 ? 3 : 5);
            assert_int_equal(batch.own, 0);
            cvy_loader_release(loader, &batch);
        }
        assert_int_equal(cvy_loader_next(loader, &batch), CVY_OK);
        assert_int_equal(batch.samples, 0);
    }
    cvy_loader_destroy(&loader);
    assert_int_equal(atomic_load(&n.set.reads), 0);
}

/* The broken sample is the fourth of the second batch: rank 1 of 2 has it. */
static void test_only_the_rank_that_reads_a_bad_sample_fails(void **state)
{
    (void)state;
    enum { COUNT = 20, BATCH = 5 };
    for (int round = 0; round < 20; round++) {
        numbered n;
        int64_t order[COUNT];
        int seen[COUNT] = {0};
        char words[64];
        cvy_batch batch;
        make_numbered(&n, COUNT, CVY_SHAPE(1, 2, 2), (cvy_shape){.dims = 0}, false);
        cvy_random_order(SEED, 3, COUNT, order);
        n.set.broken = order[BATCH + 3];
        snprintf(words, sizeof words, "volume-%d.bin: cut short", (int)n.set.broken);
        cvy_loader_options options = rank_options(&n.data, BATCH, 2, 0);
        options.threads = 1 + round % 3;
        walk_rank(&n, &options, 3, 0, seen);
        options = rank_options(&n.data, BATCH, 2, 1);
        options.threads = 1 + round % 3;
        guarded g = open_guarded(&n.data, options);
        assert_int_equal(cvy_loader_start(g.loader, 3, 0), CVY_OK);
        assert_int_equal(cvy_loader_next(g.loader, &batch), CVY_OK);
        cvy_loader_release(g.loader, &batch);
        for (int twice = 0; twice < 2; twice++) {
            assert_int_equal(cvy_loader_next(g.loader, &batch), CVY_ERR_DATA);
            assert_string_equal(cvy_error_message(), words);
        }
        close_guarded(&g);
    }
}

/* ---- slabs ---- */

static int64_t round_up(int64_t bytes) { return (bytes + 63) / 64 * 64; }

/* The rows of a sample of @p channels; a shape of fewer dimensions has an extent of 1 in front. Returns elements. */
static int64_t cut_by_hand(const int32_t *whole, int64_t channels, const int64_t e[3], const cvy_interval rows[3],
                           int32_t *out)
{
    int64_t count = 0;
    cvy_interval r[3];
    for (int i = 0; i < 3; i++) {
        r[i] = rows[i].begin == rows[i].end ? (cvy_interval){0, e[i]} : rows[i];
    }
    for (int64_t c = 0; c < channels; c++) {
        for (int64_t z = r[0].begin; z < r[0].end; z++) {
            for (int64_t y = r[1].begin; y < r[1].end; y++) {
                for (int64_t x = r[2].begin; x < r[2].end; x++) {
                    out[count++] = whole[((c * e[0] + z) * e[1] + y) * e[2] + x];
                }
            }
        }
    }
    return count;
}

static void get_extents(const cvy_shape *shape, int first, int64_t e[3])
{
    e[0] = shape->dims - first == 3 ? shape->extent[first] : 1;
    e[1] = shape->dims - first >= 2 ? shape->extent[shape->dims - 2] : 1;
    e[2] = shape->dims - first >= 2 ? shape->extent[shape->dims - 1] : 1;
}

/* Rank 1 of 2, an epoch: each sample's slab, and that of its labels, by whole samples that are read by themselves. */
static void expect_slabs(const cvy_data *data, const cvy_interval rows[3], const cvy_interval label_rows[3], bool augment)
{
    enum { BATCH = 4 };
    const cvy_data_info *info = cvy_data_get_info(data);
    int32_t whole[MAX_ELEMENTS], label[MAX_ELEMENTS], expected[MAX_ELEMENTS], expected_label[MAX_ELEMENTS];
    int64_t e[3], label_e[3], order[MAX_COUNT], count = info->count[0];
    get_extents(&info->sample, 1, e);
    get_extents(&info->map, 0, label_e);
    cvy_loader_options options = rank_options(data, BATCH, 2, 1);
    memcpy(options.rows, rows, sizeof options.rows);
    memcpy(options.label_rows, label_rows, sizeof options.label_rows);
    options.augment = augment;
    options.threads = 2;
    int64_t elements = cut_by_hand(whole, info->sample.extent[0], e, rows, expected);
    int64_t labels = cut_by_hand(label, 1, label_e, label_rows, expected_label);
    assert_int_equal(cvy_loader_slot_bytes(data, &options), round_up(2 * elements * 4) + round_up(2 * labels * 4));
    guarded g = open_guarded(data, options);
    cvy_random_order(SEED, 2, count, order);
    assert_int_equal(cvy_loader_start(g.loader, 2, 0), CVY_OK);
    for (int64_t at = 0; at < count; at += BATCH) {
        cvy_batch batch;
        assert_int_equal(cvy_loader_next(g.loader, &batch), CVY_OK);
        for (int64_t i = 0; i < batch.own; i++) {
            int64_t index = order[at + batch.own_first + i];
            float *x = (float *)(void *)whole;
            cvy_status status = augment ? cvy_data_read_augmented(data, CVY_SPLIT_TRAIN, index, 2, x, label)
                                        : cvy_data_read(data, CVY_SPLIT_TRAIN, index, x, label);
            assert_int_equal(status, CVY_OK);
            cut_by_hand(whole, info->sample.extent[0], e, rows, expected);
            cut_by_hand(label, 1, label_e, label_rows, expected_label);
            assert_memory_equal(batch.x + i * elements, expected, (size_t)elements * 4);
            assert_memory_equal((const int32_t *)batch.label + i * labels, expected_label, (size_t)labels * 4);
        }
        cvy_loader_release(g.loader, &batch);
    }
    close_guarded(&g);
}

static const cvy_interval all_rows[3];

/* Every stretch of h and of w of 3x4x5. */
static void test_slabs_of_images_are_their_rows(void **state)
{
    (void)state;
    numbered n;
    make_numbered(&n, 7, CVY_SHAPE(3, 4, 5), (cvy_shape){.dims = 0}, true);
    for (int64_t y = 0; y < 4 * 5; y++) {
        for (int64_t x = 0; x < 5 * 6; x++) {
            const cvy_interval rows[3] = {{0, y % 2}, {y / 5, y % 5}, {x / 6, x % 6}};
            if (y / 5 < y % 5 && x / 6 < x % 6) {
                expect_slabs(&n.data, rows, all_rows, (x + y) % 2);
            }
        }
    }
    expect_slabs(&n.data, all_rows, all_rows, true);
}

/* Volumes with a map of their positions: rows of both, alike and apart; one of several axes, or all of them. */
static void test_slabs_of_volumes_and_of_their_maps_are_their_rows(void **state)
{
    (void)state;
    static const cvy_interval cases[][3] = {
        {{0, 0}, {0, 0}, {0, 0}}, {{1, 2}, {0, 0}, {0, 0}}, {{0, 0}, {2, 4}, {0, 0}}, {{0, 0}, {0, 0}, {3, 5}},
        {{0, 2}, {1, 4}, {0, 4}}, {{2, 3}, {0, 1}, {4, 5}}, {{0, 3}, {0, 4}, {0, 5}},
    };
    enum { CASES = sizeof cases / sizeof cases[0] };
    numbered n;
    make_numbered(&n, 7, CVY_SHAPE(2, 3, 4, 5), CVY_SHAPE(3, 4, 5), true);
    for (int i = 0; i < CASES * CASES; i++) {
        expect_slabs(&n.data, cases[i / CASES], cases[i % CASES], i % 2);
    }
    make_numbered(&n, 7, CVY_SHAPE(2, 4, 5), CVY_SHAPE(4, 5), true);
    for (int i = 0; i < CASES; i++) {
        const cvy_interval rows[3] = {{0, 1}, cases[i][1], cases[i][2]};
        expect_slabs(&n.data, rows, rows, true);
    }
}

/* Noise reads its slabs without the rest, scaled or not: the same numbers. Augmented it cannot. */
static void test_slabs_of_noise_are_its_rows(void **state)
{
    (void)state;
    static const cvy_interval cases[][3] = {
        {{1, 2}, {0, 0}, {0, 0}}, {{0, 0}, {1, 5}, {0, 0}}, {{0, 2}, {2, 3}, {3, 7}}, {{2, 3}, {0, 1}, {6, 7}}};
    for (int round = 0; round < 4; round++) {
        cvy_data *data;
        cvy_data_options options = class_options("random", CVY_SHAPE(3, 3, 5, 7));
        options.train_count = 7;
        options.mean = round % 2 ? "0.5,0.25,-1" : NULL;
        options.std = round % 2 ? "2,0.5,3" : NULL;
        options.augmentation.hflip = round / 2 ? 0.5 : 0.0;
        assert_int_equal(cvy_data_open(&options, &data), CVY_OK);
        assert_int_equal(cvy_data_has_slabs(data, true), round / 2 == 0);
        assert_true(cvy_data_has_slabs(data, false));
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            expect_slabs(data, cases[i], all_rows, true);
            expect_slabs(data, cases[i], all_rows, false);
        }
        cvy_data_close(&data);
    }
}

/* ---- what is not wanted ---- */

static void test_images_or_labels_that_are_not_wanted_are_not_read(void **state)
{
    (void)state;
    enum { COUNT = 11, BATCH = 4, IMAGES = 2 * 2 * 12 * 4, LABELS = 2 * 12 * 4 };
    for (int which = 0; which < 4; which++) {
        numbered n;
        make_numbered(&n, COUNT, CVY_SHAPE(2, 3, 4), CVY_SHAPE(3, 4), true);
        cvy_loader_options options = rank_options(&n.data, BATCH, 2, 0);
        options.no_images = which % 2;
        options.no_labels = which / 2;
        /* 2 samples of 2 channels of 3x4, and 2 maps of 3x4 */
        assert_int_equal(cvy_loader_slot_bytes(&n.data, &options),
                         (which % 2 ? 0 : round_up(IMAGES)) + (which / 2 ? 0 : round_up(LABELS)));
        guarded g = open_guarded(&n.data, options);
        for (uint32_t epoch = 0; epoch < 20; epoch++) {
            int64_t order[COUNT];
            float x[24];
            int32_t label[12];
            cvy_random_order(SEED, epoch, COUNT, order);
            assert_int_equal(cvy_loader_start(g.loader, epoch, 0), CVY_OK);
            for (int64_t at = 0; at < COUNT; at += BATCH) {
                cvy_batch batch;
                assert_int_equal(cvy_loader_next(g.loader, &batch), CVY_OK);
                assert_int_equal(batch.first, at);
                assert_int_equal(batch.own, at + BATCH <= COUNT ? 2 : 1);
                assert_int_equal(batch.x == NULL, options.no_images);
                assert_int_equal(batch.label == NULL, options.no_labels);
                for (int64_t i = 0; i < batch.own; i++) {
                    assert_int_equal(cvy_data_read_augmented(&n.data, CVY_SPLIT_TRAIN, order[at + i], epoch, x, label),
                                     CVY_OK);
                    assert_true(!batch.x || memcmp(batch.x + i * 24, x, sizeof x) == 0);
                    assert_true(!batch.label || memcmp((const int32_t *)batch.label + i * 12, label, sizeof label) == 0);
                }
                cvy_loader_release(g.loader, &batch);
            }
        }
        close_guarded(&g);
        /* 2 + 2 + 1 samples an epoch, and as many to compare with */
        assert_int_equal(atomic_load(&n.set.images), 20 * 5 * (options.no_images ? 1 : 2));
        assert_int_equal(atomic_load(&n.set.label_reads), 20 * 5 * (options.no_labels ? 1 : 2));
        assert_int_equal(atomic_load(&n.set.reads), 20 * 5 * (which == 3 ? 1 : 2));
    }
}

/* Every kind gives the image alone, and the label alone, as it gives both. */
static void test_kinds_read_images_and_labels_apart(void **state)
{
    (void)state;
    static const char *const sources[] = {CVY_TEST_DATA "/mnist", CVY_TEST_DATA "/cifar10", CVY_TEST_DATA "/cifar100",
                                          CVY_TEST_DATA "/npy2d", CVY_TEST_DATA "/npy3d",   CVY_TEST_DATA "/npz",
                                          CVY_TEST_DATA "/maps",  "digits",                 "random",
                                          "cosmo"};
    for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++) {
        bool synthetic = sources[i][0] != '/', cosmo = strcmp(sources[i], "cosmo") == 0;
        cvy_data *data = NULL;
        cvy_data_options options = class_options(sources[i], cosmo ? CVY_SHAPE(2, 8, 9, 10) : CVY_SHAPE(1, 20, 20));
        options.sample.dims = synthetic ? options.sample.dims : 0;
        options.target = cosmo ? CVY_TARGET_VALUES : CVY_TARGET_CLASS;
        options.classes = cosmo ? 4 : 10;
        if (cvy_data_open(&options, &data) != CVY_OK) {
            fail_msg("%s", cvy_error_message());
        }
        size_t bytes = (size_t)cvy_data_sample_bytes(data), label_bytes = (size_t)cvy_data_label_bytes(data);
        float *x[2] = {malloc(bytes), malloc(bytes)};
        void *label[2] = {malloc(label_bytes), malloc(label_bytes)};
        cvy_split split = cvy_data_get_info(data)->count[CVY_SPLIT_TRAIN] ? CVY_SPLIT_TRAIN : CVY_SPLIT_TEST;
        memset(x[1], GUARD_BYTE, bytes);
        memset(label[1], GUARD_BYTE, label_bytes);
        assert_int_equal(cvy_data_read(data, split, 1, x[0], label[0]), CVY_OK);
        assert_int_equal(cvy_data_read(data, split, 1, x[1], NULL), CVY_OK);
        assert_int_equal(cvy_data_read(data, split, 1, NULL, label[1]), CVY_OK);
        assert_memory_equal(x[0], x[1], bytes);
        assert_memory_equal(label[0], label[1], label_bytes);
        for (int k = 0; k < 2; k++) {
            free(x[k]);
            free(label[k]);
        }
        cvy_data_close(&data);
    }
}

/* ---- what is refused ---- */

static void expect_no_loader(const cvy_data *data, const cvy_loader_options *options, const char *words)
{
    static _Alignas(64) unsigned char memory[4096];
    cvy_loader *loader = NULL;
    cvy_loader_options wanted = *options;
    wanted.memory = memory;
    assert_true(cvy_loader_slot_bytes(data, &wanted) == INT64_MAX);
    assert_int_equal(cvy_loader_create(data, &wanted, &loader), CVY_ERR_ARG);
    assert_null(loader);
    if (!strstr(cvy_error_message(), words)) {
        fail_msg("'%s' is not in '%s'", words, cvy_error_message());
    }
}

/* 13 samples in batches of 5 leave a last one of 3. */
static void test_shares_beyond_a_batch_or_a_sample_are_refused(void **state)
{
    (void)state;
    numbered n;
    make_numbered(&n, 13, CVY_SHAPE(1, 3, 4), CVY_SHAPE(3, 4), false);
    static const cvy_interval bad_shares[] = {{-1, 2}, {2, 6}, {3, 2}, {6, 6}};
    const cvy_loader_options fine = rank_options(&n.data, 5, 1, 0);
    cvy_loader_options options;
    for (size_t i = 0; i < sizeof bad_shares / sizeof bad_shares[0]; i++) {
        options = fine;
        options.share = bad_shares[i];
        expect_no_loader(&n.data, &options, "share of a batch: samples");
        options = fine;
        options.tail_share = bad_shares[i];
        expect_no_loader(&n.data, &options, "expected some of 0 to 3");
    }
    static const cvy_interval bad_rows[] = {{-1, 2}, {2, 5}, {3, 2}, {4, 6}};
    for (size_t i = 0; i < sizeof bad_rows / sizeof bad_rows[0]; i++) {
        for (int axis = 0; axis < 3; axis++) {
            options = fine;
            options.rows[axis] = bad_rows[i];
            expect_no_loader(&n.data, &options, "images of a share: rows");
            options = fine;
            options.label_rows[axis] = bad_rows[i];
            expect_no_loader(&n.data, &options, "labels of a share: rows");
        }
    }
    guarded g = open_guarded(&n.data, fine);
    for (int64_t first = 0; first <= 13; first++) {
        bool stands = first % 5 == 0 || first == 13;
        assert_int_equal(cvy_loader_start(g.loader, 0, first), stands ? CVY_OK : CVY_ERR_ARG);
    }
    close_guarded(&g);
}

static void test_every_failing_allocation_is_survived(void **state)
{
    (void)state;
    numbered n;
    static _Alignas(64) unsigned char memory[4096];
    make_numbered(&n, 13, CVY_SHAPE(1, 3, 4), CVY_SHAPE(3, 4), false);
    cvy_loader_options options = rank_options(&n.data, 5, 2, 0);
    cvy_loader *loader = NULL;
    options.memory = memory;
    options.rows[1] = options.label_rows[1] = (cvy_interval){1, 2};
    for (int i = 0; i < 6; i++) { /* the loader, its order, its slots, its queue, its threads, their samples */
        cvy_memory_fail_after(i);
        assert_int_equal(cvy_loader_create(&n.data, &options, &loader), CVY_ERR_MEMORY);
        cvy_memory_fail_after(-1);
        assert_null(loader);
    }
    cvy_memory_fail_after(6);
    assert_int_equal(cvy_loader_create(&n.data, &options, &loader), CVY_OK);
    cvy_memory_fail_after(-1);
    cvy_loader_destroy(&loader);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranks_together_read_each_sample_of_an_epoch_once),
        cmocka_unit_test(test_a_rank_without_samples_has_its_turns),
        cmocka_unit_test(test_only_the_rank_that_reads_a_bad_sample_fails),
        cmocka_unit_test(test_slabs_of_images_are_their_rows),
        cmocka_unit_test(test_slabs_of_volumes_and_of_their_maps_are_their_rows),
        cmocka_unit_test(test_slabs_of_noise_are_its_rows),
        cmocka_unit_test(test_images_or_labels_that_are_not_wanted_are_not_read),
        cmocka_unit_test(test_kinds_read_images_and_labels_apart),
        cmocka_unit_test(test_shares_beyond_a_batch_or_a_sample_are_refused),
        cmocka_unit_test(test_every_failing_allocation_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
