/*
 * The 64-bit FNV-1a hash of Fowler, Noll and Vo. Numbers go in as 64-bit words, byte by byte from the lowest, never as
 * the bytes of a struct: so neither padding nor byte order counts, and a hash is the same on every machine.
 */
#ifndef CVY_BASE_HASH_H
#define CVY_BASE_HASH_H

#include <stdint.h>
#include <string.h>

/** The hash of nothing: where every hash starts. */
#define CVY_HASH_INIT UINT64_C(0xCBF29CE484222325)

/** Take one byte in. */
static inline uint64_t cvy_hash_byte(uint64_t hash, uint8_t byte) { return (hash ^ byte) * UINT64_C(0x100000001B3); }

/** Take a number in. */
static inline uint64_t cvy_hash_word(uint64_t hash, uint64_t word)
{
    for (int i = 0; i < 8; i++) {
        hash = cvy_hash_byte(hash, (uint8_t)(word >> 8 * i));
    }
    return hash;
}

/** Take a real number in; -0 counts as 0, which it equals. */
static inline uint64_t cvy_hash_real(uint64_t hash, double value)
{
    uint64_t word;
    value += 0.0;
    memcpy(&word, &value, sizeof word);
    return cvy_hash_word(hash, word);
}

/** Take the characters of a text in. */
static inline uint64_t cvy_hash_text(uint64_t hash, const char *text)
{
    for (; *text; text++) {
        hash = cvy_hash_byte(hash, (uint8_t)*text);
    }
    return hash;
}

#endif
