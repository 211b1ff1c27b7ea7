/* Verification on one rank: a run agrees with itself, in both precisions, and what differs is told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "runtime/verify.h"

static void require(cvy_status status)
{
    if (status != CVY_OK) {
        fail_msg("%s", cvy_error_message());
    }
}

static cvy_train_options describe(bool in_double)
{
    cvy_train_options options = CVY_TRAIN_OPTIONS_INIT;
    options.batch = 4;
    options.threads = 1;
    options.double_precision = in_double;
    options.backend = in_double ? "ref" : NULL;
    return options;
}

static void test_a_run_agrees_with_itself(void **state)
{
    (void)state;
    const cvy_verify_options effort = {.steps = 3, .shakes = 2};
    cvy_model *model = NULL;
    require(cvy_model_open("lenet5", &model));
    for (int in_double = 0; in_double < 2; in_double++) {
        cvy_verification v;
        const cvy_train_options options = describe(in_double);
        require(cvy_verify(model, &options, &effort, NULL, &v));
        assert_true(v.pass && v.replicas_identical);
        assert_string_equal(v.why, "");
        assert_int_equal(v.layers, 4); /* two convolutions, two dense layers */
        assert_true(v.loss_relative == 0.0 && v.gradient_relative == 0.0 && v.weight_relative == 0.0);
        assert_int_equal(v.shakes, in_double ? 0 : effort.shakes); /* though nothing had to be explained */
        assert_false(v.weak);
        cvy_verification_clear(&v);
    }
    cvy_model_destroy(&model);
}

/* Weights of another seed are another training, which no noise explains. */
static void test_other_weights_fail(void **state)
{
    (void)state;
    const cvy_verify_options effort = {.steps = 1, .shakes = 2};
    cvy_model *model = NULL;
    require(cvy_model_open("lenet5", &model));
    for (int in_double = 0; in_double < 2; in_double++) {
        cvy_verification v;
        cvy_train_options tried = describe(in_double);
        tried.data = "random";
        tried.train_samples = 4;
        cvy_train_options serial = tried;
        serial.seed = tried.seed + 1;
        require(cvy_verify_pair(model, &tried, &serial, &effort, NULL, &v));
        assert_false(v.pass);
        assert_non_null(strstr(v.why, "the loss of step 0"));
        assert_true(v.gradient_relative > 0.1 && v.weight_relative > 0.1);
        assert_int_equal(v.shakes, in_double ? 0 : 2);
        assert_true(v.layer[0].share >= v.layer[v.layers - 1].share && v.layer[0].share > 1.0);
        cvy_verification_clear(&v);
    }
    cvy_model_destroy(&model);
}

/* ---- the comparison by itself ---- */

enum { MOST_PARAMETERS = 16 };

/* Records of a model whose every tensor is 1, but for the loss of one step, which is 2. */
typedef struct ones {
    void *gradient[MOST_PARAMETERS], *weight[MOST_PARAMETERS];
    double loss[1];
} ones;

static cvy_verify_record make_ones(const cvy_model *model, cvy_dtype dtype, ones *room)
{
    assert_true(model->parameters <= MOST_PARAMETERS);
    *room = (ones){.loss = {2.0}};
    for (int i = 0; i < model->parameters; i++) {
        int64_t count = cvy_shape_elements(&model->parameter[i].spec.shape);
        for (int kind = 0; kind < 2; kind++) {
            void *value = cvy_calloc((size_t)count, sizeof(double));
            for (int64_t k = 0; k < count; k++) {
                if (dtype == CVY_F64) {
                    ((double *)value)[k] = 1.0;
                } else {
                    ((float *)value)[k] = 1.0f;
                }
            }
            *(kind ? &room->weight[i] : &room->gradient[i]) = value;
        }
    }
    return (cvy_verify_record){.dtype = dtype, .parameters = model->parameters, .gradient = room->gradient,
                               .weight = room->weight, .loss = room->loss, .replicas_identical = true};
}

static void release_ones(ones *room)
{
    for (int i = 0; i < MOST_PARAMETERS; i++) {
        cvy_free(room->gradient[i]);
        cvy_free(room->weight[i]);
    }
}

/*
 * In double a gradient of 1 may be off by 1e-10, a weight by 1e-9: half of that passes with half a share, twice of it
 * fails.
 */
static void test_double_has_fixed_bounds(void **state)
{
    (void)state;
    static const struct {
        double gradient, weight, share;
    } cases[] = {{5e-11, 0.0, 0.5}, {0.0, 5e-10, 0.5}, {2e-10, 0.0, 2.0}, {0.0, 2e-9, 2.0}, {NAN, 0.0, NAN}};
    cvy_model *model = NULL;
    cvy_verify_noise noise;
    require(cvy_model_open("lenet5", &model));
    require(cvy_verify_noise_create(model, 1, &noise));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ones room[2];
        cvy_verification v = {.steps = 1, .double_precision = true};
        const cvy_verify_record tried = make_ones(model, CVY_F64, &room[0]);
        const cvy_verify_record serial = make_ones(model, CVY_F64, &room[1]);
        ((double *)tried.gradient[2])[7] += cases[i].gradient; /* of conv2 */
        ((double *)tried.weight[2])[7] += cases[i].weight;
        require(cvy_verify_compare(model, &tried, &serial, &noise, &v));
        assert_string_equal(v.layer[0].layer, "conv2");
        assert_true(isnan(cases[i].share) ? isnan(v.layer[0].share)
                                          : fabs(v.layer[0].share - cases[i].share) < 1e-5);
        assert_int_equal(v.pass, cases[i].share <= 1.0);
        cvy_verification_clear(&v);
        release_ones(&room[0]);
        release_ones(&room[1]);
    }
    cvy_verify_noise_clear(&noise);
    cvy_model_destroy(&model);
}

/*
 * The bias of conv1 has 20 elements. Off by 2^-10 in one, its L2 difference is 2^-10, and the bound without noise
 * 1e-5 of sqrt(20): 21.8 times of it. Noise of 2^-13 allows ten times that: a share of 0.8.
 */
static void test_single_is_held_to_noise(void **state)
{
    (void)state;
    const double off = 0x1p-10;
    cvy_model *model = NULL;
    cvy_verify_noise noise;
    ones room[3];
    cvy_verification v = {.steps = 1};
    require(cvy_model_open("lenet5", &model));
    require(cvy_verify_noise_create(model, 1, &noise));
    const cvy_verify_record tried = make_ones(model, CVY_F32, &room[0]);
    const cvy_verify_record serial = make_ones(model, CVY_F32, &room[1]);
    const cvy_verify_record shaken = make_ones(model, CVY_F32, &room[2]);
    int bias = 1;
    assert_string_equal(model->parameter[bias].name, "conv1.bias");
    ((float *)tried.weight[bias])[3] += (float)off;
    require(cvy_verify_compare(model, &tried, &serial, &noise, &v));
    assert_false(v.pass);
    assert_true(fabs(v.layer[0].share - off / (1e-5 * sqrt(20.0))) < 1e-3);
    assert_non_null(strstr(v.why, "the value of conv1.bias"));
    ((float *)shaken.weight[bias])[5] += (float)(off / 8.0);
    cvy_verify_add_noise(model, &serial, &shaken, 1, &noise);
    require(cvy_verify_compare(model, &tried, &serial, &noise, &v));
    assert_true(v.pass);
    assert_int_equal(v.shakes, 1);
    assert_true(fabs(v.layer[0].share - 0.8) < 1e-6);
    assert_true(fabs(v.noise - off / 8.0 / sqrt(20.0)) < 1e-9);
    assert_false(v.weak);
    ((float *)shaken.weight[bias])[7] += 0x1p-7f; /* 2^-7 of sqrt(20) is 1.7e-3 of the norm: ten times that may pass */
    cvy_verify_add_noise(model, &serial, &shaken, 1, &noise);
    require(cvy_verify_compare(model, &tried, &serial, &noise, &v));
    assert_true(v.pass && v.weak);
    assert_int_equal(v.shakes, 2);
    cvy_verification_clear(&v);
    for (int i = 0; i < 3; i++) {
        release_ones(&room[i]);
    }
    cvy_verify_noise_clear(&noise);
    cvy_model_destroy(&model);
}

/* A bias whose gradient is 0 but for rounding is measured by a thousandth of its layer's weights, which are 1. */
static void test_a_bias_is_measured_by_its_weights(void **state)
{
    (void)state;
    cvy_model *model = NULL;
    cvy_verify_noise noise;
    ones room[2];
    cvy_verification v = {.steps = 1, .double_precision = true};
    require(cvy_model_open("lenet5", &model));
    require(cvy_verify_noise_create(model, 1, &noise));
    const cvy_verify_record tried = make_ones(model, CVY_F64, &room[0]);
    const cvy_verify_record serial = make_ones(model, CVY_F64, &room[1]);
    for (int i = 0; i < 20; i++) {
        ((double *)serial.gradient[1])[i] = 1e-17;
        ((double *)tried.gradient[1])[i] = -2e-17;
    }
    require(cvy_verify_compare(model, &tried, &serial, &noise, &v));
    assert_true(v.pass);
    assert_true(fabs(v.gradient_relative - 3e-14) < 1e-20);
    cvy_verification_clear(&v);
    release_ones(&room[0]);
    release_ones(&room[1]);
    cvy_verify_noise_clear(&noise);
    cvy_model_destroy(&model);
}

/* ---- micro-batches ---- */

/*
 * 8 samples over 2 ranks are 0..3 and 4..7, whose halves go through together; 5 over 2 are 0 1 2 and 3 4, in parts of
 * 0 1 with 3, and 2 with 4; one part is the batch as it is.
 */
static void test_the_serial_run_has_the_samples_of_a_part_together(void **state)
{
    (void)state;
    static const struct {
        cvy_verify_parts parts;
        int64_t order[8];
    } cases[] = {
        {{.batch = 8, .ranks = 2, .micro_batches = 2}, {0, 1, 4, 5, 2, 3, 6, 7}},
        {{.batch = 5, .ranks = 2, .micro_batches = 2}, {0, 1, 3, 2, 4}},
        {{.batch = 7, .ranks = 3, .micro_batches = 2}, {0, 1, 3, 5, 2, 4, 6}},
        {{.batch = 3, .ranks = 3, .micro_batches = 1}, {0, 1, 2}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t order[8] = {0};
        cvy_verify_parts_order(&cases[i].parts, order);
        assert_memory_equal(order, cases[i].order, sizeof order);
    }
}

/*
 * A running mean of 0 but for rounding, where the variance is 4: by a thousandth of 2, 3e-17 is 1.5e-14. The gradient
 * of the weight, where that of the bias is 1: by 1, 3e-17 is that.
 */
static void test_norms_are_measured_by_what_stands_beside(void **state)
{
    (void)state;
    int at = 0;
    cvy_model *model = NULL;
    cvy_verify_noise noise;
    ones room[2];
    cvy_verification v = {.steps = 1, .double_precision = true};
    require(cvy_model_create("norm", &CVY_SHAPE(3, 2, 2), &model));
    require(cvy_model_append(model, "batch-norm", "bn", &at, " "));
    require(cvy_model_append(model, "flatten", "flat", &at, " "));
    require(cvy_model_append(model, "mean-squared-error", "loss", &at, " "));
    require(cvy_model_finish(model));
    require(cvy_verify_noise_create(model, 1, &noise));
    const cvy_verify_record tried = make_ones(model, CVY_F64, &room[0]);
    const cvy_verify_record serial = make_ones(model, CVY_F64, &room[1]);
    assert_string_equal(model->parameter[2].name, "bn.running_mean");
    assert_string_equal(model->parameter[3].name, "bn.running_var");
    for (int i = 0; i < 3; i++) {
        ((double *)serial.weight[2])[i] = 1e-17;
        ((double *)tried.weight[2])[i] = -2e-17;
        ((double *)serial.weight[3])[i] = ((double *)tried.weight[3])[i] = 4.0;
        ((double *)serial.gradient[0])[i] = 1e-17;
        ((double *)tried.gradient[0])[i] = -2e-17;
    }
    require(cvy_verify_compare(model, &tried, &serial, &noise, &v));
    assert_true(v.pass);
    assert_true(fabs(v.weight_relative - 1.5e-14) < 1e-20 && fabs(v.gradient_relative - 3e-17) < 1e-22);
    cvy_verification_clear(&v);
    release_ones(&room[0]);
    release_ones(&room[1]);
    cvy_verify_noise_clear(&noise);
    cvy_model_destroy(&model);
}

static void test_what_cannot_be_is_refused(void **state)
{
    (void)state;
    cvy_verification v;
    cvy_model *model = NULL;
    cvy_train_options options = describe(false);
    const cvy_verify_options none = {.steps = 0, .shakes = 1}, many = {.steps = 30000, .shakes = 1};
    require(cvy_model_open("lenet5", &model));
    assert_int_equal(cvy_verify(model, &options, &none, NULL, &v), CVY_ERR_INPUT);
    cvy_verification_clear(&v);
    options.data = "no-such-folder";
    assert_int_equal(cvy_verify(model, &options, &many, NULL, &v), CVY_ERR_DATA);
    cvy_verification_clear(&v);
    cvy_model_destroy(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_run_agrees_with_itself),
        cmocka_unit_test(test_other_weights_fail),
        cmocka_unit_test(test_double_has_fixed_bounds),
        cmocka_unit_test(test_single_is_held_to_noise),
        cmocka_unit_test(test_a_bias_is_measured_by_its_weights),
        cmocka_unit_test(test_the_serial_run_has_the_samples_of_a_part_together),
        cmocka_unit_test(test_norms_are_measured_by_what_stands_beside),
        cmocka_unit_test(test_what_cannot_be_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
