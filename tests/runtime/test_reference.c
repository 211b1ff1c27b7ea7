/*
 * One training step of a whole net, the argument, against PyTorch's: the outputs of evaluation before and after, the
 * loss, every gradient, every updated parameter and running statistic. tests/reference/README.md says how the values
 * were made.
 *
 * In double on `ref` all agree to 1e-10 of a tensor's largest element. In single precision normalisation over a few
 * positions and rectifiers near zero amplify rounding with depth, so the fastest backend is held to its own noise: that
 * run repeated with every input moved by one unit in the last place, as often as it takes to meet a decision that
 * rounding meets. The L2 difference of each tensor from the double run's is at most ten times that noise, or 1e-5.
 */
#include "runtime/reference_net.h"

/* The net of this program's argument in double; both tests share its step, which takes longest. */
static const char *file;
static net exact;
static double exact_loss;

/* A tensor as PyTorch has it, and the least that differences are measured by. */
typedef struct expectation {
    const char *what, *name;
    const json_t *tensor;
    double least_unit;
} expectation;

static void note_difference(net *n, const expectation *expected, double difference)
{
    if (!(difference <= n->worst)) { /* NaN counts */
        n->worst = difference;
        snprintf(n->worst_at, sizeof n->worst_at, "%s of %s", expected->what, expected->name);
    }
    if (!(difference <= n->tolerance)) {
        fail_msg("%s of %s: %g from PyTorch's, expected at most %g", expected->what, expected->name, difference,
                 n->tolerance);
    }
}

static double root_mean_square(const json_t *tensor)
{
    double count = 1.0;
    for (size_t i = 0; i < json_array_size(child(tensor, "shape")); i++) {
        count *= json_number_value(json_array_get(child(tensor, "shape"), i));
    }
    return number(tensor, "l2") / sqrt(count);
}

/* Compare elements 0, stride, 2 stride, … with the largest of them as the unit; then norm and mean of the whole. */
static void compare(net *n, const expectation *expected, const double *value, int64_t count)
{
    const json_t *sample = child(expected->tensor, "sample");
    int64_t samples = (int64_t)json_array_size(sample);
    int64_t stride = count / samples;
    double unit = fmax(root_mean_square(expected->tensor), expected->least_unit);
    double largest = unit, difference = 0, sum = 0, squares = 0;
    for (int64_t k = 0; k < samples; k++) {
        double reference = json_number_value(json_array_get(sample, (size_t)k));
        largest = fmax(largest, fabs(reference));
        difference = fmax(difference, fabs(value[k * stride] - reference));
    }
    for (int64_t i = 0; i < count; i++) {
        sum += value[i];
        squares += value[i] * value[i];
    }
    double norm_difference = fabs(sqrt(squares) - number(expected->tensor, "l2")) / sqrt((double)count);
    double mean_difference = fabs(sum / (double)count - number(expected->tensor, "mean"));
    note_difference(n, expected, difference / largest);
    note_difference(n, expected, norm_difference / unit);
    note_difference(n, expected, mean_difference / unit);
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
    const expectation expected = {"elements", key, child(n->reference, key), 0.0};
    compare(n, &expected, value, cvy_shape_elements(&tensor->shape));
    cvy_free(value);
}

/*
 * What a norm takes away again has a gradient of zero, and only rounding to compare: the shift of a norm whose
 * channels go through a 1x1 convolution into the next norm, as at the end of an inverted residual block. So a bias is
 * measured by no less than a thousandth of its layer's weights.
 */
static double find_least_unit(const json_t *gradients, const char *name)
{
    char weight[256];
    size_t stem = strlen(name) - strlen("bias");
    if (!ends_with(name, ".bias")) {
        return 0.0;
    }
    snprintf(weight, sizeof weight, "%.*sweight", (int)stem, name);
    return 1e-3 * root_mean_square(child(gradients, weight));
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
    const json_t *gradients = child(n->reference, "gradients");
    const expectation expected = {"the gradient", name, child(gradients, name), find_least_unit(gradients, name)};
    compare(n, &expected, value, count);
    cvy_free(value);
    cvy_free(weight);
}

static void compare_step(net *n)
{
    const cvy_state *state = cvy_executor_state(n->executor);
    double loss = number(n->reference, "loss");
    exact_loss = run(n, CVY_SCHEDULE_TRAIN).loss;
    const expectation expected_loss = {"the loss", "the step", NULL, 0.0};
    note_difference(n, &expected_loss, fabs(exact_loss - loss) / loss);
    size_t parameters = 0, gradients = 0;
    for (int i = 0; i < state->count; i++) {
        const cvy_state_tensor *tensor = &state->tensor[i];
        if (strncmp(tensor->name, "momentum.", strlen("momentum.")) == 0) {
            compare_gradient(n, tensor);
            gradients++;
        } else if (!tensor->optimizer) {
            double *value = copy_logical(&tensor->tensor, tensor->data);
            const expectation expected = {"the new value", tensor->name,
                                          child(child(n->reference, "state"), tensor->name), 0.0};
            compare(n, &expected, value, cvy_shape_elements(&tensor->shape));
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
    open_net(&exact, file, CVY_F64, 1e-10);
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

/* Noise is the largest of so many shakes at most: where few decisions are near, one may meet none of them. */
enum { SHAKES = 8 };

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

/* The same of two tensors of equal plans as they lie, whose padding is zero. */
static double distance(const cvy_state_tensor *a, const cvy_state_tensor *b)
{
    const float *x = a->data, *y = b->data;
    double squares = 0.0;
    for (int64_t i = 0; i < cvy_tensor_elements(&a->tensor); i++) {
        double difference = (double)x[i] - (double)y[i];
        squares += difference * difference;
    }
    return sqrt(squares);
}

/* What the weights were before the step; optimizer state was zero, and is NULL here. */
static void **save_weights(const net *n)
{
    const cvy_state *state = cvy_executor_state(n->executor);
    void **saved = cvy_calloc((size_t)state->count, sizeof *saved);
    assert_non_null(saved);
    for (int i = 0; i < state->count; i++) {
        size_t bytes = (size_t)cvy_tensor_bytes(&state->tensor[i].tensor);
        saved[i] = state->tensor[i].optimizer ? NULL : cvy_calloc(bytes, 1);
        if (saved[i]) {
            memcpy(saved[i], state->tensor[i].data, bytes);
        }
    }
    return saved;
}

static void restore_weights(const net *n, void *const *saved)
{
    const cvy_state *state = cvy_executor_state(n->executor);
    for (int i = 0; i < state->count; i++) {
        size_t bytes = (size_t)cvy_tensor_bytes(&state->tensor[i].tensor);
        if (saved[i]) {
            memcpy(state->tensor[i].data, saved[i], bytes);
        } else {
            memset(state->tensor[i].data, 0, bytes);
        }
    }
}

/* Difference of the i-th tensors of the double run and the fast run over what noise, raised by a shake, allows. */
static double judge_tensor(const net *fast, const net *shaken, int i, double *noise)
{
    const cvy_state_tensor *expected = &cvy_executor_state(exact.executor)->tensor[i];
    const cvy_state_tensor *found = &cvy_executor_state(fast->executor)->tensor[i];
    const cvy_state_tensor *moved = &cvy_executor_state(shaken->executor)->tensor[i];
    int64_t count = cvy_shape_elements(&expected->shape);
    assert_string_equal(found->name, expected->name);
    assert_string_equal(moved->name, expected->name);
    double *a = copy_logical(&expected->tensor, expected->data);
    double *b = copy_logical(&found->tensor, found->data);
    *noise = fmax(*noise, distance(found, moved));
    double share = norm(b, a, count) / fmax(10.0 * *noise, 1e-5 * norm(a, NULL, count));
    cvy_free(a);
    cvy_free(b);
    return share;
}

/* The largest share over all tensors after one more shake, and where it is. @p noise has an entry a tensor. */
static double judge_shake(const net *fast, const net *shaken, double *noise, const char **where_out)
{
    const cvy_state *state = cvy_executor_state(fast->executor);
    double worst = 0.0;
    for (int i = 0; i < state->count; i++) {
        double share = judge_tensor(fast, shaken, i, &noise[i]);
        if (!(share <= worst)) { /* NaN counts */
            worst = share;
            *where_out = state->tensor[i].name;
        }
    }
    return worst;
}

/* After the test before, which made the step in double. */
static void test_a_fast_step_differs_by_its_noise(void **state)
{
    (void)state;
    net fast, shaken;
    const char *where = "";
    open_net(&fast, file, CVY_F32, 0.0);
    open_net(&shaken, file, CVY_F32, 0.0);
    void **saved = save_weights(&shaken);
    int tensors = cvy_executor_state(fast.executor)->count;
    double *noise = cvy_calloc((size_t)tensors, sizeof *noise);
    double loss = run(&fast, CVY_SCHEDULE_TRAIN).loss, loss_noise = 0.0, worst = INFINITY;
    for (int k = 1; k <= SHAKES && !(worst <= 1.0); k++) {
        restore_weights(&shaken, saved);
        shaken.shake = k;
        loss_noise = fmax(loss_noise, fabs(run(&shaken, CVY_SCHEDULE_TRAIN).loss - loss));
        double loss_share = fabs(loss - exact_loss) / fmax(10.0 * loss_noise, 1e-5 * exact_loss);
        worst = fmax(loss_share, judge_shake(&fast, &shaken, noise, &where));
    }
    if (!(worst <= 1.0)) {
        fail_msg("%s is %g times as far from the double run's as its noise allows", where, worst);
    }
    print_message("%s in f32: at most %.2f of what its noise allows, in %s\n", file, worst, where);
    for (int i = 0; i < tensors; i++) {
        cvy_free(saved[i]);
    }
    cvy_free(saved);
    cvy_free(noise);
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
