/*
 * Memory of high bandwidth that a machine has beside its ordinary one (MCDRAM of Knights Landing, HBM of Xeon Max, both
 * in flat mode). Where there is some, arenas lie in it as long as they fit.
 */
#ifndef CVY_BASE_MEMORY_HIGH_H
#define CVY_BASE_MEMORY_HIGH_H

#include <stdbool.h>
#include <stddef.h>

/** Where such memory comes from. */
typedef struct cvy_high_memory {
    /** Bytes that the machine has of it; 0: none. May be called from any thread. */
    size_t (*find_bytes)(void);
    /** Memory of @p bytes at a multiple of @p alignment; NULL: there is no more. */
    void *(*take)(size_t bytes, size_t alignment);
    void (*give)(void *memory);
} cvy_high_memory;

/** What this build has: memkind, or nothing (find_bytes answers 0). */
extern const cvy_high_memory cvy_memory_high;

/**
 * Whether an arena goes there: it fits beside what arenas of this process have there already, whole. An arena that lay
 * half in either memory would be as slow as the slower half.
 *
 * @param[in] bytes      of the arena, in whole pages
 * @param[in] taken      bytes that this process has there
 * @param[in] high_bytes that the machine has
 */
bool cvy_memory_fits_high(size_t bytes, size_t taken, size_t high_bytes);

/** For tests: let arenas that are made from now on ask this; NULL: cvy_memory_high again. */
void cvy_memory_use_high(const cvy_high_memory *high);

#endif
