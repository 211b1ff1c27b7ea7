/* Predictors: any bytes are nets that give a time to every op, finite and above 0, or a refusal that names a line. */
#include <math.h>

#include "fuzz/fuzz.h"
#include "oracle/compute_internal.h"

/* A convolution of n,64,d,56 with 64 filters of 3 x 3. */
static cvy_op make_op(int64_t n, int64_t d)
{
    cvy_op op = {.kind = CVY_OP_CONVOLUTION, .pass = CVY_PASS_FORWARD,
                 .params.window = {.window = {{1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}}, .groups = 1}};
    cvy_tensor x = {.shape = CVY_SHAPE(n, 64, d, 56), .dtype = CVY_F32};
    cvy_tensor w = {.shape = CVY_SHAPE(64, 64, 3, 3), .dtype = CVY_F32};
    FUZZ_REQUIRE(cvy_op_add(&op, CVY_ROLE_X, &x) == CVY_OK && cvy_op_add(&op, CVY_ROLE_W, &w) == CVY_OK);
    FUZZ_REQUIRE(cvy_op_add(&op, CVY_ROLE_Y, &x) == CVY_OK);
    return op;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cvy_predictor *predictor = NULL;
    cvy_status status = cvy_predictor_load(fuzz_put("net.yaml", data, size), &predictor);
    if (status != CVY_OK) {
        FUZZ_REQUIRE(!predictor);
        fuzz_check_refusal(status, CVY_ERR_INPUT);
        return 0;
    }
    FUZZ_REQUIRE(cvy_predictor_kernel(predictor) >= 0 && cvy_predictor_kernel(predictor) < CVY_KERNEL_COUNT);
    FUZZ_REQUIRE(cvy_predictor_pass(predictor) < CVY_PASS_COUNT);
    for (int64_t n = 1; n <= 4096; n *= 8) {
        cvy_op op = make_op(n, 7 * n);
        double feature[CVY_KERNEL_FEATURES], flop = cvy_op_flop(&op), bytes = cvy_op_bytes(&op);
        cvy_kernel_get_features(&op, flop, bytes, 0.0, feature);
        cvy_prediction said = cvy_predictor_run(predictor, feature, flop, bytes);
        FUZZ_REQUIRE(isfinite(said.seconds) && said.seconds > 0.0);
        FUZZ_REQUIRE(isfinite(said.error) && said.error >= 0.0 && said.roof.Bps > 0.0);
        FUZZ_REQUIRE(cvy_predictor_get_s(predictor, feature, flop, bytes) == said.seconds);
    }
    cvy_predictor_destroy(&predictor);
    return 0;
}
