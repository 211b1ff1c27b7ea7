/* Tables of kernels: any bytes are ops that check, with times, or a refusal. */
#include "calibrate/import.h"
#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cvy_kernel_survey survey = {0};
    cvy_status status = cvy_import_kernels(fuzz_put("kernels.csv", data, size), &survey);
    if (status != CVY_OK) {
        fuzz_check_refusal(status, CVY_ERR_INPUT);
    } else {
        FUZZ_REQUIRE(survey.rows > 0);
        for (int i = 0; i < survey.rows; i++) {
            FUZZ_REQUIRE(cvy_op_check(&survey.row[i].op) == CVY_OK && survey.row[i].time.seconds > 0.0);
            FUZZ_REQUIRE(survey.row[i].shape >= 0 && survey.row[i].shape <= i);
        }
    }
    cvy_kernel_survey_clear(&survey);
    return 0;
}
