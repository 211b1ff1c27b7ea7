/* A law of kernels of our own: an op gives the same bits whatever the number of threads. */
#ifndef CVY_TESTS_BACKEND_ANY_THREADS_H
#define CVY_TESTS_BACKEND_ANY_THREADS_H

#include <omp.h>

#include "backend/support.h"

static inline void assert_same_bits_on_any_threads(const cvy_backend *backend, const cvy_op *op, const cvy_run *run)
{
    int most = omp_get_max_threads();
    test_operands first = create_operands(op), again = create_operands(op);
    omp_set_num_threads(1);
    assert_int_equal(run_op(backend, op, first.data, run), CVY_OK);
    for (int threads = 2; threads < 4; threads++) {
        omp_set_num_threads(threads);
        assert_int_equal(run_op(backend, op, again.data, run), CVY_OK);
        for (int k = 0; k < op->operands; k++) {
            assert_memory_equal(first.data[k], again.data[k], (size_t)cvy_tensor_bytes(&op->operand[k].tensor));
        }
    }
    omp_set_num_threads(most);
    destroy_operands(&first);
    destroy_operands(&again);
}

#endif
