/* How a failure is worded and passed up: the record is thread-local, of fixed size, and takes no memory. */
#ifndef CVY_BASE_ERROR_H
#define CVY_BASE_ERROR_H

#include "convoy/status.h"

/** Set the words of the thread's last failure; cvy_fail() is how it is called. */
void cvy_error_set(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** Put "context: " in front of the words; cvy_fail_within() is how it is called. */
void cvy_error_prepend(const char *format, ...) __attribute__((format(printf, 1, 2)));

/**
 * Word a failure and give its status: return cvy_fail(CVY_ERR_DATA, "%s: %d bytes, expected %d", path, found,
 * expected). The only way to make a status other than CVY_OK. A macro, so that the compiler sees that the status is not
 * CVY_OK and that outputs are set wherever a call succeeded.
 *
 * @param[in] status  not CVY_OK
 * @param[in] ...     printf style; one line, without a final stop or newline: what, where, expected
 */
#define cvy_fail(status, ...) (cvy_error_set(__VA_ARGS__), (status))

/** Put "context: " in front of the words of the failure that is being passed up; gives @p status. */
#define cvy_fail_within(status, ...) (cvy_error_prepend(__VA_ARGS__), (status))

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
