/*
 * The gradients of the reference, in double, against its own forward pass.
 *
 * Central differences: with L = sum of r y for a fixed random r (a loss is its own L), dL/dx_i is
 * (L(x_i + h) - L(x_i - h)) / 2h up to h^2; with h = 1e-5 and numbers of order 1 both that and the rounding of L stay
 * far below 1e-6 of the largest gradient.
 *
 * Duality, where y is linear in x (for a fixed mask, a fixed winner): sum of r y = sum of dx x. It covers every element
 * at once, differences only as many as time allows.
 */
#include "backend/support.h"

enum { MAX_PROBES = 32 };

/* One configuration: a forward op, its gradients, and one set of tensors for all of them, by role. */
typedef struct experiment {
    cvy_op forward;
    cvy_run run;
    cvy_kernel *kernel; /**< of the forward op */
    void *tensor[CVY_ROLE_COUNT];
    double *made; /**< what a relu before the op makes of x, where the op's gradient is the relu's too; else NULL */
} experiment;

static const cvy_backend_chain reference = {1, {&cvy_backend_ref}};

/* Give a role memory, filled as the op wants it, unless it has some. */
static void take_tensors(experiment *trial, const cvy_op *op)
{
    for (int i = 0; i < op->operands; i++) {
        void **tensor = &trial->tensor[op->operand[i].role];
        if (!*tensor) {
            *tensor = cvy_calloc(1, (size_t)cvy_tensor_bytes(&op->operand[i].tensor));
            assert_non_null(*tensor);
            fill_operand(op, i, *tensor);
        }
    }
}

static void run_kernel(const experiment *trial, cvy_kernel *kernel)
{
    void *data[CVY_MAX_OPERANDS];
    for (int i = 0; i < kernel->op.operands; i++) {
        cvy_role role = kernel->op.operand[i].role;
        int64_t count = cvy_shape_elements(&kernel->op.operand[i].tensor.shape);
        data[i] = trial->tensor[role];
        if (role == CVY_ROLE_X && trial->made) {
            for (int64_t e = 0; e < count; e++) {
                trial->made[e] = fmax(((const double *)data[i])[e], 0.0);
            }
            data[i] = trial->made;
        }
    }
    assert_int_equal(cvy_kernel_run(kernel, data, NULL, &trial->run), CVY_OK);
}

/* A relu before the op, and none behind: its gradient is the op's, too. */
static bool follows_relu(const test_shape *shape)
{
    return shape->relu && !cvy_op_takes_relu(shape->op.kind, CVY_PASS_FORWARD) &&
           cvy_op_takes_relu(shape->op.kind, CVY_PASS_BACKWARD_DATA);
}

/*
 * The gradients of products and sums know no relu: theirs is a pass of its own, before them. L is the same with r 0
 * where y is.
 */
static void pass_relu(experiment *trial)
{
    const double *y = trial->tensor[CVY_ROLE_Y];
    double *r = trial->tensor[CVY_ROLE_DY];
    cvy_op_kind kind = trial->forward.kind;
    bool apart = trial->forward.relu && (cvy_op_has_weights(kind) || kind == CVY_OP_ADD);
    int64_t count = apart ? cvy_shape_elements(&cvy_op_find(&trial->forward, CVY_ROLE_Y)->tensor.shape) : 0;
    for (int64_t i = 0; i < count; i++) {
        r[i] = y[i] > 0.0 ? r[i] : 0.0;
    }
}

static void start_experiment(experiment *trial, const test_shape *shape)
{
    *trial = (experiment){.run = make_run(shape)};
    assert_true(make_op(shape, CVY_PASS_FORWARD, CVY_F64, &trial->forward));
    take_tensors(trial, &trial->forward);
    if (follows_relu(shape)) {
        trial->made = cvy_calloc((size_t)cvy_shape_elements(&shape->x), sizeof(double));
        assert_non_null(trial->made);
    }
    assert_int_equal(cvy_kernel_create(&reference, &trial->forward, &trial->kernel), CVY_OK);
    run_kernel(trial, trial->kernel);
    const cvy_operand *y = cvy_op_find(&trial->forward, CVY_ROLE_Y);
    if (y) { /* r */
        trial->tensor[CVY_ROLE_DY] = cvy_calloc(1, (size_t)cvy_tensor_bytes(&y->tensor));
        assert_non_null(trial->tensor[CVY_ROLE_DY]);
        fill(&y->tensor, trial->tensor[CVY_ROLE_DY], CVY_ROLE_DY, -1.0, 1.0);
        pass_relu(trial);
    }
}

static void end_experiment(experiment *trial)
{
    cvy_kernel_destroy(&trial->kernel);
    cvy_free(trial->made);
    for (int role = 0; role < CVY_ROLE_COUNT; role++) {
        cvy_free(trial->tensor[role]);
    }
}

/* Run a gradient pass on the tensors of the forward one. */
static void run_gradient(experiment *trial, const test_shape *shape, cvy_op_pass pass)
{
    cvy_op op;
    cvy_kernel *kernel = NULL;
    if (make_op(shape, pass, CVY_F64, &op)) {
        take_tensors(trial, &op);
        assert_int_equal(cvy_kernel_create(&reference, &op, &kernel), CVY_OK);
        run_kernel(trial, kernel);
        cvy_kernel_destroy(&kernel);
    }
}

static double dot(const double *a, const double *b, int64_t count)
{
    double sum = 0.0;
    for (int64_t i = 0; i < count; i++) {
        sum += a[i] * b[i];
    }
    return sum;
}

static int64_t count_elements(const experiment *trial, cvy_role role)
{
    const cvy_operand *operand = cvy_op_find(&trial->forward, role);
    return operand ? cvy_shape_elements(&operand->tensor.shape) : 0;
}

static double objective(const experiment *trial)
{
    run_kernel(trial, trial->kernel);
    if (trial->tensor[CVY_ROLE_LOSS]) {
        return ((const double *)trial->tensor[CVY_ROLE_LOSS])[0];
    }
    return dot(trial->tensor[CVY_ROLE_Y], trial->tensor[CVY_ROLE_DY], count_elements(trial, CVY_ROLE_Y));
}

/* Largest difference of a gradient from central differences, over its largest element. */
static double differ_from_differences(const experiment *trial, cvy_role value, cvy_role gradient)
{
    const double step = 1e-5;
    double *x = trial->tensor[value];
    const double *dx = trial->tensor[gradient];
    int64_t count = count_elements(trial, value);
    int64_t probes = count < MAX_PROBES ? count : MAX_PROBES;
    double difference = 0.0;
    double largest = 0.0;
    for (int64_t i = 0; i < count; i++) {
        largest = fmax(largest, fabs(dx[i]));
    }
    for (int64_t probe = 0; probe < probes; probe++) {
        int64_t i = probe * count / probes;
        double kept = x[i];
        x[i] = kept + step;
        double above = objective(trial);
        x[i] = kept - step;
        double below = objective(trial);
        x[i] = kept;
        double found = fabs((above - below) / (2.0 * step) - dx[i]);
        difference = isnan(found) ? INFINITY : fmax(difference, found);
    }
    objective(trial);
    return largest > 0.0 ? difference / largest : difference;
}

static void require_small(double difference, double limit, const char *name, cvy_role role)
{
    if (!(difference <= limit)) {
        fail_msg("%s: %s is off by %g, at most %g", name, cvy_role_name(role), difference, limit);
    }
}

static const cvy_role gradients[][2] = {
    {CVY_ROLE_X, CVY_ROLE_DX}, {CVY_ROLE_W, CVY_ROLE_DW}, {CVY_ROLE_X1, CVY_ROLE_DX1}, {CVY_ROLE_B, CVY_ROLE_DB}};

static void test_gradients_equal_central_differences(void **state)
{
    int compared = 0;
    (void)state;
    for (int i = 0; i < test_shape_count; i++) {
        const test_shape *shape = &test_shapes[i];
        experiment trial;
        bool in_parts = shape->op.kind == CVY_OP_RELU && shape->optional; /* test_ref has the two gradients */
        if (in_parts || shape->op.kind == CVY_OP_REORDER || !cvy_op_signature(shape->op.kind, CVY_PASS_FORWARD)) {
            continue;
        }
        start_experiment(&trial, shape);
        run_gradient(&trial, shape, CVY_PASS_BACKWARD_DATA);
        run_gradient(&trial, shape, CVY_PASS_BACKWARD_WEIGHTS);
        run_gradient(&trial, shape, CVY_PASS_BACKWARD);
        for (int j = 0; j < 4; j++) {
            if (trial.tensor[gradients[j][1]]) {
                double difference = differ_from_differences(&trial, gradients[j][0], gradients[j][1]);
                require_small(difference, 1e-6, shape->name, gradients[j][1]);
                compared++;
            }
        }
        end_experiment(&trial);
    }
    assert_true(compared > 100);
}

/* Whether y is linear in x (the bias apart) for fixed masks and winners. */
static bool is_linear(cvy_op_kind kind)
{
    return cvy_op_has_weights(kind) || kind == CVY_OP_POOL_MAX ||
           kind == CVY_OP_POOL_AVERAGE || kind == CVY_OP_POOL_GLOBAL || kind == CVY_OP_POOL_ADAPTIVE ||
           kind == CVY_OP_RELU || kind == CVY_OP_DROPOUT ||
           kind == CVY_OP_LEAKY_RELU || kind == CVY_OP_MULTIPLY || kind == CVY_OP_STOCHASTIC_DEPTH;
}

static void test_gradients_are_dual_to_forward(void **state)
{
    (void)state;
    for (int i = 0; i < test_shape_count; i++) {
        const test_shape *shape = &test_shapes[i];
        experiment trial;
        if (!is_linear(shape->op.kind) || (shape->op.kind == CVY_OP_RELU && shape->optional)) {
            continue;
        }
        start_experiment(&trial, shape);
        run_gradient(&trial, shape, CVY_PASS_BACKWARD_DATA);
        run_gradient(&trial, shape, CVY_PASS_BACKWARD_WEIGHTS);
        run_gradient(&trial, shape, CVY_PASS_BACKWARD);
        double expected = objective(&trial);
        if (trial.tensor[CVY_ROLE_DB]) {
            expected -= dot(trial.tensor[CVY_ROLE_DB], trial.tensor[CVY_ROLE_B], count_elements(&trial, CVY_ROLE_B));
        }
        double scale = sqrt((double)count_elements(&trial, CVY_ROLE_Y));
        for (int j = 0; j < 3; j++) { /* y is linear in the weights and in x1 as well */
            if (trial.tensor[gradients[j][1]]) {
                double found = dot(trial.tensor[gradients[j][1]], trial.tensor[gradients[j][0]],
                                   count_elements(&trial, gradients[j][0]));
                require_small(fabs(found - expected) / scale, 1e-12, shape->name, gradients[j][1]);
            }
        }
        end_experiment(&trial);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradients_equal_central_differences),
        cmocka_unit_test(test_gradients_are_dual_to_forward),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
