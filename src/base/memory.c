/*
 * Counted allocation. The first touch of a 4 KiB page has been seen to cost 16 us on a virtual machine, of a huge page
 * a twentieth per byte; so arenas ask for huge pages and are written once, here.
 */
#include "base/memory.h"

#include <malloc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/memory_limit.h"
#include "base/text.h"

enum { HUGE_PAGE_BYTES = 2 << 20, LARGE_BYTES = 64 << 20 };

static atomic_int_fast64_t allocations;
static atomic_int_fast64_t tensor_bytes;
static atomic_int_fast64_t tensor_peak_bytes;
static atomic_int_fast64_t failure_countdown = -1;

/* True once, at the allocation that a test asked to fail. */
static bool must_fail(void)
{
    atomic_fetch_add(&allocations, 1);
    int_fast64_t left = atomic_load(&failure_countdown);
    if (left < 0) {
        return false;
    }
    return atomic_fetch_sub(&failure_countdown, 1) == 0;
}

static void *exhausted(size_t count, size_t size)
{
    (void)cvy_fail(CVY_ERR_MEMORY, "no memory for %zu objects of %zu bytes", count, size);
    return NULL;
}

/* Whether so much can be had; worded where it cannot. A file may be a hole for the most: no disk bounds its size. */
static bool is_available(size_t bytes)
{
    char need[CVY_UNIT_TEXT], free_text[CVY_UNIT_TEXT];
    size_t available = bytes < LARGE_BYTES ? SIZE_MAX : cvy_memory_find_available_bytes("");
    if (bytes > available) {
        (void)cvy_fail(CVY_ERR_MEMORY, "no memory for %s, %s are available", cvy_print_bytes((double)bytes, need),
                       cvy_print_bytes((double)available, free_text));
    }
    return bytes <= available;
}

void *cvy_calloc(size_t count, size_t size)
{
    size_t bytes; /* calloc() checks the product too, but a sanitizer's ends the process over it */
    if (must_fail() || __builtin_mul_overflow(count ? count : 1, size ? size : 1, &bytes)) {
        return exhausted(count, size);
    }
    if (!is_available(bytes)) {
        return NULL;
    }
    void *memory = calloc(1, bytes);
    return memory ? memory : exhausted(count, size);
}

void *cvy_recalloc(void *old, size_t old_count, size_t count, size_t size)
{
    size_t bytes;
    if (must_fail() || __builtin_mul_overflow(count ? count : 1, size, &bytes)) {
        return exhausted(count, size);
    }
    if (count > old_count && !is_available(bytes - old_count * size)) {
        return NULL;
    }
    unsigned char *memory = realloc(old, bytes);
    if (!memory) {
        return exhausted(count, size);
    }
    if (count > old_count) {
        memset(memory + old_count * size, 0, (count - old_count) * size);
    }
    return memory;
}

cvy_status cvy_array_reserve(void *array, int count, int *capacity, size_t size)
{
    if (count < *capacity) {
        return CVY_OK;
    }
    void *entries; /* copied, since a pointer to a pointer of another type must not be read through */
    int larger = 2 * *capacity + 16;
    memcpy(&entries, array, sizeof entries);
    entries = cvy_recalloc(entries, (size_t)*capacity, (size_t)larger, size);
    if (!entries) {
        return CVY_ERR_MEMORY;
    }
    memcpy(array, &entries, sizeof entries);
    *capacity = larger;
    return CVY_OK;
}

char *cvy_strdup(const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = cvy_calloc(bytes, 1);
    if (copy) {
        memcpy(copy, text, bytes);
    }
    return copy;
}

void cvy_free(void *memory) { free(memory); }

static void count_tensor_bytes(int64_t change)
{
    int_fast64_t now = atomic_fetch_add(&tensor_bytes, change) + change;
    int_fast64_t peak = atomic_load(&tensor_peak_bytes);
    while (now > peak && !atomic_compare_exchange_weak(&tensor_peak_bytes, &peak, now)) {
    }
}

cvy_status cvy_arena_create(size_t bytes, cvy_arena *arena_out)
{
    char need[CVY_UNIT_TEXT], free_text[CVY_UNIT_TEXT];
    size_t unit = bytes >= HUGE_PAGE_BYTES ? HUGE_PAGE_BYTES : 4096;
    CVY_REQUIRE(bytes <= SIZE_MAX / 2, CVY_ERR_MEMORY, "an arena of %zu bytes is beyond any address space", bytes);
    size_t mapped = (bytes / unit + 1) * unit;
    if (must_fail()) {
        return cvy_fail(CVY_ERR_MEMORY, "no memory for an arena of %zu bytes", bytes);
    }
    size_t available = cvy_memory_find_available_bytes("");
    CVY_REQUIRE(mapped <= available, CVY_ERR_MEMORY, "no memory for %s of tensors, %s are available; a smaller batch "
                "needs less", cvy_print_bytes((double)bytes, need), cvy_print_bytes((double)available, free_text));
    /* aligned_alloc would do, but mmap gives whole pages that go back to the system at once */
    size_t reserved = mapped + (unit > 4096 ? unit : 0);
    unsigned char *raw = mmap(NULL, reserved, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CVY_REQUIRE(raw != MAP_FAILED, CVY_ERR_MEMORY, "no memory for an arena of %zu bytes", bytes);
    unsigned char *base = raw;
    if (unit > 4096) { /* trim to a huge page's border on both sides */
        size_t before = (unit - (uintptr_t)raw % unit) % unit;
        base = raw + before;
        if (before) {
            munmap(raw, before);
        }
        if (unit - before) {
            munmap(base + mapped, unit - before);
        }
        (void)madvise(base, mapped, MADV_HUGEPAGE); /* a wish: without it, only slower */
    }
    memset(base, 0, mapped);
    *arena_out = (cvy_arena){.base = base, .bytes = bytes, .mapped_bytes = mapped};
    count_tensor_bytes((int64_t)bytes);
    return CVY_OK;
}

void cvy_arena_destroy(cvy_arena *arena)
{
    if (arena && arena->base) {
        munmap(arena->base, arena->mapped_bytes);
        count_tensor_bytes(-(int64_t)arena->bytes);
        *arena = (cvy_arena){0};
    }
}

int64_t cvy_memory_allocations(void) { return atomic_load(&allocations); }
int64_t cvy_memory_tensor_bytes(void) { return atomic_load(&tensor_bytes); }
int64_t cvy_memory_tensor_peak_bytes(void) { return atomic_load(&tensor_peak_bytes); }
void cvy_memory_reset_peak(void) { atomic_store(&tensor_peak_bytes, atomic_load(&tensor_bytes)); }
void cvy_memory_fail_after(int64_t count) { atomic_store(&failure_countdown, count); }

void cvy_memory_keep(void)
{
    mallopt(M_MMAP_MAX, 0);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    mallopt(M_TOP_PAD, 64 << 20);
}
