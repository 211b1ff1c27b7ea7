/*
 * A timeline in Chrome's trace format: complete events ("ph": "X") with ts and dur in microseconds, pid the rank, tid
 * the stream. Slices nest: iteration, phase, step. Slices are kept in memory that is taken at the start and written at
 * the end. Format: "Trace Event Format", Google, section "Complete Events"; chrome://tracing and Perfetto show it.
 */
#ifndef CVY_RUNTIME_TIMELINE_H
#define CVY_RUNTIME_TIMELINE_H

#include <stdint.h>

#include "base/error.h"

typedef struct cvy_timeline cvy_timeline;

/** One slice. Strings are borrowed until cvy_timeline_close(). */
typedef struct cvy_slice {
    const char *name;       /**< "layer1.0.conv1 forward" is name "layer1.0.conv1", suffix "forward" */
    const char *suffix;     /**< NULL: none; with one, the name is a layer's, and an argument says so */
    const char *category;   /**< "iteration", or a phase */
    double start_s, end_s;  /**< of cvy_clock_s() */
    double flop, bytes;     /**< of a step; 0: not said */
    int stream;
} cvy_slice;

/** Start a timeline that holds at most @p slices, at least 1; later ones are dropped. */
cvy_status cvy_timeline_create(const char *path, int64_t slices, cvy_timeline **timeline_out);

/** Add a slice. Allocates nothing. */
void cvy_timeline_add(cvy_timeline *timeline, const cvy_slice *slice);

/** Whether there is no room left. */
int cvy_timeline_full(const cvy_timeline *timeline);

/** Write the file whole, release, and set to NULL; NULL is fine. @retval CVY_ERR_IO */
cvy_status cvy_timeline_close(cvy_timeline **timeline);

#endif
