/* Verification on the ranks that there are: strategies are the serial run, what is not fails on all ranks alike. */
#include "runtime/rank_trainings.h"
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

static cvy_model *make_dropping_model(void)
{
    int at = 0;
    cvy_model *m = NULL;
    CHECK(cvy_model_create("dropping", &CVY_SHAPE(2, 4, 4), &m) == CVY_OK);
    CHECK(cvy_model_append(m, "batch-norm", "norm", &at, " ") == CVY_OK);
    CHECK(cvy_model_append(m, "dropout", "drop", &at, " ") == CVY_OK);
    CHECK(cvy_model_append(m, "flatten", "flat", &at, " ") == CVY_OK);
    CHECK(cvy_model_append(m, "dense", "fc", &at, "outputs: 3") == CVY_OK);
    CHECK(cvy_model_append(m, "softmax-cross-entropy", "loss", &at, " ") == CVY_OK);
    CHECK(cvy_model_finish(m) == CVY_OK);
    return m;
}

/*
 * Two micro-batches of data: batch norms see halves of all ranks' shares, where one rank alone would take samples in a
 * row; it is given them in that order. With three samples a rank the halves of all are two thirds of the batch, which
 * one rank cannot have, and the dropped elements of a layer go by places: both are refused, on all ranks.
 */
static void test_batch_norms_see_the_same_micro_batches(void **state)
{
    (void)state;
    const cvy_verify_options effort = {.steps = 3, .shakes = 0};
    cvy_model *model = make_small_model(true), *dropping = make_dropping_model();
    cvy_verification v;
    cvy_train_options options = describe("data");
    options.batch = 4 * world.count;
    options.micro_batches = 2;
    CHECK(cvy_verify(model, &options, &effort, NULL, &v) == CVY_OK);
    CHECK(v.pass && v.gradient_relative <= 1e-10 && v.weight_relative <= 1e-9);
    cvy_verification_clear(&v);
    if (world.count > 1) {
        CHECK(cvy_verify(dropping, &options, &effort, NULL, &v) == CVY_ERR_INPUT);
        CHECK(strstr(cvy_error_message(), "layer drop drops by a sample's place"));
        cvy_verification_clear(&v);
        options.batch = 3 * world.count;
        CHECK(cvy_verify(model, &options, &effort, NULL, &v) == CVY_ERR_INPUT);
        CHECK(strstr(cvy_error_message(), "which is another training"));
        cvy_verification_clear(&v);
    }
    cvy_model_destroy(&dropping);
    cvy_model_destroy(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_strategies_are_the_serial_run),
        cmocka_unit_test(test_what_travels_may_change_its_format),
        cmocka_unit_test(test_another_training_fails_on_all_ranks),
        cmocka_unit_test(test_batch_norms_see_the_same_micro_batches),
    };
    return cmocka_run_group_tests(tests, join_ranks, leave_ranks);
}
