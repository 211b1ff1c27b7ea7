/* Which relus are part of the op before them, counted by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "plan/plan.h"

static void require(cvy_status status)
{
    if (status != CVY_OK) {
        fail_msg("%s", cvy_error_message());
    }
}

static cvy_plan *make_plan_as(const cvy_model *model, const char *backend, bool unfused)
{
    cvy_plan *plan = NULL;
    cvy_plan_options options = {.batch = 2, .dtype = CVY_F32, .training = true, .block = 16, .unfused = unfused};
    if (backend) {
        require(cvy_backend_chain_find(backend, &options.backends));
    }
    require(cvy_plan_create(model, &options, &plan));
    return plan;
}

static cvy_plan *make_plan(const cvy_model *model, const char *backend) { return make_plan_as(model, backend, false); }

/* Steps of one kind of op in a phase. */
typedef struct tally {
    int steps;
    int relu;  /* the op is a relu's too */
    int parts; /* it takes its gradient in two parts */
} tally;

static tally count(const cvy_schedule *s, cvy_phase phase, cvy_op_kind kind)
{
    tally found = {0};
    for (int i = 0; i < s->steps; i++) {
        const cvy_op *op = s->step[i].op >= 0 ? &s->op[s->step[i].op] : NULL;
        if (op && s->step[i].phase == phase && op->kind == kind) {
            found.steps++;
            found.relu += op->relu;
            found.parts += cvy_op_find(op, CVY_ROLE_DY1) != NULL;
        }
    }
    return found;
}

static void require_tally(tally found, int steps, int relu)
{
    assert_int_equal(found.steps, steps);
    assert_int_equal(found.relu, relu);
}

/*
 * ResNet-50 has 53 convolutions, each with its norm, 16 blocks, and 49 relus: the stem's, two in each block behind
 * norms, one behind each sum. Forward all of them are gone: 49 passes. Backward those of norms are gone, that of the
 * last block is part of the global pooling, and the 15 outputs of blocks that two layers take sum their gradient in the
 * relu's pass: 33 + 1 + 15. The stem's pooling is no relu: its two gradients are summed by themselves.
 */
static void check_resnet50(const char *backend)
{
    cvy_model *model = NULL;
    require(cvy_model_open("resnet50:size=64", &model));
    cvy_plan *plan = make_plan(model, backend);
    const cvy_schedule *train = &plan->schedule[CVY_SCHEDULE_TRAIN];
    const cvy_schedule *evaluate = &plan->schedule[CVY_SCHEDULE_EVALUATE];
    for (int i = 0; i < 2; i++) {
        const cvy_schedule *s = i ? evaluate : train;
        require_tally(count(s, CVY_PHASE_FORWARD, CVY_OP_RELU), 0, 0);
        require_tally(count(s, CVY_PHASE_FORWARD, CVY_OP_CONVOLUTION), 53, 0);
        require_tally(count(s, CVY_PHASE_FORWARD, CVY_OP_BATCH_NORM), 53, 33);
        require_tally(count(s, CVY_PHASE_FORWARD, CVY_OP_ADD), 16, 16);
    }
    require_tally(count(train, CVY_PHASE_BACKWARD, CVY_OP_BATCH_NORM), 53, 33);
    require_tally(count(train, CVY_PHASE_BACKWARD, CVY_OP_RELU), 15, 0);
    require_tally(count(train, CVY_PHASE_BACKWARD, CVY_OP_POOL_GLOBAL), 1, 1);
    assert_int_equal(count(train, CVY_PHASE_BACKWARD, CVY_OP_RELU).parts, 15);
    assert_int_equal(count(train, CVY_PHASE_BACKWARD, CVY_OP_ADD).steps, 1);
    cvy_plan_destroy(&plan);
    cvy_model_destroy(&model);
}

static void test_resnet50_has_no_relu_left_forward(void **state)
{
    (void)state;
    check_resnet50(NULL);
    check_resnet50("auto");
    check_resnet50("ref");
}

/*
 * 13 convolutions and two of three dense layers carry their relu. Backward five are part of poolings and two of
 * dropouts; eight lie between convolutions, and keep their passes.
 */
/* Where frameworks run each layer by itself, its 49 relus are 49 steps each way, and part of nothing. */
static void test_relus_may_stay_as_they_are(void **state)
{
    (void)state;
    cvy_model *model = NULL;
    require(cvy_model_open("resnet50:size=64", &model));
    cvy_plan *plan = make_plan_as(model, NULL, true);
    const cvy_schedule *train = &plan->schedule[CVY_SCHEDULE_TRAIN];
    require_tally(count(train, CVY_PHASE_FORWARD, CVY_OP_RELU), 49, 0);
    require_tally(count(train, CVY_PHASE_BACKWARD, CVY_OP_RELU), 49, 0);
    require_tally(count(train, CVY_PHASE_FORWARD, CVY_OP_BATCH_NORM), 53, 0);
    require_tally(count(train, CVY_PHASE_BACKWARD, CVY_OP_POOL_GLOBAL), 1, 0);
    cvy_plan_destroy(&plan);
    cvy_model_destroy(&model);
}

static void test_vgg16_products_carry_their_relus(void **state)
{
    (void)state;
    cvy_model *model = NULL;
    require(cvy_model_open("vgg16:size=32", &model));
    cvy_plan *plan = make_plan(model, "auto");
    const cvy_schedule *train = &plan->schedule[CVY_SCHEDULE_TRAIN];
    require_tally(count(train, CVY_PHASE_FORWARD, CVY_OP_CONVOLUTION), 13, 13);
    require_tally(count(train, CVY_PHASE_FORWARD, CVY_OP_DENSE), 3, 2);
    require_tally(count(train, CVY_PHASE_FORWARD, CVY_OP_RELU), 0, 0);
    require_tally(count(train, CVY_PHASE_BACKWARD, CVY_OP_POOL_MAX), 5, 5);
    require_tally(count(train, CVY_PHASE_BACKWARD, CVY_OP_DROPOUT), 2, 2);
    require_tally(count(train, CVY_PHASE_BACKWARD, CVY_OP_RELU), 8, 0);
    cvy_plan_destroy(&plan);
    cvy_model_destroy(&model);
}

/* A relu behind a max pooling, two before averages: none is a step. */
static void test_cifar10_quick_poolings_take_all_relus(void **state)
{
    (void)state;
    cvy_model *model = NULL;
    require(cvy_model_open("cifar10-quick", &model));
    cvy_plan *plan = make_plan(model, "auto");
    const cvy_schedule *train = &plan->schedule[CVY_SCHEDULE_TRAIN];
    require_tally(count(train, CVY_PHASE_FORWARD, CVY_OP_POOL_MAX), 1, 1);
    require_tally(count(train, CVY_PHASE_BACKWARD, CVY_OP_POOL_MAX), 1, 1);
    require_tally(count(train, CVY_PHASE_BACKWARD, CVY_OP_POOL_AVERAGE), 2, 2);
    require_tally(count(train, CVY_PHASE_FORWARD, CVY_OP_RELU), 0, 0);
    require_tally(count(train, CVY_PHASE_BACKWARD, CVY_OP_RELU), 0, 0);
    require_tally(count(&plan->schedule[CVY_SCHEDULE_EVALUATE], CVY_PHASE_FORWARD, CVY_OP_POOL_MAX), 1, 1);
    cvy_plan_destroy(&plan);
    cvy_model_destroy(&model);
}

/* Two branches of a convolution and a relu, and the image itself, become one: two slices, each a relu's too. */
static void test_slices_take_the_relus_before_a_concat(void **state)
{
    (void)state;
    const cvy_shape image = CVY_SHAPE(1, 4, 8, 8);
    char name[16];
    int at[3] = {0, 0, 0}, last;
    cvy_model *model = NULL;
    require(cvy_model_create("graph", &image, &model));
    for (int i = 0; i < 2; i++) {
        snprintf(name, sizeof name, "conv%d", i);
        require(cvy_model_append(model, "conv", name, &at[i], "filters: 16, kernel: 3, padding: 1"));
        snprintf(name, sizeof name, "relu%d", i);
        require(cvy_model_append(model, "relu", name, &at[i], " "));
    }
    require(cvy_model_append_concat(model, "concat", at, 3, &last));
    require(cvy_model_append(model, "global-pool", "pool", &last, " "));
    require(cvy_model_append(model, "flatten", "flatten", &last, " "));
    require(cvy_model_append(model, "dense", "dense", &last, "outputs: 3"));
    require(cvy_model_append(model, "softmax-cross-entropy", "loss", &last, " "));
    require(cvy_model_finish(model));
    cvy_plan *plan = make_plan(model, "auto");
    const cvy_schedule *train = &plan->schedule[CVY_SCHEDULE_TRAIN];
    require_tally(count(train, CVY_PHASE_BACKWARD, CVY_OP_SLICE), 2, 2);
    require_tally(count(train, CVY_PHASE_BACKWARD, CVY_OP_RELU), 0, 0);
    cvy_plan_destroy(&plan);
    cvy_model_destroy(&model);
}

/* Each of the nine modules has two relus a branch but one in two branches: 57 in all, all behind norms. */
static void test_googlenet_norms_carry_their_relus(void **state)
{
    (void)state;
    cvy_model *model = NULL;
    require(cvy_model_open("googlenet:size=64", &model));
    cvy_plan *plan = make_plan(model, "auto");
    const cvy_schedule *train = &plan->schedule[CVY_SCHEDULE_TRAIN];
    require_tally(count(train, CVY_PHASE_FORWARD, CVY_OP_BATCH_NORM), 57, 57);
    require_tally(count(train, CVY_PHASE_FORWARD, CVY_OP_RELU), 0, 0);
    require_tally(count(train, CVY_PHASE_BACKWARD, CVY_OP_RELU), 0, 0);
    cvy_plan_destroy(&plan);
    cvy_model_destroy(&model);
}

/*
 * conv1 -> relu1 -> conv2 -> relu2 and relu3 -> sum -> relu4 -> pool -> relu5 -> relu6 -> dense: conv1, the sum and the
 * pool carry theirs; conv2 has two consumers, a relu carries nothing.
 */
static void test_only_a_sole_relu_is_carried(void **state)
{
    (void)state;
    static const bool carried[] = {true, false, false, true, true, false};
    const cvy_shape image = CVY_SHAPE(1, 4, 8, 8);
    char name[16];
    int at = 0, relu[6], branch[2];
    cvy_model *model = NULL;
    require(cvy_model_create("graph", &image, &model));
    require(cvy_model_append(model, "conv", "conv1", &at, "filters: 16, kernel: 3, padding: 1"));
    require(cvy_model_append(model, "relu", "relu1", &at, " "));
    relu[0] = at;
    require(cvy_model_append(model, "conv", "conv2", &at, "filters: 16, kernel: 3, padding: 1"));
    for (int i = 0; i < 2; i++) {
        branch[i] = at;
        snprintf(name, sizeof name, "relu%d", i + 2);
        require(cvy_model_append(model, "relu", name, &branch[i], " "));
        relu[1 + i] = branch[i];
    }
    require(cvy_model_append_add(model, "sum", branch[0], branch[1], &at));
    require(cvy_model_append(model, "relu", "relu4", &at, " "));
    relu[3] = at;
    require(cvy_model_append(model, "max-pool", "pool", &at, "kernel: 2"));
    for (int i = 4; i < 6; i++) {
        snprintf(name, sizeof name, "relu%d", i + 1);
        require(cvy_model_append(model, "relu", name, &at, " "));
        relu[i] = at;
    }
    require(cvy_model_append(model, "flatten", "flatten", &at, " "));
    require(cvy_model_append(model, "dense", "dense", &at, "outputs: 3"));
    require(cvy_model_append(model, "softmax-cross-entropy", "loss", &at, " "));
    require(cvy_model_finish(model));
    cvy_plan *plan = make_plan(model, "auto");
    const cvy_schedule *s = &plan->schedule[CVY_SCHEDULE_TRAIN];
    for (int i = 0; i < 6; i++) {
        int steps = 0;
        for (int k = 0; k < s->steps; k++) {
            steps += s->step[k].layer == relu[i] && s->step[k].phase == CVY_PHASE_FORWARD;
        }
        assert_int_equal(steps, carried[i] ? 0 : 1);
    }
    cvy_plan_destroy(&plan);
    cvy_model_destroy(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_relus_may_stay_as_they_are),
        cmocka_unit_test(test_resnet50_has_no_relu_left_forward),
        cmocka_unit_test(test_vgg16_products_carry_their_relus),
        cmocka_unit_test(test_cifar10_quick_poolings_take_all_relus),
        cmocka_unit_test(test_slices_take_the_relus_before_a_concat),
        cmocka_unit_test(test_googlenet_norms_carry_their_relus),
        cmocka_unit_test(test_only_a_sole_relu_is_carried),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
