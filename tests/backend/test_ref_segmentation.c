/*
 * Losses of a class for each position, by hand. One sample of two positions and two classes, x = ln 3 or 0, so that
 * p is 3/4 1/4 at the first and 1/4 3/4 at the second; both labels are class 0, and the first alone is found.
 */
#include "backend/support.h"

enum { CLASSES = 2, POSITIONS = 2 };

static const double scale = 1.0 / 8.0; /* make_run()'s */

static void require_values(const double *found, const double *expected, int count)
{
    for (int i = 0; i < count; i++) {
        if (!(fabs(found[i] - expected[i]) < 1e-15)) {
            fail_msg("element %d is %.17g, expected %.17g", i, found[i], expected[i]);
        }
    }
}

/* Forward, inference and backward of a loss; the loss is the same with and without what backward needs. */
static void require_loss(const cvy_op *kind, double loss_expected, const double *dx_expected)
{
    test_shape shape = {.name = "", .op = *kind, .x = CVY_SHAPE(1, CLASSES, 1, POSITIONS)};
    double x[] = {log(3), 0, 0, log(3)}, p[4], overlap[4], dx[4], loss[2];
    int32_t label[] = {0, 0};
    bool dice = kind->kind == CVY_OP_SOFT_DICE;
    cvy_run run = make_run(&shape);
    cvy_op op;
    assert_true(make_op(&shape, CVY_PASS_INFERENCE, CVY_F64, &op));
    assert_int_equal(run_op(&cvy_backend_ref, &op, (void *[]){x, label, loss}, &run), CVY_OK);
    require_values(loss, (double[]){scale * loss_expected, 1}, 2);
    assert_true(make_op(&shape, CVY_PASS_FORWARD, CVY_F64, &op));
    void *forward[] = {x, label, p, dice ? overlap : loss, loss};
    assert_int_equal(run_op(&cvy_backend_ref, &op, forward, &run), CVY_OK);
    require_values(loss, (double[]){scale * loss_expected, 1}, 2);
    require_values(p, (double[]){0.75, 0.25, 0.25, 0.75}, 4);
    if (dice) {
        require_values(overlap, (double[]){2, 3, 0, 1}, 4);
    }
    assert_true(make_op(&shape, CVY_PASS_BACKWARD_DATA, CVY_F64, &op));
    void *backward[] = {p, label, dice ? overlap : dx, dx};
    assert_int_equal(run_op(&cvy_backend_ref, &op, backward, &run), CVY_OK);
    require_values(dx, dx_expected, 4);
    label[1] = 2;
    assert_int_equal(run_op(&cvy_backend_ref, &op, backward, &run), CVY_OK);
    assert_true(make_op(&shape, CVY_PASS_FORWARD, CVY_F64, &op));
    assert_int_equal(run_op(&cvy_backend_ref, &op, forward, &run), CVY_ERR_DATA);
}

/* The mean of -log 3/4 and -log 1/4; dx is (p - q) / 2. */
static void test_cross_entropy_by_hand(void **state)
{
    (void)state;
    static const double dx[] = {scale * -0.125, scale * -0.375, scale * 0.125, scale * 0.375};
    require_loss(&(cvy_op){.kind = CVY_OP_SOFTMAX_CROSS_ENTROPY}, (log(4.0 / 3.0) + log(4.0)) / 2.0, dx);
}

/*
 * Class 0: a = 2 (3/4 + 1/4), b = 1 + 2; class 1: a = 0, b = 1 + 0. With epsilon 1 the fractions are 3/4 and 1/2, the
 * loss (1/4 + 1/2) / 2. r = (3/4 - 2) / 8 = -20/128 for class 0, (1/2) / 4 = 16/128 for class 1; sum of p r = -11/128
 * and 7/128; dx = 3/4 (-20 + 11) / 128 = -27/512, 1/4 (16 + 11) / 128 = 27/512, and the same at the second position.
 */
static void test_dice_by_hand(void **state)
{
    (void)state;
    static const double dx[] = {scale * -27 / 512, scale * -27 / 512, scale * 27 / 512, scale * 27 / 512};
    require_loss(&(cvy_op)DICE(1.0), 0.375, dx);
}

/* One sample of a configuration alone: its loss. */
static double find_loss(const test_shape *shape, const test_operands *whole, int64_t sample, int64_t samples)
{
    test_shape part = *shape;
    cvy_run run = make_run(shape);
    cvy_op op;
    double loss[2];
    part.x.extent[0] = run.samples = samples;
    assert_true(make_op(&part, CVY_PASS_INFERENCE, CVY_F64, &op));
    int64_t scores = cvy_shape_elements(&op.operand[0].tensor.shape) / samples;
    int64_t labels = cvy_shape_elements(&op.operand[1].tensor.shape) / samples;
    void *data[] = {(double *)whole->data[0] + sample * scores, (int32_t *)whole->data[1] + sample * labels, loss};
    assert_int_equal(run_op(&cvy_backend_ref, &op, data, &run), CVY_OK);
    return loss[0];
}

/* However a batch is cut, the parts add up to the same loss: nothing is summed over samples but losses. */
static void test_a_batch_is_the_sum_of_its_samples(void **state)
{
    (void)state;
    static const char *const names[] = {"cross-entropy of voxels", "smoothed cross-entropy of voxels", "dice of pixels",
                                        "dice of voxels", "dice of one label a sample"};
    for (int i = 0; i < 5; i++) {
        const test_shape *shape = find_shape(names[i]);
        int64_t samples = shape->x.extent[0];
        double sum = 0;
        cvy_op op;
        assert_true(make_op(shape, CVY_PASS_INFERENCE, CVY_F64, &op));
        test_operands operands = create_operands(&op);
        for (int64_t n = 0; n < samples; n++) {
            sum += find_loss(shape, &operands, n, 1);
        }
        double whole = find_loss(shape, &operands, 0, samples);
        assert_true(whole > 0.01 && fabs(sum - whole) < 1e-14);
        destroy_operands(&operands);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cross_entropy_by_hand),
        cmocka_unit_test(test_dice_by_hand),
        cmocka_unit_test(test_a_batch_is_the_sum_of_its_samples),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
