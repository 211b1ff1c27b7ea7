/*
 * Checkpoints hold whole tensors: what any ranks save, under any strategy, any others load, element by element, on
 * random graphs; and ranks are born with what one would have. Ranks are threads.
 */
#include "runtime/fleet.h"

#include "folder.h"
#include "runtime/checkpoint.h"
#include "runtime/safetensors.h"

#ifndef GRAPHS
#define GRAPHS 10
#endif

static const trial trials[] = {
    {"serial", 1, false, false, CVY_LAYOUT_BLOCKED},
    {"data", 3, false, false, CVY_LAYOUT_BLOCKED},
    {"data", 3, true, false, CVY_LAYOUT_BLOCKED},
    {"filter", 2, false, false, CVY_LAYOUT_BLOCKED},
    {"channel=3,channel-cut=channel", 3, false, false, CVY_LAYOUT_PLAIN},
    {"alternating", 2, false, false, CVY_LAYOUT_BLOCKED},
    {"height=2,width=2", 4, false, false, CVY_LAYOUT_CHANNELS_LAST},
    {"stage=2", 2, false, false, CVY_LAYOUT_BLOCKED},
    {"sample=2,height=2", 4, true, false, CVY_LAYOUT_BLOCKED},
    {"sample=2,channel=2,channel-cut=filter", 4, true, false, CVY_LAYOUT_BLOCKED},
    {"stage=2,sample=2,channel=2", 8, true, false, CVY_LAYOUT_CHANNELS_LAST},
    {"channel=2,height=2", 4, false, true, CVY_LAYOUT_BLOCKED},
    {"sample=2,width=2,channel=2", 8, true, true, CVY_LAYOUT_PLAIN},
};
enum { TRIALS = sizeof trials / sizeof trials[0] };

/* A number for each element of each tensor, exact in float. */
static double get_value(int kind, int parameter, int64_t number)
{
    const cvy_words counter = {{(uint32_t)number, (uint32_t)parameter, (uint32_t)kind, 0}};
    return (double)(cvy_random_unit(cvy_philox(counter, 11, 7).v[0]) + 1.0f);
}

/* 0 to 3: the value, two moments, the average. */
static int get_kind(const cvy_buffer *b)
{
    return b->content == CVY_CONTENT_PARAMETER ? 0 : b->content == CVY_CONTENT_AVERAGE ? 3 : b->part + 1;
}

static void put_value(void *context, const cvy_buffer *b, void *memory, int64_t offset, int64_t number)
{
    (void)context;
    store(b, memory, offset, get_value(get_kind(b), b->parameter, number));
}

/* Look, and leave 0: what is not 0 in the end was written where nothing is. */
static void check_value(void *context, const cvy_buffer *b, void *memory, int64_t offset, int64_t number)
{
    (void)context;
    MUST(load(b, memory, offset) == get_value(get_kind(b), b->parameter, number));
    store(b, memory, offset, 0.0);
}

typedef struct voyage {
    fleet *fleet;
    const trial *from; /* what saves */
    const char *folder;
} voyage;

static cvy_position make_position(const trial *t)
{
    cvy_position position = {.step = 7, .best_step = -1, .ranks = t->ranks};
    snprintf(position.strategy, sizeof position.strategy, "%s", t->strategy);
    return position;
}

static void save(thread_rank *r)
{
    const voyage *v = r->context;
    struct cvy_executor *e = &v->fleet->rank[r->rank];
    const cvy_position position = make_position(v->fleet->trial);
    MUST(cvy_executor_share_state(e, &r->comm) == CVY_OK);
    visit_elements(e, put_value, NULL);
    MUST(cvy_checkpoint_save(v->folder, &e->state, &position) == CVY_OK);
}

static void load_back(thread_rank *r)
{
    const voyage *v = r->context;
    struct cvy_executor *e = &v->fleet->rank[r->rank];
    cvy_position position;
    MUST(cvy_executor_share_state(e, &r->comm) == CVY_OK);
    MUST(cvy_checkpoint_load(test_path(v->folder, "step-00000007"), &e->state, &position) == CVY_OK);
    MUST(position.step == 7 && position.ranks == (v->from->ranks > 1 ? v->from->ranks : 0)); /* one is not noted */
    MUST(strcmp(position.strategy, v->from->strategy) == 0);
    visit_elements(e, check_value, NULL);
    for (size_t i = 0; i < e->persistent.bytes; i++) {
        MUST(e->persistent.base[i] == 0);
    }
}

/* What is in the files, in plain order. */
static void check_file(const cvy_model *model, const char *path, const char *prefix, int kind)
{
    cvy_safetensors file;
    assert_int_equal(cvy_safetensors_open(path, &file), CVY_OK);
    for (int i = 0; i < model->parameters; i++) {
        char name[256];
        snprintf(name, sizeof name, "%s%s", prefix, model->parameter[i].name);
        const cvy_safetensor *found = cvy_safetensors_find(&file, name);
        bool moment = kind == 1 || kind == 2;
        if (moment && !model->parameter[i].spec.trainable) {
            assert_null(found);
            continue;
        }
        assert_non_null(found);
        assert_true(cvy_shape_equal(&found->shape, &model->parameter[i].spec.shape));
        for (int64_t k = 0; k < cvy_shape_elements(&found->shape); k++) {
            float single;
            double wide;
            memcpy(&single, found->data + (found->dtype[1] == '3' ? 4 * k : 0), sizeof single);
            memcpy(&wide, found->data + (found->dtype[1] == '3' ? 0 : 8 * k), found->dtype[1] == '3' ? 0 : sizeof wide);
            assert_true((found->dtype[1] == '3' ? (double)single : wide) == get_value(kind, i, k));
        }
    }
    cvy_safetensors_close(&file);
}

static bool try(const cvy_model *model, const trial *from, const trial *to, cvy_dtype dtype, const char *folder)
{
    static fleet a, b;
    static const char *const prefixes[] = {"", "momentum.", "moment2.", "ema."};
    if (!open_fleet(model, from, dtype, &a)) {
        return false;
    }
    if (!open_fleet(model, to, dtype, &b)) {
        close_fleet(&a);
        return false;
    }
    run_thread_ranks(from->ranks, save, &(voyage){&a, from, folder});
    for (int kind = 0; kind < 4; kind++) {
        check_file(model, test_path(folder, kind ? "step-00000007/optimizer.safetensors"
                                                 : "step-00000007/model.safetensors"), prefixes[kind], kind);
    }
    run_thread_ranks(to->ranks, load_back, &(voyage){&b, from, folder});
    close_fleet(&a);
    close_fleet(&b);
    return true;
}

static void test_what_any_ranks_save_any_others_load(void **state)
{
    int tried = 0;
    for (uint32_t seed = 0; seed < GRAPHS; seed++) {
        dice d = {.seed = seed};
        cvy_model *model = make_random_model(&d, 5 + throw(&d, 9));
        assert_non_null(model);
        for (int i = 0; i < TRIALS; i++) {
            const trial *to = &trials[(i + 1 + (int)seed) % TRIALS];
            tried += try(model, &trials[i], to, seed % 2 ? CVY_F64 : CVY_F32, *state);
        }
        cvy_model_destroy(&model);
    }
    print_message("%d voyages\n", tried);
    assert_true(tried >= 3 * GRAPHS);
}

/* ---- birth ---- */

/* What one rank alone has of each tensor, by number. */
typedef struct birth_record {
    double *value[4][256];
} birth_record;

static void note_birth(void *context, const cvy_buffer *b, void *memory, int64_t offset, int64_t number)
{
    double **value = &((birth_record *)context)->value[get_kind(b)][b->parameter];
    if (!*value) {
        *value = calloc((size_t)cvy_shape_elements(&b->tensor.shape), sizeof **value);
    }
    (*value)[number] = load(b, memory, offset);
}

static void check_birth(void *context, const cvy_buffer *b, void *memory, int64_t offset, int64_t number)
{
    assert_true(load(b, memory, offset) ==
                ((birth_record *)context)->value[get_kind(b)][b->parameter][number]);
}

static void test_ranks_are_born_with_what_one_would_have(void **state)
{
    static fleet one, all;
    int tried = 0;
    (void)state;
    for (uint32_t seed = 0; seed < GRAPHS; seed++) {
        dice d = {.seed = seed};
        birth_record record = {0};
        cvy_model *model = make_random_model(&d, 5 + throw(&d, 9));
        assert_true(model && model->parameters <= 256);
        assert_true(open_fleet(model, &trials[0], CVY_F32, &one));
        assert_int_equal(cvy_executor_initialise(&one.rank[0], 42), CVY_OK);
        visit_elements(&one.rank[0], note_birth, &record);
        for (int i = 1; i < TRIALS; i++) {
            if (!open_fleet(model, &trials[i], CVY_F32, &all)) {
                continue;
            }
            for (int k = 0; k < trials[i].ranks; k++) {
                assert_int_equal(cvy_executor_initialise(&all.rank[k], 42), CVY_OK);
                visit_elements(&all.rank[k], check_birth, &record);
            }
            close_fleet(&all);
            tried++;
        }
        for (int i = 0; i < 4 * 256; i++) {
            free(record.value[i / 256][i % 256]);
        }
        close_fleet(&one);
        cvy_model_destroy(&model);
    }
    assert_true(tried >= 3 * GRAPHS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_what_any_ranks_save_any_others_load, create_test_folder,
                                        remove_test_folder),
        cmocka_unit_test(test_ranks_are_born_with_what_one_would_have),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
