/* Text of outside origin that is to be shown: UTF-8 without characters that steer a terminal. */
#ifndef CVY_BASE_UTF8_H
#define CVY_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/**
 * Bytes of the character that a text begins with, 1 to 4 (Unicode 15, table 3-7); 0 where there is none to show: at the
 * end, at a byte that is no part of a character, at one that was cut, and at control characters, those of one byte (C0,
 * DEL) and those of two (C1). Cannot fail.
 */
static inline int cvy_utf8_measure(const char *text)
{
    const unsigned char *c = (const unsigned char *)text;
    if (c[0] < 0x80) {
        return c[0] >= 0x20 && c[0] != 0x7f;
    }
    int bytes = c[0] < 0xc2 ? 0 : c[0] < 0xe0 ? 2 : c[0] < 0xf0 ? 3 : c[0] < 0xf5 ? 4 : 0;
    unsigned char least = c[0] == 0xc2 || c[0] == 0xe0 ? 0xa0 : c[0] == 0xf0 ? 0x90 : 0x80;
    unsigned char most = c[0] == 0xed ? 0x9f : c[0] == 0xf4 ? 0x8f : 0xbf;
    for (int i = 1; i < bytes; i++) {
        if (c[i] < (i == 1 ? least : 0x80) || c[i] > (i == 1 ? most : 0xbf)) {
            return 0;
        }
    }
    return bytes;
}

/** Whether a text is one line to show, of at most @p most bytes; an empty one is. Cannot fail. */
static inline bool cvy_utf8_is_line(const char *text, size_t most)
{
    size_t length = 0;
    int bytes;
    while (length <= most && (bytes = cvy_utf8_measure(text + length)) > 0) {
        length += (size_t)bytes;
    }
    return !text[length] && length <= most;
}

#endif
