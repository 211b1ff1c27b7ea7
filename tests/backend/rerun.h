/*
 * One kernel run twice on the same memory, what it writes and its scratch poisoned before, against the reference in
 * double. The second run is what a training does: a library that prepares memory when it first sees an address cannot
 * hide there.
 */
#ifndef CVY_TESTS_BACKEND_RERUN_H
#define CVY_TESTS_BACKEND_RERUN_H

#include "backend/support.h"

extern const cvy_backend cvy_backend_onednn;

static const double TOLERANCE = 1e-4; /* f32 against double */

static inline cvy_status run_twice(const cvy_op *op, void *const *data, const cvy_run *run)
{
    cvy_kernel *kernel = NULL;
    cvy_arena scratch = {0};
    CVY_TRY(cvy_backend_onednn.create(op, &kernel));
    assert_int_equal(cvy_arena_create(cvy_kernel_scratch_bytes(kernel), &scratch), CVY_OK);
    memset(scratch.base, 0xFF, cvy_kernel_scratch_bytes(kernel));
    cvy_status status = cvy_kernel_run(kernel, data, scratch.base, run);
    for (int i = 0; i < op->operands; i++) {
        if (op->operand[i].access == CVY_ACCESS_WRITE) {
            fill_operand(op, i, data[i]);
        }
    }
    memset(scratch.base, 0xFF, cvy_kernel_scratch_bytes(kernel));
    if (status == CVY_OK) {
        status = cvy_kernel_run(kernel, data, scratch.base, run);
    }
    cvy_arena_destroy(&scratch);
    cvy_kernel_destroy(&kernel);
    return status;
}

static inline cvy_status differ_when_rerun(const cvy_op *op, const cvy_run *run, double *difference_out)
{
    cvy_op reference = make_reference_op(op);
    test_operands found = create_operands(op);
    test_operands expected = take_operands(&reference);
    cvy_status status = run_twice(op, found.data, run);
    if (status == CVY_OK) {
        for (int i = 0; i < op->operands; i++) {
            if (op->operand[i].access == CVY_ACCESS_READ) {
                assert_int_equal(cvy_tensor_copy(&op->operand[i].tensor, found.data[i], &reference.operand[i].tensor,
                                                 expected.data[i]),
                                 CVY_OK);
            } else {
                fill_operand(&reference, i, expected.data[i]);
            }
        }
        assert_int_equal(run_op(&cvy_backend_ref, &reference, expected.data, run), CVY_OK);
        *difference_out = compare_written(op, &found, &reference, &expected);
    }
    destroy_operands(&found);
    destroy_operands(&expected);
    return status;
}

#endif
