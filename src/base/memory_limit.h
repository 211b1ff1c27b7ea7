/* How much memory this process may still take: by the system, and by the control groups (cgroups) that hold it. */
#ifndef CVY_BASE_MEMORY_LIMIT_H
#define CVY_BASE_MEMORY_LIMIT_H

#include <stddef.h>

/**
 * Find the bytes that can be had without ending some process: the least of what the system has (MemAvailable and
 * SwapFree of /proc/meminfo) and of what each control group from this process's own up to the root leaves. A group's
 * room is its limit minus its use, where pages of files do not count as used, since they give way; swap is not counted
 * either. Both versions are known: memory.max and memory.current, memory.limit_in_bytes and memory.usage_in_bytes. What
 * cannot be read limits nothing. Takes no memory and cannot fail.
 *
 * @param[in] root in front of /proc and /sys: "" but in tests
 * @return SIZE_MAX where nothing is known
 */
size_t cvy_memory_find_available_bytes(const char *root);

#endif
