/*
 * What the kernels of the CPU backend share: a kernel, a family of kernels, and how work is cut over threads.
 *
 * Work is cut by the shape alone and partial sums are merged in a fixed order, so a result does not depend on the
 * number of threads, bit for bit.
 */
#ifndef CVY_BACKEND_CPU_CPU_H
#define CVY_BACKEND_CPU_CPU_H

#include "backend/backend.h"
#include "backend/cpu/columns.h"
#include "backend/cpu/share_map.h"

/** Elements below which a second thread costs more than it brings (a fork and join is about a microsecond). */
enum { CVY_CPU_SERIAL_ELEMENTS = 8192 };

/** Elements that stay in the first-level cache between two passes over them. */
enum { CVY_CPU_CHUNK = 4096 };

typedef struct cvy_cpu_kernel cvy_cpu_kernel;

/** The hot path of one kind and pass; as the slot of the backend. */
typedef cvy_status (*cvy_cpu_run)(const cvy_cpu_kernel *kernel, void *const *operand, void *scratch,
                                  const cvy_run *run);

struct cvy_cpu_kernel {
    cvy_kernel base;
    const char *algorithm;
    cvy_cpu_run run;
    size_t scratch_bytes;
    int64_t elements;    /**< of the first operand, with padding */
    cvy_columns columns; /**< of the first operand; families that go by channels */
    int64_t groups;      /**< pieces that the positions of a strip are cut into */
    cvy_share_map map;   /**< of a share: where it lies in the whole, or in what it is taken from */
};

/** Kernels of a kind. The tensors of @p op are f32 (class labels i32, loss and overlap f64, windows integer). */
typedef struct cvy_cpu_family {
    /** The hot path that runs an op; NULL where the family does not take it. */
    cvy_cpu_run (*find)(const cvy_op *op);

    /** Optional: fill in what the hot path needs; the kernel's op, run, elements and columns are set. */
    void (*setup)(cvy_cpu_kernel *kernel);

    /** Optional: the format that an operand should have, the others as they are; false where there is no wish. */
    bool (*choose_format)(const cvy_op *op, cvy_role role, cvy_format *format_out);
} cvy_cpu_family;

extern const cvy_backend cvy_backend_cpu;
extern const cvy_cpu_family cvy_cpu_elementwise;
extern const cvy_cpu_family cvy_cpu_convolution;
extern const cvy_cpu_family cvy_cpu_depthwise;
extern const cvy_cpu_family cvy_cpu_dropout;
extern const cvy_cpu_family cvy_cpu_multiply;
extern const cvy_cpu_family cvy_cpu_stochastic_depth;
extern const cvy_cpu_family cvy_cpu_batch_norm;
extern const cvy_cpu_family cvy_cpu_pool_global;
extern const cvy_cpu_family cvy_cpu_pool_adaptive;
extern const cvy_cpu_family cvy_cpu_pool;
extern const cvy_cpu_family cvy_cpu_loss;
extern const cvy_cpu_family cvy_cpu_loss_map;
extern const cvy_cpu_family cvy_cpu_dice;
extern const cvy_cpu_family cvy_cpu_optimizer;
extern const cvy_cpu_family cvy_cpu_norms;
extern const cvy_cpu_family cvy_cpu_average;
extern const cvy_cpu_family cvy_cpu_reorder;
extern const cvy_cpu_family cvy_cpu_concat;
extern const cvy_cpu_family cvy_cpu_share;
extern const cvy_cpu_family cvy_cpu_group_norm;
extern const cvy_cpu_family cvy_cpu_response;
extern const cvy_cpu_family cvy_cpu_winograd;

/** Whether all operands of an op lie in memory alike, padding included. */
bool cvy_cpu_same_layout(const cvy_op *op);

#endif
