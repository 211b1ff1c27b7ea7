/*
 * Shares are found when they are asked for, from the rule that divides a stretch: a placement over a hundred thousand
 * ranks is as small as one over two. Stretches lie one behind the other, so shares come sorted.
 */
#include "tensor/placement.h"

#include <inttypes.h>

#include "base/checked.h"

cvy_placement cvy_placement_replicate(int64_t parts)
{
    return (cvy_placement){.placing = CVY_PLACING_REPLICATED, .parts = parts};
}

cvy_placement cvy_placement_sum(int64_t parts)
{
    return (cvy_placement){.placing = CVY_PLACING_PARTIAL, .parts = parts};
}

static cvy_status check_unit(int64_t extent, int64_t unit)
{
    CVY_REQUIRE(extent % unit == 0, CVY_ERR_INFEASIBLE, "an extent of %" PRId64 " cannot be cut in units of %" PRId64,
                extent, unit);
    return CVY_OK;
}

cvy_status cvy_placement_split(int dim, int64_t extent, int64_t unit, int64_t parts, cvy_placement *placement_out)
{
    CVY_TRY(check_unit(extent, unit));
    *placement_out = (cvy_placement){.placing = CVY_PLACING_SPLIT,
                                     .dim = dim,
                                     .parts = parts,
                                     .segments = 1,
                                     .segment = {{.extent = extent, .unit = unit}}};
    return CVY_OK;
}

cvy_placement cvy_placement_split_at(int dim, const int64_t *border, int64_t parts)
{
    return (cvy_placement){.placing = CVY_PLACING_SPLIT,
                           .dim = dim,
                           .parts = parts,
                           .segments = 1,
                           .segment = {{.extent = border[parts], .unit = 1, .border = border}}};
}

/* The weights' sum, once it is known that every product of a weight with the units can be counted. */
static cvy_status add_weights(int64_t units, const int64_t *weights, int64_t parts, int64_t *total_out)
{
    int64_t total = 0, product;
    for (int64_t i = 0; i < parts; i++) {
        CVY_REQUIRE(weights[i] >= 0, CVY_ERR_INPUT,
                    "share %" PRId64 " of %" PRId64 " is %" PRId64 ", expected 0 or more", i + 1, parts, weights[i]);
        CVY_REQUIRE(cvy_add_i64(total, weights[i], &total) && cvy_mul_i64(total, units, &product), CVY_ERR_INPUT,
                    "shares up to %" PRId64 " are too large to count with", weights[i]);
    }
    CVY_REQUIRE(total > 0, CVY_ERR_INPUT, "all %" PRId64 " shares are 0", parts);
    *total_out = total;
    return CVY_OK;
}

/* How many of the ranks before @p index, or of all, have a larger claim to a left-over unit than remainder's. */
static int64_t count_before(int64_t units, const int64_t *weights, int64_t parts, int64_t total, int64_t index)
{
    int64_t mine = units * weights[index] % total, before = 0;
    for (int64_t i = 0; i < parts; i++) {
        int64_t remainder = units * weights[i] % total;
        before += remainder > mine || (remainder == mine && i < index);
    }
    return before;
}

cvy_status cvy_placement_weigh(int64_t extent, int64_t unit, const int64_t *weights, int64_t parts, int64_t *border_out)
{
    int64_t units = extent / unit, total = 0, left = units;
    CVY_TRY(check_unit(extent, unit));
    CVY_TRY(add_weights(units, weights, parts, &total));
    for (int64_t i = 0; i < parts; i++) {
        left -= units * weights[i] / total;
    }
    border_out[0] = 0;
    for (int64_t i = 0; i < parts; i++) {
        int64_t share = units * weights[i] / total + (count_before(units, weights, parts, total, i) < left);
        border_out[i + 1] = border_out[i] + share * unit;
    }
    return CVY_OK;
}

/* The end of what a placement splits: the extent of its dimension. */
static int64_t get_end(const cvy_placement *placement)
{
    const cvy_segment *last = &placement->segment[placement->segments - 1];
    return last->begin + last->extent;
}

cvy_status cvy_placement_concat(cvy_placement *placement, const cvy_placement *next)
{
    bool alike = placement->placing == CVY_PLACING_SPLIT && next->placing == CVY_PLACING_SPLIT &&
                 placement->dim == next->dim && placement->parts == next->parts;
    CVY_REQUIRE(alike, CVY_ERR_ARG, "a concat of shares of different dimensions or ranks");
    CVY_REQUIRE(placement->segments + next->segments <= CVY_MAX_INTERVALS, CVY_ERR_UNSUPPORTED,
                "a concat of %d separately cut stretches, at most %d", placement->segments + next->segments,
                (int)CVY_MAX_INTERVALS);
    int64_t end = get_end(placement);
    int segments = next->segments; /* the two may be one */
    for (int i = 0; i < segments; i++) {
        cvy_segment *segment = &placement->segment[placement->segments++];
        *segment = next->segment[i];
        segment->begin += end;
    }
    return CVY_OK;
}

static cvy_interval get_part(const cvy_segment *segment, int64_t parts, int64_t index)
{
    if (segment->border) {
        return (cvy_interval){segment->begin + segment->border[index], segment->begin + segment->border[index + 1]};
    }
    cvy_intervals units = cvy_intervals_share(segment->extent / segment->unit, parts, index);
    return (cvy_interval){segment->begin + units.at[0].begin * segment->unit,
                          segment->begin + units.at[0].end * segment->unit};
}

cvy_intervals cvy_placement_share(const cvy_placement *placement, int dim, int64_t extent, int64_t index)
{
    if (placement->placing != CVY_PLACING_SPLIT || placement->dim != dim) {
        return cvy_intervals_whole(extent);
    }
    cvy_intervals share = {0};
    for (int i = 0; i < placement->segments; i++) {
        cvy_interval part = get_part(&placement->segment[i], placement->parts, index);
        if (share.count && share.at[share.count - 1].end == part.begin && part.end > part.begin) {
            share.at[share.count - 1].end = part.end;
        } else if (part.end > part.begin) {
            share.at[share.count++] = part;
        }
    }
    return share;
}

/* Whether two splits are said in the same words: then nobody need go through the ranks. */
static bool is_said_alike(const cvy_placement *a, const cvy_placement *b)
{
    bool alike = a->segments == b->segments;
    for (int i = 0; alike && i < a->segments; i++) {
        const cvy_segment *x = &a->segment[i], *y = &b->segment[i];
        alike = x->begin == y->begin && x->extent == y->extent && x->unit == y->unit && x->border == y->border;
    }
    return alike;
}

bool cvy_placement_equal(const cvy_placement *a, const cvy_placement *b)
{
    if (a->placing != b->placing || a->dim != b->dim || a->parts != b->parts) {
        return false;
    }
    if (a->placing != CVY_PLACING_SPLIT || is_said_alike(a, b)) {
        return true;
    }
    int64_t extent = get_end(a);
    bool equal = extent == get_end(b);
    for (int64_t index = 0; equal && index < a->parts; index++) {
        cvy_intervals of_a = cvy_placement_share(a, a->dim, extent, index);
        cvy_intervals of_b = cvy_placement_share(b, b->dim, extent, index);
        int64_t common = cvy_intervals_overlap(&of_a, &of_b);
        equal = common == cvy_intervals_length(&of_a) && common == cvy_intervals_length(&of_b);
    }
    return equal;
}
