/*
 * Local response normalisation across channels (Krizhevsky, Sutskever, Hinton, "ImageNet classification with deep
 * convolutional neural networks", 2012, section 3.3), with alpha divided by the size, as PyTorch's and Caffe's.
 *
 * With scale_c = k + alpha / size sum x^2 over the window of c, channels c - size / 2 … c + (size - 1) / 2,
 *
 *     y_c = x_c scale_c^-beta,
 *     dx_c = dy_c scale_c^-beta - 2 alpha beta / size x_c sum dy_e x_e scale_e^(-beta - 1) over the e whose window
 *            holds c: c - (size - 1) / 2 … c + size / 2.
 */
#include "backend/ref/ref.h"

#include <math.h>

#include "base/checked.h"

/* One position of one sample: a tensor's element at channel c of it. */
typedef struct place {
    const cvy_ref_kernel *kernel;
    int64_t n, channels;
    int64_t index[3];
} place;

static int64_t offset_of(const place *at, const cvy_ref_tensor *tensor, int64_t c)
{
    return cvy_ref_plane(tensor, at->n, c) + cvy_ref_point(tensor, CVY_REF_D, at->index);
}

static double load_at(const place *at, cvy_role role, int64_t c)
{
    const cvy_ref_tensor *tensor = cvy_ref_find(at->kernel, role);
    return cvy_ref_load(tensor, offset_of(at, tensor, c));
}

/* The last channel of @p after beyond c that there is. */
static int64_t find_last(const place *at, int64_t c, int64_t after)
{
    return after < at->channels - c ? c + after : at->channels - 1;
}

static double scale_of(const place *at, int64_t c)
{
    const cvy_op_params_response *with = &at->kernel->base.op.params.response;
    double sum = 0.0;
    for (int64_t e = cvy_max_i64(c - with->size / 2, 0); e <= find_last(at, c, (with->size - 1) / 2); e++) {
        sum += load_at(at, CVY_ROLE_X, e) * load_at(at, CVY_ROLE_X, e);
    }
    return with->k + with->alpha / (double)with->size * sum;
}

static double respond(const place *at, int64_t c)
{
    return load_at(at, CVY_ROLE_X, c) * pow(scale_of(at, c), -at->kernel->base.op.params.response.beta);
}

static double respond_gradient(const place *at, int64_t c)
{
    const cvy_op_params_response *with = &at->kernel->base.op.params.response;
    double sum = 0.0;
    if (at->kernel->base.op.relu && !(load_at(at, CVY_ROLE_X, c) > 0.0)) {
        return 0.0;
    }
    for (int64_t e = cvy_max_i64(c - (with->size - 1) / 2, 0); e <= find_last(at, c, with->size / 2); e++) {
        sum += load_at(at, CVY_ROLE_DY, e) * load_at(at, CVY_ROLE_X, e) * pow(scale_of(at, e), -with->beta - 1.0);
    }
    return load_at(at, CVY_ROLE_DY, c) * pow(scale_of(at, c), -with->beta) -
           2.0 * with->alpha * with->beta / (double)with->size * load_at(at, CVY_ROLE_X, c) * sum;
}

static cvy_status write_all(const cvy_ref_kernel *kernel, cvy_role role, double (*element)(const place *, int64_t))
{
    const cvy_ref_tensor *to = cvy_ref_find(kernel, role);
    for (int64_t n = 0; n < to->extent[CVY_REF_N]; n++) {
        place at = {.kernel = kernel, .n = n, .channels = to->extent[CVY_REF_C]};
        do {
            for (int64_t c = 0; c < at.channels; c++) {
                cvy_ref_store(to, offset_of(&at, to, c), element(&at, c));
            }
        } while (cvy_ref_next(at.index, &to->extent[CVY_REF_D]));
    }
    return CVY_OK;
}

cvy_status cvy_ref_response_forward(const cvy_ref_kernel *kernel, const cvy_run *run)
{
    (void)run;
    return write_all(kernel, CVY_ROLE_Y, respond);
}

cvy_status cvy_ref_response_data(const cvy_ref_kernel *kernel, const cvy_run *run)
{
    (void)run;
    return write_all(kernel, CVY_ROLE_DX, respond_gradient);
}
