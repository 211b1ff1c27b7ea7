/*
 * Strings that grow, figures for people, and "did you mean". Figures have three digits; the nearest word is the one
 * with the least optimal string alignment distance (insert, delete, replace, swap two neighbours), which is what typing
 * errors are made of: Damerau, "A technique for computer detection and correction of spelling errors", CACM 7(3), 1964.
 */
#include "base/text.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"

enum { MAX_WORD = 64 }; /* longer words are nobody's typing error */

static int grow(cvy_text *text, size_t capacity)
{
    char *data = cvy_recalloc(text->data, text->capacity, capacity, 1);
    if (!data) {
        text->failed = 1;
        return 0;
    }
    text->data = data;
    text->capacity = capacity;
    return 1;
}

void cvy_text_add(cvy_text *text, const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    size_t room = text->capacity - text->length;
    int wanted = vsnprintf(text->data ? text->data + text->length : NULL, room, format, arguments);
    if (wanted < 0) {
        text->failed = 1;
    } else if (!text->failed && (size_t)wanted >= room && grow(text, 2 * (text->length + (size_t)wanted) + 64)) {
        vsnprintf(text->data + text->length, text->capacity - text->length, format, again);
    }
    if (!text->failed) {
        text->length += (size_t)wanted;
    } else if (text->data) {
        text->data[text->length] = '\0';
    }
    va_end(again);
    va_end(arguments);
}

char *cvy_text_take(cvy_text *text)
{
    char *data = NULL;
    if (!text->failed && (text->data || grow(text, 1))) {
        data = text->data;
        text->data = NULL;
    } else {
        (void)cvy_fail(CVY_ERR_MEMORY, "no memory for a text of more than %zu bytes", text->length);
    }
    cvy_text_destroy(text);
    return data;
}

void cvy_text_destroy(cvy_text *text)
{
    cvy_free(text->data);
    *text = (cvy_text){0};
}

/* Three digits without an exponent: 1.23, 12.3, 123; trailing zeros stay away. */
static void print_scaled(double value, const char *separator, const char *prefix, const char *unit, char *text)
{
    snprintf(text, CVY_UNIT_TEXT, "%.3g%s%s%s", value, separator, prefix, unit);
}

const char *cvy_print_rate(double per_s, char *text)
{
    if (fabs(per_s) >= 1000.0 && fabs(per_s) < 1e15) {
        return cvy_print_count(llround(per_s), text);
    }
    snprintf(text, CVY_UNIT_TEXT, "%.3g", per_s);
    return text;
}

const char *cvy_print_si(double value, const char *unit, char *text)
{
    static const char *const prefix[] = {"n", "u", "m", "", "k", "M", "G", "T", "P", "E"};
    enum { NONE = 3, LAST = 9 };
    int i = NONE;
    double size = fabs(value);
    if (isfinite(size) && size > 0) {
        while (size >= 999.5 && i < LAST) { /* what would print as 1000 is 1 of the next prefix */
            size /= 1000;
            i++;
        }
        while (size < 0.9995 && i > 0) {
            size *= 1000;
            i--;
        }
    }
    print_scaled(value < 0 ? -size : size, prefix[i][0] || unit[0] ? " " : "", prefix[i], unit, text);
    return text;
}

const char *cvy_print_bytes(double bytes, char *text)
{
    if (fabs(bytes) < 1) { /* there is no half byte, so no prefix below 1 */
        snprintf(text, CVY_UNIT_TEXT, "0 B");
        return text;
    }
    return cvy_print_si(bytes, "B", text);
}

const char *cvy_print_seconds(double seconds, char *text)
{
    double whole = round(seconds);
    if (!(seconds >= 59.95) || !isfinite(seconds)) {
        double size = fabs(seconds);
        bool plain = !isfinite(size) || size == 0 || size >= 0.9995; /* 1 s and up know no prefix */
        if (plain) {
            print_scaled(seconds, " ", "", "s", text);
        } else {
            cvy_print_si(seconds, "s", text);
        }
    } else if (whole < 3600) {
        snprintf(text, CVY_UNIT_TEXT, "%d min %02d s", (int)whole / 60, (int)whole % 60);
    } else if (whole < 1e15) {
        int64_t minutes = (int64_t)round(seconds / 60);
        snprintf(text, CVY_UNIT_TEXT, "%" PRId64 " h %02d min", minutes / 60, (int)(minutes % 60));
    } else {
        print_scaled(seconds / 3600, " ", "", "h", text);
    }
    return text;
}

const char *cvy_print_count(int64_t count, char *text)
{
    char digits[CVY_UNIT_TEXT];
    int length = snprintf(digits, sizeof digits, "%" PRId64, count);
    int first = digits[0] == '-'; /* a sign takes no comma */
    char *out = text;
    for (int i = 0; i < length; i++) {
        if (i > first && (length - i) % 3 == 0) {
            *out++ = ',';
        }
        *out++ = digits[i];
    }
    *out = '\0';
    return text;
}

const char *cvy_print_word(const char *word, char *text)
{
    snprintf(text, CVY_WORD_TEXT, "%.60s%s", word, strnlen(word, 61) > 60 ? "..." : "");
    for (char *c = text; *c; c++) {
        if (iscntrl((unsigned char)*c)) {
            *c = '?';
        }
    }
    return text;
}

const char *cvy_print_words(const char *const *words, char *text, size_t bytes)
{
    size_t length = 0;
    text[0] = '\0';
    for (int i = 0; words[i] && length < bytes; i++) {
        length += (size_t)snprintf(text + length, bytes - length, "%s%s", i ? ", " : "", words[i]);
    }
    return text;
}

/* Distance of two words of at most MAX_WORD letters, by rows: two rows above are kept for swaps. */
static int measure_distance(const char *a, int a_length, const char *b, int b_length)
{
    int rows[3][MAX_WORD + 1];
    for (int j = 0; j <= b_length; j++) {
        rows[0][j] = j;
    }
    for (int i = 1; i <= a_length; i++) {
        int *row = rows[i % 3];
        const int *above = rows[(i + 2) % 3], *above2 = rows[(i + 1) % 3];
        row[0] = i;
        for (int j = 1; j <= b_length; j++) {
            int best = above[j - 1] + (a[i - 1] != b[j - 1]);
            best = above[j] + 1 < best ? above[j] + 1 : best;
            best = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && above2[j - 2] + 1 < best) {
                best = above2[j - 2] + 1;
            }
            row[j] = best;
        }
    }
    return rows[a_length % 3][b_length];
}

const char *cvy_nearest(const char *word, const char *const *words)
{
    const char *nearest = NULL;
    int least = MAX_WORD + 1;
    int length = (int)strnlen(word, MAX_WORD + 1);
    for (int i = 0; words[i] && length <= MAX_WORD; i++) {
        int other = (int)strnlen(words[i], MAX_WORD + 1);
        if (other > MAX_WORD) {
            continue;
        }
        int distance = measure_distance(word, length, words[i], other);
        int shorter = length < other ? length : other, longer = length < other ? other : length;
        int near = longer / 3 > 1 ? longer / 3 : 1;
        if (shorter >= 3 && distance > near && strncmp(word, words[i], (size_t)shorter) == 0) {
            distance = near; /* "convolution" means conv, though seven letters are gone */
        }
        if (distance <= near && distance < least) {
            nearest = words[i];
            least = distance;
        }
    }
    return nearest;
}
