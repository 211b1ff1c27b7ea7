/*
 * Activations, multiply and label smoothing of the reference by numbers from elsewhere: those of PyTorch 1.13 in double
 * (torch.nn.functional, all digits that it prints), and products by hand.
 */
#include "backend/support.h"

enum { POINTS = 9 };

/* The kinks of all, and both sides of each. */
static const double points[POINTS] = {-7.0, -3.0, -2.5, -1.0, 0.0, 0.5, 3.0, 6.0, 8.0};

/* y, and the gradient of the sum of y. */
typedef struct expectation {
    cvy_op op;
    double y[POINTS], dx[POINTS];
} expectation;

static const expectation activations[] = {
    {{.kind = CVY_OP_RELU6}, {0, 0, 0, 0, 0, 0.5, 3, 6, 6}, {0, 0, 0, 0, 0, 1, 1, 0, 0}},
    {LEAKY_RELU(0.01),
     {-0.07, -0.03, -0.025, -0.01, 0, 0.5, 3, 6, 8},
     {0.01, 0.01, 0.01, 0.01, 0.01, 1, 1, 1, 1}},
    {{.kind = CVY_OP_SIGMOID},
     {0.0009110511944006454, 0.04742587317756678, 0.07585818002124355, 0.2689414213699951, 0.5, 0.6224593312018546,
      0.9525741268224334, 0.9975273768433653, 0.9996646498695336},
     {0.0009102211801218265, 0.04517665973091214, 0.07010371654510815, 0.19661193324148185, 0.25, 0.2350037122015945,
      0.045176659730912, 0.002466509291359931, 0.00033523767075636815}},
    {{.kind = CVY_OP_TANH},
     {-0.9999983369439447, -0.9950547536867305, -0.9866142981514303, -0.7615941559557649, 0, 0.46211715726000974,
      0.9950547536867305, 0.9999877116507956, 0.9999997749296758},
     {3.3261093448688367e-06, 0.009866037165440166, 0.02659222668316057, 0.41997434161402614, 1, 0.7864477329659274,
      0.009866037165440166, 2.4576547405302974e-05, 4.5014059765485253e-07}},
    {{.kind = CVY_OP_SILU},
     {-0.006377358360804518, -0.14227761953270035, -0.18964545005310887, -0.2689414213699951, 0, 0.3112296656009273,
      2.8577223804672998, 5.985164261060192, 7.997317198956269},
     {-0.005460497066452141, -0.08810410601516962, -0.09940111134152683, 0.07232948812851325, 0.5, 0.7399611873026519,
      1.0881041060151693, 1.0123264325915249, 1.0023465512355845}},
    {{.kind = CVY_OP_HARD_SWISH},
     {0, 0, -0.20833333333333334, -0.3333333333333333, 0, 0.2916666666666667, 3, 6, 8},
     {0, -0.5, -0.33333333333333337, 0.16666666666666669, 0.5, 0.6666666666666666, 1, 1, 1}},
};
enum { ACTIVATIONS = sizeof activations / sizeof activations[0] };

/* Run a pass in double, plain, with operands of the caller's. */
static void run_pass(const cvy_op *kind, cvy_op_pass pass, cvy_shape x, void *const *data)
{
    test_shape shape = {.name = "", .op = *kind, .x = x};
    cvy_run run = make_run(&shape);
    cvy_op op;
    assert_true(make_op(&shape, pass, CVY_F64, &op));
    assert_int_equal(run_op(&cvy_backend_ref, &op, data, &run), CVY_OK);
}

static void require_values(const char *what, const double *found, const double *expected, int count)
{
    for (int i = 0; i < count; i++) {
        if (!(fabs(found[i] - expected[i]) < 1e-15)) {
            fail_msg("%s: element %d is %.17g, expected %.17g", what, i, found[i], expected[i]);
        }
    }
}

static void test_activations_are_those_of_pytorch(void **state)
{
    (void)state;
    for (int i = 0; i < ACTIVATIONS; i++) {
        const expectation *known = &activations[i];
        const char *name = cvy_op_kind_name(known->op.kind);
        double x[POINTS], y[POINTS], dy[POINTS], dx[POINTS];
        memcpy(x, points, sizeof x);
        run_pass(&known->op, CVY_PASS_FORWARD, CVY_SHAPE(1, POINTS), (void *[]){x, y});
        require_values(name, y, known->y, POINTS);
        for (int k = 0; k < POINTS; k++) {
            dy[k] = 1.0;
        }
        bool by_y = cvy_op_signature(known->op.kind, CVY_PASS_BACKWARD_DATA)->place[0].role == CVY_ROLE_Y;
        run_pass(&known->op, CVY_PASS_BACKWARD_DATA, CVY_SHAPE(1, POINTS), (void *[]){by_y ? y : x, dy, dx});
        require_values(name, dx, known->dx, POINTS);
    }
}

static void test_activations_keep_nan(void **state)
{
    (void)state;
    for (int i = 0; i < ACTIVATIONS; i++) {
        double x[1] = {NAN}, y[1] = {0};
        run_pass(&activations[i].op, CVY_PASS_FORWARD, CVY_SHAPE(1, 1), (void *[]){x, y});
        assert_true(isnan(y[0]));
    }
}

/* Two channels of three positions, factors 10 and -1. dx1: 1 1 + 2 2 + 3 3 = 14, 4 1 + 5 0 + 6 1 = 10. */
static void test_multiply_by_hand(void **state)
{
    (void)state;
    const cvy_op multiply = {.kind = CVY_OP_MULTIPLY};
    double x[6] = {1, 2, 3, 4, 5, 6}, x1[2] = {10, -1}, y[6], dx[6], dx1[2];
    double dy[6] = {1, 2, 3, 1, 0, 1};
    run_pass(&multiply, CVY_PASS_FORWARD, CVY_SHAPE(1, 2, 1, 3), (void *[]){x, x1, y});
    require_values("y", y, (const double[]){10, 20, 30, -4, -5, -6}, 6);
    run_pass(&multiply, CVY_PASS_BACKWARD, CVY_SHAPE(1, 2, 1, 3), (void *[]){x, x1, dy, dx, dx1});
    require_values("dx", dx, (const double[]){10, 20, 30, -1, 0, -1}, 6);
    require_values("dx1", dx1, (const double[]){14, 10}, 2);
}

/* One position: both inputs and the output may be one tensor, and then y = x^2. */
static void test_multiply_of_a_tensor_with_itself(void **state)
{
    (void)state;
    const cvy_op multiply = {.kind = CVY_OP_MULTIPLY};
    double x[4] = {2, -3, 0.5, 4};
    run_pass(&multiply, CVY_PASS_FORWARD, CVY_SHAPE(2, 2, 1, 1), (void *[]){x, x, x});
    require_values("y", x, (const double[]){4, 9, 0.25, 16}, 4);
}

/* torch.nn.functional.cross_entropy(x, [2, 3], label_smoothing=0.1): make_run() scales with 1/8, PyTorch with 1/2. */
static void test_label_smoothing_is_that_of_pytorch(void **state)
{
    (void)state;
    const cvy_op smoothed = SMOOTHED(0.1);
    double x[8] = {0.5, -1.25, 2.0, 0.0, 3.0, 1.0, -2.0, 0.25}, p[8], dx[8], loss[2], again[2];
    int32_t label[2] = {2, 3};
    run_pass(&smoothed, CVY_PASS_FORWARD, CVY_SHAPE(2, 4), (void *[]){x, label, p, loss});
    assert_true(fabs(4.0 * loss[0] - 1.7046543079592666) < 1e-15 && loss[1] == 1.0);
    run_pass(&smoothed, CVY_PASS_INFERENCE, CVY_SHAPE(2, 4), (void *[]){x, label, again});
    assert_memory_equal(loss, again, sizeof loss);
    run_pass(&smoothed, CVY_PASS_BACKWARD_DATA, CVY_SHAPE(2, 4), (void *[]){p, label, dx});
    for (int i = 0; i < 8; i++) {
        dx[i] *= 4.0;
    }
    require_values("dx", dx,
                   (const double[]){0.06734677501605413, 0.0013752889663402046, -0.10465158110880785,
                                    0.03592951712641353, 0.4020933229645656, 0.04360910479141794,
                                    -0.009706492163690034, -0.43599593559229355},
                   8);
}

/* A class that cannot be costs nothing unless smoothing asks for it. */
static void test_a_score_of_minus_infinity(void **state)
{
    (void)state;
    for (int smooth = 0; smooth < 2; smooth++) {
        const cvy_op op = SMOOTHED(0.25 * smooth);
        double x[2] = {0.0, -INFINITY}, p[2], loss[2];
        int32_t label[1] = {0};
        run_pass(&op, CVY_PASS_FORWARD, CVY_SHAPE(1, 2), (void *[]){x, label, p, loss});
        assert_true(smooth ? isinf(loss[0]) : loss[0] == 0.0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_activations_are_those_of_pytorch),
        cmocka_unit_test(test_activations_keep_nan),
        cmocka_unit_test(test_multiply_by_hand),
        cmocka_unit_test(test_multiply_of_a_tensor_with_itself),
        cmocka_unit_test(test_label_smoothing_is_that_of_pytorch),
        cmocka_unit_test(test_a_score_of_minus_infinity),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
