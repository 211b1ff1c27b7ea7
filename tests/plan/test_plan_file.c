/* Plan files: what is saved reads back to the same decisions and the same cut of each layer; what is wrong is told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "folder.h"
#include "plan/plan_file.h"

static const int64_t image[3] = {1, 224, 224};

static void require(cvy_status status)
{
    if (status != CVY_OK) {
        fail_msg("%s", cvy_error_message());
    }
}

static cvy_plan_decisions decide(const char *model, const char *strategy, int64_t ranks)
{
    cvy_plan_decisions d = {.model = model, .machine = "abci", .batch = 256, .precision = CVY_PRECISION_FP16,
                            .recompute = CVY_RECOMPUTE_CHEAP, .shard_optimizer = true, .bucket_bytes = -1};
    require(cvy_strategy_parse(strategy, ranks, image, &d.strategy));
    assert_true(cvy_optimizer_find("nesterov", 0.9, &d.optimizer));
    return d;
}

static cvy_distribution *divide(const cvy_model *model, const cvy_plan_decisions *d)
{
    cvy_distribution *distribution = NULL;
    const cvy_distribution_options options = {.batch = d->batch, .choices = d->choices, .stages = d->stages};
    require(cvy_distribution_create(model, &d->strategy, &options, &distribution));
    return distribution;
}

/* The same stages, cuts and axes of every layer. */
static void assert_same_cuts(const cvy_distribution *a, const cvy_distribution *b)
{
    assert_int_equal(a->model->layers, b->model->layers);
    for (int i = 0; i < a->model->layers; i++) {
        const cvy_layer_distribution *x = &a->layer[i], *y = &b->layer[i];
        assert_int_equal(x->stage, y->stage);
        assert_int_equal(x->cut, y->cut);
        assert_int_equal(x->input_split, y->input_split);
        assert_int_equal(x->raw_split, y->raw_split);
        assert_int_equal(x->raw_partial, y->raw_partial);
        assert_int_equal(x->output_split, y->output_split);
        assert_int_equal(x->gradient_axes, y->gradient_axes);
    }
}

static void save_and_load(void **state, const cvy_plan_decisions *d, cvy_plan_file *file_out)
{
    cvy_model *model = NULL;
    const char *path = test_path(*state, "plan.yaml");
    require(cvy_model_open(d->model, &model));
    cvy_distribution *before = divide(model, d);
    require(cvy_plan_file_save(d, before, path));
    require(cvy_plan_file_load(path, NULL, file_out));
    cvy_distribution *after = divide(file_out->model, &file_out->decisions);
    assert_same_cuts(before, after);
    cvy_distribution_destroy(&after);
    cvy_distribution_destroy(&before);
    cvy_model_destroy(&model);
}

static void test_a_plan_reads_back_to_the_same_cuts(void **state)
{
    static const struct {
        const char *model, *strategy;
        int64_t ranks;
    } cases[] = {
        {"resnet50:classes=10", "data", 64},
        {"resnet50:classes=10", "sample=4,height=2,width=2,channel=4", 64},
        {"resnet50:classes=10", "width=3,sample=2,channel=2,channel-cut=channel", 12},
        {"vgg16", "filter", 8},
        {"vgg16", "stage=4,sample=2,micro-batches=8,pipeline=gpipe", 8},
        {"googlenet", "channel=4", 4},
        {"mobilenet-v2", "alternating", 16},
        {"lenet5", "serial", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char before[CVY_STRATEGY_TEXT], after[CVY_STRATEGY_TEXT];
        cvy_plan_decisions d = decide(cases[i].model, cases[i].strategy, cases[i].ranks);
        cvy_plan_file file;
        save_and_load(state, &d, &file);
        assert_string_equal(file.decisions.model, cases[i].model);
        assert_string_equal(file.decisions.machine, "abci");
        assert_int_equal(file.decisions.batch, 256);
        assert_int_equal(file.decisions.precision, CVY_PRECISION_FP16);
        assert_int_equal(file.decisions.recompute, CVY_RECOMPUTE_CHEAP);
        assert_string_equal(cvy_optimizer_find_name(&file.decisions.optimizer), "nesterov");
        assert_true(file.decisions.shard_optimizer);
        assert_false(file.decisions.norms_given);
        assert_int_equal(file.decisions.bucket_bytes, -1);
        if (!d.strategy.micro_batches) {
            d.strategy.micro_batches = 1; /* as they are run */
        }
        assert_string_equal(cvy_strategy_print(&file.decisions.strategy, after),
                            cvy_strategy_print(&d.strategy, before));
        cvy_plan_file_clear(&file);
    }
}

/* Of a mix every choice is kept: a layer that is not to be cut, though it could be; space along one axis alone. */
static void test_a_mix_reads_back_layer_by_layer(void **state)
{
    cvy_model *model = NULL;
    cvy_plan_file file;
    cvy_plan_decisions d = decide("vgg16", "height=2,width=2,channel=2", 8);
    require(cvy_model_open(d.model, &model));
    cvy_layer_choice *choices = cvy_calloc((size_t)model->layers, sizeof *choices);
    for (int i = 0; i < model->layers; i++) {
        unsigned space = i < 9 ? CVY_AXIS_SPACE : CVY_AXIS_BIT(CVY_AXIS_HEIGHT);
        choices[i] = (cvy_layer_choice){.cut = i % 4 - 1, .space = space};
    }
    d.choices = choices;
    save_and_load(state, &d, &file);
    for (int i = 1; i < model->layers; i++) {
        assert_int_equal(file.choices[i].space, choices[i].space);
        if (choices[i].cut == CVY_CUT_WHOLE) {
            assert_int_equal(file.choices[i].cut, CVY_CUT_WHOLE);
        }
    }
    cvy_plan_file_clear(&file);
    cvy_free(choices);
    cvy_model_destroy(&model);
}

static void test_norms_and_buckets_are_kept(void **state)
{
    cvy_plan_file file;
    cvy_plan_decisions d = decide("resnet18", "sample=2,height=2", 4);
    d.norms_given = true;
    d.norm_axes = CVY_AXIS_BIT(CVY_AXIS_SAMPLE) | CVY_AXIS_BIT(CVY_AXIS_HEIGHT);
    d.bucket_bytes = 25000000;
    save_and_load(state, &d, &file);
    assert_true(file.decisions.norms_given);
    assert_int_equal(file.decisions.norm_axes, d.norm_axes);
    assert_int_equal(file.decisions.bucket_bytes, 25000000);
    cvy_plan_file_clear(&file);
}

/* The plan.yaml of a run on one rank: no machine, no layers, formats. */
static void test_a_run_s_plan_is_read(void **state)
{
    cvy_model *model = NULL;
    cvy_plan *plan = NULL;
    cvy_plan_file file;
    const char *path = test_path(*state, "plan.yaml");
    const cvy_plan_options options = {.batch = 24, .dtype = CVY_F32, .micro_batches = 3, .training = true, .block = 16,
                                      .data_slots = 1, .label_bytes = 4};
    require(cvy_model_open("lenet5", &model));
    require(cvy_plan_create(model, &options, &plan));
    require(cvy_plan_save(plan, path));
    require(cvy_plan_file_load(path, NULL, &file));
    assert_null(file.decisions.machine);
    assert_null(file.decisions.choices);
    assert_int_equal(file.decisions.batch, 24);
    assert_int_equal(file.decisions.strategy.micro_batches, 3);
    assert_int_equal(file.decisions.strategy.mesh.ranks, 1);
    assert_int_equal(file.decisions.block, 16);
    for (int i = 0; i < model->layers; i++) {
        assert_int_equal(file.formats[i].output, plan->formats[i].output);
    }
    cvy_plan_file_clear(&file);
    cvy_plan_destroy(&plan);
    cvy_model_destroy(&model);
}

/* Rank 1's plan says what all ranks do: the mesh, the cuts that were chosen layer by layer, buckets, norms. */
static void test_a_plan_of_a_run_over_ranks_is_read(void **state)
{
    cvy_model *model = NULL;
    cvy_plan *plan = NULL;
    cvy_plan_file file;
    const char *path = test_path(*state, "plan.yaml");
    cvy_plan_decisions d = decide("lenet5", "sample=2,channel=2,channel-cut=filter", 4);
    require(cvy_model_open("lenet5", &model));
    cvy_layer_choice *choices = cvy_calloc((size_t)model->layers, sizeof *choices);
    for (int i = 0; i < model->layers; i++) {
        choices[i] = (cvy_layer_choice){.cut = -1, .space = CVY_AXIS_SPACE};
    }
    choices[cvy_model_find_layer(model, "ip1")].cut = CVY_CUT_WHOLE;
    d.choices = choices;
    cvy_distribution *before = divide(model, &d);
    const cvy_plan_options options = {.batch = 256, .dtype = CVY_F32, .training = true, .block = 8, .data_slots = 1,
                                      .label_bytes = 4, .optimizer = d.optimizer,
                                      .parallel = {.distribution = before, .rank = 1, .bucket_bytes = 1000000,
                                                   .norm_axes = CVY_AXIS_BIT(CVY_AXIS_HEIGHT)}};
    require(cvy_plan_create(model, &options, &plan));
    require(cvy_plan_save(plan, path));
    require(cvy_plan_file_load(path, NULL, &file));
    assert_memory_equal(file.decisions.strategy.mesh.size, d.strategy.mesh.size, sizeof d.strategy.mesh.size);
    assert_int_equal(file.decisions.bucket_bytes, 1000000);
    assert_true(file.decisions.norms_given);
    assert_int_equal(file.decisions.norm_axes, CVY_AXIS_BIT(CVY_AXIS_HEIGHT));
    assert_string_equal(cvy_optimizer_find_name(&file.decisions.optimizer), "nesterov");
    assert_int_equal(file.choices[cvy_model_find_layer(model, "ip1")].cut, CVY_CUT_WHOLE);
    cvy_distribution *after = divide(file.model, &file.decisions);
    assert_same_cuts(before, after);
    cvy_distribution_destroy(&after);
    cvy_plan_file_clear(&file);
    cvy_plan_destroy(&plan);
    cvy_distribution_destroy(&before);
    cvy_free(choices);
    cvy_model_destroy(&model);
}

/* A plan of lenet5 with one line of it in other words. */
static void test_what_is_wrong_is_told_with_its_line(void **state)
{
    static const struct {
        const char *from, *to, *words;
    } edits[] = {
        {"model: \"lenet5\"", "model: \"vgg16\"", ":3: the plan is of another model"},
        {"model: \"lenet5\"", "model: \"lenet6\"", "did you mean 'lenet5'"},
        {"model-hash:", "hash:", "found no 'model-hash'"},
        {"strategy: \"sample=2,channel=2\"", "strategy: \"auto\"", "expected another than auto"},
        {"strategy: \"sample=2,channel=2\"", "strategy: \"sample=2,channel=4\"", "is 8 ranks, expected 4"},
        {"strategy: \"sample=2,channel=2\"", "strategy: \"sample=2,height=2\"", "mesh: found height 1"},
        {"ranks: 4", "ranks: 0", ":6: ranks"},
        {"batch: 256", "batch: none", ":9: batch"},
        {"batch: 256", "batches: 256", "found no 'batch'"},
        {"precision: fp16", "precision: fp8", ":10: precision: found 'fp8'"},
        {"optimizer: nesterov", "optimizer: newton", ":11: optimizer: found 'newton'"},
        {"recompute: cheap", "recompute: some", "recompute: found 'some'"},
        {"stages: [\"input\"]", "stages: [\"conv1\"]", "stages: 'conv1' cannot begin stage 0"},
        {"stages: [\"input\"]", "stages: []", "stages: expected the first layer of each of 1"},
        {"{layer: \"conv1\", stage: 0, cut: filter", "{layer: \"conv1\", stage: 0, cut: deep", "cut: found 'deep'"},
        {"{layer: \"conv1\",", "{layer: \"conv9\",", "expected layer conv1"},
        {"{layer: \"conv1\", stage: 0", "{layer: \"conv1\", stage: 1", "stage: found 1, by the list of stages it is 0"},
        {"{layer: \"conv1\", stage: 0", "{layer: \"conv1\", stge: 0", "unknown key 'stge'; did you mean 'stage'"},
        {"schema: 1", "schema: 2", ":1: schema: found '2', expected 1"},
        {"shard-optimizer: yes", "shard-optimiser: yes", "unknown key 'shard-optimiser'; did you mean"},
        {"micro-batches: 1", "micro-batches: 0", "micro-batches: found '0'"},
        {"strategy: \"sample=2,channel=2\"", "strategy: \"sample=2,channel=2,micro-batches=2\"",
         "micro-batches: found 1, the strategy has 2"},
        {"strategy: \"sample=2,channel=2\"", "strategy: \"channel=2,sample=2\"",
         "rank-order: found sample, the strategy has channel there"},
        {"rank-order: [sample, channel,", "rank-order: [sample, sample,", "rank-order: expected a list of all 6 axes"},
        {"rank-order: [sample, channel,", "rank-order: [sample, filter,", "rank-order: expected a list of all 6 axes"},
        {"rank-order: [", "rank-order: [stage, ", "rank-order: expected a list of all 6 axes"},
        {"  - {layer: \"loss\"", "  # {layer: \"loss\"", "layers: expected a list of"},
    };
    cvy_plan_file file = {.model = NULL};
    cvy_plan_decisions d = decide("lenet5", "sample=2,channel=2", 4);
    const char *path = test_path(*state, "plan.yaml"), *edited = test_path(*state, "edited.yaml");
    save_and_load(state, &d, &file);
    cvy_plan_file_clear(&file);
    char *text;
    size_t bytes;
    require(cvy_file_read(path, 1 << 20, CVY_ERR_IO, &text, &bytes));
    for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++) {
        char whole[8192];
        char *at = strstr(text, edits[i].from);
        if (!at) {
            fail_msg("no '%s' in\n%s", edits[i].from, text);
        }
        int length = snprintf(whole, sizeof whole, "%.*s%s%s", (int)(at - text), text, edits[i].to,
                              at + strlen(edits[i].from));
        assert_true(length < (int)sizeof whole && put_test_file(edited, whole, (size_t)length));
        assert_int_equal(cvy_plan_file_load(edited, NULL, &file), CVY_ERR_INPUT);
        assert_null(file.model);
        if (!strstr(cvy_error_message(), edits[i].words)) {
            fail_msg("'%s' lacks '%s'", cvy_error_message(), edits[i].words);
        }
    }
    cvy_free(text);
}

/* Stages begin where one tensor passes, in the order of the layers. */
static void test_stages_are_where_they_can_be(void **state)
{
    static const char *const wrong[] = {"[\"input\", \"layer1.0.conv2\"]", "[\"input\", \"input\"]",
                                        "[\"input\", \"no-such-layer\"]", "[\"conv1\", \"layer2.0.conv1\"]", "input",
                                        "[\"input\", [x]]"};
    cvy_plan_decisions d = decide("resnet18", "stage=2", 2);
    cvy_plan_file file = {.model = NULL};
    const char *path = test_path(*state, "plan.yaml"), *edited = test_path(*state, "edited.yaml");
    save_and_load(state, &d, &file);
    cvy_plan_file_clear(&file);
    char *text;
    size_t bytes;
    require(cvy_file_read(path, 1 << 20, CVY_ERR_IO, &text, &bytes));
    char *at = strstr(text, "stages: "), *end = strchr(at, '#');
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        cvy_text whole = {0};
        cvy_text_add(&whole, "%.*sstages: %s %s", (int)(at - text), text, wrong[i], end);
        assert_true(put_test_file(edited, whole.data, whole.length));
        assert_int_equal(cvy_plan_file_load(edited, NULL, &file), CVY_ERR_INPUT);
        assert_non_null(strstr(cvy_error_message(), "stages: "));
        cvy_text_destroy(&whole);
    }
    cvy_free(text);
}

static void test_a_lack_of_memory_is_passed_up(void **state)
{
    cvy_plan_decisions d = decide("lenet5", "sample=2,channel=2", 4);
    cvy_plan_file file = {.model = NULL};
    const char *path = test_path(*state, "plan.yaml");
    save_and_load(state, &d, &file);
    cvy_plan_file_clear(&file);
    cvy_status status = CVY_ERR_MEMORY;
    for (int64_t count = 0; status != CVY_OK && count < 2000; count++) {
        cvy_memory_fail_after(count);
        status = cvy_plan_file_load(path, NULL, &file);
        cvy_memory_fail_after(-1);
        assert_true(status == CVY_OK || (status == CVY_ERR_MEMORY && !file.model));
    }
    assert_int_equal(status, CVY_OK);
    cvy_plan_file_clear(&file);
}

/* Names and rules are each other's inverse. */
static void test_every_optimizer_has_its_name(void **state)
{
    (void)state;
    cvy_optimizer optimizer;
    for (int i = 0; cvy_optimizer_names[i]; i++) {
        assert_true(cvy_optimizer_find(cvy_optimizer_names[i], 0.9, &optimizer));
        assert_string_equal(cvy_optimizer_find_name(&optimizer), cvy_optimizer_names[i]);
    }
    assert_false(cvy_optimizer_find("newton", 0.9, &optimizer));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_plan_reads_back_to_the_same_cuts),
        cmocka_unit_test(test_a_mix_reads_back_layer_by_layer),
        cmocka_unit_test(test_norms_and_buckets_are_kept),
        cmocka_unit_test(test_a_run_s_plan_is_read),
        cmocka_unit_test(test_a_plan_of_a_run_over_ranks_is_read),
        cmocka_unit_test(test_what_is_wrong_is_told_with_its_line),
        cmocka_unit_test(test_stages_are_where_they_can_be),
        cmocka_unit_test(test_a_lack_of_memory_is_passed_up),
        cmocka_unit_test(test_every_optimizer_has_its_name),
    };
    return cmocka_run_group_tests(tests, create_test_folder, remove_test_folder);
}
