/* Convolutions that Convoy has kernels of its own for: those with one filter a channel, and Winograd's. */
#include "backend/cpu/cpu.h"

static const cvy_cpu_family *find_family(const cvy_op *op)
{
    return cvy_op_by_winograd(op) ? &cvy_cpu_winograd : &cvy_cpu_depthwise;
}

static cvy_cpu_run find(const cvy_op *op) { return find_family(op)->find(op); }

static void setup(cvy_cpu_kernel *kernel) { find_family(&kernel->base.op)->setup(kernel); }

static bool choose_format(const cvy_op *op, cvy_role role, cvy_format *format_out)
{
    const cvy_cpu_family *family = find_family(op);
    return family->choose_format && family->choose_format(op, role, format_out);
}

const cvy_cpu_family cvy_cpu_convolution = {.find = find, .setup = setup, .choose_format = choose_format};
