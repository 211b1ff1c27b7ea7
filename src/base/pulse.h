/*
 * What this process does now, for whoever watches it: one process is one rank, so there is one pulse a process. It is
 * written by the thread that works, without a lock, and read by the watch (comm/watch.h), which passes it on: so that
 * the others can say "rank 2 is reading data" where they wait for it.
 *
 * Whatever may take long beats: each step of an iteration, each tensor of a checkpoint, each kernel that is measured. A
 * rank that neither beats nor waits for others within the watch's time-out is taken for lost.
 */
#ifndef CVY_BASE_PULSE_H
#define CVY_BASE_PULSE_H

#include <stdatomic.h>
#include <stdint.h>

/** What a process can be at. */
typedef enum cvy_activity {
    CVY_ACTIVITY_STARTING,
    CVY_ACTIVITY_PLANNING,
    CVY_ACTIVITY_MEASURING,
    CVY_ACTIVITY_READING,       /**< data */
    CVY_ACTIVITY_COMPUTING,
    CVY_ACTIVITY_COMMUNICATING, /**< it waits for other ranks: not to be blamed while one of them does something else */
    CVY_ACTIVITY_SAVING,
    CVY_ACTIVITY_LOADING,
    CVY_ACTIVITY_EVALUATING,
    CVY_ACTIVITY_FINISHED,      /**< it has left the run in good order */
    CVY_ACTIVITIES
} cvy_activity;

/** Room for the copy of an exchange's name, its end included. */
enum { CVY_PULSE_TEXT = 64 };

/** The one pulse; through the functions below only. */
typedef struct cvy_pulse {
    _Atomic uint64_t beats;
    _Atomic int activity;
    _Atomic int64_t exchange;
    _Atomic(const char *) text;
} cvy_pulse;

extern cvy_pulse cvy_pulse_now;

/** A copy of the pulse. */
typedef struct cvy_pulse_state {
    uint64_t beats; /**< how often it has beaten so far */
    cvy_activity activity;
    int64_t exchange; /**< the number of the last exchange, or of the one under way; -1: none, or it has no number */
    char text[CVY_PULSE_TEXT]; /**< what names that exchange; may be empty */
} cvy_pulse_state;

/** Say that work goes on. An increment: cheap enough for each step. From any thread. */
static inline void cvy_pulse_beat(void) { atomic_fetch_add_explicit(&cvy_pulse_now.beats, 1, memory_order_relaxed); }

/** Say what is done from here on, and beat. @return what was done before, for whoever wants to go back to it */
static inline cvy_activity cvy_pulse_set(cvy_activity activity)
{
    cvy_pulse_beat();
    return (cvy_activity)atomic_exchange_explicit(&cvy_pulse_now.activity, (int)activity, memory_order_relaxed);
}

/**
 * Say that an exchange with other ranks begins: the process communicates until cvy_pulse_set(), and beats.
 *
 * @param[in] number  counts the exchanges of the run alike on all ranks; -1 where there is no count
 * @param[in] text    "all-reduce over sample, layer conv1"; borrowed until another one is set: static, or released only
 *                    after cvy_pulse_forget(); NULL: no name
 * @return what was done before
 */
static inline cvy_activity cvy_pulse_exchange(int64_t number, const char *text)
{
    atomic_store_explicit(&cvy_pulse_now.text, text, memory_order_release);
    atomic_store_explicit(&cvy_pulse_now.exchange, number, memory_order_release);
    return cvy_pulse_set(CVY_ACTIVITY_COMMUNICATING);
}

/** Forget the exchange and its name; when this returns nobody reads the text any more, and it may be released. */
void cvy_pulse_forget(void);

/**
 * Copy the pulse. For one thread, the watch's. A number and a name that change meanwhile may be those of two exchanges
 * that follow each other.
 */
void cvy_pulse_read(cvy_pulse_state *state_out);

/** What stands after "it is": "reading data". Cannot fail; unknown values are "doing something unknown". */
const char *cvy_activity_name(cvy_activity activity);

#endif
