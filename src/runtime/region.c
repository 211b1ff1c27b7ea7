/*
 * A region is a product of lists of intervals, and so is what two regions have in common. In memory the intervals of a
 * list lie one behind the other, so each piece of the product is a box.
 */
#include "runtime/region.h"

#include "base/checked.h"

cvy_region cvy_region_of(const cvy_buffer *buffer)
{
    cvy_region region = {.dims = buffer->tensor.shape.dims};
    for (int i = 0; i < region.dims; i++) {
        region.held[i].count = buffer->local[i].end > buffer->local[i].begin;
        region.held[i].at[0] = buffer->local[i];
    }
    if (buffer->stretches.count > 0) {
        region.held[buffer->stretched] = buffer->stretches;
    }
    return region;
}

int64_t cvy_region_elements(const cvy_region *region) { return cvy_region_overlap(region, region); }

int64_t cvy_region_overlap(const cvy_region *a, const cvy_region *b)
{
    int64_t elements = a->dims > 0;
    for (int i = 0; i < a->dims; i++) {
        elements *= cvy_intervals_overlap(&a->held[i], &b->held[i]);
    }
    return elements;
}

/* The piece of a dimension with a number: where it lies in @p a; false where there are not so many. */
static bool find_piece(const cvy_intervals *a, const cvy_intervals *b, int number, cvy_interval *local_out)
{
    int64_t before = 0; /* indices of a in its intervals so far */
    for (int i = 0; i < a->count; i++) {
        for (int k = 0; k < b->count; k++) {
            int64_t begin = cvy_max_i64(a->at[i].begin, b->at[k].begin);
            int64_t end = cvy_min_i64(a->at[i].end, b->at[k].end);
            if (begin < end && number-- == 0) {
                *local_out = (cvy_interval){before + begin - a->at[i].begin, before + end - a->at[i].begin};
                return true;
            }
        }
        before += a->at[i].end - a->at[i].begin;
    }
    return false;
}

void cvy_region_walk_start(const cvy_region *mine, const cvy_region *other, cvy_region_walk *walk)
{
    *walk = (cvy_region_walk){.mine = mine, .other = other, .ended = cvy_region_overlap(mine, other) == 0};
}

bool cvy_region_walk_next(cvy_region_walk *walk, cvy_box *box)
{
    const cvy_region *mine = walk->mine, *other = walk->other;
    cvy_interval piece = {0, 0};
    if (walk->ended) {
        return false;
    }
    for (int i = 0; i < mine->dims; i++) {
        (void)find_piece(&mine->held[i], &other->held[i], walk->at[i], &piece);
        box->begin[i] = piece.begin;
        box->extent[i] = piece.end - piece.begin;
    }
    int dim = mine->dims - 1;
    for (; dim >= 0; dim--) { /* the last dimension moves first */
        if (find_piece(&mine->held[dim], &other->held[dim], ++walk->at[dim], &piece)) {
            break;
        }
        walk->at[dim] = 0;
    }
    walk->ended = dim < 0;
    return true;
}
