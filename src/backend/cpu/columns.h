/*
 * An activation of any format as columns: matrices in which each column belongs to one channel. Kernels that go by
 * channels (norms, pooling over space) are written once, over such matrices, for all formats.
 *
 * A *strip* is a set of channels whose values lie side by side: one channel in plain format, 8 or 16 in the blocked
 * ones, up to CVY_COLUMNS_WIDTH in channels-last and in n,c. A *position* is a place in space. Where the positions of a
 * strip follow each other without a gap, a row holds several of them, so that a loop over a row fills vector registers
 * even in plain format: the columns then repeat with a period of `lanes`. Rows are gone through one after the other:
 * taking several at once saves instructions, but the jumps between them halve what the hardware's prefetchers bring.
 */
#ifndef CVY_BACKEND_CPU_COLUMNS_H
#define CVY_BACKEND_CPU_COLUMNS_H

#include "tensor/tensor.h"

enum {
    CVY_COLUMNS_WIDTH = 512, /**< of the widest row: a strip that is less than all channels jumps over the others */
    CVY_COLUMNS_ROW = 32,    /**< of a row where lanes divide it: its sums stay in registers */
};

/** How an activation falls into strips. Strides in elements. */
typedef struct cvy_columns {
    int64_t channels; /**< logical */
    int64_t strips;
    int64_t lanes;    /**< channels of a strip, padding included; the last strip of channels-last may have fewer */
    int64_t samples;
    int64_t area;     /**< positions of a sample */
    int64_t sample_stride, strip_stride, position_stride;
} cvy_columns;

/** One strip: what its rows look like. */
typedef struct cvy_strip {
    int64_t offset;  /**< of its first element */
    int64_t channel; /**< first logical channel */
    int64_t lanes;   /**< channels in memory */
    int64_t valid;   /**< logical channels; the other lanes are padding */
    int64_t width;   /**< of a row: a multiple of lanes, at most CVY_COLUMNS_WIDTH */
} cvy_strip;

/** Consecutive positions of a strip: full rows, and one shorter row after them. */
typedef struct cvy_matrix {
    int64_t rows, width, stride, tail;
} cvy_matrix;

/** A walk over positions [next, last) of a strip, counted through all samples; stops at the end of each sample. */
typedef struct cvy_walk {
    const cvy_columns *columns;
    const cvy_strip *strip;
    int64_t next, last;
    int64_t offset;    /**< out: of the first element of the run */
    int64_t positions; /**< out: in the run */
    cvy_matrix matrix; /**< out */
} cvy_walk;

/** Whether a tensor is an activation that columns describe. */
bool cvy_columns_fit(const cvy_tensor *tensor);

/** Describe an activation that fits. Cannot fail. */
cvy_columns cvy_columns_get(const cvy_tensor *tensor);

/** Take all samples as one where positions run on from a sample to the next: longer runs for sums over samples. */
cvy_columns cvy_columns_join_samples(const cvy_columns *columns);

/** Describe strip @p index. Cannot fail. */
cvy_strip cvy_columns_strip(const cvy_columns *columns, int64_t index);

/** Go to the next run; false where there is none. */
bool cvy_walk_next(cvy_walk *walk);

/** Repeat the first @p lanes values until a row is full. */
void cvy_columns_repeat(const cvy_strip *strip, float *row);

/** Add up what a row holds for each lane. */
void cvy_columns_fold(const cvy_strip *strip, const float *row, double *lane_out);

/** Add each column of a matrix to @p sum, @p matrix->width values. */
void cvy_columns_sum(const float *x, const cvy_matrix *matrix, float *sum);

#endif
