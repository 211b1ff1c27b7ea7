/* Windows over an activation: what forward and backward pooling share. */
#ifndef CVY_BACKEND_CPU_POOL_GEOMETRY_H
#define CVY_BACKEND_CPU_POOL_GEOMETRY_H

#include "backend/cpu/cpu.h"

/** Values of an output row that are worked on at once, and stay in the first-level cache. */
enum { CVY_POOL_SEGMENT = 1024 };

/** Where the input and the output of a pooling lie. */
typedef struct cvy_pool {
    const cvy_window *window;
    int64_t in[3], out[3]; /**< d,h,w */
    cvy_columns x, y;
} cvy_pool;

/** A part of an output row: positions [first, last) along w at (d, h) of a strip of a sample. */
typedef struct cvy_pool_segment {
    cvy_strip from, to;
    int64_t sample, d, h, first, last;
} cvy_pool_segment;

/**
 * One position of the window over a segment: outputs [first, last) whose input there is not padding, as a loop over
 * rows and columns with unit step in the output's values: rows are outputs and columns channels, or there is one row of
 * outputs where channels do not lie innermost.
 */
typedef struct cvy_pool_tap {
    int64_t index;                 /**< in kd,kh,kw order */
    int64_t k[3];
    int64_t first, last;           /**< empty where nothing is inside */
    int64_t offset;                /**< of the input of output `first` */
    int64_t rows, columns;
    int64_t row_step, column_step; /**< in the input */
} cvy_pool_tap;

/** Values in rows without gaps: all of them in one where nothing lies between them, else a row of channels each. */
typedef struct cvy_pool_rows {
    int64_t offset, stride, count, width;
} cvy_pool_rows;

/** Whether cvy_pool_get() describes a pooling between these two tensors. */
bool cvy_pool_fits(const cvy_tensor *x, const cvy_tensor *y);

/** Describe a pooling from its larger and its smaller side. Cannot fail. */
cvy_pool cvy_pool_get(const cvy_op *op, const cvy_tensor *x, const cvy_tensor *y);

/** Outputs of a row that make one segment. */
int64_t cvy_pool_segment_positions(const cvy_pool *pool);

/** Offset of the first output of a segment. */
int64_t cvy_pool_output_offset(const cvy_pool *pool, const cvy_pool_segment *segment);

/** The outputs of a segment. Cannot fail. */
cvy_pool_rows cvy_pool_output_rows(const cvy_pool *pool, const cvy_pool_segment *segment);

/** All of the input that is of a segment's strip and sample. Cannot fail. */
cvy_pool_rows cvy_pool_strip_rows(const cvy_pool *pool, const cvy_pool_segment *segment);

/** Go to the next tap; start with index -1 and zeros. False after the last. */
bool cvy_pool_next_tap(const cvy_pool *pool, const cvy_pool_segment *segment, cvy_pool_tap *tap);

/**
 * Clear what row @p row of outputs, in d,h order, is the first to reach of strip @p unit, counted through all samples:
 * what is added there next is in the cache. The last row clears what is left.
 *
 * @param[in,out] cleared  positions of the strip that are cleared; 0 before its first row
 */
void cvy_pool_clear(const cvy_pool *pool, int64_t unit, int64_t row, int64_t *cleared, float *dx);

/** Positions of the window that are inside the input, at output @p w of a segment. */
int64_t cvy_pool_count_inside(const cvy_pool *pool, const cvy_pool_segment *segment, int64_t w);

#endif
