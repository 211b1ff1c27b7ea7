/*
 * Boxes of tensors, packed for travel: elements without the padding of a format, in an order that sender and receiver
 * share, whatever blocks either keeps them in.
 */
#ifndef CVY_RUNTIME_PACK_H
#define CVY_RUNTIME_PACK_H

#include "tensor/tensor.h"

/** A part of a tensor: of each dimension the indices [begin, begin + extent), as the tensor in memory counts them. */
typedef struct cvy_box {
    int64_t begin[CVY_MAX_DIMS], extent[CVY_MAX_DIMS];
} cvy_box;

/** All of a tensor. */
cvy_box cvy_box_whole(const cvy_tensor *tensor);

/** Elements of a box of so many dimensions. */
int64_t cvy_box_elements(const cvy_box *box, int dims);

enum { CVY_PACK_LEVELS = 8, CVY_PACK_PARTS = 3 };

/** A copy in nested loops; the innermost one is over contiguous elements where it can be. */
typedef struct cvy_pack_loops {
    int levels;
    int64_t extent[CVY_PACK_LEVELS], memory_stride[CVY_PACK_LEVELS], packed_stride[CVY_PACK_LEVELS];
    int64_t memory_offset, packed_offset;
} cvy_pack_loops;

/** A box, ready to be packed or unpacked. */
typedef struct cvy_pack {
    cvy_dtype dtype;
    int parts; /**< loops: a blocked dimension may begin and end within a block */
    cvy_pack_loops part[CVY_PACK_PARTS];
    void *memory, *packed; /**< of the tensor, and of the first element that travels */
} cvy_pack;

/**
 * Make ready. Packed elements are in the order n,c,d,h,w, or n,d,h,w,c where channels lie innermost in @p order.
 *
 * @param[in] tensor  an activation, or plain; inside of which the box lies
 * @param[in] memory  of the tensor; borrowed
 * @param[in] order   the format by whose order both sides go, whatever their own
 * @param[in] packed  of as many elements as the box has, of the tensor's type; borrowed
 */
void cvy_pack_setup(const cvy_tensor *tensor, void *memory, const cvy_box *box, cvy_format order, void *packed,
                    cvy_pack *pack_out);

/** From the tensor's memory to the packed one. */
void cvy_pack_run(const cvy_pack *pack);

/** From the packed memory to the tensor's; @p add: f32 or f64 are added to what is there. */
void cvy_pack_run_back(const cvy_pack *pack, bool add);

#endif
