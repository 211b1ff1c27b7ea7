/*
 * All ranks of a strategy with the memory of their plans, and no kernels: for tests of what ranks hold. Which elements
 * that are is read from the plan's buffers by plain loops.
 */
#ifndef CVY_TESTS_RUNTIME_FLEET_H
#define CVY_TESTS_RUNTIME_FLEET_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "plan/run_ranks.h"
#include "runtime/executor_internal.h"
#include "runtime/random_model.h"
#include "runtime/sharing.h"
#include "runtime/thread_ranks.h"

/* A failed assertion cannot leave a thread. */
#define MUST(condition)                                                                                      \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            fprintf(stderr, "%s:%d: not so: %s; %s\n", __FILE__, __LINE__, #condition, cvy_error_message()); \
            abort();                                                                                         \
        }                                                                                                    \
    } while (0)

/* A layout of ranks. */
typedef struct trial {
    const char *strategy;
    int ranks;
    bool shard; /* the update is shared out */
    bool mixed; /* layers are cut as the dice fall */
    cvy_layout_choice layout;
} trial;

typedef struct fleet {
    const trial *trial;
    cvy_distribution *distribution;
    cvy_plan *plan[MAX_RANKS];
    struct cvy_executor rank[MAX_RANKS];
} fleet;

static inline cvy_plan_options make_fleet_options(const trial *t, cvy_dtype dtype)
{
    return (cvy_plan_options){
        .batch = 5,
        .dtype = dtype,
        .training = true,
        .train_only = true,
        .optimizer = {.kind = CVY_OPTIMIZER_ADAMW,
                      .params = {.beta1 = 0.9, .beta2 = 0.99, .epsilon = 0.01, .weight_decay = 0.1}},
        .average = 0.9,
        .layout = t->layout,
        .block = 8,
        .parallel = {.bucket_bytes = 300, .overlap = true, .norm_axes = CVY_AXIS_SPACE, .shard_optimizer = t->shard},
    };
}

/* For each layer some axes of space, and a cut. */
static inline void throw_choices(const cvy_model *model, cvy_layer_choice *choice)
{
    dice d = {.seed = (uint32_t)model->layers};
    for (int i = 0; i < model->layers; i++) {
        choice[i].cut = throw(&d, 4) - 1;
        choice[i].space = throw(&d, 3) ? CVY_AXIS_SPACE : (unsigned)throw(&d, 64) & CVY_AXIS_SPACE;
    }
}

static inline bool divide(const cvy_model *model, const trial *t, cvy_distribution **distribution_out)
{
    cvy_layer_choice choices[256];
    cvy_strategy strategy;
    int64_t space[3];
    assert_true(model->layers <= 256);
    throw_choices(model, choices);
    cvy_distribution_options divided = {.batch = 5, .choices = t->mixed ? choices : NULL};
    cvy_space_get(&model->layer[0].output, space);
    assert_int_equal(cvy_strategy_parse(t->strategy, t->ranks, space, &strategy), CVY_OK);
    return cvy_distribution_create(model, &strategy, &divided, distribution_out) == CVY_OK;
}

/* False where the graph cannot be cut so. */
static inline bool open_fleet(const cvy_model *model, const trial *t, cvy_dtype dtype, fleet *f)
{
    cvy_plan_options options = make_fleet_options(t, dtype);
    *f = (fleet){.trial = t};
    if (t->ranks > 1 && !divide(model, t, &f->distribution)) {
        return false;
    }
    for (int i = 0; i < t->ranks; i++) {
        options.parallel.distribution = f->distribution;
        options.parallel.rank = i;
        if (cvy_plan_create(model, &options, &f->plan[i]) != CVY_OK) {
            fail_msg("%s: %s", t->strategy, cvy_error_message());
        }
        f->rank[i].plan = f->plan[i];
        assert_int_equal(cvy_arena_create((size_t)f->plan[i]->persistent_bytes, &f->rank[i].persistent), CVY_OK);
        assert_int_equal(cvy_executor_list_state(&f->rank[i]), CVY_OK);
    }
    return true;
}

static inline void close_fleet(fleet *f)
{
    for (int i = 0; i < f->trial->ranks; i++) {
        cvy_executor_release_state(&f->rank[i]);
        cvy_arena_destroy(&f->rank[i].persistent);
        cvy_plan_destroy(&f->plan[i]);
    }
    cvy_distribution_destroy(&f->distribution);
}

/* What is done with each element that a rank holds. */
typedef void (*visit_element)(void *context, const cvy_buffer *b, void *memory, int64_t offset, int64_t number);

static inline const cvy_buffer *find_parameter(const cvy_plan *plan, int parameter)
{
    const cvy_schedule *s = &plan->schedule[CVY_SCHEDULE_TRAIN];
    int i = 0;
    while (s->buffer[i].content != CVY_CONTENT_PARAMETER || s->buffer[i].parameter != parameter) {
        i++;
    }
    return &s->buffer[i];
}

/* Parameters, moments and averages; of a piece, what of the parameter's memory is in it. */
static inline void visit_elements(const struct cvy_executor *e, visit_element visit, void *context)
{
    for (int i = 0; i < e->plan->persistent_buffers; i++) {
        const cvy_buffer *b = &e->plan->schedule[CVY_SCHEDULE_TRAIN].buffer[i];
        if (b->content != CVY_CONTENT_PARAMETER && b->content != CVY_CONTENT_MOMENT &&
            b->content != CVY_CONTENT_AVERAGE) {
            continue;
        }
        const cvy_buffer *whole = find_parameter(e->plan, b->parameter);
        bool piece = !cvy_tensor_equal(&b->tensor, &whole->tensor);
        cvy_layout layout = cvy_tensor_layout(&whole->tensor);
        for (int64_t k = 0; k < cvy_shape_elements(&whole->tensor.shape); k++) {
            element at = get_element(whole, &layout, k);
            if (!piece || (at.offset >= b->local[0].begin && at.offset < b->local[0].end)) {
                visit(context, b, e->persistent.base + b->offset, at.offset - (piece ? b->local[0].begin : 0),
                      at.number);
            }
        }
    }
}

#endif
