/*
 * From ranks into files and back into other ranks: what is put into the memory of a fleet, what must be in the files,
 * and what the ranks of another fleet must have afterwards.
 */
#ifndef CVY_TESTS_RUNTIME_VOYAGE_H
#define CVY_TESTS_RUNTIME_VOYAGE_H

#include "folder.h"
#include "runtime/checkpoint.h"
#include "runtime/fleet.h"
#include "runtime/safetensors.h"

/* A number for each element of each tensor, exact in float. */
static inline double get_value(int kind, int parameter, int64_t number)
{
    const cvy_words counter = {{(uint32_t)number, (uint32_t)parameter, (uint32_t)kind, 0}};
    return (double)(cvy_random_unit(cvy_philox(counter, 11, 7).v[0]) + 1.0f);
}

/* 0 to 3: the value, two moments, the average. */
static inline int get_kind(const cvy_buffer *b)
{
    return b->content == CVY_CONTENT_PARAMETER ? 0 : b->content == CVY_CONTENT_AVERAGE ? 3 : b->part + 1;
}

static inline void put_value(void *context, const cvy_buffer *b, void *memory, int64_t offset, int64_t number)
{
    (void)context;
    store(b, memory, offset, get_value(get_kind(b), b->parameter, number));
}

/* Look, and leave 0: what is not 0 in the end was written where nothing is. */
static inline void check_value(void *context, const cvy_buffer *b, void *memory, int64_t offset, int64_t number)
{
    (void)context;
    MUST(load(b, memory, offset) == get_value(get_kind(b), b->parameter, number));
    store(b, memory, offset, 0.0);
}

typedef struct voyage {
    fleet *fleet;
    const trial *from; /* what saves */
    const char *folder, *checkpoint;
} voyage;

static inline cvy_position make_position(const trial *t)
{
    cvy_position position = {.step = 7, .best_step = -1, .ranks = t->ranks};
    snprintf(position.strategy, sizeof position.strategy, "%s", t->strategy);
    return position;
}

static inline void save(thread_rank *r)
{
    const voyage *v = r->context;
    struct cvy_executor *e = &v->fleet->rank[r->rank];
    const cvy_position position = make_position(v->fleet->trial);
    MUST(cvy_executor_share_state(e, r->comm) == CVY_OK);
    visit_elements(e, put_value, NULL);
    MUST(cvy_checkpoint_save(v->folder, &e->state, &position) == CVY_OK);
}

static inline void load_back(thread_rank *r)
{
    const voyage *v = r->context;
    struct cvy_executor *e = &v->fleet->rank[r->rank];
    cvy_position position;
    MUST(cvy_executor_share_state(e, r->comm) == CVY_OK);
    MUST(cvy_checkpoint_load(v->checkpoint, &e->state, &position) == CVY_OK);
    MUST(position.step == 7 && position.ranks == (v->from->ranks > 1 ? v->from->ranks : 0)); /* one is not noted */
    MUST(strcmp(position.strategy, v->from->strategy) == 0);
    visit_elements(e, check_value, NULL);
    for (size_t i = 0; i < e->persistent.bytes; i++) {
        MUST(e->persistent.base[i] == 0);
    }
}

/* What is in the files, in plain order. */
static inline void check_file(const cvy_model *model, const char *path, const char *prefix, int kind)
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

#endif
