/*
 * A box is a nest of loops with a stride in memory and one among the packed elements each. A dimension in blocks is two
 * loops; where the box begins or ends within a block, its channels are up to three such nests. Loops are ordered by
 * their stride in memory, and neighbours that run on into each other become one, so that most boxes end up as a few
 * long copies.
 */
#include "runtime/pack.h"

#include <string.h>

#include "base/checked.h"

enum { PARALLEL_ELEMENTS = 1 << 15 };

cvy_box cvy_box_whole(const cvy_tensor *tensor)
{
    cvy_box box = {{0}, {0}};
    memcpy(box.extent, tensor->shape.extent, sizeof box.extent);
    return box;
}

int64_t cvy_box_elements(const cvy_box *box, int dims)
{
    int64_t elements = 1;
    for (int i = 0; i < dims; i++) {
        elements *= box->extent[i];
    }
    return elements;
}

/* Strides of packed elements, by dimension. */
static void find_packed_strides(cvy_format order, int dims, const cvy_box *box, int64_t stride[CVY_MAX_DIMS])
{
    bool channels_last = order == CVY_FORMAT_CHANNELS_LAST || order == CVY_FORMAT_C8 || order == CVY_FORMAT_C16;
    int64_t next = 1;
    if (channels_last) {
        stride[1] = next;
        next *= box->extent[1];
    }
    for (int i = dims - 1; i >= 0; i--) {
        if (i != 1 || !channels_last) {
            stride[i] = next;
            next *= box->extent[i];
        }
    }
}

static void add_level(cvy_pack_loops *loops, int64_t extent, int64_t memory_stride, int64_t packed_stride)
{
    if (extent == 1) {
        return;
    }
    int at = loops->levels++;
    for (; at > 0 && loops->memory_stride[at - 1] < memory_stride; at--) { /* the largest stride is the outermost */
        loops->extent[at] = loops->extent[at - 1];
        loops->memory_stride[at] = loops->memory_stride[at - 1];
        loops->packed_stride[at] = loops->packed_stride[at - 1];
    }
    loops->extent[at] = extent;
    loops->memory_stride[at] = memory_stride;
    loops->packed_stride[at] = packed_stride;
}

/* Let neighbouring loops that run on into each other become one. */
static void join_levels(cvy_pack_loops *loops)
{
    int kept = 0;
    for (int i = 1; i < loops->levels; i++) {
        bool runs_on = loops->memory_stride[kept] == loops->extent[i] * loops->memory_stride[i] &&
                       loops->packed_stride[kept] == loops->extent[i] * loops->packed_stride[i];
        int64_t outer = runs_on ? loops->extent[kept] : 1;
        kept += !runs_on;
        loops->extent[kept] = outer * loops->extent[i];
        loops->memory_stride[kept] = loops->memory_stride[i];
        loops->packed_stride[kept] = loops->packed_stride[i];
    }
    loops->levels = loops->levels > 0 ? kept + 1 : 0;
}

/* The loops of a box that, in the dimension in blocks, lies within one block or covers whole ones. */
static void add_part(cvy_pack *pack, const cvy_layout *layout, const cvy_box *box, const int64_t *packed_stride,
                     int64_t packed_offset)
{
    cvy_pack_loops *loops = &pack->part[pack->parts++];
    *loops = (cvy_pack_loops){.memory_offset = cvy_layout_offset(layout, box->begin), .packed_offset = packed_offset};
    for (int i = 0; i < layout->dims; i++) {
        int64_t block = layout->block[i], extent = box->extent[i];
        if (block > 1 && extent > block) {
            add_level(loops, extent / block, layout->stride[i], block * packed_stride[i]);
            add_level(loops, block, layout->inner_stride[i], packed_stride[i]);
        } else if (block > 1) {
            add_level(loops, extent, layout->inner_stride[i], packed_stride[i]);
        } else {
            add_level(loops, extent, layout->stride[i], packed_stride[i]);
        }
    }
    join_levels(loops);
}

void cvy_pack_setup(const cvy_tensor *tensor, void *memory, const cvy_box *box, cvy_format order, void *packed,
                    cvy_pack *pack)
{
    cvy_layout layout = cvy_tensor_layout(tensor);
    int64_t packed_stride[CVY_MAX_DIMS];
    int blocked = 0;
    while (blocked < layout.dims && layout.block[blocked] == 1) {
        blocked++;
    }
    *pack = (cvy_pack){.dtype = tensor->dtype, .memory = memory, .packed = packed};
    find_packed_strides(order, layout.dims, box, packed_stride);
    if (cvy_box_elements(box, layout.dims) == 0) {
        return;
    }
    if (blocked == layout.dims) {
        add_part(pack, &layout, box, packed_stride, 0);
        return;
    }
    int64_t block = layout.block[blocked], at = box->begin[blocked], end = at + box->extent[blocked];
    while (at < end) {
        int64_t in_block = cvy_round_up(at + 1, block), whole = at % block == 0 ? end / block * block : at;
        int64_t to = whole > at ? whole : cvy_min_i64(in_block, end);
        cvy_box part = *box;
        part.begin[blocked] = at;
        part.extent[blocked] = to - at;
        add_part(pack, &layout, &part, packed_stride, (at - box->begin[blocked]) * packed_stride[blocked]);
        at = to;
    }
}

/* ---- copies ---- */

typedef enum direction { PACK, UNPACK, ADD } direction;

/* One row of elements, from one stride to another. */
typedef struct row {
    int64_t count, from_stride, to_stride;
} row;

static void copy_row(const row *r, int64_t item_bytes, const void *from, void *to)
{
    if (r->from_stride == 1 && r->to_stride == 1) {
        memcpy(to, from, (size_t)(r->count * item_bytes));
    } else if (item_bytes == 4) {
        for (int64_t i = 0; i < r->count; i++) {
            ((int32_t *)to)[i * r->to_stride] = ((const int32_t *)from)[i * r->from_stride];
        }
    } else {
        for (int64_t i = 0; i < r->count; i++) {
            ((int64_t *)to)[i * r->to_stride] = ((const int64_t *)from)[i * r->from_stride];
        }
    }
}

static void add_row(const row *r, cvy_dtype dtype, const void *from, void *to)
{
    if (dtype == CVY_F32) {
#pragma omp simd
        for (int64_t i = 0; i < r->count; i++) {
            ((float *)to)[i * r->to_stride] += ((const float *)from)[i * r->from_stride];
        }
    } else {
        for (int64_t i = 0; i < r->count; i++) {
            ((double *)to)[i * r->to_stride] += ((const double *)from)[i * r->from_stride];
        }
    }
}

/* The innermost loop, at elements of the memory and of the packed; a box of one element has none. */
static void move_row(const cvy_pack *pack, const cvy_pack_loops *loops, int64_t memory, int64_t packed, direction way)
{
    int last = loops->levels - 1;
    int64_t item = cvy_dtype_bytes(pack->dtype);
    int64_t strides[2] = {last >= 0 ? loops->memory_stride[last] : 1, last >= 0 ? loops->packed_stride[last] : 1};
    const row r = {last >= 0 ? loops->extent[last] : 1, strides[way != PACK], strides[way == PACK]};
    void *in_memory = (char *)pack->memory + memory * item, *in_packed = (char *)pack->packed + packed * item;
    if (way == ADD) {
        add_row(&r, pack->dtype, in_packed, in_memory);
    } else if (way == PACK) {
        copy_row(&r, item, in_memory, in_packed);
    } else {
        copy_row(&r, item, in_packed, in_memory);
    }
}

/* The loops from a level on. */
static void move_levels(const cvy_pack *pack, const cvy_pack_loops *loops, int level, int64_t memory, int64_t packed,
                        direction way)
{
    if (level + 1 >= loops->levels) {
        move_row(pack, loops, memory, packed, way);
        return;
    }
    for (int64_t i = 0; i < loops->extent[level]; i++) {
        move_levels(pack, loops, level + 1, memory + i * loops->memory_stride[level],
                    packed + i * loops->packed_stride[level], way);
    }
}

/* The outer loops are shared by the threads: two of them where there is a third. */
static void move_part(const cvy_pack *pack, const cvy_pack_loops *loops, direction way)
{
    int64_t elements = 1;
    for (int i = 0; i < loops->levels; i++) {
        elements *= loops->extent[i];
    }
    if (loops->levels < 2 || elements < PARALLEL_ELEMENTS) {
        move_levels(pack, loops, 0, loops->memory_offset, loops->packed_offset, way);
        return;
    }
    bool both = loops->levels > 2;
    int64_t inner = both ? loops->extent[1] : 1;
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < loops->extent[0] * inner; i++) {
        int64_t first = i / inner, second = i % inner;
        int64_t memory = loops->memory_offset + first * loops->memory_stride[0];
        int64_t packed = loops->packed_offset + first * loops->packed_stride[0];
        memory += both ? second * loops->memory_stride[1] : 0;
        packed += both ? second * loops->packed_stride[1] : 0;
        move_levels(pack, loops, both ? 2 : 1, memory, packed, way);
    }
}

void cvy_pack_run(const cvy_pack *pack)
{
    for (int i = 0; i < pack->parts; i++) {
        move_part(pack, &pack->part[i], PACK);
    }
}

void cvy_pack_run_back(const cvy_pack *pack, bool add)
{
    for (int i = 0; i < pack->parts; i++) {
        move_part(pack, &pack->part[i], add ? ADD : UNPACK);
    }
}
