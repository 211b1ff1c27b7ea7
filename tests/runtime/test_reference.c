/*
 * One training step of a whole net, the argument, against PyTorch's: the outputs of evaluation before and after, the
 * loss, every gradient, every updated parameter and running statistic. tests/reference/README.md says how the values
 * were made.
 *
 * In double on `ref` all agree to 1e-10 of a tensor's largest element. In single precision normalisation over a few
 * positions and rectifiers near zero amplify rounding with depth, so the fastest backend is held to its own noise: that
 * run repeated with every input moved by one unit in the last place. The L2 difference of each tensor from the double
 * run's is at most ten times that noise, or 1e-5.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "runtime/executor.h"
#include "runtime/reference_values.h"

enum { MAX_REFERENCE_BYTES = 1 << 20 };

/* ---- comparing ---- */

/* A net, its reference, and how far the two may be apart. */
typedef struct net {
    json_t *reference;
    cvy_model *model;
    cvy_plan *plan;
    cvy_executor *executor;
    double tolerance;
    bool shaken; /* inputs are a unit in the last place off */
    double worst;
    char worst_at[256];
} net;

/* The net of this program's argument in double; both tests share its step, which takes longest. */
static const char *file;
static net exact;
static double exact_loss;

static const json_t *child(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    if (!value) {
        fail_msg("the reference has no %s", key);
    }
    return value;
}

static double number(const json_t *object, const char *key) { return json_number_value(child(object, key)); }

static void note_difference(net *n, const char *what, const char *name, double difference)
{
    if (!(difference <= n->worst)) { /* NaN counts */
        n->worst = difference;
        snprintf(n->worst_at, sizeof n->worst_at, "%s of %s", what, name);
    }
    if (!(difference <= n->tolerance)) {
        fail_msg("%s of %s: %g from PyTorch's, expected at most %g", what, name, difference, n->tolerance);
    }
}

/* Compare elements 0, stride, 2 stride, … with the largest of them as the unit; then norm and mean of the whole. */
static void compare(net *n, const char *what, const char *name, const json_t *expected, const double *value,
                    int64_t count)
{
    const json_t *sample = child(expected, "sample");
    int64_t samples = (int64_t)json_array_size(sample);
    int64_t stride = count / samples;
    double largest = 0, difference = 0, sum = 0, squares = 0;
    for (int64_t k = 0; k < samples; k++) {
        double reference = json_number_value(json_array_get(sample, (size_t)k));
        largest = fmax(largest, fabs(reference));
        difference = fmax(difference, fabs(value[k * stride] - reference));
    }
    for (int64_t i = 0; i < count; i++) {
        sum += value[i];
        squares += value[i] * value[i];
    }
    double l2 = number(expected, "l2");
    double root_mean_square = l2 / sqrt((double)count);
    note_difference(n, what, name, difference / fmax(largest, root_mean_square));
    note_difference(n, what, name, fabs(sqrt(squares) - l2) / l2);
    note_difference(n, what, name, fabs(sum / (double)count - number(expected, "mean")) / root_mean_square);
}

/* Logical elements of a tensor in memory, as doubles. */
static double *copy_logical(const cvy_tensor *tensor, const void *data)
{
    const cvy_tensor logical = {tensor->shape, CVY_F64, CVY_FORMAT_PLAIN, tensor->grouped};
    double *value = cvy_calloc((size_t)cvy_shape_elements(&tensor->shape), sizeof *value);
    assert_non_null(value);
    assert_int_equal(cvy_tensor_copy(tensor, data, &logical, value), CVY_OK);
    return value;
}

/* ---- one net ---- */

static cvy_optimizer read_optimizer(const json_t *reference)
{
    cvy_optimizer optimizer = {.kind = CVY_OPTIMIZER_SGD};
    optimizer.params.weight_decay = number(reference, "weight_decay");
    if (strcmp(json_string_value(child(reference, "optimizer")), "adamw") == 0) {
        optimizer.kind = CVY_OPTIMIZER_ADAMW;
        optimizer.params.beta1 = json_number_value(json_array_get(child(reference, "betas"), 0));
        optimizer.params.beta2 = json_number_value(json_array_get(child(reference, "betas"), 1));
        optimizer.params.epsilon = number(reference, "eps");
    } else {
        optimizer.params.momentum = number(reference, "momentum");
    }
    return optimizer;
}

static int64_t batch_of(const net *n) { return json_integer_value(json_array_get(child(n->reference, "batch"), 0)); }

/* A zoo name as it is; a path counts from the root of the tree. */
static cvy_status open_model(const char *name, cvy_model **model_out)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", CVY_SOURCE_ROOT, name);
    return cvy_model_open(strchr(name, '/') ? path : name, model_out);
}

static void open_net(net *n, cvy_dtype dtype, double tolerance)
{
    char path[512];
    snprintf(path, sizeof path, "%s/tests/reference/%s.json", CVY_SOURCE_ROOT, file);
    const cvy_json_source source = {path, CVY_ERR_DATA};
    *n = (net){.tolerance = tolerance};
    assert_int_equal(cvy_json_load(&source, MAX_REFERENCE_BYTES, &n->reference), CVY_OK);
    cvy_plan_options options = {.batch = batch_of(n), .dtype = dtype, .training = true, .block = 8, .data_slots = 1,
                                .label_bytes = 4 * (number(n->reference, "classes") > 0 ? 1 : 4)};
    options.optimizer = read_optimizer(n->reference);
    if (cvy_backend_chain_find(dtype == CVY_F64 ? "ref" : NULL, &options.backends) != CVY_OK ||
        open_model(json_string_value(child(n->reference, "model")), &n->model) != CVY_OK ||
        cvy_plan_create(n->model, &options, &n->plan) != CVY_OK ||
        cvy_executor_create(n->plan, &n->executor) != CVY_OK) {
        fail_msg("%s: %s", file, cvy_error_message());
    }
    const cvy_state *state = cvy_executor_state(n->executor);
    for (int i = 0; i < state->count; i++) {
        const cvy_state_tensor *tensor = &state->tensor[i];
        if (!tensor->optimizer) { /* whose memory is zero */
            const cvy_tensor logical = {tensor->shape, CVY_F64, CVY_FORMAT_PLAIN, false};
            double *value = make_initial_values(tensor->name, &tensor->shape);
            assert_int_equal(cvy_tensor_copy(&logical, value, &tensor->tensor, tensor->data), CVY_OK);
            cvy_free(value);
        }
    }
}

static void close_net(net *n)
{
    cvy_executor_destroy(&n->executor);
    cvy_plan_destroy(&n->plan);
    cvy_model_destroy(&n->model);
    json_decref(n->reference);
}

static float *make_spread(const char *name, int64_t count)
{
    float *value = cvy_calloc((size_t)count, sizeof *value);
    for (int64_t i = 0; i < count; i++) {
        value[i] = (float)spread(hash_name(name), i);
    }
    return value;
}

/* Every input one unit in the last place off, up or down at random. */
static void shake(float *x, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        x[i] = nextafterf(x[i], spread(hash_name("shake"), i) < 0 ? -2.0f : 2.0f);
    }
}

static cvy_executor_result run(const net *n, cvy_schedule_kind kind)
{
    int64_t samples = batch_of(n);
    int64_t classes = (int64_t)number(n->reference, "classes");
    cvy_shape input = n->model->layer[0].output; /* of one sample */
    int64_t values = n->model->layer[cvy_model_output(n->model)].output.extent[1];
    float *x = make_spread("input", samples * cvy_shape_elements(&input));
    float *target = make_spread("label", samples * values);
    if (n->shaken) {
        shake(x, samples * cvy_shape_elements(&input));
    }
    int32_t label[64];
    for (int32_t i = 0; i < samples; i++) {
        label[i] = classes ? i % (int32_t)classes : 0;
    }
    const cvy_executor_batch batch = {x, classes ? (const void *)label : target, samples};
    const cvy_run step = {.samples = samples, .loss_scale = 1.0 / (double)samples, .update = 1,
                          .learning_rate = number(n->reference, "learning_rate")};
    cvy_executor_result result;
    if (cvy_executor_run(n->executor, kind, &batch, &step, &result) != CVY_OK) {
        fail_msg("%s", cvy_error_message());
    }
    cvy_free(x);
    cvy_free(target);
    return result;
}

/* The output of an evaluation: the last tensor that is made, so its memory still holds it. */
static void compare_output(net *n, const char *key)
{
    (void)run(n, CVY_SCHEDULE_EVALUATE);
    int layer = cvy_model_output(n->model);
    int buffer = cvy_executor_find(n->executor, CVY_SCHEDULE_EVALUATE, CVY_CONTENT_OUTPUT, layer, -1);
    assert_true(buffer >= 0);
    const cvy_tensor *tensor = &n->plan->schedule[CVY_SCHEDULE_EVALUATE].buffer[buffer].tensor;
    double *value = copy_logical(tensor, cvy_executor_memory(n->executor, CVY_SCHEDULE_EVALUATE, buffer));
    compare(n, "elements", key, child(n->reference, key), value, cvy_shape_elements(&tensor->shape));
    cvy_free(value);
}

/* After one step from zero the first moment tells the gradient: v = g + wd w (SGD), m = (1 - beta1) g (AdamW). */
static void compare_gradient(net *n, const cvy_state_tensor *moment)
{
    const char *name = moment->name + strlen("momentum.");
    const cvy_optimizer *optimizer = &n->plan->options.optimizer;
    bool sgd = optimizer->kind == CVY_OPTIMIZER_SGD;
    int64_t count = cvy_shape_elements(&moment->shape);
    double *value = copy_logical(&moment->tensor, moment->data);
    double *weight = make_initial_values(name, &moment->shape);
    for (int64_t i = 0; i < count; i++) {
        value[i] = sgd ? value[i] - optimizer->params.weight_decay * weight[i]
                       : value[i] / (1.0 - optimizer->params.beta1);
    }
    compare(n, "the gradient", name, child(child(n->reference, "gradients"), name), value, count);
    cvy_free(value);
    cvy_free(weight);
}

static void compare_step(net *n)
{
    const cvy_state *state = cvy_executor_state(n->executor);
    double loss = number(n->reference, "loss");
    exact_loss = run(n, CVY_SCHEDULE_TRAIN).loss;
    note_difference(n, "the loss", "the step", fabs(exact_loss - loss) / loss);
    size_t parameters = 0, gradients = 0;
    for (int i = 0; i < state->count; i++) {
        const cvy_state_tensor *tensor = &state->tensor[i];
        if (strncmp(tensor->name, "momentum.", strlen("momentum.")) == 0) {
            compare_gradient(n, tensor);
            gradients++;
        } else if (!tensor->optimizer) {
            double *value = copy_logical(&tensor->tensor, tensor->data);
            compare(n, "the new value", tensor->name, child(child(n->reference, "state"), tensor->name), value,
                    cvy_shape_elements(&tensor->shape));
            cvy_free(value);
            parameters++;
        }
    }
    assert_int_equal(parameters, json_object_size(child(n->reference, "state"))); /* none of PyTorch's is missing */
    assert_int_equal(gradients, json_object_size(child(n->reference, "gradients")));
}

static int open_exact(void **state)
{
    (void)state;
    open_net(&exact, CVY_F64, 1e-10);
    return 0;
}

static int close_exact(void **state)
{
    (void)state;
    close_net(&exact);
    return 0;
}

static void test_a_step_is_that_of_pytorch(void **state)
{
    (void)state;
    compare_output(&exact, "initial_output");
    compare_step(&exact);
    compare_output(&exact, "final_output");
    print_message("%s in f64: at most %.1e from PyTorch's, %s\n", file, exact.worst, exact.worst_at);
}

/* ---- single precision ---- */

/* L2 norm of a - b; of a alone where b is NULL. */
static double norm(const double *a, const double *b, int64_t count)
{
    double squares = 0.0;
    for (int64_t i = 0; i < count; i++) {
        double difference = b ? a[i] - b[i] : a[i];
        squares += difference * difference;
    }
    return sqrt(squares);
}

/* One tensor of the double run, the fast run and the shaken fast run; the answer is difference over what is allowed. */
static double judge_tensor(const net *fast, const net *shaken, int i)
{
    const net *const runs[3] = {&exact, fast, shaken};
    double *value[3];
    const cvy_state_tensor *tensor = &cvy_executor_state(exact.executor)->tensor[i];
    int64_t count = cvy_shape_elements(&tensor->shape);
    for (int k = 0; k < 3; k++) {
        const cvy_state_tensor *its = &cvy_executor_state(runs[k]->executor)->tensor[i];
        assert_string_equal(its->name, tensor->name);
        value[k] = copy_logical(&its->tensor, its->data);
    }
    double size = norm(value[0], NULL, count);
    double difference = norm(value[1], value[0], count);
    double allowed = fmax(10.0 * norm(value[1], value[2], count), 1e-5 * size);
    for (int k = 0; k < 3; k++) {
        cvy_free(value[k]);
    }
    if (!(difference <= allowed)) {
        fail_msg("%s: %g of its norm from the double run's, allowed are %g", tensor->name, difference / size,
                 allowed / size);
    }
    return difference / allowed;
}

/* After the test before, which made the step in double. */
static void test_a_fast_step_differs_by_its_noise(void **state)
{
    (void)state;
    net fast, shaken;
    open_net(&fast, CVY_F32, 0.0);
    open_net(&shaken, CVY_F32, 0.0);
    shaken.shaken = true;
    double loss = run(&fast, CVY_SCHEDULE_TRAIN).loss;
    double noise = fabs(run(&shaken, CVY_SCHEDULE_TRAIN).loss - loss);
    assert_true(fabs(loss - exact_loss) <= fmax(10.0 * noise, 1e-5 * exact_loss));
    double worst = 0.0;
    for (int i = 0; i < cvy_executor_state(exact.executor)->count; i++) {
        worst = fmax(worst, judge_tensor(&fast, &shaken, i));
    }
    print_message("%s in f32: at most %.2f of what its noise allows\n", file, worst);
    close_net(&fast);
    close_net(&shaken);
}

int main(int arguments, char **argument)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_step_is_that_of_pytorch),
        cmocka_unit_test(test_a_fast_step_differs_by_its_noise),
    };
    if (arguments != 2) {
        print_error("usage: %s NET, a file of tests/reference without .json\n", argument[0]);
        return 2;
    }
    file = argument[1];
    return cmocka_run_group_tests(tests, open_exact, close_exact);
}
