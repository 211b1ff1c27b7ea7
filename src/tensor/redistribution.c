/*
 * A region is a product of shares, one for each dimension, so what two regions have in common is the product of what
 * their shares have in common. The transpose of a redistribution (its backward) swaps partial and replicated, and
 * sender and receiver.
 */
#include "tensor/redistribution.h"

const char *cvy_redistribution_name(cvy_redistribution redistribution)
{
    static const char *const names[CVY_REDISTRIBUTION_COUNT] = {"none",       "local",          "all-gather",
                                                                "all-reduce", "reduce-scatter", "all-to-all"};
    return names[redistribution];
}

cvy_redistribution cvy_redistribution_find(const cvy_placement *from, const cvy_placement *to)
{
    /* Rows are where it comes from, columns where it goes: replicated, partial, split. */
    static const cvy_redistribution table[3][3] = {
        {CVY_REDISTRIBUTION_NONE, CVY_REDISTRIBUTION_LOCAL, CVY_REDISTRIBUTION_LOCAL},
        {CVY_REDISTRIBUTION_ALL_REDUCE, CVY_REDISTRIBUTION_NONE, CVY_REDISTRIBUTION_REDUCE_SCATTER},
        {CVY_REDISTRIBUTION_ALL_GATHER, CVY_REDISTRIBUTION_LOCAL, CVY_REDISTRIBUTION_ALL_TO_ALL},
    };
    if (from->parts == 1 || cvy_placement_equal(from, to)) {
        return CVY_REDISTRIBUTION_NONE;
    }
    return table[from->placing][to->placing];
}

int64_t cvy_redistribution_elements(const cvy_placement *from, const cvy_placement *to, const cvy_shape *shape,
                                    int64_t sender, int64_t receiver)
{
    bool stays = from->placing == CVY_PLACING_REPLICATED || to->placing == CVY_PLACING_PARTIAL;
    bool dropped = from->placing == CVY_PLACING_REPLICATED && to->placing == CVY_PLACING_PARTIAL && receiver != 0;
    if ((stays && sender != receiver) || dropped) {
        return 0;
    }
    int64_t elements = 1;
    for (int dim = 0; dim < shape->dims; dim++) {
        cvy_intervals had = cvy_placement_share(from, dim, shape->extent[dim], sender);
        cvy_intervals needed = cvy_placement_share(to, dim, shape->extent[dim], receiver);
        elements *= cvy_intervals_overlap(&had, &needed);
    }
    return elements;
}
