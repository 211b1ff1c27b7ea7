/* Laws of recomputation and of micro-batches: the same numbers, less memory. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/random.h"
#include "runtime/executor.h"

enum { STEPS = 2 };

/* A training of random data, run for a few steps. */
typedef struct training {
    cvy_model *model;
    cvy_plan *plan;
    cvy_executor *executor;
    double loss[STEPS];
} training;

typedef struct recipe {
    const char *model;
    int64_t batch;
    cvy_recompute recompute;
    int micro_batches;
    const char *backend;
} recipe;

static void require(cvy_status status)
{
    if (status != CVY_OK) {
        fail_msg("%s", cvy_error_message());
    }
}

static void run_steps(training *t, int64_t batch)
{
    int64_t sample = cvy_shape_elements(&t->model->layer[0].output);
    float *x = cvy_calloc((size_t)(batch * sample), sizeof *x);
    int32_t *label = cvy_calloc((size_t)batch, sizeof *label);
    assert_non_null(x);
    assert_non_null(label);
    for (int64_t step = 0; step < STEPS; step++) {
        for (int64_t i = 0; i < batch * sample; i++) {
            const cvy_words counter = {{(uint32_t)i, (uint32_t)step, 0, 0}};
            x[i] = 2.0f * cvy_random_unit(cvy_philox(counter, 3, 4).v[0]) - 1.0f;
        }
        for (int64_t i = 0; i < batch; i++) {
            label[i] = (int32_t)((i * 7 + step) % 10);
        }
        const cvy_executor_batch full = {.x = x, .label = label, .samples = batch};
        const cvy_run run = {.seed = 5, .step = step, .samples = batch, .loss_scale = 1.0 / (double)batch,
                             .learning_rate = 0.01, .update = step + 1};
        cvy_executor_result result;
        require(cvy_executor_run(t->executor, CVY_SCHEDULE_TRAIN, &full, &run, &result));
        t->loss[step] = result.loss;
    }
    cvy_free(x);
    cvy_free(label);
}

static training train(recipe r)
{
    training t = {0};
    cvy_plan_options options = {.batch = r.batch, .dtype = CVY_F32, .training = true, .block = 8,
                                .recompute = r.recompute, .micro_batches = r.micro_batches,
                                .optimizer = {.params = {.momentum = 0.9}}};
    options.dtype = r.backend && strcmp(r.backend, "ref") == 0 ? CVY_F64 : CVY_F32;
    require(cvy_model_open(r.model, &t.model));
    require(cvy_backend_chain_find(r.backend, &options.backends));
    require(cvy_plan_create(t.model, &options, &t.plan));
    require(cvy_executor_create(t.plan, NULL, &t.executor));
    require(cvy_executor_initialise(t.executor, 1));
    run_steps(&t, r.batch);
    return t;
}

static void release(training *t)
{
    cvy_executor_destroy(&t->executor);
    cvy_plan_destroy(&t->plan);
    cvy_model_destroy(&t->model);
}

static int count_steps(const cvy_plan *plan, cvy_phase phase)
{
    const cvy_schedule *s = &plan->schedule[CVY_SCHEDULE_TRAIN];
    int count = 0;
    for (int i = 0; i < s->steps; i++) {
        count += s->step[i].phase == phase;
    }
    return count;
}

static void require_equal_bits(const training *a, const training *b)
{
    const cvy_state *one = cvy_executor_state(a->executor);
    const cvy_state *other = cvy_executor_state(b->executor);
    assert_int_equal(one->count, other->count);
    for (int i = 0; i < STEPS; i++) {
        if (memcmp(&a->loss[i], &b->loss[i], sizeof(double)) != 0) {
            fail_msg("%s: step %d: a loss of %.17g, expected %.17g", a->model->name, i, b->loss[i], a->loss[i]);
        }
    }
    for (int i = 0; i < one->count; i++) {
        size_t bytes = (size_t)cvy_tensor_bytes(&one->tensor[i].tensor);
        if (memcmp(one->tensor[i].data, other->tensor[i].data, bytes) != 0) {
            fail_msg("%s: %s differs", a->model->name, one->tensor[i].name);
        }
    }
}

/* Weights, velocities, running statistics and losses: whatever is made again, the same bits, on less memory. */
static void test_recomputation_changes_no_bit(void **state)
{
    (void)state;
    static const char *const models[] = {
        "resnet18:size=32,classes=10",
        "densenet121:size=32,classes=10",
        CVY_TEST_DATA "/models/recompute.yaml",
    };
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        training whole = train((recipe){.model = models[i], .batch = 3});
        assert_int_equal(count_steps(whole.plan, CVY_PHASE_RECOMPUTE), 0);
        for (cvy_recompute what = CVY_RECOMPUTE_CHEAP; what <= CVY_RECOMPUTE_ALL; what++) {
            training again = train((recipe){.model = models[i], .batch = 3, .recompute = what});
            assert_true(count_steps(again.plan, CVY_PHASE_RECOMPUTE) > 0);
            assert_true(again.plan->schedule[CVY_SCHEDULE_TRAIN].memory.transient_bytes <=
                        whole.plan->schedule[CVY_SCHEDULE_TRAIN].memory.transient_bytes);
            require_equal_bits(&whole, &again);
            release(&again);
        }
        release(&whole);
    }
}

static double activation_bytes(const char *name, cvy_recompute what)
{
    cvy_model *model = NULL;
    cvy_plan *plan = NULL;
    const cvy_plan_options options = {.batch = 16, .dtype = CVY_F32, .training = true, .block = 8, .recompute = what};
    require(cvy_model_open(name, &model));
    require(cvy_plan_create(model, &options, &plan));
    double bytes = (double)plan->schedule[CVY_SCHEDULE_TRAIN].memory.by_role[CVY_BUFFER_ACTIVATIONS];
    cvy_plan_destroy(&plan);
    cvy_model_destroy(&model);
    return bytes;
}

/*
 * Of conv, norm, relu the convolution's output is kept alone. Where convolutions read what is dropped, about half of
 * the activations stays, or less; so they do behind a concat, and behind a pooling of it, of a GoogLeNet. All keeps
 * less than cheap. A net without norms has nothing to drop for free: a relu is part of its convolution.
 */
static void test_recomputation_saves_memory(void **state)
{
    (void)state;
    static const struct {
        const char *model;
        double share; /* at most */
    } nets[] = {{"resnet50", 0.6}, {"googlenet", 0.6}, {"densenet121", 0.35}};
    for (int i = 0; i < 3; i++) {
        double none = activation_bytes(nets[i].model, CVY_RECOMPUTE_NONE);
        double cheap = activation_bytes(nets[i].model, CVY_RECOMPUTE_CHEAP);
        assert_true(cheap <= nets[i].share * none);
        assert_true(activation_bytes(nets[i].model, CVY_RECOMPUTE_ALL) < cheap);
    }
    assert_true(activation_bytes("vgg11", CVY_RECOMPUTE_CHEAP) == activation_bytes("vgg11", CVY_RECOMPUTE_NONE));
}

static double relative_difference(const cvy_state_tensor *a, const cvy_state_tensor *b)
{
    double largest = 0.0, difference = 0.0;
    const double *one = a->data;
    const double *other = b->data;
    for (int64_t i = 0; i < cvy_shape_elements(&a->shape); i++) {
        largest = fmax(largest, fabs(other[i]));
        difference = fmax(difference, fabs(one[i] - other[i]));
    }
    return difference / fmax(largest, 1e-30);
}

/*
 * Without batch norms a batch in parts, even and uneven (7 = 3 + 2 + 2, 7 = 7 * 1), is the batch: in double to
 * rounding, dropout and stochastic depth by sample included.
 */
static void test_micro_batches_sum_to_the_batch(void **state)
{
    (void)state;
    static const int parts[] = {2, 3, 7};
    const char *model = CVY_TEST_DATA "/models/micro-batches.yaml";
    training whole = train((recipe){.model = model, .batch = 7, .backend = "ref"});
    for (int i = 0; i < 3; i++) {
        for (cvy_recompute what = CVY_RECOMPUTE_NONE; what <= CVY_RECOMPUTE_ALL; what++) {
            training cut = train((recipe){model, 7, what, parts[i], "ref"});
            assert_int_equal(cut.plan->schedule[CVY_SCHEDULE_TRAIN].micro_batches, parts[i]);
            assert_true(cut.plan->transient_bytes < whole.plan->transient_bytes);
            for (int step = 0; step < STEPS; step++) {
                assert_true(fabs(cut.loss[step] - whole.loss[step]) <= 1e-12 * fabs(whole.loss[step]));
            }
            const cvy_state *one = cvy_executor_state(cut.executor);
            for (int k = 0; k < one->count; k++) {
                const cvy_state_tensor *other =
                    cvy_state_find(cvy_executor_state(whole.executor), one->tensor[k].name);
                assert_true(relative_difference(&one->tensor[k], other) < 1e-10);
            }
            release(&cut);
        }
    }
    release(&whole);
}

/* The first norm sees the data itself, so what it commits for a batch in parts is what it commits for the whole. */
static void test_micro_batches_commit_the_batch_once(void **state)
{
    (void)state;
    const char *model = CVY_TEST_DATA "/models/norm-first.yaml";
    training whole = train((recipe){.model = model, .batch = 7, .backend = "ref"});
    training cut = train((recipe){.model = model, .batch = 7, .backend = "ref", .micro_batches = 3});
    static const char *const names[] = {"norm.running_mean", "norm.running_var"};
    for (int i = 0; i < 2; i++) {
        const cvy_state_tensor *one = cvy_state_find(cvy_executor_state(whole.executor), names[i]);
        const cvy_state_tensor *other = cvy_state_find(cvy_executor_state(cut.executor), names[i]);
        assert_true(relative_difference(one, other) < 1e-12);
        assert_true(fabs(((const double *)one->data)[0] - i) > 1e-3); /* not as it was born: 0, 1 */
    }
    release(&whole);
    release(&cut);
}

/* In fp32 on the fastest kernels: two parts with any recomputation give the same bits as without it. */
static void test_both_together_change_no_bit(void **state)
{
    (void)state;
    training kept = train((recipe){.model = "resnet18:size=32,classes=10", .batch = 5, .micro_batches = 2});
    training cheap = train((recipe){"resnet18:size=32,classes=10", 5, CVY_RECOMPUTE_CHEAP, 2, NULL});
    require_equal_bits(&kept, &cheap);
    release(&kept);
    release(&cheap);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recomputation_changes_no_bit),
        cmocka_unit_test(test_recomputation_saves_memory),
        cmocka_unit_test(test_micro_batches_sum_to_the_batch),
        cmocka_unit_test(test_micro_batches_commit_the_batch_once),
        cmocka_unit_test(test_both_together_change_no_bit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
