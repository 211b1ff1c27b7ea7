/* Laws of measuring a kernel: a time comes out, and all memory goes back. */
#include "backend/measure.h"

#include "backend/support.h"
#include "base/memory.h"

static void test_every_kernel_can_be_measured(void **state)
{
    (void)state;
    static const cvy_measure_effort once = {.least_runs = 1, .most_runs = 1};
    cvy_backend_chain chain;
    assert_int_equal(cvy_backend_chain_find("ref", &chain), CVY_OK);
    int64_t before = cvy_memory_tensor_bytes();
    for (int i = 0; i < test_shape_count; i++) {
        for (int pass = 0; pass < CVY_PASS_COUNT; pass++) {
            cvy_op op;
            double seconds = -1.0;
            if (!make_op(&test_shapes[i], (cvy_op_pass)pass, CVY_F32, &op)) {
                continue;
            }
            if (cvy_kernel_measure(&chain, &op, &once, &seconds) != CVY_OK) {
                fail_msg("%s: %s", test_shapes[i].name, cvy_error_message());
            }
            assert_true(seconds >= 0.0 && seconds < 60.0);
            assert_int_equal(cvy_memory_tensor_bytes(), before);
        }
    }
}

/* No memory for the operands: an error, no time, nothing kept. */
static void test_a_measurement_without_memory_fails(void **state)
{
    (void)state;
    const cvy_measure_effort quick = CVY_MEASURE_QUICK;
    cvy_backend_chain chain;
    cvy_op op;
    double seconds = -1.0;
    assert_int_equal(cvy_backend_chain_find("ref", &chain), CVY_OK);
    assert_true(make_op(&test_shapes[0], CVY_PASS_FORWARD, CVY_F32, &op));
    for (int64_t i = 0; seconds < 0.0; i++) {
        cvy_memory_fail_after(i);
        cvy_status status = cvy_kernel_measure(&chain, &op, &quick, &seconds);
        cvy_memory_fail_after(-1);
        assert_true(status == CVY_OK ? seconds >= 0.0 : status == CVY_ERR_MEMORY && seconds < 0.0);
        assert_int_equal(cvy_memory_tensor_bytes(), 0);
        assert_true(i < 1000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_kernel_can_be_measured),
        cmocka_unit_test(test_a_measurement_without_memory_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
