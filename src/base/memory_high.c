/*
 * By memkind: MEMKIND_HBW_PREFERRED takes pages of the high-bandwidth node nearest to the thread that asks, and
 * ordinary ones where other processes have left none, so that a race for the last pages costs time and no failure.
 * MEMKIND_HBW_ALL tells how much there is. memkind_check_available() comes first: it is the call that a machine without
 * such memory answers at once.
 */
#include "base/memory_high.h"

#if CVY_HAVE_MEMKIND
#include <memkind.h>

static size_t find_bytes(void)
{
    if (memkind_check_available(MEMKIND_HBW_PREFERRED) != 0) {
        return 0;
    }
    ssize_t bytes = memkind_get_capacity(MEMKIND_HBW_ALL);
    return bytes > 0 ? (size_t)bytes : 0;
}

static void *take(size_t bytes, size_t alignment)
{
    void *memory = NULL;
    return memkind_posix_memalign(MEMKIND_HBW_PREFERRED, &memory, alignment, bytes) == 0 ? memory : NULL;
}

static void give(void *memory) { memkind_free(MEMKIND_HBW_PREFERRED, memory); }
#else
static size_t find_bytes(void) { return 0; }

static void *take(size_t bytes, size_t alignment)
{
    (void)bytes, (void)alignment;
    return NULL;
}

static void give(void *memory) { (void)memory; }
#endif

const cvy_high_memory cvy_memory_high = {.find_bytes = find_bytes, .take = take, .give = give};

bool cvy_memory_fits_high(size_t bytes, size_t taken, size_t high_bytes)
{
    return taken <= high_bytes && bytes <= high_bytes - taken;
}
