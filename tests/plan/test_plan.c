/* Laws of schedules, checked by brute force over steps and buffers on real models. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "plan/plan.h"

static const char *const models[] = {"lenet5", "cifar10-quick", "resnet18:size=64", "cosmoflow:size=32",
                                     "unet3d:size=16,width=8"};
enum { MODELS = sizeof models / sizeof models[0] };

/* A training plan by rule (blocks of 8) or for a backend. */
static cvy_plan *make_plan(const cvy_model *model, const char *backend)
{
    cvy_plan *plan = NULL;
    cvy_plan_options options = {.batch = 4,
                                .tail_batch = 3,
                                .dtype = CVY_F32,
                                .training = true,
                                .optimizer = {CVY_OPTIMIZER_SGD, {.momentum = 0.9}},
                                .block = 8,
                                .data_slots = 2,
                                .label_bytes = 4};
    if (backend) {
        assert_int_equal(cvy_backend_chain_find(backend, &options.backends), CVY_OK);
    }
    if (cvy_plan_create(model, &options, &plan) != CVY_OK) {
        fail_msg("%s", cvy_error_message());
    }
    return plan;
}

typedef void (*law)(const cvy_plan *plan, const cvy_schedule *schedule);

/* Hold every schedule of every model to a law, by rule and for the yardstick. */
static void hold_all(law check)
{
    for (int i = 0; i < MODELS; i++) {
        cvy_model *model = NULL;
        if (cvy_model_open(models[i], &model) != CVY_OK) {
            fail_msg("%s", cvy_error_message());
        }
        for (int rule = 0; rule < 2; rule++) {
            cvy_plan *plan = make_plan(model, rule ? NULL : "ref");
            for (int k = 0; k < CVY_SCHEDULE_COUNT; k++) {
                assert_true(plan->schedule[k].steps > 0);
                check(plan, &plan->schedule[k]);
            }
            cvy_plan_destroy(&plan);
        }
        cvy_model_destroy(&model);
    }
}

static bool is_root(const cvy_buffer *b) { return !b->persistent && b->alias_of < 0 && b->last_step >= 0; }

/* Two buffers that live at the same time never share a byte. */
static void check_no_overlap(const cvy_plan *plan, const cvy_schedule *s)
{
    (void)plan;
    for (int i = 0; i < s->buffers; i++) {
        for (int k = 0; k < i; k++) {
            const cvy_buffer *a = &s->buffer[i];
            const cvy_buffer *b = &s->buffer[k];
            bool lives = is_root(a) && is_root(b) && a->first_step <= b->last_step && b->first_step <= a->last_step;
            bool touches = a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
            assert_false(lives && touches);
        }
    }
}

static void test_buffers_that_live_together_share_no_byte(void **state)
{
    (void)state;
    hold_all(check_no_overlap);
}

/* The arena holds every buffer, and no placement needs less than what lives at once; waste stays under a quarter. */
static void check_arena(const cvy_plan *plan, const cvy_schedule *s)
{
    for (int i = 0; i < s->buffers; i++) {
        int64_t end = s->buffer[i].offset + s->buffer[i].bytes;
        assert_true(end <= (s->buffer[i].persistent ? plan->persistent_bytes : plan->transient_bytes));
        assert_int_equal(s->buffer[i].offset % CVY_ARENA_ALIGNMENT, 0);
    }
    assert_true(s->memory.transient_bytes >= s->memory.live_bytes);
    assert_true(s->memory.transient_bytes <= s->memory.live_bytes + s->memory.live_bytes / 4);
}

static void test_arenas_hold_all_buffers_with_little_waste(void **state)
{
    (void)state;
    hold_all(check_arena);
}

/*
 * Walk the steps and keep, for each stretch of memory, which buffer's values it holds: a step must find in the memory
 * of what it reads the values of that very buffer (or of a view of it), not what an in-place step put there.
 */
static void check_values_survive(const cvy_plan *plan, const cvy_schedule *s)
{
    /* of each root: the buffer whose values lie there, -1 none */
    int *holds = calloc((size_t)s->buffers, sizeof *holds);
    for (int i = 0; i < s->buffers; i++) {
        holds[i] = s->buffer[i].persistent ? i : -1;
    }
    for (int i = 0; i < s->steps; i++) {
        for (int k = 0; k < s->step[i].uses; k++) {
            const cvy_use *use = &s->use[s->step[i].first_use + k];
            int value = use->buffer;
            if (!(use->access & CVY_ACCESS_READ)) {
                continue;
            }
            int root = cvy_schedule_root(s, value);
            while (holds[root] != value && s->buffer[value].alias_of >= 0) {
                value = s->buffer[value].alias_of; /* a view has its source's values */
            }
            assert_int_equal(holds[root], value);
        }
        for (int k = 0; k < s->step[i].uses; k++) {
            const cvy_use *use = &s->use[s->step[i].first_use + k];
            if (use->access == CVY_ACCESS_WRITE) {
                holds[cvy_schedule_root(s, use->buffer)] = use->buffer;
            }
        }
    }
    free(holds);
    (void)plan;
}

static void test_what_is_read_was_written_and_not_overwritten(void **state)
{
    (void)state;
    hold_all(check_values_survive);
}

/* Steps that touch the same memory, one of them writing, are ordered by a path of dependencies. */
static void check_no_race(const cvy_plan *plan, const cvy_schedule *s)
{
    size_t n = (size_t)s->steps;
    unsigned char *before = calloc(n * n, 1); /* before[i * n + k]: k is ordered before i */
    for (size_t i = 0; i < n; i++) {
        for (int d = 0; d < s->step[i].dependencies; d++) {
            const cvy_dependency *on = &s->dependency[s->step[i].first_dependency + d];
            if (on->distance == 0) {
                size_t k = (size_t)on->step;
                assert_true(k < i);
                before[i * n + k] = 1;
                for (size_t m = 0; m < n; m++) {
                    before[i * n + m] |= before[k * n + m];
                }
            }
        }
    }
    for (int i = 0; i < s->steps; i++) {
        for (int k = 0; k < i; k++) {
            for (int a = 0; a < s->step[i].uses * s->step[k].uses; a++) {
                const cvy_use *x = &s->use[s->step[i].first_use + a / s->step[k].uses];
                const cvy_use *y = &s->use[s->step[k].first_use + a % s->step[k].uses];
                bool same = cvy_schedule_root(s, x->buffer) == cvy_schedule_root(s, y->buffer);
                bool writes = x->access != CVY_ACCESS_READ || y->access != CVY_ACCESS_READ;
                assert_true(!same || !writes || before[(size_t)i * n + (size_t)k]);
            }
        }
    }
    free(before);
    (void)plan;
}

static void test_conflicting_steps_are_ordered_by_dependencies(void **state)
{
    (void)state;
    hold_all(check_no_race);
}

/* Every trainable parameter is updated once, after its gradient was written; evaluation updates nothing. */
static void check_updates(const cvy_plan *plan, const cvy_schedule *s)
{
    int trainable = 0;
    int updates = 0;
    for (int i = 0; i < plan->model->parameters; i++) {
        trainable += plan->model->parameter[i].spec.trainable;
    }
    for (int i = 0; i < s->steps; i++) {
        updates += s->step[i].op >= 0 && s->op[s->step[i].op].pass == CVY_PASS_UPDATE;
    }
    assert_int_equal(updates, s->training ? trainable : 0);
}

static void test_every_parameter_is_updated_once(void **state)
{
    (void)state;
    hold_all(check_updates);
}

/* All schedules of a plan see the same persistent memory. */
static void check_persistent(const cvy_plan *plan, const cvy_schedule *s)
{
    const cvy_schedule *first = &plan->schedule[CVY_SCHEDULE_TRAIN];
    for (int i = 0; i < plan->persistent_buffers; i++) {
        assert_true(s->buffer[i].persistent);
        assert_true(cvy_tensor_equal(&s->buffer[i].tensor, &first->buffer[i].tensor));
        assert_int_equal(s->buffer[i].offset, first->buffer[i].offset);
        assert_int_equal(s->buffer[i].parameter, first->buffer[i].parameter);
    }
    for (int i = plan->persistent_buffers; i < s->buffers; i++) {
        assert_true(!s->buffer[i].persistent || s->buffer[i].alias_of >= 0);
    }
}

static void test_schedules_of_a_plan_share_persistent_memory(void **state)
{
    (void)state;
    hold_all(check_persistent);
}

/*
 * lenet5 by hand, plain formats: forward conv, pool, conv, pool, dense with its relu, dense, loss = 7 kernels (flatten
 * is a view); backward: loss 1; dense 2, relu 1, dense 2; pool 1, conv 2; pool 1, conv 1 (the image needs no gradient)
 * = 11; updates 8; control 2. Weights 431,080 floats.
 */
static void test_lenet5_has_the_steps_counted_by_hand(void **state)
{
    (void)state;
    cvy_model *model = NULL;
    assert_int_equal(cvy_model_open("lenet5", &model), CVY_OK);
    cvy_plan *plan = make_plan(model, "ref");
    const cvy_schedule *s = &plan->schedule[CVY_SCHEDULE_TRAIN];
    int count[CVY_STEP_CONTROL + 1] = {0};
    for (int i = 0; i < s->steps; i++) {
        count[s->step[i].kind]++;
    }
    assert_int_equal(count[CVY_STEP_KERNEL], 18);
    assert_int_equal(count[CVY_STEP_UPDATE], 8);
    assert_int_equal(count[CVY_STEP_CONTROL], 2);
    assert_int_equal(count[CVY_STEP_LOCAL], 0);
    int64_t weights = 0;
    for (int i = 0; i < plan->persistent_buffers; i++) {
        weights += s->buffer[i].role == CVY_BUFFER_WEIGHTS ? s->buffer[i].bytes : 0;
    }
    assert_int_equal(weights, 4 * 431080);
    cvy_plan_destroy(&plan);
    cvy_model_destroy(&model);
}

/* Parts of the memory breakdown sum up to what the executor will take. */
static void test_memory_breakdown_sums_up(void **state)
{
    (void)state;
    for (int i = 0; i < MODELS; i++) {
        cvy_model *model = NULL;
        assert_int_equal(cvy_model_open(models[i], &model), CVY_OK);
        cvy_plan *plan = make_plan(model, NULL);
        int64_t by_role[CVY_BUFFER_ROLE_COUNT];
        int64_t sum = 0;
        cvy_plan_memory(plan, by_role);
        for (int k = 0; k < CVY_BUFFER_ROLE_COUNT; k++) {
            assert_true(by_role[k] >= 0);
            sum += by_role[k];
        }
        assert_int_equal(sum, plan->persistent_bytes + plan->transient_bytes);
        cvy_plan_destroy(&plan);
        cvy_model_destroy(&model);
    }
}

/* A failing allocation at any place gives CVY_ERR_MEMORY, and leaks nothing (the sanitizers look). */
static void test_every_failing_allocation_is_survived(void **state)
{
    (void)state;
    cvy_model *model = NULL;
    assert_int_equal(cvy_model_open("lenet5", &model), CVY_OK);
    cvy_plan_options options = {
        .batch = 2, .dtype = CVY_F32, .training = true, .block = 8, .data_slots = 1, .label_bytes = 4};
    cvy_status status = CVY_ERR_MEMORY;
    int failures = 0;
    for (int i = 0; status != CVY_OK; i++) {
        cvy_plan *plan = NULL;
        cvy_memory_fail_after(i);
        status = cvy_plan_create(model, &options, &plan);
        cvy_memory_fail_after(-1);
        failures += status == CVY_ERR_MEMORY;
        assert_true(status == CVY_OK || status == CVY_ERR_MEMORY);
        cvy_plan_destroy(&plan);
    }
    assert_true(failures > 10);
    cvy_model_destroy(&model);
}

/* By rule weights lie as oneDNN takes them: what a convolution wants backward a transposed one wants forward. */
static void test_transposed_convolutions_swap_the_formats_of_weights(void **state)
{
    (void)state;
    cvy_model *model = NULL;
    assert_int_equal(cvy_model_open("unet3d:size=16,width=8", &model), CVY_OK);
    cvy_plan *plan = make_plan(model, NULL);
    const cvy_layer_formats *conv = &plan->formats[cvy_model_find_layer(model, "down2.conv1")];
    const cvy_layer_formats *up = &plan->formats[cvy_model_find_layer(model, "up2.up")];
    assert_int_equal(conv->input, CVY_FORMAT_C8);
    assert_int_equal(conv->weight, CVY_FORMAT_W_I8O8);
    assert_int_equal(conv->weight_backward, CVY_FORMAT_W_O8I8);
    assert_int_equal(conv->gradient, CVY_FORMAT_W_I8O8);
    assert_int_equal(up->input, CVY_FORMAT_C8);
    assert_int_equal(up->weight, CVY_FORMAT_W_O8I8);
    assert_int_equal(up->weight_backward, CVY_FORMAT_W_I8O8);
    assert_int_equal(up->gradient, CVY_FORMAT_W_I8O8);
    cvy_plan_destroy(&plan);
    cvy_model_destroy(&model);
}

static void test_options_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    cvy_model *model = NULL;
    cvy_plan *plan = NULL;
    assert_int_equal(cvy_model_open("lenet5", &model), CVY_OK);
    cvy_plan_options good = {.batch = 4, .dtype = CVY_F32, .training = true, .block = 8};
    cvy_plan_options bad[4] = {good, good, good, good};
    bad[0].batch = 0;
    bad[1].tail_batch = 4;
    bad[2].dtype = CVY_I32;
    bad[3].block = 12;
    for (int i = 0; i < 4; i++) {
        assert_int_equal(cvy_plan_create(model, &bad[i], &plan), CVY_ERR_ARG);
        assert_null(plan);
    }
    cvy_model_destroy(&model);
}

/* What ranks compare at start: the same plan says the same again, and each of its schedules something else. */
static void test_hash_tells_schedules_apart(void **state)
{
    (void)state;
    cvy_model *model = NULL;
    assert_int_equal(cvy_model_open("lenet5", &model), CVY_OK);
    cvy_plan *plan = make_plan(model, "ref");
    cvy_plan *again = make_plan(model, "ref");
    for (int i = 0; i < CVY_SCHEDULE_COUNT; i++) {
        uint64_t hash = cvy_schedule_hash(&plan->schedule[i]);
        assert_true(hash == cvy_schedule_hash(&again->schedule[i]));
        for (int k = 0; k < i; k++) {
            assert_true(hash != cvy_schedule_hash(&plan->schedule[k]));
        }
    }
    again->schedule[0].step[1].issue++;
    assert_true(cvy_schedule_hash(&plan->schedule[0]) != cvy_schedule_hash(&again->schedule[0]));
    cvy_plan_destroy(&again);
    cvy_plan_destroy(&plan);
    cvy_model_destroy(&model);
}

/* Sizes beyond 2^62 bytes: of one tensor, whichever it is, and of all together; never a number that has wrapped. */
static void test_sizes_beyond_64_bits_are_infeasible(void **state)
{
    (void)state;
    static const struct {
        const char *model;
        int64_t batch;
        const char *words;
    } cases[] = {
        {"lenet5", INT64_MAX / 2, "layer input: shape"},
        {"lenet5", INT64_C(1) << 44, "layer conv1: shape"}, /* 35 x 39 x 39 x 8 bytes, padding allowed for */
        {"resnet18", INT64_C(400000000000), "iteration of 400000000000 samples"}, /* x 80 MB of activations */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cvy_model *model = NULL;
        cvy_plan *plan = NULL;
        cvy_plan_options options = {.batch = cases[i].batch, .dtype = CVY_F32, .training = true, .block = 8,
                                    .data_slots = 3, .label_bytes = 4};
        assert_int_equal(cvy_model_open(cases[i].model, &model), CVY_OK);
        assert_int_equal(cvy_plan_create(model, &options, &plan), CVY_ERR_INFEASIBLE);
        if (!strstr(cvy_error_message(), cases[i].words)) {
            fail_msg("said '%s', expected '%s' in it", cvy_error_message(), cases[i].words);
        }
        assert_null(plan);
        cvy_model_destroy(&model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_buffers_that_live_together_share_no_byte),
        cmocka_unit_test(test_arenas_hold_all_buffers_with_little_waste),
        cmocka_unit_test(test_what_is_read_was_written_and_not_overwritten),
        cmocka_unit_test(test_conflicting_steps_are_ordered_by_dependencies),
        cmocka_unit_test(test_every_parameter_is_updated_once),
        cmocka_unit_test(test_schedules_of_a_plan_share_persistent_memory),
        cmocka_unit_test(test_lenet5_has_the_steps_counted_by_hand),
        cmocka_unit_test(test_memory_breakdown_sums_up),
        cmocka_unit_test(test_every_failing_allocation_is_survived),
        cmocka_unit_test(test_hash_tells_schedules_apart),
        cmocka_unit_test(test_transposed_convolutions_swap_the_formats_of_weights),
        cmocka_unit_test(test_options_that_make_no_sense_are_refused),
        cmocka_unit_test(test_sizes_beyond_64_bits_are_infeasible),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
