/*
 * Counted allocation. The first touch of a 4 KiB page has been seen to cost 16 us on a virtual machine, of a huge page
 * a twentieth per byte; so arenas ask for huge pages and are written once, here. The system gives a page from the NUMA
 * domain of the core that first writes to it: whoever makes an arena runs on a core of its rank, so no policy of memory
 * has to be set, and one that the user has set (numactl) stays.
 */
#include "base/memory.h"

#include <malloc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/memory_high.h"
#include "base/memory_limit.h"
#include "base/text.h"

enum { HUGE_PAGE_BYTES = 2 << 20, LARGE_BYTES = 64 << 20 };

static atomic_int_fast64_t allocations;
static atomic_int_fast64_t tensor_bytes;
static atomic_int_fast64_t tensor_peak_bytes;
static atomic_int_fast64_t failure_countdown = -1;
static atomic_int_fast64_t high_bytes_taken;
static const cvy_high_memory *_Atomic high_memory = &cvy_memory_high;

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
    int doubled = 2 * *capacity + 16, larger = doubled > count ? doubled : count + 1;
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

void cvy_memory_use_high(const cvy_high_memory *high) { atomic_store(&high_memory, high ? high : &cvy_memory_high); }

/* Pages of the system at a multiple of their size; NULL where it has none. */
static unsigned char *map_pages(size_t mapped, size_t unit)
{
    /* aligned_alloc would do, but mmap gives whole pages that go back to the system at once */
    size_t reserved = mapped + (unit > 4096 ? unit : 0);
    unsigned char *raw = mmap(NULL, reserved, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (raw == MAP_FAILED) {
        return NULL;
    }
    size_t before = (unit - (uintptr_t)raw % unit) % unit; /* trim to a huge page's border on both sides */
    if (before) {
        munmap(raw, before);
    }
    if (reserved - mapped - before) {
        munmap(raw + before + mapped, reserved - mapped - before);
    }
    return raw + before;
}

/* Memory for an arena, of the better kind where it fits; NULL where there is none. */
static unsigned char *take_pages(size_t mapped, size_t unit, const cvy_high_memory **high_out)
{
    const cvy_high_memory *high = atomic_load(&high_memory);
    if (cvy_memory_fits_high(mapped, (size_t)atomic_load(&high_bytes_taken), high->find_bytes())) {
        unsigned char *base = high->take(mapped, unit);
        if (base) {
            atomic_fetch_add(&high_bytes_taken, (int_fast64_t)mapped);
            *high_out = high;
            return base;
        }
    }
    *high_out = NULL;
    return map_pages(mapped, unit);
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
    const cvy_high_memory *high;
    unsigned char *base = take_pages(mapped, unit, &high);
    CVY_REQUIRE(base, CVY_ERR_MEMORY, "no memory for an arena of %zu bytes", bytes);
    if (unit == HUGE_PAGE_BYTES) {
        (void)madvise(base, mapped, MADV_HUGEPAGE); /* a wish: without it, only slower */
    }
    memset(base, 0, mapped);
    *arena_out = (cvy_arena){.base = base, .bytes = bytes, .mapped_bytes = mapped, .high = high};
    count_tensor_bytes((int64_t)bytes);
    return CVY_OK;
}

void cvy_arena_destroy(cvy_arena *arena)
{
    if (arena && arena->base) {
        if (arena->high) {
            arena->high->give(arena->base);
            atomic_fetch_sub(&high_bytes_taken, (int_fast64_t)arena->mapped_bytes);
        } else {
            munmap(arena->base, arena->mapped_bytes);
        }
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
