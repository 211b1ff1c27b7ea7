/* What goes along with updates: the average of a parameter over them. Over memory as it lies; padding stays zero. */
#include "backend/ref/ref.h"

cvy_status cvy_ref_average(const cvy_ref_kernel *kernel, const cvy_run *run)
{
    const cvy_ref_tensor *weight = cvy_ref_find(kernel, CVY_ROLE_W);
    const cvy_ref_tensor *average = cvy_ref_find(kernel, CVY_ROLE_AVERAGE);
    double decay = kernel->base.op.params.average.decay;
    (void)run;
    for (int64_t i = 0; i < weight->elements; i++) {
        double value = decay * cvy_ref_load(average, i) + (1.0 - decay) * cvy_ref_load(weight, i);
        cvy_ref_store(average, i, value);
    }
    return CVY_OK;
}
