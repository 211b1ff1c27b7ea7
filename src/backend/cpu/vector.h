/*
 * Wider registers where the machine has them. A function marked CVY_VECTOR is compiled once for AVX2 with fused
 * multiply-add and once for the base of the architecture; the loader picks, so that one build serves all machines. It
 * works on a range: the parallel region lies in its caller, since compilers outline regions without the mark.
 *
 * CVY_WIDE_VECTOR adds AVX-512, for loops whose operands come from the caches, or that compute much of each element
 * (exponentials take 0.6 of the time): where memory sets the pace it brings nothing, and each version is code.
 *
 * Sanitizers instrument the loader's choice before they are set up, so they get the base version only.
 */
#ifndef CVY_BACKEND_CPU_VECTOR_H
#define CVY_BACKEND_CPU_VECTOR_H

#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && !defined(CVY_SANITIZED)
#define CVY_VECTOR __attribute__((target_clones("arch=x86-64-v3", "default")))
#define CVY_WIDE_VECTOR __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define CVY_VECTOR
#define CVY_WIDE_VECTOR
#endif

/**
 * In a loop that must stay outside of the one in it: GCC would take two of its iterations together, guarded by a
 * comparison of addresses, and run scalar code where that fails.
 */
#define CVY_STAY __asm__ volatile("")

/** A loop that is written once and compiled into its callers, with their constants. */
#define CVY_INLINE static inline __attribute__((always_inline))

#endif
