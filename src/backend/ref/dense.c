/* Dense layers: y = x w^T + b, dx = dy w, dw = dy^T x, db = the sum of dy over samples. */
#include "backend/ref/ref.h"

/* Offset of w[o,i]. */
static int64_t weight_at(const cvy_ref_tensor *w, int64_t o, int64_t i)
{
    return w->at[CVY_REF_O][o] + w->at[CVY_REF_I][i];
}

cvy_status cvy_ref_dense_forward(const cvy_ref_kernel *kernel, const cvy_run *run)
{
    const cvy_ref_tensor *x = cvy_ref_find(kernel, CVY_ROLE_X);
    const cvy_ref_tensor *w = cvy_ref_find(kernel, CVY_ROLE_W);
    const cvy_ref_tensor *b = cvy_ref_find(kernel, CVY_ROLE_B);
    const cvy_ref_tensor *y = cvy_ref_find(kernel, CVY_ROLE_Y);
    (void)run;
    for (int64_t n = 0; n < y->extent[CVY_REF_N]; n++) {
        for (int64_t o = 0; o < y->extent[CVY_REF_C]; o++) {
            double sum = b ? cvy_ref_load(b, o) : 0.0;
            for (int64_t i = 0; i < x->extent[CVY_REF_C]; i++) {
                sum += cvy_ref_load(x, cvy_ref_plane(x, n, i)) * cvy_ref_load(w, weight_at(w, o, i));
            }
            bool rectified = kernel->base.op.relu && sum < 0.0; /* NaN stays */
            cvy_ref_store(y, cvy_ref_plane(y, n, o), rectified ? 0.0 : sum);
        }
    }
    return CVY_OK;
}

cvy_status cvy_ref_dense_data(const cvy_ref_kernel *kernel, const cvy_run *run)
{
    const cvy_ref_tensor *dy = cvy_ref_find(kernel, CVY_ROLE_DY);
    const cvy_ref_tensor *w = cvy_ref_find(kernel, CVY_ROLE_W);
    const cvy_ref_tensor *dx = cvy_ref_find(kernel, CVY_ROLE_DX);
    (void)run;
    for (int64_t n = 0; n < dx->extent[CVY_REF_N]; n++) {
        for (int64_t i = 0; i < dx->extent[CVY_REF_C]; i++) {
            double sum = 0.0;
            for (int64_t o = 0; o < dy->extent[CVY_REF_C]; o++) {
                sum += cvy_ref_load(dy, cvy_ref_plane(dy, n, o)) * cvy_ref_load(w, weight_at(w, o, i));
            }
            cvy_ref_store(dx, cvy_ref_plane(dx, n, i), sum);
        }
    }
    return CVY_OK;
}

cvy_status cvy_ref_dense_weights(const cvy_ref_kernel *kernel, const cvy_run *run)
{
    const cvy_ref_tensor *x = cvy_ref_find(kernel, CVY_ROLE_X);
    const cvy_ref_tensor *dy = cvy_ref_find(kernel, CVY_ROLE_DY);
    const cvy_ref_tensor *dw = cvy_ref_find(kernel, CVY_ROLE_DW);
    const cvy_ref_tensor *db = cvy_ref_find(kernel, CVY_ROLE_DB);
    int64_t samples = dy->extent[CVY_REF_N];
    (void)run;
    for (int64_t o = 0; o < dy->extent[CVY_REF_C]; o++) {
        for (int64_t i = 0; i < x->extent[CVY_REF_C]; i++) {
            double sum = 0.0;
            for (int64_t n = 0; n < samples; n++) {
                sum += cvy_ref_load(dy, cvy_ref_plane(dy, n, o)) * cvy_ref_load(x, cvy_ref_plane(x, n, i));
            }
            cvy_ref_store(dw, weight_at(dw, o, i), sum);
        }
        double bias = 0.0;
        for (int64_t n = 0; n < samples; n++) {
            bias += cvy_ref_load(dy, cvy_ref_plane(dy, n, o));
        }
        if (db) {
            cvy_ref_store(db, o, bias);
        }
    }
    return CVY_OK;
}
