/* A machine of round figures, and ops to price on it. */
#ifndef CVY_TESTS_ORACLE_COMPUTE_MACHINE_H
#define CVY_TESTS_ORACLE_COMPUTE_MACHINE_H

#include <math.h>
#include <string.h>

#include "folder.h"
#include "oracle/compute.h"

/* 1 TFLOP/s in f32, 8 in f16, 100 GB/s, 5 us a launch; @p more lines of its device. */
static inline cvy_machine *load_machine(const char *folder, const char *more)
{
    char text[2048];
    cvy_machine *machine = NULL;
    const char *path = test_path(folder, "machine.yaml");
    snprintf(text, sizeof text,
             "name: round\nsummary: s\ndevice:\n  name: d\n  kind: gpu\n  cores: 1\n  memory: 1 GB\n"
             "  memory-bandwidth: 100 GB/s\n  peak: {fp32: 1 TFLOP/s, fp16: 8 TFLOP/s}\n  launch: 5 us\n%s", more);
    assert_true(put_test_file(path, text, strlen(text)));
    assert_int_equal(cvy_machine_load(path, &machine), CVY_OK);
    return machine;
}

static inline cvy_compute *prepare(const cvy_machine *machine, cvy_precision precision)
{
    cvy_compute *compute = NULL;
    cvy_status status = cvy_compute_create(machine, precision, &compute);
    assert_string_equal(status == CVY_OK ? "" : cvy_error_message(), "");
    return compute;
}

static inline void fill_op(cvy_op *op, const cvy_tensor *x, int64_t filters)
{
    const cvy_signature *signature = cvy_op_signature(op->kind, op->pass);
    for (int i = 0; i < signature->places; i++) {
        cvy_tensor tensor;
        cvy_role role = signature->place[i].role;
        if (role != CVY_ROLE_B && role != CVY_ROLE_DB && !cvy_op_tells_relu(op->kind, op->pass, role)) {
            assert_int_equal(cvy_op_describe(op, x, filters, role, &tensor), CVY_OK);
            assert_int_equal(cvy_op_add(op, role, &tensor), CVY_OK);
        }
    }
}

/* x 8x64x56x56, 64 filters, a square kernel, padded to keep the size. */
static inline cvy_op make_convolution(cvy_op_pass pass, int64_t kernel, int64_t groups)
{
    cvy_tensor x = {.shape = CVY_SHAPE(8, 64, 56, 56), .dtype = CVY_F32};
    int64_t pad = kernel / 2;
    cvy_op op = {.kind = CVY_OP_CONVOLUTION, .pass = pass,
                 .params.window = {.window = {{1, kernel, kernel}, {1, 1, 1}, {1, 1, 1}, {0, pad, pad}, {0, pad, pad}},
                                   .groups = groups}};
    fill_op(&op, &x, 64);
    return op;
}

static inline cvy_op make_relu(void)
{
    cvy_tensor x = {.shape = CVY_SHAPE(8, 64, 56, 56), .dtype = CVY_F32};
    cvy_op op = {.kind = CVY_OP_RELU, .pass = CVY_PASS_FORWARD};
    assert_int_equal(cvy_op_add(&op, CVY_ROLE_X, &x), CVY_OK);
    assert_int_equal(cvy_op_add(&op, CVY_ROLE_Y, &x), CVY_OK);
    return op;
}

static inline void assert_near(double found, double expected)
{
    if (!(fabs(found - expected) <= 1e-9 * fabs(expected))) {
        fail_msg("found %.12g, expected %.12g", found, expected);
    }
}

/* A file of a machine is refused with words that begin behind its path. */
static inline void assert_refused(const char *folder, const char *more, const char *name, const char *text,
                                  const char *words)
{
    char expected[1024];
    cvy_compute *compute = NULL;
    cvy_machine *machine = load_machine(folder, more);
    const char *path = test_path(folder, name);
    assert_true(put_test_file(path, text, strlen(text)));
    assert_int_equal(cvy_compute_create(machine, CVY_PRECISION_FP32, &compute), CVY_ERR_INPUT);
    assert_null(compute);
    snprintf(expected, sizeof expected, "%s:%s", path, words);
    if (strncmp(cvy_error_message(), expected, strlen(expected)) != 0) {
        assert_string_equal(cvy_error_message(), expected);
    }
    cvy_machine_destroy(&machine);
}

/* Replace the first @p from in a right file. */
static inline void change(const char *right, const char *from, const char *to, char *text, size_t bytes)
{
    const char *at = strstr(right, from);
    assert_non_null(at);
    int length = snprintf(text, bytes, "%.*s%s%s", (int)(at - right), right, to, at + strlen(from));
    assert_true(length > 0 && (size_t)length < bytes);
}

#endif
