/* Words for people: growing strings, units, nearest matches. */
#ifndef CVY_BASE_TEXT_H
#define CVY_BASE_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/** A string that grows; start from {0}. Running out of memory is kept and told by cvy_text_take(). */
typedef struct cvy_text {
    char *data;
    size_t length, capacity;
    int failed;
} cvy_text;

/** Append, printf style. */
void cvy_text_add(cvy_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** Give the string away (cvy_free()); NULL, worded, where an append ran out of memory. */
char *cvy_text_take(cvy_text *text);

/** Release. */
void cvy_text_destroy(cvy_text *text);

/** Room for one printed unit. */
enum { CVY_UNIT_TEXT = 32 };

/** "1.23 GB" (powers of 1000), "512 B". */
const char *cvy_print_bytes(double bytes, char *text);

/** "1.23 ms", "4.5 s", "3 min 20 s", "2 h 05 min". */
const char *cvy_print_seconds(double seconds, char *text);

/** "25,557,032". */
const char *cvy_print_count(int64_t count, char *text);

/** "3.4 GFLOP", "12.3 k": value with prefix and @p unit, three digits. */
const char *cvy_print_si(double value, const char *unit, char *text);

/** "85.5", "12,345": so many a second, without a unit. */
const char *cvy_print_rate(double per_s, char *text);

/** Room for one printed word. */
enum { CVY_WORD_TEXT = 72 };

/** A word of outside origin, fit for a one-line message: 60 characters at most, control characters as '?'. */
const char *cvy_print_word(const char *word, char *text);

/** "a, b, c" from @p words (NULL-terminated) into @p text of @p bytes; cut where it is full. */
const char *cvy_print_words(const char *const *words, char *text, size_t bytes);

/** The entry of @p words (NULL-terminated) with the least edit distance to @p word; NULL where none is near. */
const char *cvy_nearest(const char *word, const char *const *words);

#endif
