/* The one list of backends, and the chain along which an op looks for one that takes it. */
#include <string.h>

#include "backend/backend.h"

extern const cvy_backend cvy_backend_ref;
#if CVY_HAVE_TRAIN
extern const cvy_backend cvy_backend_cpu;
#endif
#if CVY_HAVE_ONEDNN
extern const cvy_backend cvy_backend_onednn;
#endif

/* Fastest first: a chain is the tail of this list that starts with the backend asked for. */
static const cvy_backend *const backends[] = {
#if CVY_HAVE_ONEDNN
    &cvy_backend_onednn,
#endif
#if CVY_HAVE_TRAIN
    &cvy_backend_cpu,
#endif
    &cvy_backend_ref,
};
enum { BACKENDS = sizeof backends / sizeof backends[0] };

const cvy_backend *cvy_backend_get(int i) { return i >= 0 && i < BACKENDS ? backends[i] : NULL; }

cvy_status cvy_backend_chain_find(const char *name, cvy_backend_chain *chain_out)
{
    int first = 0;
    if (name && strcmp(name, "auto") != 0) {
        while (first < BACKENDS && strcmp(backends[first]->name, name) != 0) {
            first++;
        }
        CVY_REQUIRE(first < BACKENDS || (strcmp(name, "onednn") != 0 && strcmp(name, "cpu") != 0), CVY_ERR_UNSUPPORTED,
                    "backend %s is not in this build: install its library and build again", name);
        CVY_REQUIRE(first < BACKENDS, CVY_ERR_INPUT, "no backend '%s'; there are onednn, cpu, ref", name);
    }
    *chain_out = (cvy_backend_chain){0};
    for (int i = first; i < BACKENDS; i++) {
        chain_out->backend[chain_out->count++] = backends[i];
    }
    return CVY_OK;
}

cvy_quality cvy_backend_quality(const cvy_backend_chain *chain, const cvy_op *op, const cvy_backend **backend_out)
{
    for (int i = 0; i < chain->count; i++) { /* the first that takes it runs it, as in cvy_kernel_create() */
        cvy_quality quality = chain->backend[i]->quality(op);
        if (quality != CVY_QUALITY_NONE) {
            if (backend_out) {
                *backend_out = chain->backend[i];
            }
            return quality;
        }
    }
    return CVY_QUALITY_NONE;
}

cvy_format cvy_backend_choose_format(const cvy_backend_chain *chain, const cvy_op *op, cvy_role role)
{
    cvy_format format;
    for (int i = 0; i < chain->count; i++) {
        const cvy_backend *backend = chain->backend[i];
        if (backend->choose_format && backend->choose_format(op, role, &format) == CVY_OK) {
            return format;
        }
    }
    return cvy_op_find(op, role)->tensor.format;
}

cvy_status cvy_kernel_create(const cvy_backend_chain *chain, const cvy_op *op, cvy_kernel **kernel_out)
{
    char text[CVY_OP_TEXT];
    CVY_TRY(cvy_op_check(op));
    for (int i = 0; i < chain->count; i++) {
        cvy_status status = chain->backend[i]->create(op, kernel_out);
        if (status != CVY_ERR_UNSUPPORTED) {
            return status;
        }
    }
    return cvy_fail(CVY_ERR_UNSUPPORTED, "no backend runs %s", cvy_op_print(op, text));
}

void cvy_kernel_destroy(cvy_kernel **kernel)
{
    if (*kernel) {
        (*kernel)->backend->destroy(*kernel);
        *kernel = NULL;
    }
}

size_t cvy_kernel_scratch_bytes(const cvy_kernel *kernel) { return kernel->backend->scratch_bytes(kernel); }
