/*
 * What computes. A backend is a table of functions; a kernel is an op that a backend has agreed to run. `ref` has every
 * op, in plain C, for f32 and f64, and judges the others; `cpu` has own kernels where the library has none; `onednn`
 * has the library's. They are tried in the order of a chain, and who runs an op is kept in the plan: nothing is chosen
 * in silence.
 */
#ifndef CVY_BACKEND_BACKEND_H
#define CVY_BACKEND_BACKEND_H

#include <stddef.h>
#include <stdint.h>

#include "op/op.h"

/** What may differ from one iteration to the next, for all kernels of it. */
typedef struct cvy_run {
    uint64_t seed;
    int64_t step;          /**< iterations before this one, since training began */
    int64_t sample_first;  /**< position in the global batch of this rank's first sample (random counters) */
    int64_t samples;       /**< valid samples of the batch: later ones count nothing in the loss */
    double loss_scale;     /**< 1 / global batch: what the loss of one sample is multiplied with */
    double learning_rate;
    int64_t update;        /**< updates so far, this one included: 1 for the first (AdamW's bias correction) */
} cvy_run;

/** An op, ready to run: algorithm chosen, nothing left to allocate. */
typedef struct cvy_kernel cvy_kernel;

/** How well a backend can run an op; larger is better. */
typedef enum cvy_quality {
    CVY_QUALITY_NONE = 0, /**< cannot */
    CVY_QUALITY_SLOW,     /**< plain loops */
    CVY_QUALITY_GEMM,     /**< through copies and a matrix product, or over padding, too */
    CVY_QUALITY_FAST,     /**< a kernel made for it */
} cvy_quality;

/**
 * A backend. Slots but for those said optional are filled. Wrappers below check, time and count; slots only compute.
 * None of them is collective.
 */
typedef struct cvy_backend {
    const char *name;

    /** How well the op runs in the formats that it names. Takes no tensor memory. */
    cvy_quality (*quality)(const cvy_op *op);

    /**
     * Optional: choose the format of one operand, the others as they are in @p op; e.g. the weights of a convolution
     * whose x and y formats are set. Answers CVY_ERR_UNSUPPORTED where it has no wish. Default: leave as it is.
     */
    cvy_status (*choose_format)(const cvy_op *op, cvy_role role, cvy_format *format_out);

    /** Choose the algorithm. May be slow. CVY_ERR_UNSUPPORTED passes the op on to the next backend of the chain. */
    cvy_status (*create)(const cvy_op *op, cvy_kernel **kernel_out);

    /** Bytes of scratch memory that one run needs. */
    size_t (*scratch_bytes)(const cvy_kernel *kernel);

    /** A word for the algorithm that runs ("jit:avx2", "loops"): for reports. */
    const char *(*algorithm)(const cvy_kernel *kernel);

    /**
     * The hot path: does not allocate, print or synchronise. @p operand holds one address for each operand of the op,
     * in its order; buffers of a plan lie at multiples of CVY_ARENA_ALIGNMENT, and a backend may refuse others
     * (CVY_ERR_ARG). An update whose gradients are not all finite answers CVY_ERR_DIVERGED.
     */
    cvy_status (*run)(cvy_kernel *kernel, void *const *operand, void *scratch, const cvy_run *run);

    void (*destroy)(cvy_kernel *kernel);
} cvy_backend;

/** What every kernel starts with; backends embed it as the first member. */
struct cvy_kernel {
    const cvy_backend *backend;
    cvy_op op;
};

/** The backends in the order in which they are tried; the first is the one asked for. */
typedef struct cvy_backend_chain {
    int count;
    const cvy_backend *backend[4];
} cvy_backend_chain;

/**
 * Find a chain by the name of its first backend: "onednn" (then cpu, ref), "cpu" (then ref), "ref"; NULL or "auto"
 * means the fastest that this build has.
 *
 * @retval CVY_ERR_INPUT        no such backend; the message lists them
 * @retval CVY_ERR_UNSUPPORTED  known, but not in this build
 */
cvy_status cvy_backend_chain_find(const char *name, cvy_backend_chain *chain_out);

/** The i-th backend of this build; NULL past the last. */
const cvy_backend *cvy_backend_get(int i);

/** The best quality that any backend of the chain gives, and which one it is (may be NULL). */
cvy_quality cvy_backend_quality(const cvy_backend_chain *chain, const cvy_op *op, const cvy_backend **backend_out);

/** The first wish for the format of an operand along the chain; the operand's own format where nobody has one. */
cvy_format cvy_backend_choose_format(const cvy_backend_chain *chain, const cvy_op *op, cvy_role role);

/**
 * Make a kernel of an op with the first backend of the chain that takes it.
 *
 * @param[in]  op          checked with cvy_op_check(), copied
 * @param[out] kernel_out  released with cvy_kernel_destroy()
 * @retval CVY_ERR_UNSUPPORTED nobody takes it; the message prints the op
 */
cvy_status cvy_kernel_create(const cvy_backend_chain *chain, const cvy_op *op, cvy_kernel **kernel_out);

/** Release a kernel and set it to NULL; NULL is fine. */
void cvy_kernel_destroy(cvy_kernel **kernel);

/** Bytes of scratch memory that one run needs; aligned to CVY_ARENA_ALIGNMENT when it is given. */
size_t cvy_kernel_scratch_bytes(const cvy_kernel *kernel);

/** Run a kernel; see the slot. */
static inline cvy_status cvy_kernel_run(cvy_kernel *kernel, void *const *operand, void *scratch, const cvy_run *run)
{
    return kernel->backend->run(kernel, operand, scratch, run);
}

#endif
