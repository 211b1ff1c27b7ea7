/* Laws of when weights change, walked over steps: by every rule, in parts, with recomputation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "plan/plan.h"

static const char *const models[] = {"lenet5", "resnet18:size=32,classes=10", "unet3d:size=16,width=8"};
enum { MODELS = sizeof models / sizeof models[0] };

static cvy_plan *make_plan(const cvy_model *model, cvy_optimizer_kind rule, double clip_norm, int variant)
{
    cvy_plan *plan = NULL;
    cvy_plan_options options = {.batch = 4,
                                .dtype = CVY_F32,
                                .micro_batches = variant % 2 ? 3 : 1,
                                .recompute = variant / 2 ? CVY_RECOMPUTE_ALL : CVY_RECOMPUTE_NONE,
                                .training = true,
                                .optimizer = {rule, {.momentum = 0.9}, .clip_norm = clip_norm},
                                .average = 0.9,
                                .block = 8};
    if (cvy_plan_create(model, &options, &plan) != CVY_OK) {
        fail_msg("%s", cvy_error_message());
    }
    return plan;
}

typedef void (*law)(const cvy_plan *plan, const cvy_schedule *schedule);

static void hold_all(cvy_optimizer_kind rule, double clip_norm, law check)
{
    for (int i = 0; i < MODELS; i++) {
        cvy_model *model = NULL;
        if (cvy_model_open(models[i], &model) != CVY_OK) {
            fail_msg("%s", cvy_error_message());
        }
        for (int variant = 0; variant < 4; variant++) {
            cvy_plan *plan = make_plan(model, rule, clip_norm, variant);
            check(plan, &plan->schedule[CVY_SCHEDULE_TRAIN]);
            cvy_plan_destroy(&plan);
        }
        cvy_model_destroy(&model);
    }
}

static int count_trainable(const cvy_model *model)
{
    int count = 0;
    for (int i = 0; i < model->parameters; i++) {
        count += model->parameter[i].spec.trainable;
    }
    return count;
}

/* The parameter that a step changes by a rule; -1. */
static int find_updated(const cvy_schedule *s, int step)
{
    const cvy_op *op = s->step[step].op >= 0 ? &s->op[s->step[step].op] : NULL;
    int w = op && op->pass == CVY_PASS_UPDATE ? cvy_op_index(op, CVY_ROLE_W) : -1;
    bool changes = w >= 0 && op->operand[w].access == CVY_ACCESS_UPDATE;
    return changes ? s->buffer[s->use[s->step[step].first_use + w].buffer].parameter : -1;
}

/* Behind its update only its average looks at a weight: all the iteration goes by the old one. */
static void check_nobody_reads_behind(const cvy_plan *plan, const cvy_schedule *s)
{
    int updates = 0;
    for (int i = 0; i < s->steps; i++) {
        int parameter = find_updated(s, i);
        updates += parameter >= 0;
        for (int later = i + 1; parameter >= 0 && later < s->steps; later++) {
            for (int k = 0; k < s->step[later].uses; k++) {
                const cvy_buffer *root = &s->buffer[cvy_schedule_root(s, s->use[s->step[later].first_use + k].buffer)];
                bool weight = root->content == CVY_CONTENT_PARAMETER && root->parameter == parameter;
                assert_true(!weight || s->op[s->step[later].op].kind == CVY_OP_AVERAGE);
            }
        }
    }
    assert_int_equal(updates, count_trainable(plan->model));
}

static void test_nobody_reads_a_weight_behind_its_update(void **state)
{
    (void)state;
    hold_all(CVY_OPTIMIZER_SGD, 0.0, check_nobody_reads_behind);
    hold_all(CVY_OPTIMIZER_ADAMW, 0.0, check_nobody_reads_behind);
    hold_all(CVY_OPTIMIZER_SGD, 1.0, check_nobody_reads_behind);
    hold_all(CVY_OPTIMIZER_LARS, 0.0, check_nobody_reads_behind);
}

/* Between an update and the last step before it that is none lies nothing: the gradient is as fresh as can be. */
static void check_at_once(const cvy_plan *plan, const cvy_schedule *s)
{
    (void)plan;
    for (int i = 0; i < s->steps; i++) {
        int before = i;
        while (find_updated(s, before) >= 0) {
            before--;
        }
        assert_true(before == i || s->step[before].layer == s->step[i].layer);
    }
}

static void test_a_layer_is_updated_right_behind_its_backward_pass(void **state)
{
    (void)state;
    hold_all(CVY_OPTIMIZER_SGD, 0.0, check_at_once);
    hold_all(CVY_OPTIMIZER_ADAM, 0.0, check_at_once);
}

/* A norm over several tensors needs them all: no update before the last backward step. */
static void check_at_the_end(const cvy_plan *plan, const cvy_schedule *s)
{
    (void)plan;
    for (int i = 0, updated = 0; i < s->steps; i++) {
        updated += find_updated(s, i) >= 0;
        assert_true(updated == 0 || s->step[i].phase == CVY_PHASE_UPDATE);
    }
}

static void test_norms_over_tensors_wait_for_all_of_backward(void **state)
{
    (void)state;
    hold_all(CVY_OPTIMIZER_SGD, 1.0, check_at_the_end);
    hold_all(CVY_OPTIMIZER_LARS, 0.0, check_at_the_end);
    hold_all(CVY_OPTIMIZER_LAMB, 0.0, check_at_the_end);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nobody_reads_a_weight_behind_its_update),
        cmocka_unit_test(test_a_layer_is_updated_right_behind_its_backward_pass),
        cmocka_unit_test(test_norms_over_tensors_wait_for_all_of_backward),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
