/*
 * Memory, counted. Small host objects come from cvy_calloc(); tensors live in arenas, which ask for huge pages and
 * are touched when they are made, so that the step loop meets no page fault.
 */
#ifndef CVY_BASE_MEMORY_H
#define CVY_BASE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct cvy_high_memory;

/**
 * Allocate @p count objects of @p size bytes, zeroed. The caller releases them with cvy_free().
 *
 * @return NULL where memory is exhausted, more is asked for than the system can give without ending some process, the
 *         product overflows or a test asked for a failure; the cause is worded, so that a caller may return
 *         CVY_ERR_MEMORY at once.
 */
void *cvy_calloc(size_t count, size_t size);

/** Grow or shrink an array from cvy_calloc(); new bytes are zero. NULL (the old array untouched) as in cvy_calloc(). */
void *cvy_recalloc(void *old, size_t old_count, size_t count, size_t size);

/**
 * Make room for one more entry of an array from cvy_calloc(), which at least doubles when it is full; new bytes are
 * zero.
 *
 * @param[in,out] array     address of the pointer to the first entry; the pointer may be NULL
 * @param[in]     count     entries in use, or to be before the next
 * @param[in,out] capacity  entries that there is room for
 * @param[in]     size      bytes of an entry
 * @retval CVY_ERR_MEMORY   as in cvy_calloc(); the array is as before
 */
cvy_status cvy_array_reserve(void *array, int count, int *capacity, size_t size);

/** Copy a string; NULL as in cvy_calloc(). */
char *cvy_strdup(const char *text);

/** Release what cvy_calloc(), cvy_recalloc() or cvy_strdup() gave; NULL is fine. */
void cvy_free(void *memory);

/** One stretch of tensor memory. */
typedef struct cvy_arena {
    unsigned char *base; /**< aligned to CVY_ARENA_ALIGNMENT */
    size_t bytes;        /**< what was asked for; counted */
    size_t mapped_bytes; /**< what was taken from the system, rounded up to pages */
    const struct cvy_high_memory *high; /**< memory of high bandwidth that it lies in; NULL: ordinary memory */
} cvy_arena;

enum { CVY_ARENA_ALIGNMENT = 64 };

/**
 * Take an arena of @p bytes from the system, ask for huge pages, and set it to zero: in memory of high bandwidth where
 * the machine has some and the arena fits there (base/memory_high.h), else in the NUMA domain of the calling thread,
 * which therefore runs on its rank's cores by now.
 *
 * @param[in]  bytes      may be 0
 * @param[out] arena_out  released with cvy_arena_destroy()
 * @retval CVY_ERR_MEMORY the system has no more, or a control group (a container, a batch job) allows no more
 */
cvy_status cvy_arena_create(size_t bytes, cvy_arena *arena_out);

/** Give an arena back; an empty one is fine. */
void cvy_arena_destroy(cvy_arena *arena);

/** Calls of cvy_calloc(), cvy_recalloc() and cvy_arena_create() so far, by all threads. */
int64_t cvy_memory_allocations(void);

/** Bytes in arenas now. */
int64_t cvy_memory_tensor_bytes(void);

/** The most bytes that were ever in arenas at once since the last cvy_memory_reset_peak(). */
int64_t cvy_memory_tensor_peak_bytes(void);

/** Start the high-water mark anew from what is held now. */
void cvy_memory_reset_peak(void);

/** For tests: let the allocation after the next @p count ones fail, once; negative switches this off. */
void cvy_memory_fail_after(int64_t count);

/** Make glibc keep the memory that this process frees: a process that trains wants its pages again. */
void cvy_memory_keep(void);

#endif
