/*
 * A timeline in Chrome's trace format (chrome://tracing, Perfetto): an array of complete events, "ph": "X", with ts and
 * dur in microseconds, pid = rank, tid = stream. Slices nest by time: iteration, phase, step. They are kept in memory
 * that is taken in set-up, and written when the timeline is closed.
 * Format: "Trace Event Format", Google, section "Complete Events".
 */
#ifndef CVY_RUNTIME_TIMELINE_H
#define CVY_RUNTIME_TIMELINE_H

#include <stdint.h>

#include "base/error.h"

typedef struct cvy_timeline cvy_timeline;

/** Bytes of a slice's name, the final zero included; longer ones are cut. */
enum { CVY_TIMELINE_NAME = 64 };

/** One slice. */
typedef struct cvy_timeline_slice {
    const char *name;        /**< copied */
    const char *category;    /**< the phase, "iteration", …; borrowed until the timeline is closed */
    const char *layer;       /**< shown as an argument; NULL: none; borrowed until the timeline is closed */
    double start_s, end_s;   /**< of cvy_clock_s() */
    double flop, bytes;      /**< shown as arguments where above 0 */
    int stream;
} cvy_timeline_slice;

/**
 * Start a timeline.
 *
 * @param[in]  path          file to write at the end; copied
 * @param[in]  rank          of this process
 * @param[in]  slices        room; at least 1
 * @param[out] timeline_out  closed with cvy_timeline_close()
 */
cvy_status cvy_timeline_create(const char *path, int rank, int64_t slices, cvy_timeline **timeline_out);

/** Note a slice. Allocates nothing; without room left it is dropped. */
void cvy_timeline_add(cvy_timeline *timeline, const cvy_timeline_slice *slice);

/** Slices that there is still room for. */
int64_t cvy_timeline_room(const cvy_timeline *timeline);

/** Write the file, whole or not at all, and release; NULL is fine. @retval CVY_ERR_IO, CVY_ERR_MEMORY */
cvy_status cvy_timeline_close(cvy_timeline **timeline);

#endif
