/* Every model of the zoo trains on fast kernels alone: no op of its step is left to the plain loops of `ref`. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "plan/plan.h"

/* Small, but large enough that no convolution's output is a row of one or two, which depthwise kernels refuse. */
static const char *find_options(const char *name)
{
    static const char *const options[][2] = {
        {"lenet5", ""},         {"cifar10-quick", ""},        {"cosmoflow", ""},
        {"unet3d", ":size=16"}, {"alexnet", ":hidden=64"},    {"vgg", ":size=64,hidden=64"},
        {"inception", ":size=107"},
    };
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        if (strncmp(name, options[i][0], strlen(options[i][0])) == 0) {
            return options[i][1];
        }
    }
    return ":size=96";
}

static void judge_model(const char *name)
{
    char text[100];
    cvy_model *model = NULL;
    cvy_plan *plan = NULL;
    cvy_plan_options options = {.batch = 2, .dtype = CVY_F32, .training = true, .block = 8, .data_slots = 1,
                                .label_bytes = 4};
    snprintf(text, sizeof text, "%s%s", name, find_options(name));
    options.optimizer.params.momentum = 0.9;
    assert_int_equal(cvy_backend_chain_find(NULL, &options.backends), CVY_OK);
    assert_int_equal(cvy_model_open(text, &model), CVY_OK);
    options.label_bytes *= model->layer[cvy_model_output(model)].output.extent[1];
    assert_int_equal(cvy_plan_create(model, &options, &plan), CVY_OK);
    const cvy_schedule *train = &plan->schedule[CVY_SCHEDULE_TRAIN];
    for (int i = 0; i < train->steps; i++) {
        const cvy_step *step = &train->step[i];
        if (step->op >= 0 && strcmp(train->choice[step->op].backend, "ref") == 0) {
            fail_msg("%s: layer %s: %s %s is left to ref", text, model->layer[step->layer].name,
                     cvy_op_kind_name(train->op[step->op].kind), cvy_op_pass_name(train->op[step->op].pass));
        }
    }
    cvy_plan_destroy(&plan);
    cvy_model_destroy(&model);
}

static void test_no_op_of_the_zoo_is_left_to_plain_loops(void **state)
{
    (void)state;
    const cvy_zoo_entry *entry;
    if (!__builtin_cpu_supports("avx2")) {
        skip(); /* the library's own kernels begin there */
    }
    for (int i = 0; (entry = cvy_zoo_get(i)); i++) {
        judge_model(entry->name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_no_op_of_the_zoo_is_left_to_plain_loops)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
