/* The bins of adaptive pooling along one axis: PyTorch's, which overlap where `in` is no multiple of `out`. */
#ifndef CVY_OP_BINS_H
#define CVY_OP_BINS_H

#include <stdint.h>

/** First input index of bin @p o. */
static inline int64_t cvy_bin_begin(int64_t o, int64_t in, int64_t out) { return o * in / out; }

/** One behind the last input index of bin @p o. */
static inline int64_t cvy_bin_end(int64_t o, int64_t in, int64_t out) { return ((o + 1) * in + out - 1) / out; }

#endif
