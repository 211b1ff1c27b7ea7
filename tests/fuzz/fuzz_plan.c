/* Plan files: any bytes are decisions that a small model can be divided by, or be refused, or no plan. */
#include "fuzz/fuzz.h"
#include "plan/plan_file.h"

/* What is read back from a plan that was made of a file says the same. */
static void check_decisions(const cvy_plan_file *file)
{
    const cvy_plan_decisions *d = &file->decisions;
    cvy_distribution *distribution = NULL;
    cvy_plan_file back;
    const cvy_distribution_options options = {.batch = d->batch, .choices = d->choices, .stages = d->stages};
    FUZZ_REQUIRE(d->batch >= 1 && d->strategy.mesh.ranks >= 1 && !d->strategy.automatic);
    cvy_status status = cvy_distribution_create(file->model, &d->strategy, &options, &distribution);
    FUZZ_REQUIRE(status == CVY_OK || status == CVY_ERR_INFEASIBLE);
    if (status == CVY_OK) {
        const char *path = fuzz_path("back.yaml");
        FUZZ_REQUIRE(cvy_plan_file_save(d, distribution, path) == CVY_OK);
        FUZZ_REQUIRE(cvy_plan_file_load(fuzz_path("back.yaml"), NULL, &back) == CVY_OK);
        FUZZ_REQUIRE(back.decisions.batch == d->batch && back.decisions.precision == d->precision);
        FUZZ_REQUIRE(back.decisions.strategy.mesh.ranks == d->strategy.mesh.ranks);
        cvy_plan_file_clear(&back);
    }
    cvy_distribution_destroy(&distribution);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cvy_plan_file file = {.model = NULL};
    cvy_status status = cvy_plan_file_load(fuzz_put("plan.yaml", data, size), "lenet5", &file);
    if (status != CVY_OK) {
        FUZZ_REQUIRE(!file.model);
        fuzz_check_refusal(status, CVY_ERR_INPUT);
        return 0;
    }
    check_decisions(&file);
    cvy_plan_file_clear(&file);
    return 0;
}
