/* The thread-local record of the last failure. Words longer than the record lose their middle, never overrun it. */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

enum { MESSAGE_BYTES = 1024, WORDS_BYTES = 8 * MESSAGE_BYTES };

/* Words come from options and files too: they stay on one line, in UTF-8, and do not steer a terminal. */
static void clean(char *words)
{
    for (char *c = words; *c;) {
        int bytes = cvy_utf8_measure(c);
        if (!bytes) {
            *c = '?';
        }
        c += bytes ? bytes : 1;
    }
}

static _Thread_local char message[MESSAGE_BYTES];

/* Make words the message: of long ones the begin and the end, which tell where it was and what was wrong. */
static void keep(const char *words)
{
    static const char gap[] = "...";
    const size_t half = MESSAGE_BYTES / 2;
    size_t length = strlen(words);
    if (length < MESSAGE_BYTES) {
        memcpy(message, words, length + 1);
    } else {
        size_t rest = MESSAGE_BYTES - half - (sizeof gap - 1); /* with the final zero */
        memcpy(message, words, half);
        memcpy(message + half, gap, sizeof gap - 1);
        memcpy(message + half + sizeof gap - 1, words + length + 1 - rest, rest);
    }
    clean(message);
}

const char *cvy_error_message(void) { return message; }

void cvy_error_clear(void) { message[0] = '\0'; }

void cvy_error_set(const char *format, ...)
{
    char words[WORDS_BYTES]; /* aside, since an argument may point into the old message */
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(words, sizeof words, format, arguments);
    va_end(arguments);
    keep(words);
}

void cvy_error_prepend(const char *format, ...)
{
    char context[MESSAGE_BYTES / 2];
    char words[sizeof context + MESSAGE_BYTES + 2];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(context, sizeof context, format, arguments);
    va_end(arguments);
    snprintf(words, sizeof words, "%s: %s", context, message);
    keep(words);
}

int cvy_status_exit_code(cvy_status status)
{
    static const int code[] = {
        [CVY_OK] = 0,         [CVY_ERR_ARG] = 2,         [CVY_ERR_INPUT] = 2,
        [CVY_ERR_DATA] = 3,   [CVY_ERR_INFEASIBLE] = 4,  [CVY_ERR_DIVERGED] = 5,
        [CVY_ERR_RANK] = 6,   [CVY_ERR_CHECKPOINT] = 7,  [CVY_ERR_IO] = 1,
        [CVY_ERR_MEMORY] = 1, [CVY_ERR_UNSUPPORTED] = 2, [CVY_STOPPED] = 1,
        [CVY_PREEMPTED] = 75,    [CVY_ERR_DIFFERS] = 1,
    };
    return (unsigned)status < sizeof code / sizeof code[0] ? code[status] : 1;
}

const char *cvy_status_name(cvy_status status)
{
    static const char *const name[] = {
        [CVY_OK] = "CVY_OK",
        [CVY_ERR_ARG] = "CVY_ERR_ARG",
        [CVY_ERR_INPUT] = "CVY_ERR_INPUT",
        [CVY_ERR_DATA] = "CVY_ERR_DATA",
        [CVY_ERR_INFEASIBLE] = "CVY_ERR_INFEASIBLE",
        [CVY_ERR_DIVERGED] = "CVY_ERR_DIVERGED",
        [CVY_ERR_RANK] = "CVY_ERR_RANK",
        [CVY_ERR_CHECKPOINT] = "CVY_ERR_CHECKPOINT",
        [CVY_ERR_IO] = "CVY_ERR_IO",
        [CVY_ERR_MEMORY] = "CVY_ERR_MEMORY",
        [CVY_ERR_UNSUPPORTED] = "CVY_ERR_UNSUPPORTED",
        [CVY_STOPPED] = "CVY_STOPPED",
        [CVY_PREEMPTED] = "CVY_PREEMPTED",
    };
    return (unsigned)status < sizeof name / sizeof name[0] ? name[status] : "unknown status";
}
