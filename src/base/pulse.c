/*
 * The pulse of this process. The name of an exchange is borrowed, and its owner may want to release it while the
 * watch's thread copies it. So the reader says first that it reads and then looks for the name; the owner takes the
 * name away first and then waits until nobody reads. Both are sequentially consistent: one of the two sees the other.
 */
#include "base/pulse.h"

#include <sched.h>
#include <stdbool.h>
#include <stdio.h>

cvy_pulse cvy_pulse_now = {.exchange = -1};

static atomic_bool being_read;

void cvy_pulse_forget(void)
{
    atomic_store(&cvy_pulse_now.text, NULL);
    atomic_store(&cvy_pulse_now.exchange, -1);
    while (atomic_load(&being_read)) {
        sched_yield();
    }
}

void cvy_pulse_read(cvy_pulse_state *state_out)
{
    state_out->beats = atomic_load_explicit(&cvy_pulse_now.beats, memory_order_relaxed);
    state_out->activity = (cvy_activity)atomic_load_explicit(&cvy_pulse_now.activity, memory_order_relaxed);
    state_out->exchange = atomic_load_explicit(&cvy_pulse_now.exchange, memory_order_acquire);
    atomic_store(&being_read, true);
    const char *text = atomic_load(&cvy_pulse_now.text);
    snprintf(state_out->text, sizeof state_out->text, "%s", text ? text : "");
    atomic_store(&being_read, false);
}

const char *cvy_activity_name(cvy_activity activity)
{
    static const char *const names[CVY_ACTIVITIES] = {
        [CVY_ACTIVITY_STARTING] = "starting",
        [CVY_ACTIVITY_PLANNING] = "planning",
        [CVY_ACTIVITY_MEASURING] = "measuring kernels",
        [CVY_ACTIVITY_READING] = "reading data",
        [CVY_ACTIVITY_COMPUTING] = "computing",
        [CVY_ACTIVITY_COMMUNICATING] = "communicating",
        [CVY_ACTIVITY_SAVING] = "saving a checkpoint",
        [CVY_ACTIVITY_LOADING] = "loading a checkpoint",
        [CVY_ACTIVITY_EVALUATING] = "evaluating",
        [CVY_ACTIVITY_FINISHED] = "finished",
    };
    return (unsigned)activity < CVY_ACTIVITIES ? names[activity] : "doing something unknown";
}
