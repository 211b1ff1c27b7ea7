/* How a failure is worded and passed up: the record is thread-local, of fixed size, and takes no memory. */
#ifndef CVY_BASE_ERROR_H
#define CVY_BASE_ERROR_H

#include "convoy/status.h"

/**
 * Word a failure and return its status. The only way to make a status other than CVY_OK.
 *
 * @param[in] status  not CVY_OK
 * @param[in] format  printf style; one line, without a final stop or newline: what, where, expected
 */
cvy_status cvy_fail(cvy_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** Put "context: " in front of the words of the failure that is being passed up; returns @p status. */
cvy_status cvy_fail_within(cvy_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** Forget the thread's last failure (after it has been handled). */
void cvy_error_clear(void);

#define CVY_REQUIRE(condition, status, ...)             \
    do {                                                \
        if (!(condition)) {                             \
            return cvy_fail((status), __VA_ARGS__);     \
        }                                               \
    } while (0)

#define CVY_REQUIRE_GOTO(variable, label, condition, status, ...) \
    do {                                                          \
        if (!(condition)) {                                       \
            (variable) = cvy_fail((status), __VA_ARGS__);         \
            goto label;                                           \
        }                                                         \
    } while (0)

#define CVY_TRY(call)                      \
    do {                                   \
        cvy_status cvy_try_ = (call);      \
        if (cvy_try_ != CVY_OK) {          \
            return cvy_try_;               \
        }                                  \
    } while (0)

#define CVY_TRY_GOTO(variable, label, call) \
    do {                                    \
        (variable) = (call);                \
        if ((variable) != CVY_OK) {         \
            goto label;                     \
        }                                   \
    } while (0)

#endif
