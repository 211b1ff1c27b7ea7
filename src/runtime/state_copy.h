/*
 * Between what a rank holds of a tensor, as it lies in memory, and the whole tensor in plain order: an element is known
 * by its number there.
 */
#ifndef CVY_RUNTIME_STATE_COPY_H
#define CVY_RUNTIME_STATE_COPY_H

#include "runtime/state.h"

/**
 * Copy what is held into the whole tensor; the other elements of that stay as they are.
 *
 * @param[in]  tensor    what is held; its data do not count
 * @param[in]  memory    of what is held
 * @param[out] whole_out of the tensor's type, in plain order
 */
void cvy_state_copy_out(const cvy_state_tensor *tensor, const void *memory, void *whole_out);

/** Copy out of the whole tensor what is held into `data`; padding becomes zero. Nothing where nothing is held. */
void cvy_state_copy_in(const cvy_state_tensor *tensor, const void *whole);

/**
 * Give every element that is held the value that @p value has for its number; padding becomes zero. Nothing where
 * nothing is held.
 */
void cvy_state_fill(const cvy_state_tensor *tensor, double (*value)(const void *context, int64_t element),
                    const void *context);

/** The number of local element @p i of a vector. Cannot fail. */
int64_t cvy_state_find_number(const cvy_state_tensor *tensor, int64_t i);

#endif
