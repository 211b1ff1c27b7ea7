/* Laws of the loader's slots on many ranks: the bytes of a rank's samples, and of its rows of each, by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "plan/ranks.h"

enum { SLOTS = 3 };

/* Slots of every schedule of a rank, which are alike; 0 where there is none. */
static int64_t find_slot_bytes(const cvy_plan *plan)
{
    int64_t bytes = 0;
    int found = 0;
    for (int k = 0; k < CVY_SCHEDULE_COUNT; k++) {
        const cvy_schedule *s = &plan->schedule[k];
        for (int i = 0; i < s->buffers; i++) {
            if (s->buffer[i].content == CVY_CONTENT_BATCH) {
                assert_true(found == 0 || s->buffer[i].bytes == bytes);
                bytes = s->buffer[i].bytes;
                found++;
            }
        }
    }
    assert_true(found == 0 || found == CVY_SCHEDULE_COUNT * SLOTS);
    return bytes;
}

typedef struct slot_case {
    const char *model, *strategy;
    int64_t label_bytes;
    int rank;
    int64_t bytes;
} slot_case;

/* A batch of 7 samples, a last one of 3; every part begins at a multiple of 64. */
static const slot_case cases[] = {
    /* 28x28 floats and a class; 7 of them, 4 or 3, 2 or 1 (the last of 4 ranks), as 22x28 or 14x14 */
    {"lenet5", "sample=1", 4, 0, 7 * 3136 + 64},
    {"lenet5", "sample=2", 4, 0, 4 * 3136 + 64},
    {"lenet5", "sample=2", 4, 1, 3 * 3136 + 64},
    {"lenet5", "sample=4", 4, 3, 3136 + 64},
    {"lenet5", "sample=2,height=2", 4, 1, 4 * 14 * 28 * 4 + 64},
    {"lenet5", "height=2,width=2", 4, 3, 7 * 14 * 14 * 4 + 16 + 64}, /* 5488 is 16 short of 86 lines */
    {"lenet5", "channel=2", 4, 1, 7 * 3136 + 64},
    /* images are the first stage's, labels the last one's */
    {"lenet5", "stage=3", 4, 0, 7 * 3136},
    {"lenet5", "stage=3", 4, 1, 0},
    {"lenet5", "stage=3", 4, 2, 64},
    /* 4 channels of 32^3, and 4 values */
    {"cosmoflow:size=32", "sample=2,depth=2", 16, 2, 3 * 4 * 16 * 32 * 32 * 4 + 64},
};

static void test_slots_are_of_a_ranks_own_share(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const slot_case *c = &cases[i];
        ranks r;
        cvy_plan_options options = {.batch = 7, .tail_batch = 3, .dtype = CVY_F32, .training = true,
                                    .optimizer = {CVY_OPTIMIZER_SGD, {.momentum = 0.9}}, .block = 8,
                                    .data_slots = SLOTS, .label_bytes = c->label_bytes};
        assert_true(open_ranks(c->model, c->strategy, &options, NULL, &r));
        int64_t bytes = find_slot_bytes(r.plan[c->rank]);
        if (bytes != c->bytes) {
            fail_msg("%s %s, rank %d: slots of %lld bytes, expected %lld", c->model, c->strategy, c->rank,
                     (long long)bytes, (long long)c->bytes);
        }
        close_ranks(&r);
    }
}

/* 2 samples of 1 channel of 16x16x16, and a class of 4 bytes for each position: both are cut alike. */
static void test_maps_of_labels_are_cut_as_the_loss_is(void **state)
{
    (void)state;
    enum { WHOLE = 2 * 16 * 16 * 16 * 4 };
    static const struct {
        const char *strategy;
        int64_t bytes;
    } maps[] = {{"sample=1", 2 * WHOLE}, {"depth=2", WHOLE}, {"height=2", WHOLE}, {"depth=2,height=2", WHOLE / 2}};
    for (size_t i = 0; i < sizeof maps / sizeof maps[0]; i++) {
        ranks r;
        cvy_plan_options options = {.batch = 2, .dtype = CVY_F32, .training = true,
                                    .optimizer = {CVY_OPTIMIZER_SGD, {.momentum = 0.9}}, .block = 8,
                                    .data_slots = 1, .label_bytes = 4 * 16 * 16 * 16};
        assert_true(open_ranks("unet3d:size=16,width=8", maps[i].strategy, &options, NULL, &r));
        for (int rank = 0; rank < r.count; rank++) {
            const cvy_schedule *s = &r.plan[rank]->schedule[CVY_SCHEDULE_TRAIN];
            assert_int_equal(s->memory.by_role[CVY_BUFFER_DATA], maps[i].bytes);
        }
        close_ranks(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slots_are_of_a_ranks_own_share),
        cmocka_unit_test(test_maps_of_labels_are_cut_as_the_loss_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
