/*
 * Scratch memory of kernels in plans that make none. A plan by rule sums directly; a run asks the clock, and where
 * there is a kernel by Winograd's algorithm it goes by that, with the scratch memory that the kernel wants.
 */
#ifndef CVY_PLAN_SCRATCH_H
#define CVY_PLAN_SCRATCH_H

#include "backend/backend.h"

/** What kernels of this process said, once each. */
typedef struct cvy_scratch_book cvy_scratch_book;

/** Begin one. @param[in] backends copied @param[out] book_out released with cvy_scratch_book_destroy() */
cvy_status cvy_scratch_book_create(const cvy_backend_chain *backends, cvy_scratch_book **book_out);

/** Release and set to NULL; NULL is fine. */
void cvy_scratch_book_destroy(cvy_scratch_book **book);

/**
 * Find what the kernel of an op wants, with the threads that are set when it is first asked for.
 *
 * @param[out] bytes_out 0 where no backend has a kernel
 * @retval CVY_ERR_MEMORY
 */
cvy_status cvy_scratch_book_find(cvy_scratch_book *book, const cvy_op *op, int64_t *bytes_out);

#endif
