/* Verification on the ranks that there are: strategies are the serial run, what is not fails on all ranks alike. */
#include "comm/ranks.h"

#include "base/error.h"
#include "runtime/verify.h"

static cvy_train_options describe(const char *strategy)
{
    cvy_train_options options = CVY_TRAIN_OPTIONS_INIT;
    options.comm = world.comm;
    options.strategy = strategy;
    options.batch = 5; /* uneven on 2, 3 and 4 ranks */
    options.threads = 1;
    options.double_precision = true;
    options.backend = "ref";
    return options;
}

static void test_strategies_are_the_serial_run(void **state)
{
    (void)state;
    static const char *const strategies[] = {"data", "filter", "channel", "spatial"};
    const cvy_verify_options effort = {.steps = 2, .shakes = 0};
    cvy_model *model = NULL;
    CHECK(cvy_model_open("lenet5", &model) == CVY_OK);
    for (size_t i = 0; i < sizeof strategies / sizeof strategies[0]; i++) {
        cvy_verification v;
        cvy_train_options options = describe(strategies[i]);
        options.shard_optimizer = i == 0;
        CHECK(cvy_verify(model, &options, &effort, NULL, &v) == CVY_OK);
        if (!v.pass) {
            print_message("%s: %s\n", strategies[i], v.why);
        }
        CHECK(v.pass && v.replicas_identical);
        CHECK(v.gradient_relative <= 1e-10 && v.weight_relative <= 1e-9);
        CHECK(v.ranks == world.count);
        CHECK(v.layers == (world.rank == 0 ? 4 : 0));
        cvy_verification_clear(&v);
    }
    cvy_model_destroy(&model);
}

/*
 * Between two layers that divide a tensor in different ways its format may change, too: pool2 leaves rows of blocks of
 * channels, flatten takes plain samples. What travels is in one order for those who send and those who receive.
 */
static void test_what_travels_may_change_its_format(void **state)
{
    (void)state;
    const cvy_verify_options effort = {.steps = 1, .shakes = 2};
    cvy_model *model = NULL;
    cvy_verification v;
    cvy_train_options options = describe("spatial");
    options.double_precision = false;
    options.backend = NULL;
    options.layout = "blocked";
    CHECK(cvy_model_open("lenet5", &model) == CVY_OK);
    CHECK(cvy_verify(model, &options, &effort, NULL, &v) == CVY_OK);
    if (!v.pass) {
        print_message("%s\n", v.why);
    }
    CHECK(v.pass);
    cvy_verification_clear(&v);
    cvy_model_destroy(&model);
}

static void test_another_training_fails_on_all_ranks(void **state)
{
    (void)state;
    const cvy_verify_options effort = {.steps = 1, .shakes = 0};
    cvy_verification v;
    cvy_model *model = NULL;
    cvy_train_options tried = describe("data");
    tried.data = "random";
    tried.train_samples = tried.batch;
    cvy_train_options serial = tried;
    serial.comm = NULL;
    serial.strategy = NULL;
    serial.seed = tried.seed + 1;
    CHECK(cvy_model_open("lenet5", &model) == CVY_OK);
    CHECK(cvy_verify_pair(model, &tried, &serial, &effort, NULL, &v) == CVY_OK);
    CHECK(!v.pass);
    CHECK(strstr(v.why, "the loss of step 0"));
    cvy_verification_clear(&v);
    cvy_model_destroy(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_strategies_are_the_serial_run),
        cmocka_unit_test(test_what_travels_may_change_its_format),
        cmocka_unit_test(test_another_training_fails_on_all_ranks),
    };
    return cmocka_run_group_tests(tests, join_ranks, leave_ranks);
}
